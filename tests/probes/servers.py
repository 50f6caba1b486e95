"""Servers over real HTTP that treat tools as well-known ones do. Each counts what it is asked.

    with listening(Dropper()) as url:
        ...

What they share is a model that calls when it is told of tools, and words otherwise.
"""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from typing_extensions import override

from testkit.vendor_answers import STREAMS, WHOLES, Answer
from toolspeak.engine.probe import ROLL_TWICE
from toolspeak.ir.message import Text

Body = dict[str, Any]
LEAK = '{"name": "%s", "arguments": {"sides": 20}}'
CALL = '```tool_call\n{"name": "%s", "arguments": {"sides": 20}}\n```'
TWICE = ROLL_TWICE[0].parts[0].text if isinstance(ROLL_TWICE[0].parts[0], Text) else ""


class Refusal(Exception):
    """An error, with its status and body."""

    def __init__(self, status: int, body: object) -> None:
        super().__init__(status)
        self.status, self.body = status, body


class Behaviour:
    """A server with native tools; those below differ from it."""

    wire = "openai_chat"
    base = "/v1"
    chat = "/v1/chat/completions"

    def __init__(self) -> None:
        self.pages: dict[str, object] = {"/v1/models": {"data": [{"id": "m", "owned_by": "somebody"}]}}
        self.turns: list[Body] = []
        self.looks: list[str] = []
        self.lock = threading.Lock()

    def page(self, path: str) -> object:
        with self.lock:
            self.looks.append(path)
        if path not in self.pages:
            raise Refusal(404, {"error": {"message": f"{path} is not found", "type": "not_found"}})
        return self.pages[path]

    def turn(self, body: Body) -> tuple[Answer, int]:
        """Return the answer, and the tokens of its prompt."""
        with self.lock:
            self.turns.append(body)
        self.check(body)
        seen = body["messages"], self.shown(body)
        return self.answer(body), len(json.dumps(seen)) // 4

    def check(self, body: Body) -> None:
        """Refuse what this server refuses."""

    def shown(self, body: Body) -> list[Body]:
        """Return the tools that the model gets to see."""
        return body.get("tools") or []

    def answer(self, body: Body) -> Answer:
        """Do what the model does."""
        return native(body) if self.shown(body) else words(body)

    @property
    def probes(self) -> int:
        """How many probes came: each has one question without tools and of one token."""
        return sum(not turn.get("tools") and most(turn) == 1 for turn in self.turns)


def most(body: Body) -> object:
    return body.get("max_tokens") or body.get("max_completion_tokens") or body.get("options", {}).get("num_predict")


def is_answered(body: Body) -> bool:
    """Tell whether a tool's result is there, native or as text."""
    last = body["messages"][-1]
    return last["role"] == "tool" or "tool_result" in json.dumps(last)


def tool_of(body: Body) -> str:
    """Return the tool that a question is about: the one that it names, else the first."""
    names = [tool["function"]["name"] for tool in body.get("tools") or ()]
    asked = json.dumps(body["messages"])
    return next((name for name in names if name in asked), names[0] if names else "roll_dice")


def native(body: Body) -> Answer:
    if is_answered(body):
        return Answer("It is 17.")
    times = 2 if TWICE in json.dumps(body["messages"]) else 1
    return Answer(calls=tuple((f"call_{index}", tool_of(body), {"sides": 20}) for index in range(times)))


def leaked(body: Body) -> Answer:
    return Answer("It is 17." if is_answered(body) else LEAK % tool_of(body))


def words(body: Body) -> Answer:
    """Call in the form that the prompt teaches, if it teaches one."""
    said = json.dumps(body["messages"])
    return Answer(CALL % "roll_dice" if "```tool_call" in said and not is_answered(body) else "I would say 11.")


class Ollama(Behaviour):
    """Its own protocol; without the capability it refuses tools."""

    wire, base, chat = "ollama", "", "/api/chat"

    def __init__(self, *capabilities: str, tells: bool = True) -> None:
        super().__init__()
        self.has = "tools" in capabilities
        show: Body = {"details": {"family": "llama"}, "model_info": {"llama.context_length": 8192}, "template": "{{}}"}
        told = {"capabilities": ["completion", *capabilities]} if tells else {}
        self.pages = {
            "/api/tags": {"models": [{"name": "m"}]},
            "/api/show": show | told,
            "/api/version": {"version": "0.20.0"},
        }

    @override
    def check(self, body: Body) -> None:
        if body.get("tools") and not self.has:
            raise Refusal(400, {"error": "registry.ollama.ai/library/m:latest does not support tools"})


class VllmWithoutFlags(Behaviour):
    """Refuses `auto`, which is the default."""

    def __init__(self) -> None:
        super().__init__()
        self.pages = {
            "/v1/models": {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 4096}]},
            "/version": {"version": "0.12.0"},
        }

    @override
    def check(self, body: Body) -> None:
        if body.get("tools") and body.get("tool_choice", "auto") == "auto":
            flags = "--enable-auto-tool-choice and --tool-call-parser to be set"
            message = f'"auto" tool choice requires {flags}'
            raise Refusal(400, {"object": "error", "message": message, "type": "BadRequestError", "code": 400})


class OpenRouter(Behaviour):
    """Lists what each model supports; `liar` supports less than its entry says."""

    base, chat = "/api/v1", "/api/v1/chat/completions"

    def __init__(self) -> None:
        super().__init__()
        entries = [
            {"id": "m", "supported_parameters": ["tools", "tool_choice"], "context_length": 131072},
            {"id": "none", "supported_parameters": ["temperature"], "context_length": 4096},
            {"id": "liar", "supported_parameters": ["tools"], "context_length": 4096},
        ]
        self.pages = {"/api/v1/models": {"data": entries}}

    @override
    def check(self, body: Body) -> None:
        if body.get("tools") and body["model"] != "m":
            message = "No endpoints found that support tool use. To learn more about provider routing, see the docs."
            raise Refusal(404, {"error": {"message": message, "code": 404}})


class Groq(Behaviour):
    """Native; a call that is demanded it sometimes cannot read itself."""

    base, chat = "/openai/v1", "/openai/v1/chat/completions"

    def __init__(self) -> None:
        super().__init__()
        self.pages = {"/openai/v1/models": {"data": [{"id": "m", "owned_by": "Meta", "context_window": 131072}]}}

    @override
    def check(self, body: Body) -> None:
        if body.get("tool_choice") == "required":
            message = "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."
            error = {"message": message, "type": "invalid_request_error", "code": "tool_use_failed"}
            raise Refusal(400, {"error": error | {"failed_generation": "<function=roll_dice{sides: 20"}})


class Dropper(Behaviour):
    """Takes tools, and shows its model none of them."""

    @override
    def shown(self, body: Body) -> list[Body]:
        return []


class LeaksWithMany(Behaviour):
    """Works with five tools, and from ten on the calls come as text."""

    @override
    def answer(self, body: Body) -> Answer:
        return leaked(body) if len(self.shown(body)) >= 10 else super().answer(body)


class Failing(Behaviour):
    """Fails until it is told not to."""

    fails = True

    @override
    def check(self, body: Body) -> None:
        if self.fails:
            raise Refusal(503, {"error": {"message": "the model is overloaded", "type": "overloaded"}})


# ---------------------------------------------------------------- HTTP


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    behaviour: Behaviour

    def do_GET(self) -> None:
        self._try(None)

    def do_POST(self) -> None:
        self._try(json.loads(self.rfile.read(int(self.headers["content-length"]))))

    def _try(self, body: Body | None) -> None:
        try:
            if body is not None and self.path == self.behaviour.chat:
                self._turn(body)
            else:
                self._send(200, self.behaviour.page(self.path))
        except Refusal as refusal:
            self._send(refusal.status, refusal.body)
        except OSError:
            self.close_connection = True  # whoever asked has gone

    def _turn(self, body: Body) -> None:
        answer, tokens = self.behaviour.turn(body)
        wire = self.behaviour.wire
        streams = body.get("stream", wire == "ollama")
        text = STREAMS[wire](answer) if streams else json.dumps(WHOLES[wire](answer))
        for name in ("prompt_tokens", "prompt_eval_count"):
            text = text.replace(f'"{name}": 11', f'"{name}": {tokens}')
        stream_type = "application/x-ndjson" if wire == "ollama" else "text/event-stream"
        self._send(200, text, stream_type if streams else "application/json")

    def _send(self, status: int, body: object, media_type: str = "application/json") -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def listening(behaviour: Behaviour) -> Generator[str]:
    """Serve it on a free port; give its base URL."""
    handler = type("Handler", (_Handler,), {"behaviour": behaviour})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}{behaviour.base}"
        finally:
            server.shutdown()
            thread.join()

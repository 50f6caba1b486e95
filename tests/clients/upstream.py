"""A server with the scripted model behind it, which has no tool calling, or refuses it, or has it, or spoils it.

    ignores    takes no notice of `tools`; answers in plain text, calls in the form of a dialect
    refuses    answers an error to `tools`, in the words of a real server; plain text otherwise
    native     answers native calls
    leaks      takes `tools`, and lets the call out as text

By itself: `python -m tests.clients.upstream --mode refuses --wording vllm --port 9000`. It speaks Chat Completions
(`/v1/chat/completions`), Ollama's chat (`/api/chat`) and Anthropic's Messages (`/v1/messages`).
"""

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from aiohttp import web

from tests.clients.script import Body, Said, echoes, says
from tests.clients.speech import FORMS

Wording: TypeAlias = tuple[int, Mapping[str, Any]]

MODES = ("ignores", "refuses", "native", "leaks")
MODEL = "scripted"
STEP = 4
"""Characters in a chunk: fewer than any marker has."""
WRITTEN_TOKENS = 13
BYTES_PER_TOKEN = 4
LARGEST = 64 * 1024 * 1024

REFUSALS: Mapping[str, Wording] = {
    "ollama": (
        400,
        {
            "error": {
                "message": "registry.ollama.ai/library/deepseek-r1:latest does not support tools",
                "type": "api_error",
                "param": None,
                "code": None,
            }
        },
    ),
    "vllm": (
        400,
        {
            "object": "error",
            "message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    "llamacpp": (
        500,
        {"error": {"code": 500, "message": "tools param requires --jinja flag", "type": "server_error"}},
    ),
    "openrouter": (
        404,
        {
            "error": {
                "message": "No endpoints found that support tool use. To learn more about provider routing, "
                "visit: https://openrouter.ai/docs/provider-routing",
                "code": 404,
            }
        },
    ),
}


@dataclass(frozen=True, slots=True)
class Noted:
    """One request that came in."""

    code: str
    wire: str
    model: str
    tools: int
    stream: bool
    said: str
    """refused, call, or text."""
    echoes: int
    """How often the call stands in the text of the history: once where it is emulated, and never elsewhere."""


@dataclass
class Upstream:
    """One server; `notes` grows with each request."""

    mode: str
    dialect: str = "fenced"
    wording: str = "ollama"
    lists_models: bool = True
    notes: list[Noted] = field(default_factory=list[Noted])
    _number: int = 0
    _runner: web.AppRunner | None = None

    def app(self) -> web.Application:
        app = web.Application(client_max_size=LARGEST)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/messages", self._anthropic)
        app.router.add_post("/api/chat", self._ollama)
        if self.lists_models:
            app.router.add_get("/v1/models", self._models)
        return app

    async def start(self, port: int = 0) -> int:
        """Serve on loopback; return the port."""
        self._runner = web.AppRunner(self.app(), access_log=None, handle_signals=False)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Serve no longer."""
        if self._runner is not None:
            await self._runner.cleanup()

    # ------------------------------------------------------------ wires

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "nobody"}]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body: Body = await request.json()
        said = says(body)
        if self._refuses(body):
            return self._refusal("openai_chat", body, said)
        self._note("openai_chat", body, said)
        written = self._written(said)
        stamp = {"id": f"chatcmpl-{self._next()}", "created": 1, "model": body.get("model", MODEL)}
        usage = usage_of(body)
        if not body.get("stream"):
            return web.json_response(chat_whole(written, stamp, usage))
        return await _stream(request, chat_lines(written, stamp, usage), "text/event-stream")

    async def _ollama(self, request: web.Request) -> web.StreamResponse:
        body: Body = await request.json()
        said = says(body)
        if self._refuses(body):
            return self._refusal("ollama", body, said)
        self._note("ollama", body, said)
        lines = [*ollama_lines(self._written(said), str(body.get("model", MODEL)))]
        if body.get("stream") is False:
            return web.json_response(_joined(lines))
        return await _stream(request, (json.dumps(line) + "\n" for line in lines), "application/x-ndjson")

    async def _anthropic(self, request: web.Request) -> web.StreamResponse:
        body: Body = await request.json()
        system = {"role": "system", "content": body.get("system") or ""}
        said = says({**body, "messages": [system, *body["messages"]]})
        if self._refuses(body):
            return self._refusal("anthropic", body, said)
        self._note("anthropic", body, said)
        text = self._written(said).text
        message = {"id": f"msg_{self._next()}", "type": "message", "role": "assistant", "model": MODEL}
        if not body.get("stream"):
            return web.json_response({**message, **_ANTHROPIC_END, "content": [{"type": "text", "text": text}]})
        return await _stream(request, anthropic_lines(text, message), "text/event-stream")

    # ------------------------------------------------------------ modes

    def _refuses(self, body: Body) -> bool:
        return self.mode == "refuses" and bool(body.get("tools"))

    def _refusal(self, wire: str, body: Body, said: Said) -> web.Response:
        status, words = REFUSALS[self.wording]
        self._note(wire, body, Said(said.code), "refused")
        return web.json_response(words, status=status)

    def _written(self, said: Said) -> Said:
        """Write the call as text, unless this server has native calls."""
        if said.call is None or self.mode == "native":
            return said
        form = FORMS["hermes" if self.mode == "leaks" else self.dialect]
        return Said(said.code, said.text + form(said.call.name, said.call.arguments))

    def _note(self, wire: str, body: Body, said: Said, what: str = "") -> None:
        what = what or ("call" if said.call else "text")
        tools, stream = len(body.get("tools") or ()), bool(body.get("stream", wire == "ollama"))
        echoed = echoes(body, said.code)
        self.notes.append(Noted(said.code, wire, str(body.get("model")), tools, stream, what, echoed))

    def _next(self) -> str:
        self._number += 1
        return f"{self._number:08}"


# ---------------------------------------------------------------- bodies


def pieces(text: str) -> list[str]:
    """Cut a text into small pieces."""
    return re.findall(rf"(?s).{{1,{STEP}}}", text)


def usage_of(body: Body) -> dict[str, int]:
    """Count the tokens of the whole request: too few for its tools would mean that they were dropped (CAP-7)."""
    read = len(json.dumps(body)) // BYTES_PER_TOKEN
    return {"prompt_tokens": read, "completion_tokens": WRITTEN_TOKENS, "total_tokens": read + WRITTEN_TOKENS}


def chat_whole(said: Said, stamp: Mapping[str, Any], usage: Mapping[str, int]) -> dict[str, Any]:
    """Write a whole answer of Chat Completions."""
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    if said.call:
        function = {"name": said.call.name, "arguments": json.dumps(said.call.arguments)}
        message["tool_calls"] = [{"id": f"call_{stamp['id'][-8:]}", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if said.call else "stop"}
    return {**stamp, "object": "chat.completion", "choices": [choice], "usage": usage}


def chat_lines(said: Said, stamp: Mapping[str, Any], usage: Mapping[str, int]) -> Iterator[str]:
    """Write a stream of Chat Completions."""
    for delta in _chat_deltas(said, stamp["id"][-8:]):
        yield _chunk(stamp, choices=[{"index": 0, "delta": delta, "finish_reason": None}])
    reason = "tool_calls" if said.call else "stop"
    yield _chunk(stamp, choices=[{"index": 0, "delta": dict[str, Any](), "finish_reason": reason}])
    yield _chunk(stamp, choices=[], usage=usage)
    yield "data: [DONE]\n\n"


def _chat_deltas(said: Said, id: str) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for piece in pieces(said.text):
        yield {"content": piece}
    if said.call:
        function = {"name": said.call.name, "arguments": ""}
        yield {"tool_calls": [{"index": 0, "id": f"call_{id}", "type": "function", "function": function}]}
        for piece in pieces(json.dumps(said.call.arguments)):
            yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}


def _chunk(stamp: Mapping[str, Any], **fields: object) -> str:
    return f"data: {json.dumps({**stamp, 'object': 'chat.completion.chunk', **fields})}\n\n"


def ollama_lines(said: Said, model: str) -> Iterator[dict[str, Any]]:
    """Write a stream of Ollama."""
    head = {"model": model, "created_at": "2026-01-01T00:00:00Z"}
    for piece in pieces(said.text):
        yield {**head, "message": {"role": "assistant", "content": piece}, "done": False}
    if said.call:
        calls = [{"function": {"name": said.call.name, "arguments": said.call.arguments}}]
        yield {**head, "message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": False}
    end = {"done": True, "done_reason": "stop", "prompt_eval_count": 21, "eval_count": 13}
    yield {**head, "message": {"role": "assistant", "content": ""}, **end}


def _joined(lines: list[dict[str, Any]]) -> dict[str, Any]:
    text = "".join(line["message"]["content"] for line in lines)
    calls = [call for line in lines for call in line["message"].get("tool_calls", ())]
    return {**lines[-1], "message": {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}}


_ANTHROPIC_END: Mapping[str, Any] = {
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 21, "output_tokens": 13},
}


def anthropic_lines(text: str, message: Mapping[str, Any]) -> Iterator[str]:
    """Write a stream of Anthropic's Messages: one block of text."""
    start: dict[str, Any] = {**message, **_ANTHROPIC_END, "content": [], "stop_reason": None}
    yield _event("message_start", message=start)
    yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for piece in pieces(text):
        yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    yield _event("content_block_stop", index=0)
    ending = {key: _ANTHROPIC_END[key] for key in ("stop_reason", "stop_sequence")}
    yield _event("message_delta", delta=ending, usage=_ANTHROPIC_END["usage"])
    yield _event("message_stop")


def _event(type: str, **fields: object) -> str:
    return f"event: {type}\ndata: {json.dumps({'type': type, **fields})}\n\n"


async def _stream(request: web.Request, lines: Iterator[str], media_type: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": media_type})
    await response.prepare(request)
    for line in lines:
        await response.write(line.encode())
    await response.write_eof()
    return response


async def _serve(upstream: Upstream, port: int) -> None:
    print(f"scripted upstream on http://127.0.0.1:{await upstream.start(port)}", file=sys.stderr, flush=True)
    await asyncio.Event().wait()


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=MODES, default="ignores")
    parser.add_argument("--dialect", choices=sorted(FORMS), default="fenced")
    parser.add_argument("--wording", choices=sorted(REFUSALS), default="ollama")
    parser.add_argument("--port", type=int, default=9000)
    options = parser.parse_args()
    upstream = Upstream(options.mode, options.dialect, options.wording)
    asyncio.run(_serve(upstream, options.port))


if __name__ == "__main__":
    main()

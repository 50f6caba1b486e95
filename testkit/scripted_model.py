"""A small OpenAI-compatible server on loopback that sends the answers of a test's script, over real HTTP."""

import json
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

from typing_extensions import override

Delta: TypeAlias = dict[str, Any]
PATIENCE_S = 30


@dataclass(frozen=True)
class Says:
    """An answer: its deltas, why it ended, and whether it stays open until the client goes."""

    deltas: Sequence[Delta]
    reason: str = "stop"
    hangs: bool = False


@dataclass(frozen=True)
class Refuses:
    """An error."""

    status: int
    message: str


Answer: TypeAlias = Says | Refuses


def usage(body: dict[str, Any]) -> dict[str, int]:
    """Count tokens: tools are shown to the model."""
    read = 21 + 40 * len(body.get("tools", ()))
    return {"prompt_tokens": read, "completion_tokens": 13, "total_tokens": read + 13}


def text(*pieces: str, reason: str = "stop", hangs: bool = False) -> Says:
    return Says([{"content": piece} for piece in pieces], reason, hangs)


def thought(reasoning: str, *pieces: str) -> Says:
    return Says([{"reasoning_content": reasoning}, *({"content": piece} for piece in pieces)])


def called(*calls: tuple[str, str]) -> Says:
    """Return native calls: names and arguments."""
    return Says(
        [
            {"tool_calls": [{"index": at, "id": f"call_{at}", "function": {"name": name, "arguments": arguments}}]}
            for at, (name, arguments) in enumerate(calls)
        ],
        "tool_calls",
    )


@dataclass
class Scripted:
    """The server; `bodies` are the received requests; `gone` is set when a client leaves an answer that hangs."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list[Answer])
    models: list[str] | Refuses = field(default_factory=lambda: ["tiny", "large"])
    owner: str = "nobody"
    bodies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    gone: threading.Event = field(default_factory=threading.Event)

    def says(self, *answers: Answer) -> None:
        self.answers += answers

    def listing(self) -> dict[str, Any] | Refuses:
        if isinstance(self.models, Refuses):
            return self.models
        return {"data": [{"id": name, "owned_by": self.owner} for name in self.models]}

    def wait_for(self, requests: int) -> None:
        """Wait until that many requests have come."""
        until = time.monotonic() + PATIENCE_S
        while len(self.bodies) < requests:
            assert time.monotonic() < until, f"only {len(self.bodies)} requests came"
            time.sleep(0.01)

    def next(self, body: dict[str, Any]) -> Answer:
        self.bodies.append(body)
        return self.answers.pop(0) if self.answers else Refuses(400, "the script is over")


@contextmanager
def scripted() -> Generator[Scripted, None, None]:
    """Serve until the test is over."""
    script = Scripted()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"script": script}))
    server.daemon_threads = True
    script.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    script: Scripted

    def do_GET(self) -> None:
        found = self.script.listing() if self.path == "/v1/models" else Refuses(404, "no such path")
        self._json(found)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        known = self.path == "/v1/chat/completions"
        answer = self.script.next(body) if known else Refuses(404, "no such path")
        if isinstance(answer, Refuses):
            self._json(answer)
        elif body.get("stream"):
            self._stream(answer, usage(body))
        else:
            self._json({**_whole(answer), "usage": usage(body)})

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def _json(self, answer: dict[str, Any] | Refuses) -> None:
        status = answer.status if isinstance(answer, Refuses) else 200
        body = {"error": {"message": answer.message}} if isinstance(answer, Refuses) else answer
        written = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(written)))
        self.end_headers()
        self.wfile.write(written)

    def _stream(self, answer: Says, usage: dict[str, int]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for delta in answer.deltas:
            self._event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        if answer.hangs:
            self.rfile.read()  # ends when the client goes
            self.script.gone.set()
            return
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": answer.reason}]})
        self._event({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, chunk: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps({"id": "c1", "model": "tiny", **chunk}).encode() + b"\n\n")
        self.wfile.flush()


def _whole(answer: Says) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    for delta in answer.deltas:
        message["content"] += delta.get("content", "")
        message.setdefault("tool_calls", []).extend(delta.get("tool_calls", []))
        if "reasoning_content" in delta:
            message["reasoning_content"] = delta["reasoning_content"]
    return {"id": "c1", "choices": [{"index": 0, "message": message, "finish_reason": answer.reason}]}

"""The upstream of the bench: five wires on one port, answers by the name of the model, as cheap as Python can be.

    python -m bench.gateway.upstream PORT

It reads no JSON: a pattern finds the model, and all bytes that it sends are made before the first request.
"""

import asyncio
import json
import re
import sys
from functools import cache
from typing import cast

import httptools
import uvloop
from typing_extensions import override

from bench.gateway import answers

WIRE_OF = (
    ("/chat/completions", "openai_chat"),
    ("/responses", "openai_responses"),
    ("/messages", "anthropic"),
    ("enerateContent", "gemini"),
    ("/api/chat", "ollama"),
)
MODEL = re.compile(rb'"model"\s*:\s*"([^"]*)"')
MODEL_IN_PATH = re.compile(r"/models/([^:/]+):")
STREAM = re.compile(rb'"stream"\s*:\s*(true|false)')
NDJSON, SSE, JSON = b"application/x-ndjson", b"text/event-stream", b"application/json"


@cache
def chunks(wire: str, kind: str) -> tuple[bytes, ...]:
    """Return the head of a streamed answer and its HTTP chunks; the end is one with the last frame."""
    kind_of = NDJSON if wire == "ollama" else SSE
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ntransfer-encoding: chunked\r\n\r\n" % kind_of
    made = [b"%x\r\n%b\r\n" % (len(frame), frame) for frame in answers.frames(wire, kind)]
    made[-1] += b"0\r\n\r\n"
    return (head + made[0], *made[1:])


@cache
def burst(wire: str, kind: str) -> bytes:
    return b"".join(chunks(wire, kind))


@cache
def whole(wire: str, kind: str) -> bytes:
    return plain(200, answers.whole(wire, kind))


def plain(status: int, body: bytes) -> bytes:
    head = b"HTTP/1.1 %d Said\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n" % (status, JSON, len(body))
    return head + body


def side(path: str) -> bytes:
    """Answer requests for lists of models, as each vendor writes them."""
    if path.endswith("/api/tags"):
        return listing({"models": [{"name": model, "model": model} for model in answers.MODELS]})
    if "v1beta" in path:
        return listing({"models": [{"name": f"models/{model}"} for model in answers.MODELS]})
    if path.endswith("/models"):
        data = [{"id": model, "object": "model", "created": 1, "owned_by": "bench"} for model in answers.MODELS]
        return listing({"object": "list", "data": data})
    return plain(404, b'{"error": {"message": "not here"}}')


def listing(body: dict[str, object]) -> bytes:
    return plain(200, json.dumps(body).encode())


class Said(asyncio.Protocol):
    """One connection of a gateway."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._timer: asyncio.TimerHandle | None = None
        self._path, self._body = "", bytearray()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are of no class of asyncio

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer:
            self._timer.cancel()

    @override
    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._path, self._body = url.decode(), bytearray()

    def on_header(self, name: bytes, _value: bytes) -> None:
        if name.lower() == b"expect":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        path = self._path.partition("?")[0]
        wire = next((wire for ending, wire in WIRE_OF if path.endswith(ending)), "")
        if not wire:
            self._transport.write(side(path))
            return
        kind, _, pace = self._model().partition("-")
        if not self._streams(wire):
            self._transport.write(whole(wire, kind))
        elif pace == "0":
            self._transport.write(burst(wire, kind))
        else:
            self._next(chunks(wire, kind), 0, int(pace) / 1000)

    def _model(self) -> str:
        if found := MODEL_IN_PATH.search(self._path):
            return found[1]
        found = MODEL.search(self._body)
        return found[1].decode() if found else "none-0"

    def _streams(self, wire: str) -> bool:
        if wire == "gemini":
            return "stream" in self._path
        found = STREAM.search(self._body)
        return found[1] == b"true" if found else wire == "ollama"

    def _next(self, frames: tuple[bytes, ...], number: int, pace_s: float) -> None:
        self._transport.write(frames[number])
        if number + 1 < len(frames):
            self._timer = self._loop.call_later(pace_s, self._next, frames, number + 1, pace_s)


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Said, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))

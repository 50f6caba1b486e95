"""Both ends of many streams: an upstream that sends each its own text, and clients that keep what they receive.

Every stream has a number, which is in the name of the model that it requests: `s17-steady`. Its text is `17.0 17.1 …`;
text from another stream would show.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import httptools
from typing_extensions import override

from testkit.vendor_requests import WRITE, Ask

WIRES = tuple(WRITE)
STEADY, WAITS, LEAVES = "steady", "waits", "leaves"
MODEL = re.compile(rb'"model"\s*:\s*"s(\d+)-(\w+)"')
SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
NO_MODELS = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 12\r\n\r\n{"data": []}'


@dataclass(frozen=True)
class Load:
    """How many streams, of how many chunks; some of them wait before they begin, some of the clients leave."""

    streams: int
    chunks: int
    pace_s: float
    waiting: int
    leaving: int
    silence_s: float

    def kind(self, number: int) -> str:
        """Spread the kinds over the numbers."""
        if number % self.streams < self.waiting:
            return WAITS
        return LEAVES if number % self.streams < self.waiting + self.leaving else STEADY

    def text(self, number: int) -> str:
        """Return the whole text of a stream."""
        return "".join(f"{number}.{chunk} " for chunk in range(self.chunks))


@dataclass
class Book:
    """Records of both ends, by the stream's number."""

    open: int = 0
    most_open: int = 0
    hung_up: dict[int, float] = field(default_factory=dict[int, float])
    """When a client left."""
    freed: dict[int, float] = field(default_factory=dict[int, float])
    """When its upstream saw the connection end."""


# ---------------------------------------------------------------- the upstream


def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up", "choices": [choice]}
    data = b"data: " + json.dumps(body).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


END = chunk({}, "stop") + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


class Upstream(asyncio.Protocol):
    """One connection of the gateway. No stream begins before all are there."""

    def __init__(self, load: Load, book: Book, gate: asyncio.Event) -> None:
        self._load, self._book, self._gate = load, book, gate
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._number: int | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are of no class of asyncio

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._number is not None:
            self._book.freed[self._number] = time.monotonic()
            self._over()

    @override
    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = bytes(self._received).partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if not found or (length and len(body) < int(length[1])):
            return
        self._received.clear()
        if asked := MODEL.search(body):
            self._begin(int(asked[1]), asked[2].decode())
        else:
            self._transport.write(NO_MODELS)

    def _begin(self, number: int, kind: str) -> None:
        self._number = number
        self._book.open += 1
        self._book.most_open = max(self._book.most_open, self._book.open)
        if self._book.open >= self._load.streams:
            self._gate.set()
        self._task = self._loop.create_task(self._when_all_are_there(number, kind))

    async def _when_all_are_there(self, number: int, kind: str) -> None:
        await self._gate.wait()
        phase = self._load.pace_s * (number % 97) / 97
        wait = phase + (self._load.silence_s if kind == WAITS else 0.0)
        if self._number == number:
            self._timer = self._loop.call_later(wait, self._say, number, 0)

    def _say(self, number: int, said: int) -> None:
        if said == 0:
            self._transport.write(SSE)
        self._transport.write(chunk({"content": f"{number}.{said} "}))
        if said + 1 < self._load.chunks:
            self._timer = self._loop.call_later(self._load.pace_s, self._say, number, said + 1)
        else:
            self._transport.write(END)
            self._over()

    def _over(self) -> None:
        self._number = None
        self._book.open -= 1
        if self._timer:
            self._timer.cancel()


# ---------------------------------------------------------------- the clients


@dataclass
class Heard:
    """What one client received, and its longest wait for anything."""

    number: int
    wire: str
    kind: str
    status: int = 0
    body: bytearray = field(default_factory=bytearray)
    pieces: int = 0
    longest_wait_s: float = 0.0
    ended: bool = False


class Client(asyncio.Protocol):
    """One connection with one question."""

    def __init__(self, heard: Heard, request: bytes, leaves_at: int, book: Book) -> None:
        self._heard, self._request, self._leaves_at, self._book = heard, request, leaves_at, book
        self._parser = httptools.HttpResponseParser(self)
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._last = time.monotonic()
        self._transport.write(self._request)

    @override
    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self._heard.longest_wait_s = max(self._heard.longest_wait_s, now - self._last)
        self._last = now
        self._parser.feed_data(data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def on_body(self, body: bytes) -> None:
        self._heard.body += body
        self._heard.pieces += 1
        if self._heard.pieces == self._leaves_at:
            self._book.hung_up[self._heard.number] = time.monotonic()
            self._transport.close()

    def on_message_complete(self) -> None:
        self._heard.status = self._parser.get_status_code()
        self._heard.ended = True
        self._transport.close()


def request(number: int, wire: str, kind: str, mode: str, port: int) -> bytes:
    """Write the question of one client."""
    path, body = WRITE[wire](Ask(stream=True))
    model = f"s{number}-{kind}"
    if wire == "gemini":
        path = path.replace("/models/m:", f"/models/{model}:")
    else:
        body["model"] = model
    data = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", f"host: 127.0.0.1:{port}", f"content-length: {len(data)}"]
    return "\r\n".join([*lines, f"x-toolspeak-mode: {mode}", "", ""]).encode() + data


async def listen(load: Load, book: Book, gate: asyncio.Event) -> tuple[asyncio.Server, int]:
    """Start the upstream."""
    make = cast("Callable[[], asyncio.Protocol]", partial(Upstream, load, book, gate))
    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0, backlog=4096)
    return server, int(server.sockets[0].getsockname()[1])

"""Both ends of many paced streams, in the process of a bench: an upstream with words for each stream, and clients.

The question of a stream requests its own words, as in `just fleet`: `stream-17-text-300-none` gets `w17x0 w17x1 …`.
The last part is a fault that the upstream injects into this stream. So each end knows what the other should do.
"""

import asyncio
import json
import os
import re
import resource
import signal
import socket
import struct
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import cast

from typing_extensions import override

from bench.fleet.checks import TOOL, Answer, Question
from bench.gateway.subjects import LOAD_CORE, Running, Subject, toolspeak_serve
from testkit.stream_ends import SSE, Book, Client, Heard, chunk
from testkit.vendor_requests import WRITE, Ask
from toolspeak.config.shape import Driver

NATIVE, EMULATED = MODELS = ("native", "emulated")
IDLE_S = 5.0
"""Seconds of silence after which the gateway gives up an upstream."""
SLOW_S = 3.0
"""Seconds for which a slow client stops reading."""
SMALL_BUFFER = 4096
"""Bytes that the kernel may receive for a slow client."""
ALLOWED_S = 60.0
"""Seconds that an answer may take beyond the time of its chunks."""
ENDLESS = 10**9
"""The chunks of a stream that lasts until the upstream ends all streams."""
_STREAM = re.compile(rb"stream-(\d+)-(text|call)-(\d+)-([a-z0-9-]+)")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_IS_STREAMED = re.compile(rb'"stream": ?true')
_BEFORE = (
    b'data: {"id":"chatcmpl-CbZq3Q0xnJ1wYtT5mR2u8eVfKdLh9","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":"'
)
_AFTER = b'"},"finish_reason":null}]}\n\n'
_DONE = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
_LINGER = struct.pack("ii", 1, 0)
"""Closing sends a reset."""


class Injected(StrEnum):
    """A fault of one request."""

    NONE = "none"
    STATUS_500 = "status-500"
    STATUS_429 = "status-429"
    RESET = "reset"
    CUT = "cut"
    BAD_CHUNK = "bad-chunk"
    STALL = "stall"
    LEAVES = "client-leaves"
    READS_SLOWLY = "client-reads-slowly"


STATUSES = {Injected.STATUS_500: b"500 Internal Server Error", Injected.STATUS_429: b"429 Too Many Requests"}


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client."""

    question: Question
    model: str = NATIVE
    injected: Injected = Injected.NONE


# ---------------------------------------------------------------- the upstream


@dataclass
class Talk:
    """The state that all connections of the upstream share."""

    pace_s: float
    """Seconds between two chunks of a stream."""
    is_held: bool = False
    """Streams wait for `release` before their first chunk."""
    is_over: bool = False
    """Streams end at their next chunk."""
    said: int = 0
    """Chunks of all streams so far."""
    counts: dict[int, int] = field(default_factory=dict[int, int])
    """Chunks of each endless stream that has ended."""
    held: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    async def until_held(self, streams: int) -> None:
        """Wait until this many streams are held."""
        while len(self.held) < streams:  # noqa: ASYNC110 # takes a few seconds, before a measurement starts
            await asyncio.sleep(0.01)

    def release(self) -> None:
        """Start all held streams."""
        self.is_held = False
        for begin in self.held:
            begin()
        self.held.clear()


class Upstream(asyncio.Protocol):
    """One connection of the gateway. It reads no JSON, and writes bytes that are almost ready."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._timer: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are of no class of asyncio

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()

    @override
    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = bytes(self._received).partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not found or (length and len(body) < int(length[1])):
            return
        self._received.clear()
        if not (asked := _STREAM.search(body)):
            self._transport.write(_whole(b"200 OK", {"object": "list", "data": []} if not body else _completion("hi")))
            return
        self._number, self._chunks, self._at = int(asked[1]), int(asked[3]), 0
        self._calls, self._emulates = asked[2] == b"call", b'"tools"' not in body
        self._injected = Injected(asked[4].decode())
        if status := STATUSES.get(self._injected):
            self._transport.write(_whole(status, {"error": {"message": "injected", "type": "server_error"}}))
        elif not _IS_STREAMED.search(body):
            words = "".join(f"{word} " for word in Question(self._number, "openai_chat", self._chunks).words)
            self._transport.write(_whole(b"200 OK", _completion(words)))
        elif self._talk.is_held:
            self._transport.write(SSE)
            self._talk.held.append(self._begin_soon)
        else:
            self._transport.write(SSE)
            self._say()

    def _begin_soon(self) -> None:
        """Begin at a moment of the pace that is the stream's own."""
        self._timer = self._loop.call_later(self._talk.pace_s * (self._number % 997) / 997, self._say)

    def _say(self) -> None:
        if self._at == self._chunks // 2 and self._injected is not Injected.NONE and self._breaks():
            return
        if self._at == self._chunks or self._talk.is_over:
            self._end()
            return
        data = b"%bw%dx%d %b" % (_BEFORE, self._number, self._at, _AFTER)
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        self._at += 1
        self._talk.said += 1
        self._timer = self._loop.call_later(self._talk.pace_s, self._say)

    def _breaks(self) -> bool:
        """Make the fault of this stream; return whether it sends nothing more."""
        if self._injected is Injected.BAD_CHUNK:
            broken = b'data: {"choices": [{"index": 0, "delta": {"content": \n\n'
            self._transport.write(b"%x\r\n%b\r\n" % (len(broken), broken))
            return False
        if self._injected is Injected.RESET:
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
            self._transport.abort()
        elif self._injected is Injected.CUT:
            self._transport.close()
        return self._injected in (Injected.RESET, Injected.CUT, Injected.STALL)

    def _end(self) -> None:
        if self._chunks == ENDLESS:
            self._talk.counts[self._number] = self._at
        arguments = Question(self._number, "openai_chat", 0).arguments
        if self._calls and self._emulates:
            call = json.dumps({"name": TOOL, "arguments": arguments})
            self._transport.write(chunk({"content": f"\n<tool_call>\n{call}\n</tool_call>"}))
        elif self._calls:
            function = {"name": TOOL, "arguments": json.dumps(arguments)}
            call = {"index": 0, "id": f"call_{self._number}", "type": "function", "function": function}
            self._transport.write(chunk({"tool_calls": [call]}))
        self._transport.write(chunk({}, "tool_calls" if self._calls and not self._emulates else "stop") + _DONE)
        self._stop()

    def _stop(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None


def _whole(status: bytes, body: dict[str, object]) -> bytes:
    data = json.dumps(body).encode()
    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(data))
    return head + data


def _completion(text: str) -> dict[str, object]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


# ---------------------------------------------------------------- the clients


def written(request: Request) -> bytes:
    """Write a request as a client of its protocol does."""
    asked = request.question
    path, body = WRITE[asked.wire](Ask(stream=asked.streams))
    if asked.wire == "gemini":
        path = path.replace("/models/m:", f"/models/{request.model}:")
    else:
        body["model"] = request.model
    kind = "call" if asked.calls else "text"
    wanted = f"stream-{asked.number}-{kind}-{asked.chunks}-{request.injected}"
    data = json.dumps(body).replace("How is the weather?", wanted).encode()
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json"]
    return "\r\n".join([*lines, f"content-length: {len(data)}", "", ""]).encode() + data


class _SlowClient(Client):
    """It has little room for what comes, and stops reading for a while after the first bytes."""

    _has_paused = False

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        super().connection_made(transport)

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._has_paused and not self._transport.is_closing():
            self._has_paused = True
            self._transport.pause_reading()
            asyncio.get_running_loop().call_later(SLOW_S, self._read_on)

    def _read_on(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()


async def ask(request: Request, port: int, pace_s: float) -> Answer:
    """Send a request on a new connection, and return the answer. It is lost if the server is unreachable."""
    loop, asked = asyncio.get_running_loop(), request.question
    heard = Heard(asked.number, asked.wire, request.injected)
    leaves_at = max(1, asked.chunks // 3) if request.injected is Injected.LEAVES else 0
    is_slow = request.injected is Injected.READS_SLOWLY
    book = Book()
    client = (_SlowClient if is_slow else Client)(heard, written(request), leaves_at, book)
    began, timed_out = time.monotonic(), False
    try:
        transport, _ = await loop.create_connection(lambda: client, "127.0.0.1", port)
    except OSError:
        return Answer(asked, began, time.monotonic())
    try:
        async with asyncio.timeout(ALLOWED_S + (asked.chunks * pace_s if asked.chunks != ENDLESS else 3600.0)):
            await client.done
    except TimeoutError:
        timed_out = True
    finally:
        transport.close()
    ended = heard.ended and not book.hung_up  # the end may come in the same bytes that let the client leave
    return Answer(asked, began, time.monotonic(), heard.status, bytes(heard.body), ended, timed_out)


# ---------------------------------------------------------------- the gateway

CONFIG = f"""
[server]
probe = "off"

[limits]                       # what many clients on one address need
concurrent = 16000
connections = 20000
connections_per_address = 10000
loop_delay_seconds = 2.0       # a pause of the machine is judged as a delay, and shall not refuse requests too

[upstreams.up]
url = "http://127.0.0.1:PORT/v1"
[upstreams.up.timeouts]
idle = {IDLE_S}

[models.{NATIVE}]
upstream = "up"
model = "m"
support = "native"

[models.{EMULATED}]
upstream = "up"
model = "m"
support = "none"
[models.{EMULATED}.tools]
dialect = "hermes"
"""


@asynccontextmanager
async def gateway(talk: Talk, driver: Driver, files: Path) -> AsyncGenerator[Running]:
    """Run the upstream in this process, and a gateway before it on its own core. SIGTERM ends both, as Ctrl-C does."""
    loop, me = asyncio.get_running_loop(), asyncio.current_task()
    assert me
    loop.add_signal_handler(signal.SIGTERM, me.cancel)
    make = cast("Callable[[], asyncio.Protocol]", partial(Upstream, talk))
    server = await loop.create_server(make, "127.0.0.1", 0, backlog=4096)
    config = files / "gateway.toml"
    config.write_text(CONFIG.replace("PORT", str(server.sockets[0].getsockname()[1])))
    running = Running(Subject("gateway", toolspeak_serve(config, "--driver", driver.value), model=NATIVE), files)
    starting = asyncio.create_task(asyncio.to_thread(running.__enter__))  # it calls the upstream, which is in this loop
    try:
        await asyncio.shield(starting)
        yield running
    finally:
        await asyncio.wait([starting])
        server.close()
        loop.remove_signal_handler(signal.SIGTERM)
        if not starting.exception():  # else it has already ended
            running.__exit__()


def use_load_core() -> None:
    """Keep this process off the gateway's core, and let it have a socket for each end of a stream."""
    if (os.cpu_count() or 1) > LOAD_CORE:
        os.sched_setaffinity(0, {LOAD_CORE})
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

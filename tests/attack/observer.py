"""A second tenant in a process of its own: it measures what an attack does to others.

    python -m tests.attack.observer

The process serves an upstream that sends one chunk every 50 ms, keeps one stream through the gateway open, and asks
for `/health` every 20 ms. It reads commands as lines of JSON (`watch`, `mark`, `stop`) and answers each with one line.
Its own lateness is reported with every figure: on a busy machine that share is not the gateway's.
"""

import asyncio
import json
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from typing import Any

CHUNK_S, ASK_S, TICK_S = 0.05, 0.02, 0.01
LONGEST_S = 900.0
ADDRESS = "127.0.0.2"
"""The observer connects from an address of its own, as another user's machine would."""
KEY = "sk-observer-6d1f"
MODEL = "steady"
_CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
_EVENT = {**_CHUNK, "choices": [{"index": 0, "delta": {"content": "tick "}, "finish_reason": None}]}


@dataclass
class Interval:
    """What was measured since the last mark, in seconds."""

    health: list[float] = field(default_factory=list[float])
    lags: list[float] = field(default_factory=list[float])
    gap: float = 0.0
    health_failures: int = 0
    stream_failures: int = 0

    def add_health(self, seconds: float) -> None:
        """Add a latency, and those of the requests that would have been sent while this one waited."""
        while seconds > 0:
            self.health.append(seconds)
            seconds -= ASK_S

    def add_lag(self, seconds: float) -> None:
        """Add how late a tick was, and those that would have come meanwhile, as for latencies: both are compared.

        Without them one pause of the machine is a hundredth of the ticks and a tenth of the latencies.
        """
        self.lags.append(seconds)
        while (seconds := seconds - TICK_S) > 0:
            self.lags.append(seconds)

    def figures(self) -> dict[str, float | int]:
        return {
            "health_p50_ms": _ms(_quantile(self.health, 0.5)),
            "health_p99_ms": _ms(_quantile(self.health, 0.99)),
            "health_max_ms": _ms(max(self.health, default=0.0)),
            "gap_max_ms": _ms(self.gap),
            "own_lag_p99_ms": _ms(_quantile(self.lags, 0.99)),
            "own_lag_max_ms": _ms(max(self.lags, default=0.0)),
            "samples": len(self.health),
            "health_failures": self.health_failures,
            "stream_failures": self.stream_failures,
        }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[max(0, ceil(share * len(values)) - 1)] if values else 0.0


class Observer:
    """Watches one gateway at a time."""

    def __init__(self) -> None:
        self.total, self.interval = Interval(), Interval()
        self._tasks: list[asyncio.Task[None]] = []
        self._last_chunk = 0.0
        self._asked_at = 0.0
        """When the request for /health was sent that has no answer yet; 0 if there is none."""

    # ---------------------------------------------------------------- commands

    async def serve(self) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self._print({"port": server.sockets[0].getsockname()[1]})
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            command = json.loads(line)
            match command["do"]:
                case "watch":
                    self._print(await self._watch(int(command["port"])))
                case "mark":
                    self._print(self._mark())
                case _:
                    self._print(await self._stop())

    async def _watch(self, port: int) -> dict[str, Any]:
        self.total, self.interval = Interval(), Interval()
        self._last_chunk = self._asked_at = 0.0
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(each) for each in (self._health(port), self._stream(port), self._lag())]
        for _ in range(500):
            if self._last_chunk:
                break
            await asyncio.sleep(0.02)
        return {"streams": bool(self._last_chunk)}

    def _mark(self) -> dict[str, Any]:
        """Return the figures since the last mark, with what is outstanding at this moment."""
        now = time.monotonic()
        done, self.interval = self.interval, Interval()
        if self._asked_at:
            done.add_health(now - self._asked_at)
        if self._last_chunk:
            done.gap = max(done.gap, now - self._last_chunk)
        return done.figures()

    async def _stop(self) -> dict[str, Any]:
        outstanding = self._mark()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.total.gap = max(self.total.gap, float(outstanding["gap_max_ms"]) / 1000)
        return self.total.figures()

    def _print(self, value: object) -> None:
        print(json.dumps(value), flush=True)

    # ---------------------------------------------------------------- what is measured

    async def _lag(self) -> None:
        while True:
            due = time.monotonic() + TICK_S
            await asyncio.sleep(TICK_S)
            late = time.monotonic() - due
            self.total.add_lag(late)
            self.interval.add_lag(late)

    async def _health(self, port: int) -> None:
        request = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(ADDRESS, 0))
                while True:
                    self._asked_at = time.monotonic()
                    writer.write(request)
                    head = await reader.readuntil(b"\r\n\r\n")
                    await reader.readexactly(_length(head))
                    self._note_health(failed=b" 200 " not in head[:20])
                    await asyncio.sleep(ASK_S)
            except (OSError, asyncio.IncompleteReadError):
                self._note_health(failed=True)
                await asyncio.sleep(ASK_S)

    def _note_health(self, *, failed: bool) -> None:
        seconds = time.monotonic() - (self._asked_at or time.monotonic())
        self._asked_at = 0.0
        for each in (self.total, self.interval):
            each.add_health(seconds)
            each.health_failures += failed

    async def _stream(self, port: int) -> None:
        body = {"model": f"steady:{MODEL}", "stream": True, "messages": [{"role": "user", "content": "Tick."}]}
        data = json.dumps(body).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {KEY}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(ADDRESS, 0))
                writer.write(head.encode() + data)
                while piece := await reader.read(65536):
                    if b"tick " in piece:
                        self._note_chunk()
                writer.close()
            for each in (self.total, self.interval):
                each.stream_failures += 1
            await asyncio.sleep(ASK_S)

    def _note_chunk(self) -> None:
        now = time.monotonic()
        for each in (self.total, self.interval):
            each.gap = max(each.gap, now - self._last_chunk if self._last_chunk else 0.0)
        self._last_chunk = now

    # ---------------------------------------------------------------- the upstream

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(_length(head))
                await (self._list(writer) if head.startswith(b"GET") else self._tick(writer))
        writer.close()

    async def _list(self, writer: asyncio.StreamWriter) -> None:
        body = json.dumps({"data": [{"id": MODEL}]}).encode()
        kind = b"content-type: application/json\r\n"
        writer.write(b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (kind, len(body), body))
        await writer.drain()

    async def _tick(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        event = f"data: {json.dumps(_EVENT)}\n\n".encode()
        end = time.monotonic() + LONGEST_S
        while time.monotonic() < end and not writer.is_closing():
            writer.write(b"%x\r\n%b\r\n" % (len(event), event))
            await writer.drain()
            await asyncio.sleep(CHUNK_S)
        writer.write(b"0\r\n\r\n")


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


if __name__ == "__main__":
    asyncio.run(Observer().serve())

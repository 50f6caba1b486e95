"""A small HTTP server on loopback that answers each request with a function, and records requests and connections.

async def say(got: Got, out: Out) -> None:
    await out.whole(200, b"{}")

async with Loopback(say) as server:
    ... server.url ...
"""

import asyncio
import functools
import gc
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeAlias

P = ParamSpec("P")
SOON, STEP = 30.0, 0.002
"""Seconds to wait for something that must happen, and between two checks."""


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test in an event loop; no task may be left over, and no object that warns when it is collected."""

    async def alone(*args: P.args, **kwargs: P.kwargs) -> None:
        await test(*args, **kwargs)
        await asyncio.sleep(STEP)  # the collector needs a moment to close objects
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(alone(*args, **kwargs))
        gc.collect()

    return run


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that must happen soon."""
    for _ in range(round(SOON / STEP)):
        if holds():
            return
        await asyncio.sleep(STEP)
    raise AssertionError("it has not happened")


@dataclass(frozen=True)
class Got:
    """A received request; names of headers are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass
class Out:
    """The connection for its answer."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in headers), "", ""]
        await self.raw("\r\n".join(lines).encode())

    async def whole(
        self, status: int, body: bytes, media: str = "application/json", headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        await self.head(status, (("content-type", media), ("content-length", str(len(body))), *headers))
        await self.raw(body)

    async def begin(self, media: str = "text/event-stream", status: int = 200) -> None:
        await self.head(status, (("content-type", media), ("transfer-encoding", "chunked")))

    async def piece(self, data: bytes) -> None:
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        await self.raw(b"0\r\n\r\n")

    async def stream(self, *pieces: bytes, media: str = "text/event-stream") -> None:
        await self.begin(media)
        for piece in pieces:
            await self.piece(piece)
        await self.end()

    def reset(self) -> None:
        self.writer.transport.abort()

    async def gone(self) -> None:
        """Wait until the client disconnects."""
        await self.reader.read()


Say: TypeAlias = Callable[[Got, Out], Awaitable[None]]


@dataclass
class Loopback:
    """The server."""

    say: Say
    port: int = 0
    connections: int = 0
    gone: int = 0
    """Connections that were closed."""
    got: list[Got] = field(default_factory=list[Got])
    _server: asyncio.Server | None = None
    _tasks: set["asyncio.Task[Any]"] = field(default_factory=set["asyncio.Task[Any]"])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await until(lambda: not self._tasks)
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._serve(reader, writer, self.connections)
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            pass  # the server stops, or the client has gone
        finally:
            self.gone += 1
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        while not writer.is_closing():
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, target, _ = head[0].split(" ")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            got = Got(method, target, headers, body, number)
            self.got.append(got)
            await self.say(got, Out(reader, writer))

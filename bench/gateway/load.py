"""The client of the bench: keeps some connections busy with one request after another, and measures times.

Bytes in, bytes out, on asyncio.Protocol and httptools: it shares its core with the upstream and must leave room for it.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import httptools
from typing_extensions import override

TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Load:
    """The requests: over how many connections, how many in all, and what an answer must contain."""

    path: str
    body: Callable[[int], bytes]
    """Makes the body of the request with this number."""
    streams: int
    requests: int
    proof: tuple[bytes, ...]
    """All of these are in every answer, or the load did not do what it should."""
    first: bytes = b""
    """The time to the first byte ends when this arrives."""


@dataclass(slots=True)
class Times:
    """Times that the client measured, in seconds."""

    wall_s: float = 0.0
    whole_s: list[float] = field(default_factory=list[float])
    first_s: list[float] = field(default_factory=list[float])


class Failed(Exception):
    """An answer was not what it should be."""


class Connection(asyncio.Protocol):
    """One connection that is kept busy."""

    def __init__(self, load: Load, head: bytes, numbers: deque[int], times: Times) -> None:
        self._load, self._head, self._numbers, self._times = load, head, numbers, times
        self.done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """True when all was sent, False when the server requires a new connection for the next request."""
        self._pieces: list[bytes] = []
        self._began = self._first = 0.0
        self._number, self._answered = 0, False

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are of no class of asyncio
        self._ask()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self.done.done():
            return
        if self._answered and not self._pieces:  # the server closed an idle connection: retry
            self._numbers.appendleft(self._number)
            self.done.set_result(False)
        else:
            self.done.set_exception(Failed(f"the connection was closed in mid-answer: {exc!r}, {self._pieces[-1:]!r}"))

    @override
    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        if not self._first and self._load.first in body:
            self._first = time.perf_counter()
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        now = time.perf_counter()
        status, answer = self._parser.get_status_code(), b"".join(self._pieces)
        if status != 200 or not all(part in answer for part in self._load.proof):
            wanted = f"status {status}, {len(answer)} bytes without one of {self._load.proof}"
            self.done.set_exception(Failed(f"{wanted}: {answer[:2000]!r}"))
            return
        self._answered = True
        self._times.whole_s.append(now - self._began)
        self._times.first_s.append((self._first or now) - self._began)
        if self._parser.should_keep_alive():
            self._ask()
        else:
            self._finish(all_sent=False)

    def _ask(self) -> None:
        if not self._numbers:
            self._finish(all_sent=True)
            return
        self._number = self._numbers.popleft()
        self._parser = httptools.HttpResponseParser(self)
        self._pieces, self._first = [], 0.0
        body = self._load.body(self._number)
        self._began = time.perf_counter()
        self._transport.write(self._head % len(body) + body)

    def _finish(self, *, all_sent: bool) -> None:
        self.done.set_result(all_sent)
        self._transport.close()


def head(path: str, port: int, headers: dict[str, str]) -> bytes:
    """Return the head of a request, with a place for the length."""
    lines = [f"POST {path} HTTP/1.1", f"host: 127.0.0.1:{port}", "content-type: application/json", "accept: */*"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*(line.replace("%", "%%") for line in lines), "content-length: %d", "\r\n"]).encode()


async def work(port: int, make: Callable[[], Connection]) -> None:
    """Keep one connection busy, or one after another where the server closes them."""
    sent = False
    while not sent:
        _, connection = await asyncio.get_running_loop().create_connection(make, "127.0.0.1", port)
        sent = await connection.done


async def run(load: Load, port: int, headers: dict[str, str]) -> Times:
    """Send the whole load and return the times; a wrong answer raises `Failed`."""
    times, numbers = Times(), deque(range(load.requests))
    sent = head(load.path, port, headers)
    began = time.perf_counter()
    try:
        async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
            for _ in range(load.streams):
                group.create_task(work(port, lambda: Connection(load, sent, numbers, times)))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    times.wall_s = time.perf_counter() - began
    return times

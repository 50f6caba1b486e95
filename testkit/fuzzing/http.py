"""A client's connection: request heads, chunked bodies, pipelines and upgrades, as raw bytes.

Header: split seed. Content: what the client sends. The protocol class, llhttp and uvicorn are the real ones; only the
socket is not, because a search needs thousands of connections in a second.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, Final

import uvicorn
from typing_extensions import override
from uvicorn.server import ServerState

from testkit.fuzzing.target import Broken, Target, pieces
from toolspeak.config.shape import Limits
from toolspeak.gateway.connections import Connections, HttpConnection

_HEADER: Final = 1
_TURNS: Final = 4
"""Passes of the event loop after each chunk: enough for the application to read a body and to answer."""
_READ: Final = 65_536
"""Bytes that an event loop reads from a socket at once."""
Seen = list[tuple[str, str, tuple[tuple[bytes, bytes], ...]]]


class _Records(logging.Handler):
    """Keeps what is logged as an error: a client's mistake must never be one."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    @override
    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.levelno >= logging.ERROR:
            self.texts.append(self.format(record)[-400:])


class _Socket(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 50_000), "sockname": ("127.0.0.1", 4141)})
        self.written = bytearray()
        self.closing = False

    @override
    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.closing:
            self.written += data

    @override
    def is_closing(self) -> bool:
        return self.closing

    @override
    def close(self) -> None:
        self.closing = True

    @override
    def abort(self) -> None:
        self.closing = True

    @override
    def pause_reading(self) -> None: ...

    @override
    def resume_reading(self) -> None: ...


class Client:
    """One connection, and what the application has seen of it."""

    def __init__(self) -> None:
        """Connect."""
        self.seen: Seen = []
        self.loop = _loop()
        config = uvicorn.Config(
            self._answer,
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
        )
        config.load()
        limits = Limits()
        kind = type("Fuzzed", (HttpConnection,), {"limits": limits, "connections_open": Connections(limits)})
        self.connection = kind(config, ServerState(), {}, _loop=self.loop)
        self.socket = _Socket()
        self.connection.connection_made(self.socket)

    async def _answer(self, scope: dict[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        self.seen.append((scope["method"], scope["path"], tuple(scope["headers"])))
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    def send(self, piece: bytes) -> None:
        """Deliver bytes as the event loop would."""
        if not self.socket.closing:
            self.connection.data_received(piece)

    def wait(self) -> None:
        """Let the application run."""
        for _ in range(_TURNS):
            self.loop.run_until_complete(asyncio.sleep(0))

    def leave(self) -> None:
        """Close the connection from the client's side."""
        self.connection.connection_lost(None)
        self.wait()
        left = asyncio.all_tasks(self.loop)
        if left:
            raise Broken(f"{len(left)} tasks outlive the connection")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _loop, context: _records().texts.append(str(context)[-400:]))
    return loop


@cache
def _records() -> _Records:
    records = _Records()
    for name in ("", "uvicorn.error"):
        logging.getLogger(name).addHandler(records)
    return records


def check(data: bytes) -> None:
    """Send an input at once and in chunks: nothing raises or is logged as an error, and both reach the same handlers.

    A connection that is closed for a violation may have served fewer requests when the violation arrived earlier.
    """
    split = pieces(data[_HEADER:], data[0] if data else 0)
    first, second = _served([data[_HEADER:]]), _served(split)
    shorter = min(len(first), len(second))
    if first[:shorter] != second[:shorter]:
        raise Broken("another request is read when the bytes are split")


def _served(split: list[bytes]) -> Seen:
    records = _records()
    records.texts.clear()
    client = Client()
    for piece in split:
        client.send(piece)
        client.wait()
    client.leave()
    if records.texts:
        raise Broken(f"logged: {records.texts[0]}")
    written = bytes(client.socket.written)
    if written and not written.startswith(b"HTTP/1.1 "):
        raise Broken("what is written is not a response")
    if written.count(b"HTTP/1.1 200") > len(client.seen):
        raise Broken("more responses than requests")
    return client.seen


def steps(data: bytes) -> Iterator[Callable[[], object]]:
    """Yield the reads of a socket that has all of the input waiting, and the work of the application after each."""
    client = Client()
    for start in range(_HEADER, len(data), _READ):
        yield partial(client.send, data[start : start + _READ])
        yield client.wait
    client.leave()


_HEADS: Final = (
    b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET /v1/models HTTP/1.0\r\n\r\n",
    b"CONNECT / HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"CONNECT localhost:80 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: a\r\nconnection: upgrade, x\r\nupgrade: websocket\r\ncontent-length: 2\r\n\r\n{}",
    b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello",
    b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\nx: v\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n{}",
    b"GET /a%20b?x=%00#f HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\nX: \xff\xfe\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET / HTTP/1.1\nhost: a\n\n",
    b"GET / HTTP/1.1\r\nhost: a\r\nx: y\r\n folded\r\n\r\n",
)


def seeds() -> Iterator[bytes]:
    """Yield single requests, pipelines of two, and long ones."""
    for number, head in enumerate(_HEADS):
        yield bytes((number,)) + head
        yield bytes((number + 100,)) + head + _HEADS[(number * 5 + 1) % len(_HEADS)] + _HEADS[0]
    yield b"\0" + _HEADS[5] * 40
    yield b"\7" + b"GET / HTTP/1.1\r\nhost: a\r\n" + b"x: " + b"y" * 2000 + b"\r\n" * 2


def words() -> Iterator[bytes]:
    """Yield the words of heads."""
    yield from (
        b"\r\n",
        b"\r\n\r\n",
        b": ",
        b" HTTP/1.1\r\n",
        b"HTTP/1.0",
        b"GET ",
        b"POST ",
        b"CONNECT ",
        b"OPTIONS ",
        b"HEAD ",
    )
    yield from (
        b"host: ",
        b"content-length: ",
        b"transfer-encoding: chunked\r\n",
        b"connection: ",
        b"keep-alive",
        b"close",
    )
    yield from (
        b"upgrade: ",
        b"upgrade",
        b"h2c",
        b"websocket",
        b"expect: 100-continue\r\n",
        b"0\r\n\r\n",
        b"5\r\nhello\r\n",
    )
    yield from (
        b"trailer: x\r\n",
        b"/",
        b"*",
        b"http://",
        b"//",
        b"\0",
        b"\xff",
        b"\t",
        b"18446744073709551616",
        b"-1",
        b"+5",
    )


TARGET: Final = Target("http", _HEADER, check, steps, seeds, words)

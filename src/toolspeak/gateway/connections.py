"""Bounds client connections: adds limits that uvicorn's HTTP/1.1 protocol lacks, and limits the open connections.

uvicorn bounds neither a request's head, nor how slowly it may arrive, nor how many requests wait in a pipeline.
`HttpConnection` bounds all of them, and every byte that a client sends costs a bounded amount of work:

- A head has a largest size (`limits.header_bytes`, status 431) and a deadline (`limits.header_seconds`).
- CONNECT is refused. A request that asks for another protocol (`Upgrade`) is served over HTTP/1.1 as if it had not
  asked, which RFC 9110 allows. Java's HTTP client asks for h2c in its first request.
- A pipeline has a largest length, and a chunked body a smallest average chunk.
- A client that violates the protocol costs one log line and its connection, never a traceback. 39 bytes of CONNECT once
  recursed to Python's limit, blocked the event loop for half a second and logged 300 KB.

`Connections` counts them, in all and by address. A connection costs a file descriptor, and so does the one to the
upstream that its request opens. With the usual limit of 1,024 descriptors a few hundred idle keep-alive connections
once locked out every new client. Now a new connection that finds no room takes the place of the connection that has
been idle for longest; it is refused only if all of them are busy. A connection is idle until a whole request has
arrived, so half-sent bodies lock out no other client either.
"""

import asyncio
import logging
import sys
from collections import Counter, OrderedDict
from typing import ClassVar, Final, Protocol, cast

import httptools
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from toolspeak.config.shape import Limits

if sys.platform != "win32":
    import resource

_LOG: Final = logging.getLogger(__name__)
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_NO_ROOM = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"
_NOT_HTTP = "expected an HTTP/1.1 request for a path"
_LINE, _BETWEEN = len("  HTTP/1.1\r\n\r\n"), len(": \r\n")
_PIPELINED: Final = 32
"""Requests that may wait for the one being answered. No client of these protocols pipelines."""
_MANY_CHUNKS, _SMALL_CHUNK = 4096, 16
"""A body of more chunks than this must have this many bytes in each, on average. Each chunk costs a callback, so one of
a single byte costs as much work as one of 64 KiB: 32 MiB in chunks of one byte would keep the event loop busy for a
minute."""
_GOODBYE: Final = 0.5
"""Seconds in which an idle client may answer that a TLS connection ends."""
_RESERVED: Final = 64
"""Descriptors kept free for listeners, the log, DNS, databases."""
_PER_CLIENT: Final = 2
"""Descriptors that a busy client takes: its own connection and the one to the upstream."""


class Idle(Protocol):
    """A connection that can be closed while no request is being answered on it."""

    def close_idle(self) -> None:
        """Close the connection at once."""
        ...


class Connections:
    """The open connections of one server."""

    def __init__(self, limits: Limits) -> None:
        """Take the limits. If the process may open fewer files than they need, they are lowered."""
        self._most: Final = min(limits.connections, _descriptors())
        self._most_per_address: Final = min(limits.connections_per_address, max(1, self._most // 2))
        self._address: Final[dict[Idle, str]] = {}
        self._count: Final[Counter[str]] = Counter()
        self._idle: Final[OrderedDict[Idle, None]] = OrderedDict()
        """Connections without a whole request, the longest idle first."""
        self.is_retiring = False
        """The server ends, and another process takes new connections: responses ask their clients to connect again."""
        self.last_request: float | None = None
        """When the last request came since then, in seconds of the event loop; a connection brings one at most."""
        self.refused = 0
        """New connections for which there was no room."""
        self.reclaimed = 0
        """Idle connections that were closed to make room."""

    def __len__(self) -> int:
        return len(self._address)

    def add(self, connection: Idle, address: str) -> bool:
        """Count a new connection, which is idle until its first request. Return False if there is no room for it.

        An address that has reached its own limit only displaces connections of its own, not those of other clients.
        """
        full = len(self._address) >= self._most
        crowded = self._count[address] >= self._most_per_address
        if (full or crowded) and not self._reclaim(address if crowded else None):
            self.refused += 1
            return False
        self._address[connection] = address
        self._count[address] += 1
        self._idle[connection] = None
        return True

    def remove(self, connection: Idle) -> None:
        """Stop counting a closed connection. One that was refused was never counted, and is ignored."""
        self._idle.pop(connection, None)
        address = self._address.pop(connection, None)
        if address is not None:
            self._count[address] -= 1
            if not self._count[address]:
                del self._count[address]

    def busy(self, connection: Idle) -> None:
        """Mark that a request is being answered: the connection cannot be reclaimed."""
        self._idle.pop(connection, None)

    def idle(self, connection: Idle) -> None:
        """Mark that the response is complete, or that the head of the next request is."""
        if connection in self._address:
            self._idle[connection] = None
            self._idle.move_to_end(connection)

    def _reclaim(self, address: str | None) -> bool:
        """Close the longest idle connection, of this address if one is given. Return whether there was one."""
        found = next((each for each in self._idle if address in (None, self._address[each])), None)
        if found is None:
            return False
        self.remove(found)  # its own `connection_lost` comes later
        self.reclaimed += 1
        found.close_idle()
        return True


def _descriptors() -> int:
    """Return the number of clients for which the limit of open files leaves room."""
    if sys.platform == "win32":
        return sys.maxsize
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft < 0 else max(1, (soft - _RESERVED) // _PER_CLIENT)


class HttpConnection(HttpToolsProtocol):
    """A connection of one client. The server sets `limits` and `connections_open` on a subclass.

    Three timers bound how long a client can hold a connection without progress: for the head of a request, for the rest
    of a body after an early refusal, and for a response that the client does not read. A connection is idle until a
    whole request has arrived, then busy until its response is complete, then idle again; only idle ones are reclaimed.
    """

    # uvicorn's protocol has 27 attributes. An object with more than 30 in its `__dict__` shares no keys with the others
    # of its class, and takes 1.5 KB for them instead of 0.3 (Python 3.11).
    __slots__ = ("_body_bytes", "_chunks", "_head_large", "_head_timer", "_rest_timer", "_stall_timer", "_unread")

    limits: ClassVar = Limits()
    connections_open: ClassVar = Connections(Limits())
    write_timeout: ClassVar = 300.0
    """Seconds in which a client must accept some of its response."""
    _head_timer: asyncio.TimerHandle | None
    """Runs while a head is awaited. It is None from the end of the head on, which is how a trailer is recognized."""
    _rest_timer: asyncio.TimerHandle | None
    """Runs after a response that was sent before the whole body had arrived."""
    _stall_timer: asyncio.TimerHandle | None
    """Runs while the client does not read its response."""
    _unread: int
    """Bytes since the parser last reported something; llhttp buffers a header until it is complete."""
    _head_large: bool
    """The parser was stopped because of the size of the head: the answer is 431 and not 400."""
    _chunks: int
    _body_bytes: int

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._head_timer = self._rest_timer = self._stall_timer = None
        self._unread = self._chunks = self._body_bytes = 0
        self._head_large = False
        super().connection_made(cast("asyncio.Transport", transport))
        if self.connections_open.add(self, self._address()):
            self._await_head()
        else:
            self._refuse(_NO_ROOM)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.connections_open.remove(self)
        for timer in (self._head_timer, self._rest_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    @override
    def shutdown(self) -> None:
        super().shutdown()
        if self.scheme == "https" and self._is_idle():
            # `close` says goodbye and waits up to 30 s for the client's own, which a pool of idle connections never
            # sends: the drain would wait for it.
            self.loop.call_later(_GOODBYE, self.transport.abort)

    def retire(self, seconds: int) -> None:
        """Close after the next response, or after some seconds without a request.

        `shutdown` closes an idle connection at once. The request that its client may just be sending would be lost,
        although another worker is there to answer it.
        """
        self.timeout_keep_alive = seconds
        if self._is_idle():
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _is_idle(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    def close_idle(self) -> None:
        """Close a connection on which no whole request has arrived, to make room for another client.

        `abort`, not `close`: there is nothing to flush, and a client that does not read would keep the descriptor.
        """
        self.transport.abort()

    @override
    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        if self.transport.is_closing():  # refused: what else has arrived is not read
            return
        self._unread += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError as error:
            self._protocol_error(error)
        if self._unread > self.limits.header_bytes:
            self._refuse(_TOO_LARGE)

    def _parse(self, data: bytes) -> None:
        """Feed the parser.

        llhttp stops at a request that asks for an upgrade and takes the rest for the other protocol. Each such request
        is fed once more, without its `Upgrade`, to a new parser; the rest follows. It is a loop and not a recursion,
        and each pass consumes a whole request head: 3,000 pipelined upgrades must not grow the stack.
        """
        rest = memoryview(data)
        while True:
            try:
                self.parser.feed_data(rest)
            except httptools.HttpParserUpgrade as upgrade:
                rest = rest[upgrade.args[0] :]
                head = self._head_without_upgrade()
                self.parser = httptools.HttpRequestParser(self)
                self.parser.feed_data(head)
            else:
                return

    def _head_without_upgrade(self) -> bytes:
        lines = [b"%b %b HTTP/1.1" % (self.parser.get_method(), self.url)]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join((*lines, b"", b""))

    @override
    def on_message_begin(self) -> None:
        if len(self.pipeline) >= _PIPELINED:
            # Raised inside a callback of the parser: httptools stops and reports it as the context of its own error.
            raise ValueError(f"more than {_PIPELINED} requests are pipelined")
        super().on_message_begin()
        self._chunks = self._body_bytes = 0
        if self._head_timer is None:
            self._await_head()

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        # After the body it is a trailer, which is not a header: it could carry a key or a host that a proxy in front of
        # the gateway has removed from the head.
        if self._head_timer is not None:
            super().on_header(name, value)

    @override
    def on_headers_complete(self) -> None:
        self._unread = 0
        self._head_large = self._head_bytes() > self.limits.header_bytes
        if self._head_large:
            raise ValueError("the head is too large")
        if not self.url.startswith(b"/") or self.parser.get_method() == b"CONNECT":  # both are meant for proxies
            raise ValueError("the target is not a path")
        if not self.parser.should_upgrade():  # else `_parse` feeds this head again without `Upgrade`, and serves that
            self._head_complete()
            self._begin_request()
            # uvicorn before 0.53 closes for a `Connection` of exactly "close" only, not for "close, Upgrade".
            self.cycle.keep_alive = self.cycle.keep_alive and self.parser.should_keep_alive()
            if self.connections_open.is_retiring:
                self.cycle.keep_alive = False
                self.connections_open.last_request = self.loop.time()

    def _begin_request(self) -> None:
        """Answer the request whose head is complete, now or after those before it."""
        super().on_headers_complete()

    @override
    def on_body(self, body: bytes) -> None:
        self._unread = 0
        self._chunks += 1
        self._body_bytes += len(body)
        if self._chunks > _MANY_CHUNKS and self._body_bytes < self._chunks * _SMALL_CHUNK:
            raise ValueError("the body comes in too many small chunks")
        super().on_body(body)

    @override
    def on_message_complete(self) -> None:
        self._unread = 0
        self._rest_complete()
        if not self.parser.should_upgrade():
            self.connections_open.busy(self)
            super().on_message_complete()

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:
            self.connections_open.idle(self)
            if self.cycle.more_body:  # refused before the whole body had arrived: the client may finish sending
                self._rest_timer = self.loop.call_later(self.limits.header_seconds, self.transport.close)

    @override
    def pause_writing(self) -> None:
        # The client does not read. Its turn waits, and with it the upstream; without this timer it would do so for as
        # long as the client keeps the connection open.
        super().pause_writing()
        self._stall_timer = self.loop.call_later(self.write_timeout, self.transport.abort)

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall_timer is not None:
            self._stall_timer.cancel()

    def _protocol_error(self, error: httptools.HttpParserError) -> None:
        # The connection always ends: after an ambiguous request (two lengths, a length and chunks) it is not clear
        # where the next one begins, or which client of a proxy has sent it (request smuggling).
        _LOG.info("client=%s sent a malformed HTTP request: %s", self._address(), _reason(error))
        if self._head_large:
            self._refuse(_TOO_LARGE)
        elif self._may_answer():
            self.send_400_response(_NOT_HTTP)
        else:  # a response is under way: a second one inside it would be read as its content
            self.transport.close()

    def _may_answer(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # uvicorn declares it without the None it starts with
        return not self.pipeline and (cycle is None or cycle.response_complete or not cycle.response_started)

    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _head_bytes(self) -> int:
        line = len(self.parser.get_method()) + len(self.url) + _LINE
        return line + sum(len(name) + len(value) + _BETWEEN for name, value in self.headers)

    def _await_head(self) -> None:
        # One deadline for the whole head, not one per read: a client that sends a byte now and then (slowloris) must
        # not gain time with each of them.
        self._head_timer = self.loop.call_later(self.limits.header_seconds, self.transport.close)

    def _head_complete(self) -> None:
        self.connections_open.idle(self)  # until its body is complete: half-sent bodies must not hold all connections
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _rest_complete(self) -> None:
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None

    def _refuse(self, response: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(response)
            self.transport.close()


def _reason(error: httptools.HttpParserError) -> str:
    """Return the reason in our or llhttp's words, never bytes of the client: those could forge a log line."""
    cause = error.__context__
    return str(cause) if isinstance(cause, ValueError) else str(error)

"""Sends requests to upstreams over connections of our own, for the push driver. See `push_response.py`.

Only plain requests are sent here. Those through a proxy, and those whose URL or headers need more than a copy (user
names, escapes, names outside ASCII, a header twice), go through aiohttp: it has the rules for them, and they are rare.
It is loaded by the first of them, or at the start if there is a proxy: it takes a fifth of the start, and 10 MB.
"""

import asyncio
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

from toolspeak.ir.failure import FailureKind
from toolspeak.runtime.connect import NameCache, connected_socket
from toolspeak.runtime.outbound import Outbound, origin_of
from toolspeak.runtime.push_response import PushResponse, UpstreamConnection
from toolspeak.runtime.transport import (
    DEFAULT_TIMEOUTS,
    Headers,
    OutboundTransport,
    Response,
    Timeouts,
    TransportError,
    no_answer_in_time,
    no_connection,
    no_connection_in_time,
)

if TYPE_CHECKING:
    from toolspeak.runtime.http_transport import HttpTransport

_KEEP_ALIVE: Final = 60.0
"""Seconds for which an idle connection is kept."""
_URL: Final = re.compile(r"(https?)://([a-z0-9][a-z0-9.-]*|\[[0-9a-f:]+\])(?::(\d{1,5}))?(/[^\s#]*|\?[^\s#]*|)\Z")
_TARGET: Final = re.compile(r"(?!.*/\.)[A-Za-z0-9/._~:@!$&'()*+,;=?-]*\Z")
"""A path and a query that need no escapes, without `/./` and `/../`."""
_NAME: Final = re.compile(r"[A-Za-z0-9-]+\Z")
_VALUE: Final = re.compile(r"(?! )[\x20-\x7e]*(?<! )\Z")
_OWN: Final = frozenset(
    ("host", "accept", "accept-encoding", "content-length", "transfer-encoding", "connection", "expect")
)
"""Headers that are added here. A request that has one of its own goes through aiohttp."""
_PORTS: Final = {"http": 80, "https": 443}
_SAFE_METHODS: Final = frozenset(("GET",))
"""Methods whose request is sent again if a kept connection turns out to be closed, as aiohttp does."""
_ON_AIOHTTP: Final = "toolspeak.runtime.http_transport"
_Key: TypeAlias = tuple[str, Outbound]


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """Where a request goes."""

    origin: str
    host: str
    port: int
    is_tls: bool
    path: str
    """With the query."""
    host_header: str


@lru_cache(maxsize=1024)
def request_target(url: str) -> RequestTarget | None:
    """Return the parts of a URL; None if aiohttp must take it apart."""
    found = _URL.match(url)
    if found is None:
        return None
    scheme, host, port, rest = found.groups()
    number = int(port) if port else _PORTS[scheme]
    path = rest if rest.startswith("/") else f"/{rest}"
    if not _TARGET.match(path) or not 0 < number < 1 << 16 or ".." in host or host.endswith("."):
        return None
    host_header = host if number == _PORTS[scheme] else f"{host}:{number}"
    return RequestTarget(origin_of(url), host.strip("[]"), number, scheme == "https", path, host_header)


def request_head(method: str, target: RequestTarget, headers: Headers, length: int) -> bytes | None:
    """Return the head of a request, as aiohttp would write it; None if aiohttp must do so."""
    lines = [f"{method} {target.path} HTTP/1.1\r\nHost: {target.host_header}\r\naccept-encoding: identity"]
    seen: set[str] = set()
    for name, value in headers:
        lowered = name.lower()
        if lowered in seen or lowered in _OWN or not _NAME.match(name) or not _VALUE.match(value):
            return None
        seen.add(lowered)
        lines.append(f"{name}: {value}")
    lines.append("Accept: */*")
    if length or method != "GET":
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


class PushTransport(OutboundTransport):
    """A transport that hands bytes to their reader in the call in which they arrive."""

    def __init__(self, outbound: Mapping[str, Outbound] | None = None) -> None:
        """Prepare a transport; `outbound` is by origin."""
        super().__init__(outbound)
        uses_proxy = any(each.proxy_url for each in self.outbound.values())
        self._other: HttpTransport | None = _http_transport() if uses_proxy else None
        """Sends what is not plain; None while nothing has needed it."""
        self._names: NameCache | None = None
        self._open: Final[set[UpstreamConnection]] = set()
        self._idle: Final[dict[_Key, list[tuple[float, UpstreamConnection]]]] = {}
        """Connections without a request, the last used at the end, each with the time when it was given back."""
        self._sweep: asyncio.TimerHandle | None = None

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> Response:
        """Send a request and return once the response's headers have arrived.

        Raises `TransportError`, and `RuntimeError` on another event loop than that of the first request.
        """
        target = request_target(url)
        head = None if target is None else request_head(method, target, headers, len(body))
        loop = asyncio.get_running_loop()
        self.bind(loop)
        if target is None or head is None or (outbound := self.outbound_to(target.origin)).proxy_url:
            return await (await self._for_others()).send(method, url, headers, body, timeouts)
        started = loop.time()
        key = (target.origin, outbound)
        connection = self._take(key, started)
        if connection is not None:
            try:
                return await _answered(connection.send(head, body, timeouts, started))
            except TransportError as error:
                if method not in _SAFE_METHODS or error.failure.kind is not FailureKind.DISCONNECTED:
                    raise
        connection = await self._connect(target, key, timeouts, started)
        return await _answered(connection.send(head, body, timeouts, started))

    async def close(self) -> None:
        """Close all connections."""
        for connection in tuple(self._open):
            connection.abort()
        self._idle.clear()
        if self._sweep is not None:
            self._sweep.cancel()
        if self._names is not None:
            self._names.close()
        if self._other is not None:
            await self._other.close()

    async def _for_others(self) -> "HttpTransport":
        """Return what sends requests that are not plain."""
        if self._other is None:
            await asyncio.to_thread(import_module, _ON_AIOHTTP)  # streams go on meanwhile
        if self._other is None:  # another request may have waited for the same
            self._other = _http_transport()
        self._other.outbound = self.outbound
        return self._other

    # ---------------------------------------------------------------- connections

    async def _connect(
        self, target: RequestTarget, key: _Key, timeouts: Timeouts, started: float
    ) -> UpstreamConnection:
        loop = asyncio.get_running_loop()
        try:
            context = _context(key[1]) if target.is_tls else None
        except OSError as error:
            raise no_connection(target.host, target.port, error) from None
        # The context is outside the deadline: the first one reads all certificates of the system, for up to 0.1 s.
        connect, answer = loop.time() + timeouts.connect, started + min(timeouts.first_byte, timeouts.total)
        deadline = asyncio.timeout_at(min(connect, answer))
        try:
            async with deadline:
                return await self._connected(loop, target, key, context)
        except OSError as error:  # among them TimeoutError, which the system has as well
            if deadline.expired():
                raise (no_connection_in_time if connect <= answer else no_answer_in_time)(timeouts) from None
            raise no_connection(target.host, target.port, error) from None

    async def _connected(
        self, loop: asyncio.AbstractEventLoop, target: RequestTarget, key: _Key, context: ssl.SSLContext | None
    ) -> UpstreamConnection:
        if self._names is None:
            self._names = NameCache(loop)
        addresses = await self._names.addresses(target.host, target.port)
        sock = await connected_socket(loop, addresses)
        idle = self._idle.setdefault(key, [])

        def release(connection: UpstreamConnection) -> None:
            idle.append((loop.time(), connection))
            if self._sweep is None:
                self._sweep = loop.call_later(_KEEP_ALIVE, self._sweep_idle)

        try:
            _, connection = await loop.create_connection(
                lambda: UpstreamConnection(release, self._open.discard),
                sock=sock,
                ssl=context,
                server_hostname=target.host if target.is_tls else None,
            )
        except BaseException:
            sock.close()
            raise
        self._open.add(connection)
        return connection

    def _take(self, key: _Key, now: float) -> UpstreamConnection | None:
        """Take the idle connection that was used last, if there is one."""
        idle = self._idle.get(key)
        while idle:
            since, connection = idle.pop()
            if connection.is_usable and now - since <= _KEEP_ALIVE:
                return connection
            connection.abort()
        return None

    def _sweep_idle(self) -> None:
        """Close the connections that have been idle for long."""
        loop = asyncio.get_running_loop()
        now, self._sweep = loop.time(), None
        for idle in self._idle.values():
            for since, connection in [each for each in idle if now - each[0] > _KEEP_ALIVE or not each[1].is_usable]:
                idle.remove((since, connection))
                connection.abort()
        if any(self._idle.values()):
            self._sweep = loop.call_later(_KEEP_ALIVE / 4, self._sweep_idle)


async def _answered(response: PushResponse) -> PushResponse:
    await response.head()
    return response


def _http_transport() -> "HttpTransport":
    from toolspeak.runtime.http_transport import HttpTransport  # noqa: PLC0415 # see the top

    return HttpTransport()


def _context(outbound: Outbound) -> ssl.SSLContext:
    context = outbound.tls
    return _default_context() if isinstance(context, bool) else context


@lru_cache(maxsize=1)
def _default_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context

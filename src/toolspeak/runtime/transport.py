"""One HTTP request to an upstream, and its response as the bytes arrive. All use of aiohttp as a client is in here.

    response = await transport.send("POST", url, headers, body, timeouts)
    while chunk := await response.read(): ...
    response.close()

Every failure is raised as a `TransportError`. Redirects are not followed, and no proxy or cookie is taken from the
environment: an upstream's key goes to the configured host and nowhere else (SAFE-6).
"""

import asyncio
import errno
import io
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

import aiohttp
from aiohttp import StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, RawResponseMessage
from typing_extensions import override

from toolspeak.declaration import setting
from toolspeak.ir.failure import Failure, FailureKind

Headers = Sequence[tuple[str, str]]
_GATEWAY_TIMEOUT, _BAD_GATEWAY = 504, 502
_LINGER = 1.0
_LARGE = 1 << 20
_MOST_INTERIM: Final = 16
"""Interim responses (1xx) before the response: servers send one, `100 Continue` or `103 Early Hints`."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait, in seconds: for the connection, the first byte of the answer, the next one, all of it."""

    connect: float = setting(10.0, "Time to connect.", unit="seconds", above=0)
    first_byte: float = setting(
        300.0,
        "Time until the first byte of the response. A model that thinks is silent for long.",
        unit="seconds",
        above=0,
    )
    idle: float = setting(120.0, "Longest pause between two pieces of the response.", unit="seconds", above=0)
    total: float = setting(1800.0, "Time for the whole response.", unit="seconds", above=0)


DEFAULT_TIMEOUTS = Timeouts()


class TransportError(Exception):
    """No answer came, or it broke off."""

    def __init__(self, failure: Failure, *, connected: bool = True) -> None:
        """Keep why, and whether there was a connection at all."""
        super().__init__(failure.message)
        self.failure = failure
        self.connected = connected


class Response(Protocol):
    """An answer that has begun."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; their names in any case."""
        ...

    async def read(self) -> bytes:
        """Return all bytes that are there, waiting for the first; nothing at the end."""
        ...

    def close(self) -> None:
        """Stop it: the connection is closed, unless all was read."""
        ...

    def end(self) -> None:
        """Read no more: the last event has come, and what ends the HTTP answer may follow on its own."""
        ...


class Transport(Protocol):
    """Sends requests."""

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> Response:
        """Send one, and wait until the answer's headers are there."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class HttpTransport:
    """aiohttp, with its connections kept open. It belongs to the event loop in which it first sends."""

    def __init__(self) -> None:
        """Connect nothing yet."""
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: Final[set[aiohttp.ClientResponse]] = set()

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> Response:
        """Send one, and wait until the answer's headers are there."""
        loop = asyncio.get_running_loop()
        session = self._session if loop is self._loop else None
        if session is None:
            session = self._opened(loop)
        started = loop.time()
        limit = aiohttp.ClientTimeout(total=None, connect=timeouts.connect)
        data = io.BytesIO(body) if len(body) > _LARGE else body or None  # aiohttp sends a large one in pieces
        try:
            async with asyncio.timeout_at(started + min(timeouts.first_byte, timeouts.total)):
                response = await session.request(
                    method, url, data=data, headers=headers, timeout=limit, allow_redirects=False
                )
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise _transport_error(error, timeouts) from None
        return _HttpResponse(response, timeouts, started, self._ending)

    async def close(self) -> None:
        """Close all connections."""
        for response in self._ending:
            response.close()
        if self._session is not None:
            await self._session.close()

    def _opened(self, loop: asyncio.AbstractEventLoop) -> aiohttp.ClientSession:
        if self._loop is not None:
            raise RuntimeError("these connections belong to another event loop: make a new client in each one")
        self._loop = loop
        self._session = aiohttp.ClientSession(
            connector=_connector(loop),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("user-agent", "content-type"),
            headers={"accept-encoding": "identity"},  # a compressed stream would come in lumps
            trust_env=False,
            auto_decompress=True,
        )
        return self._session


class _InterimLimit(ResponseHandler):
    """Closes a connection on which interim responses do not end.

    aiohttp skips them in a loop that never yields to other tasks: an upstream that sends nothing else stopped all
    streams of the gateway for two seconds.
    """

    _interim = 0

    @override
    async def read(self) -> tuple[RawResponseMessage, StreamReader]:
        """Return the next response, interim ones included."""
        message, payload = await super().read()
        self._interim = self._interim + 1 if message.code // 100 == 1 else 0
        if self._interim > _MOST_INTERIM:
            raise HttpProcessingError(code=message.code, message="too many interim responses")
        return message, payload


def _connector(loop: asyncio.AbstractEventLoop) -> aiohttp.TCPConnector:
    def connection() -> ResponseHandler:
        return _InterimLimit(loop)

    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
    # aiohttp has no public way to choose the class of its connections; the tests fail if this name goes away
    connector._factory = partial(connection)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return connector


class _HttpResponse:
    """A response with one timer in total, not one per chunk: it checks now and then how long the current read waits."""

    def __init__(
        self, response: aiohttp.ClientResponse, timeouts: Timeouts, started: float, ending: set[aiohttp.ClientResponse]
    ) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._response: Final = response
        self._ending: Final = ending
        self._next: Final = response.content.readany
        self._timeouts: Final = timeouts
        self._end: Final = started + timeouts.total
        self._loop: Final = asyncio.get_running_loop()
        self._now: Final = self._loop.time
        self._started: Final = started
        self._begun = False
        self._since: float | None = None
        """When the present read began to wait."""
        self._timer = self._loop.call_at(self._next_look(self._now()), self._look)

    async def read(self) -> bytes:
        """Return all bytes that are there, waiting for the first; nothing at the end."""
        self._since = self._now()
        try:
            chunk = await self._next()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _transport_error(error, self._timeouts) from None
        self._since = None
        self._begun = True
        return chunk

    def close(self) -> None:
        """Stop it: the connection is closed, unless all was read."""
        self._timer.cancel()
        self._response.close()

    def end(self) -> None:
        """Read no more: the last event has come, and what ends the HTTP answer may follow on its own."""
        self._timer.cancel()
        if not self._response.content.is_eof():  # at the end of the bytes the connection goes back by itself
            self._ending.add(self._response)
            self._loop.call_later(_LINGER, self._cut)

    def _cut(self) -> None:
        self._ending.discard(self._response)
        self._response.close()

    def _look(self) -> None:
        now = self._now()
        which = "total" if now >= self._end else self._expired(now)
        if which:
            self._response.content.set_exception(_TimedOut(which))
        else:
            self._timer = self._loop.call_at(self._next_look(now), self._look)

    def _expired(self, now: float) -> str:
        """Return the name of the timeout that has expired; none while no read is waiting."""
        if self._since is None:
            return ""
        if self._begun:
            return "idle" if now >= self._since + self._timeouts.idle else ""
        return "first_byte" if now >= self._started + self._timeouts.first_byte else ""

    def _next_look(self, now: float) -> float:
        """Return when a wait could next be over; the first byte may come at any time, and an idle wait begin.

        It adds as `_expired` does: uvloop's clock has milliseconds, so that a timer often comes at the very moment.
        """
        waiting = self._since if self._begun and self._since is not None else now
        first = self._started + self._timeouts.first_byte
        idle = waiting + self._timeouts.idle
        return min(idle, self._end, first if first > now else idle)


class _TimedOut(TimeoutError):
    """One of our timeouts expired; the message is its name."""


def _transport_error(error: Exception, timeouts: Timeouts) -> TransportError:
    """Describe the error without the URL, which may hold a key."""
    match error:
        case _TimedOut():
            which = str(error)
            return _timeout_error(
                f"the upstream was silent for too long (timeouts.{which} = {getattr(timeouts, which):g} s)"
            )
        case aiohttp.ConnectionTimeoutError():
            return _timeout_error(
                f"no connection to the upstream within timeouts.connect = {timeouts.connect:g} s", connected=False
            )
        case TimeoutError():
            which = "total" if timeouts.total <= timeouts.first_byte else "first_byte"
            return _timeout_error(
                f"no answer from the upstream within timeouts.{which} = {getattr(timeouts, which):g} s"
            )
        case aiohttp.ClientConnectorError():
            place, reason = f"{error.host}:{error.port}", _reason(error.os_error)
            return _connection_error(f"no connection to the upstream at {place}: {reason}", connected=False)
        case aiohttp.ServerDisconnectedError():
            return _connection_error("the upstream closed the connection without an answer")
        case ValueError():
            message = f"nothing was sent: the upstream's URL or a header of it cannot be used ({type(error).__name__})"
            return TransportError(Failure(FailureKind.OTHER, message, _BAD_GATEWAY))
        case _:
            return _connection_error(f"the upstream's answer broke off ({type(error).__name__})")


def _reason(error: OSError) -> str:
    """Say it in the system's words where it has some: asyncio and uvloop say it in their own."""
    number = None if isinstance(error, ssl.SSLError) else error.errno
    said = os.strerror(number) if number is not None and number in errno.errorcode else error.strerror
    return said or "it cannot be reached"


def _timeout_error(message: str, *, connected: bool = True) -> TransportError:
    return TransportError(Failure(FailureKind.TIMEOUT, message, _GATEWAY_TIMEOUT), connected=connected)


def _connection_error(message: str, *, connected: bool = True) -> TransportError:
    return TransportError(Failure(FailureKind.DISCONNECTED, message, _BAD_GATEWAY), connected=connected)

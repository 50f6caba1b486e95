"""Sends HTTP requests to upstreams and returns response bytes as they arrive. The only user of aiohttp as a client.

    response = await transport.send("POST", url, headers, body, timeouts)
    while chunk := await response.read(): ...
    response.close()

Every failure is raised as a `TransportError`. Redirects are not followed, and no cookie is kept: an upstream's key goes
to the configured host and nowhere else (SAFE-6). Proxies and certificates come from the configuration, which also reads
the environment's, see `outbound.py`.

aiohttp was chosen for its cost per chunk of a stream: httpx and httpcore take three to five times as long.
`UpstreamTransport` is a protocol, so that another client can replace it.
"""

import asyncio
import errno
import io
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeAlias, runtime_checkable

import aiohttp
from aiohttp import StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, RawResponseMessage
from typing_extensions import override

from toolspeak.declaration import setting
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.outbound import NO_OUTBOUND, Outbound, origin_of

Headers = Sequence[tuple[str, str]]
_GATEWAY_TIMEOUT, _BAD_GATEWAY = 504, 502
LINGER = 1.0
"""Seconds that a finished answer may take to send its last bytes (the end of the chunked body) before it is closed."""
_LARGE = 1 << 20
"""Bytes above which a body is sent in pieces: aiohttp writes `bytes` in one call, and a file object in chunks."""
MOST_INTERIM: Final = 16
"""Interim responses (1xx) in a row. Real servers send one, `100 Continue` or `103 Early Hints`."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of one request, in seconds. `first_byte` and `total` count from the moment the request is sent."""

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


_UntrustedCertificate = aiohttp.ClientConnectorCertificateError


class TransportError(Exception):
    """The request failed without a complete response: no connection, a timeout, or a response that broke off."""

    def __init__(self, failure: Failure, *, connected: bool = True) -> None:
        """Keep the failure, and whether a connection was made."""
        super().__init__(failure.message)
        self.failure = failure
        self.connected = connected
        """False if no byte can have reached the upstream: such a request may always be sent again."""


class Response(Protocol):
    """A response whose status and headers have arrived. The caller must call either `close` or `end`."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; lookups ignore case."""
        ...

    async def read(self) -> bytes:
        """Wait for bytes and return all that have arrived; empty at the end. Raises `TransportError`."""
        ...

    def close(self) -> None:
        """Stop the response: the upstream's connection is closed, unless the body was read to its end."""
        ...

    def end(self) -> None:
        """Stop reading after the last event. The connection is reused if the end of the body arrives soon."""
        ...


Divert: TypeAlias = Callable[[Callable[[bytes], bool]], None]
"""The method `divert` that some responses have. It offers the bytes that arrive while `read` waits to a function, which
returns whether it takes them; `read` returns the others."""


class UpstreamTransport(Protocol):
    """Sends requests over connections that it keeps open."""

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> Response:
        """Send a request and return once the response's headers have arrived. Raises `TransportError`."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


@runtime_checkable
class LoadsModels(Protocol):
    """A transport that loads the model of a request first, if it is not loaded."""

    def model_state(self, url: str) -> str:
        """Return the state of the model at a base URL, such as `loaded`; empty if there is no such model."""
        ...


IN_BACKGROUND: Final = ContextVar("IN_BACKGROUND", default=False)
"""True in tasks that no client waits for, such as probes. A transport loads no model for their requests (UP-5)."""


class HttpTransport:
    """A transport on aiohttp with keep-alive connections. It belongs to the event loop of its first request."""

    def __init__(self, outbound: Mapping[str, Outbound] | None = None) -> None:
        """Prepare a transport; the session is opened by the first request. `outbound` is by origin."""
        self.outbound = outbound or {}
        """The proxies and certificates of upstreams; a reload replaces them."""
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: Final[set[aiohttp.ClientResponse]] = set()
        """Responses after `end`, whose connections wait for the end of the body. `close` must not leave them open."""

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> Response:
        """Send a request and return once the response's headers have arrived.

        Raises `TransportError`, and `RuntimeError` on another event loop than that of the first request.
        """
        loop = asyncio.get_running_loop()
        session = self._session if loop is self._loop else None
        if session is None:
            session = self._opened(loop)
        started = loop.time()
        limit = aiohttp.ClientTimeout(total=None, connect=timeouts.connect)
        data = io.BytesIO(body) if len(body) > _LARGE else body or None
        leaves = self.outbound.get(origin_of(url), NO_OUTBOUND) if self.outbound else NO_OUTBOUND
        try:
            async with asyncio.timeout_at(started + min(timeouts.first_byte, timeouts.total)):
                response = await session.request(
                    method,
                    url,
                    data=data,
                    headers=headers,
                    timeout=limit,
                    allow_redirects=False,
                    proxy=leaves.proxy_url,
                    ssl=leaves.tls,
                )
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise transport_error(error, timeouts) from None
        return _HttpResponse(response, timeouts, started, self._ending)

    async def close(self) -> None:
        """Close all connections."""
        for response in self._ending:
            response.close()
        if self._session is not None:
            await self._session.close()

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Belong to this event loop. Raises `RuntimeError` if the transport belongs to another one."""
        if self._loop is not None and self._loop is not loop:
            raise RuntimeError("these connections belong to another event loop: make a new client in each one")
        self._loop = loop

    def _opened(self, loop: asyncio.AbstractEventLoop) -> aiohttp.ClientSession:
        self.bind(loop)
        self._session = aiohttp.ClientSession(
            connector=_connector(loop),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("user-agent", "content-type"),  # only the wire and the configuration add headers
            headers={"accept-encoding": "identity"},  # a compressor holds events back until its block is full
            trust_env=False,  # no ~/.netrc: it could send credentials to another host; proxies are resolved before
            auto_decompress=True,
        )
        return self._session


class _Connection(ResponseHandler):
    """Ends what aiohttp leaves open: interim responses without an end, and the body after an error of the parser.

    aiohttp skips the first in a loop that never yields to other tasks: an upstream that sends nothing else stopped all
    streams of the gateway for two seconds.
    """

    _interim = 0

    @override
    async def read(self) -> tuple[RawResponseMessage, StreamReader]:
        """Return the next response, interim ones included. Raises `HttpProcessingError` after too many of them."""
        message, payload = await super().read()
        self._interim = self._interim + 1 if message.code // 100 == 1 else 0
        if self._interim > MOST_INTERIM:
            raise HttpProcessingError(code=message.code, message="too many interim responses")
        return message, payload

    @override
    def set_exception(self, exc: BaseException, exc_cause: BaseException | None = None) -> None:
        """Raise the error in the reader of a body as well.

        aiohttp keeps an error of its parser for the next response only: after a bad chunk the reader of the body waited
        for its idle timeout, although the connection was closed.
        """
        payload = self._payload
        if exc_cause is None:
            super().set_exception(exc)
        else:
            super().set_exception(exc, exc_cause)
        if payload is not None and not payload.is_eof() and payload.exception() is None:
            payload.set_exception(aiohttp.ClientPayloadError("the body cannot be parsed"))


def _connector(loop: asyncio.AbstractEventLoop) -> aiohttp.TCPConnector:
    def connection() -> ResponseHandler:
        return _Connection(loop)

    # No limit: the gateway limits its requests itself, and aiohttp would count the wait for a free connection as time
    # to connect, so that a busy pool would look like an unreachable upstream.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
    # aiohttp has no public way to choose the class of its connections; the tests fail if this name goes away
    connector._factory = partial(connection)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return connector


class TimedOut(TimeoutError):
    """A timeout of `Timeouts` expired; the message is the name of its field."""


class TimedResponse:
    """A response that checks all its timeouts with a single timer. Its subclass keeps `_since` and `_begun` up to date.

    A timer per read would be made and cancelled for every chunk. Instead `read` only notes when it began to wait, and
    the timer fires at the earliest moment at which a timeout could have expired, checks, and is set again.
    """

    def __init__(self, timeouts: Timeouts, started: float) -> None:
        """Start the timer; `started` is when the request was sent, by the clock of the running event loop."""
        self._timeouts: Final = timeouts
        self._end: Final = started + timeouts.total
        self._loop: Final = asyncio.get_running_loop()
        self._now: Final = self._loop.time
        self._started: Final = started
        """When the request was sent. `first_byte` counts from here: headers alone do not restart it."""
        self._begun = False
        """Whether a byte has arrived: before that `first_byte` applies, afterwards `idle`."""
        self._since: float | None = None
        """When the current read began to wait; None while no read waits, so that a slow reader is no idle upstream."""
        self._timer = self._loop.call_at(self._next_look(self._now()), self._look)

    def _expire(self, error: TimedOut) -> None:
        """Raise the error in the waiting read, or in the next one."""
        raise NotImplementedError

    def _look(self) -> None:
        now = self._now()
        which = "total" if now >= self._end else self._expired(now)
        if which:
            self._expire(TimedOut(which))
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
        """Return the earliest moment at which a timeout can expire. A first byte may arrive before it and start `idle`.

        The sums are the same as in `_expired`. uvloop's clock has milliseconds, so a timer often fires at exactly the
        computed moment, and a sum that is rounded otherwise would find that nothing has expired yet.
        """
        waiting = self._since if self._begun and self._since is not None else now
        first = self._started + self._timeouts.first_byte
        idle = waiting + self._timeouts.idle
        return min(idle, self._end, first if first > now else idle)


class _HttpResponse(TimedResponse):
    """A response of aiohttp."""

    def __init__(
        self, response: aiohttp.ClientResponse, timeouts: Timeouts, started: float, ending: set[aiohttp.ClientResponse]
    ) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._response: Final = response
        self._ending: Final = ending
        self._next: Final = response.content.readany
        super().__init__(timeouts, started)

    async def read(self) -> bytes:
        """Wait for bytes and return all that have arrived; empty at the end. Raises `TransportError`."""
        self._since = self._now()
        try:
            chunk = await self._next()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise transport_error(error, self._timeouts) from None
        self._since = None
        self._begun = True
        return chunk

    def close(self) -> None:
        """Stop the response: the upstream's connection is closed, unless the body was read to its end."""
        self._timer.cancel()
        self._response.close()

    def end(self) -> None:
        """Stop reading after the last event. The connection is reused if the end of the body arrives soon.

        The last event (`[DONE]`, `message_stop`) often arrives before the bytes that end the HTTP body. Closing at that
        moment would cost a new connection for every turn; waiting for them would delay the client's answer.
        """
        self._timer.cancel()
        if not self._response.content.is_eof():  # at the end of the body aiohttp itself returns the connection
            self._ending.add(self._response)
            self._loop.call_later(LINGER, self._cut)

    def _cut(self) -> None:
        self._ending.discard(self._response)
        self._response.close()

    @override
    def _expire(self, error: TimedOut) -> None:
        # The timer cannot raise into the task that reads. The stream can: the waiting read raises this error.
        self._response.content.set_exception(error)


_TRUST: Final = "; to trust a private authority, set ca_file"


def transport_error(error: Exception, timeouts: Timeouts) -> TransportError:
    """Translate an error of aiohttp or the system. The message never has the URL, which may contain a key."""
    match error:
        case TimedOut():
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
        case aiohttp.ClientProxyConnectionError():
            place, reason = f"{error.host}:{error.port}", _reason(error.os_error)
            return _connection_error(f"no connection to the proxy at {place}: {reason}", connected=False)
        case aiohttp.ClientHttpProxyError():
            return _connection_error(f"the proxy refused to connect to the upstream ({error.status})", connected=False)
        case aiohttp.ClientConnectorError():
            # Before 3.13.4 aiohttp's error for an untrusted certificate has no `os_error`, and reading it raises.
            cause = error.certificate_error if isinstance(error, _UntrustedCertificate) else error.os_error
            return no_connection(error.host, error.port, cause)
        case aiohttp.ServerDisconnectedError():
            return closed_without_answer()
        case ValueError():  # aiohttp rejects the URL or a header before it connects, so this is no broken answer
            message = f"nothing was sent: the upstream's URL or a header of it cannot be used ({type(error).__name__})"
            return TransportError(Failure(FailureKind.OTHER, message, _BAD_GATEWAY))
        case _:
            return broken_off(type(error).__name__)


def closed_without_answer() -> TransportError:
    """Return the failure of a connection that the upstream closed before the head of its response."""
    return _connection_error("the upstream closed the connection without an answer")


def broken_off(why: str) -> TransportError:
    """Return the failure of a response that is not complete, or no HTTP; `why` is the name of aiohttp's error."""
    return _connection_error(f"the upstream's answer broke off ({why})")


def no_connection(host: str, port: int | None, error: Exception) -> TransportError:
    """Return the failure of a connection that could not be made."""
    advice = _TRUST if isinstance(error, ssl.CertificateError) else ""
    return _connection_error(
        f"no connection to the upstream at {host}:{port}: {_reason(error)}{advice}", connected=False
    )


def _reason(error: Exception) -> str:
    """Return the system's description of an errno if it has one: asyncio and uvloop word the same error differently."""
    if not isinstance(error, OSError):
        return str(error)
    number = None if isinstance(error, ssl.SSLError) else error.errno
    said = os.strerror(number) if number is not None and number in errno.errorcode else error.strerror
    return said or "it cannot be reached"


def _timeout_error(message: str, *, connected: bool = True) -> TransportError:
    return TransportError(Failure(FailureKind.TIMEOUT, message, _GATEWAY_TIMEOUT), connected=connected)


def _connection_error(message: str, *, connected: bool = True) -> TransportError:
    return TransportError(Failure(FailureKind.DISCONNECTED, message, _BAD_GATEWAY), connected=connected)

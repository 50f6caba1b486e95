"""What sends HTTP requests to upstreams, and returns response bytes as they arrive.

    response = await transport.send("POST", url, headers, body, timeouts)
    while chunk := await response.read(): ...
    response.close()

Every failure is raised as a `TransportError`. Redirects are not followed, and no cookie is kept: an upstream's key goes
to the configured host and nowhere else (SAFE-6). Proxies and certificates come from the configuration, which also reads
the environment's, see `outbound.py`.

There are two: `http_transport.py` on aiohttp, and `push_transport.py`. This module has what both share, and imports
neither: aiohttp takes a fifth of the time in which a gateway starts, and 10 MB.
"""

import asyncio
import errno
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, runtime_checkable

from toolspeak.declaration import setting
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.outbound import NO_OUTBOUND, Outbound

Headers = Sequence[tuple[str, str]]
_GATEWAY_TIMEOUT, _BAD_GATEWAY = 504, 502
LINGER = 1.0
"""Seconds that a finished answer may take to send its last bytes (the end of the chunked body) before it is closed."""
MOST_INTERIM: Final = 16
"""Interim responses (1xx) in a row. Real servers send one, `100 Continue` or `103 Early Hints`."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of one request, in seconds. `first_byte` and `total` count from the moment the request is sent."""

    connect: float = setting(10.0, "Time to connect.", unit="seconds", above=0)
    first_byte: float = setting(
        300.0,
        "Time until the first byte of the response. A model that reasons can be silent for a long time.",
        unit="seconds",
        above=0,
    )
    idle: float = setting(120.0, "Longest pause between two chunks of the response.", unit="seconds", above=0)
    total: float = setting(1800.0, "Time for the whole response.", unit="seconds", above=0)


DEFAULT_TIMEOUTS = Timeouts()


class TransportError(Exception):
    """The request failed without a complete response: no connection, a timeout, or a response that broke off."""

    def __init__(self, failure: Failure, *, connected: bool = True) -> None:
        """Keep the failure, and whether a connection was made."""
        super().__init__(failure.message)
        self.failure = failure
        self.connected = connected
        """False if no byte can have reached the upstream: such a request may always be sent again."""

    def again(self) -> "TransportError":
        """Return a new error that says the same.

        What keeps an error must raise a new one: an error that was raised refers to all frames that it passed, and so
        to what keeps it, and only the garbage collector would free them.
        """
        return TransportError(self.failure, connected=self.connected)


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


class OutboundTransport:
    """What both transports are: bound to the event loop of their first request, and to the configuration's proxies."""

    def __init__(self, outbound: Mapping[str, Outbound] | None = None) -> None:
        """Prepare a transport; nothing is opened before the first request. `outbound` is by origin."""
        self.outbound = outbound or {}
        """The proxies and certificates of upstreams; a reload replaces them."""
        self._loop: asyncio.AbstractEventLoop | None = None

    def outbound_to(self, origin: str) -> Outbound:
        """Return how requests to this origin leave."""
        return self.outbound.get(origin, NO_OUTBOUND) if self.outbound else NO_OUTBOUND

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Belong to this event loop. Raises `RuntimeError` if the transport belongs to another one."""
        if self._loop is not None and self._loop is not loop:
            raise RuntimeError("these connections belong to another event loop: make a new client in each one")
        self._loop = loop


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


_TRUST: Final = "; to trust a private authority, set ca_file"


def timed_out(error: TimedOut, timeouts: Timeouts) -> TransportError:
    """Return the failure of a response that was silent for too long."""
    which = str(error)
    return _timeout_error(f"the upstream was silent for too long (timeouts.{which} = {getattr(timeouts, which):g} s)")


def no_connection_in_time(timeouts: Timeouts) -> TransportError:
    """Return the failure of a connection that took too long."""
    message = f"no connection to the upstream within timeouts.connect = {timeouts.connect:g} s"
    return _timeout_error(message, connected=False)


def no_answer_in_time(timeouts: Timeouts) -> TransportError:
    """Return the failure of a response whose head did not arrive in time."""
    which = "total" if timeouts.total <= timeouts.first_byte else "first_byte"
    return _timeout_error(f"no answer from the upstream within timeouts.{which} = {getattr(timeouts, which):g} s")


def unusable_request(error: ValueError) -> TransportError:
    """Return the failure of a request whose URL or headers are refused before anything is sent: no broken answer."""
    message = f"nothing was sent: the upstream's URL or a header of it cannot be used ({type(error).__name__})"
    return TransportError(Failure(FailureKind.OTHER, message, _BAD_GATEWAY))


def no_proxy(place: str, error: Exception) -> TransportError:
    """Return the failure of a connection to a proxy that could not be made."""
    return connection_error(f"no connection to the proxy at {place}: {_reason(error)}", connected=False)


def closed_without_answer() -> TransportError:
    """Return the failure of a connection that the upstream closed before the head of its response."""
    return connection_error("the upstream closed the connection without an answer")


def broken_off(why: str) -> TransportError:
    """Return the failure of a response that is not complete, or no HTTP; `why` is the name of aiohttp's error."""
    return connection_error(f"the upstream's answer broke off ({why})")


def no_connection(host: str, port: int | None, error: Exception) -> TransportError:
    """Return the failure of a connection that could not be made."""
    advice = _TRUST if isinstance(error, ssl.CertificateError) else ""
    return connection_error(
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


def connection_error(message: str, *, connected: bool = True) -> TransportError:
    """Return the failure of a connection that could not be made, or that broke."""
    return TransportError(Failure(FailureKind.DISCONNECTED, message, _BAD_GATEWAY), connected=connected)

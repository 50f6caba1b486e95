"""Defines one request of a client and its response, independent of the server that runs the gateway.

`Exchange` is the connection's side: it reads the request and writes the response. `ResponseContext` is the gateway's
side: the trace id, the headers that every response carries, and whether the response has started.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar

from toolspeak.engine.plan import Plan
from toolspeak.gateway.access_log import AccessEntry
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.clock import Clock
from toolspeak.wires import Stamp

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
Beat: TypeAlias = Callable[[], Awaitable[float]]
"""Called while the client waits; returns after how many seconds it wants to be called again."""
EndStream: TypeAlias = Callable[[Failure], Awaitable[None]]
T = TypeVar("T")
_NO_CONTENT = 204
PLAN_HEADER = b"x-toolspeak-plan"
UNKNOWN_URL = "unknown_url"
"""The code of an error about a path. `model_not_found`, the code of other 404s, sends people to look for the model."""


class Refused(Exception):
    """The gateway refuses the request; `failure` becomes an error of the client's protocol."""

    def __init__(self, failure: Failure) -> None:
        """Keep the failure."""
        super().__init__(failure.message)
        self.failure = failure


class TurnFailed(Refused):
    """The turn failed before the client saw anything of it: the failure is the upstream's, not a refusal of ours."""


class Gone(Exception):
    """The client has closed its connection."""


class Exchange(Protocol):
    """One request and its response. `path` is as the client wrote it, escapes included; header names are lower case."""

    tenant: str
    """The tenant of the client's key, set once the key is checked; the memory of the body counts for this tenant."""

    status: int
    """The status that was sent; 0 before that."""

    @property
    def client(self) -> str:
        """The address of the connection's other end; empty if it is unknown."""
        ...

    @property
    def method(self) -> str:
        """The HTTP method."""
        ...

    @property
    def path(self) -> str:
        """The path without its query."""
        ...

    @property
    def query(self) -> str:
        """The query string, without its question mark."""
        ...

    def headers(self, name: bytes) -> list[str]:
        """Return all values of a header."""
        ...

    async def body(self) -> bytes:
        """Read the body; raises `Refused` above a limit, `Gone` if the client closes the connection."""
        ...

    async def start(self, status: int, headers: Headers) -> None:
        """Send status and headers."""
        ...

    async def write(self, chunk: bytes, *, last: bool = False) -> None:
        """Send a piece of the body; waits while the client does not read."""
        ...

    @property
    def writer_at_once(self) -> Callable[[bytes], None] | None:
        """What sends a piece of the body without waiting; None while the client does not read, and if there is none."""
        ...

    async def attended(self, work: Coroutine[object, object, T], beat: Beat) -> T:
        """Run the work and return its result, calling `beat` when it is due.

        If the client disconnects, the work is cancelled and `Gone` is raised: an answer without a reader would keep the
        upstream busy and cost tokens.
        """
        ...


def header(exchange: Exchange, name: bytes) -> str:
    """Return the only value of a header, empty if it is absent. Raises `Refused` (400) if there are several.

    Of two values, a proxy in front and the gateway could each use another one.
    """
    values = exchange.headers(name)
    if len(values) > 1:
        message = f"the header {name.decode()} comes {len(values)} times"
        raise Refused(Failure(FailureKind.INVALID_REQUEST, message, 400))
    return values[0] if values else ""


async def answer(exchange: Exchange, status: int, media_type: bytes, body: bytes, headers: Headers = ()) -> None:
    """Send a whole response."""
    if status == _NO_CONTENT:  # it has neither type nor length
        await exchange.start(status, headers)
    else:
        length = (b"content-length", b"%d" % len(body))
        await exchange.start(status, ((b"content-type", media_type), length, *headers))
    await exchange.write(b"" if exchange.method == "HEAD" else body, last=True)


# ---------------------------------------------------------------- the gateway's side


async def _cut(failure: Failure) -> None:
    """Write nothing: the server then closes the connection before the end of the response."""
    del failure


@dataclass(slots=True)
class ResponseContext:
    """The trace id of one exchange, the headers of its response, and how to end a response that has started."""

    stamp: Stamp
    entry: AccessEntry
    """What the access log says about the exchange."""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])
    started: bool = False
    """Status and headers are sent: a failure can no longer be an HTTP error."""
    planned: Plan | None = None
    """The plan in the headers."""
    end_stream: EndStream = _cut
    """Ends a started stream with its protocol's error. A protocol without one cuts the connection, which is all that
    its client can notice."""

    @property
    def trace(self) -> str:
        """Return the id of this exchange in the log and in `x-toolspeak-trace`."""
        return self.stamp.id

    def release(self) -> None:
        """Let go of the stream, which refers to this context: else only the garbage collector would free both."""
        self.end_stream = _cut

    def allow(self, origin: str) -> None:
        """Let a page of this origin read the response. `Vary` keeps caches from giving it to another origin."""
        self.headers.append((b"access-control-allow-origin", origin.encode("latin-1")))
        self.headers.append((b"access-control-expose-headers", b"*"))
        self.headers.append((b"vary", b"origin"))

    def plan(self, plan: Plan) -> None:
        """Put the plan into the response headers, instead of an earlier one. Without effect once they are sent."""
        if not self.started and plan is not self.planned:
            self.planned = plan
            told = (PLAN_HEADER, plan_line(plan))
            self.headers[:] = (*(each for each in self.headers if each[0] != PLAN_HEADER), told)

    def warn(self, warning: str) -> None:
        """Add a warning for the client to the response headers (MODE-9)."""
        self.headers.append((b"x-toolspeak-warning", warning.encode("ascii", "replace")))


def plan_line(plan: Plan) -> bytes:
    """Return a plan as the value of a header."""
    return plan.line.encode("ascii", "replace")


def new_context(exchange: Exchange, wire: str, request_id_header: bytes, clock: Clock) -> ResponseContext:
    """Return the context of a new exchange. Its id is also in the header where the client's protocol expects one.

    Claude Code, for example, reports a response without `request-id`.
    """
    began = clock.monotonic()
    stamp = Stamp(clock.fresh_id(), clock.seconds(), elapsed=lambda: clock.monotonic() - began)
    trace = stamp.id.encode()
    entry = AccessEntry(stamp.id, exchange.method, exchange.path, exchange.client, wire, clock.monotonic())
    return ResponseContext(stamp, entry, [(b"x-toolspeak-trace", trace), (request_id_header, b"req_" + trace)])

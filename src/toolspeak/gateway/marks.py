"""What every answer of ours is marked with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from toolspeak.engine.plan import Plan
from toolspeak.ir.failure import Failure
from toolspeak.runtime.clock import Clock
from toolspeak.wires import Stamp

EndStream: TypeAlias = Callable[[Failure], Awaitable[None]]


async def _cut(failure: Failure) -> None:
    """Write nothing: the connection closes without the end of its response."""
    del failure


@dataclass(slots=True)
class Marks:
    """The trace's id, and the headers that carry it."""

    stamp: Stamp
    headers: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])
    started: bool = False
    """The answer has begun."""
    end_stream: EndStream = _cut
    """Ends a stream that has begun, in its protocol's own words if it has any: else only the cut connection says it."""

    @property
    def trace(self) -> str:
        """Return the id under which the log knows this exchange."""
        return self.stamp.id

    def allow(self, origin: str) -> None:
        """Let a page of this origin read the answer."""
        self.headers.append((b"access-control-allow-origin", origin.encode("latin-1")))
        self.headers.append((b"access-control-expose-headers", b"*"))
        self.headers.append((b"vary", b"origin"))

    def plan(self, plan: Plan) -> None:
        """Record the plan, for the response headers."""
        self.headers.append((b"x-toolspeak-plan", plan.line.encode("ascii", "replace")))

    def warn(self, warning: str) -> None:
        """Record a warning for the client (MODE-9)."""
        self.headers.append((b"x-toolspeak-warning", warning.encode("ascii", "replace")))


def marks_of(request_id_header: bytes, clock: Clock) -> Marks:
    """Make the marks of a new exchange, with its id also in the header that the client's protocol has for it."""
    stamp = Stamp(clock.fresh_id(), clock.seconds())
    trace = stamp.id.encode()
    return Marks(stamp, [(b"x-toolspeak-trace", trace), (request_id_header, b"req_" + trace)])

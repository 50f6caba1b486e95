"""One request for a turn, with all that was found out about it."""

from collections.abc import Coroutine
from dataclasses import dataclass

from toolspeak.engine.outcome import Outcome
from toolspeak.engine.plan import Plan
from toolspeak.gateway.exchange import Exchange
from toolspeak.gateway.marks import Marks
from toolspeak.ir.request import Request
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.directory import Emit, Route
from toolspeak.runtime.offload import Run
from toolspeak.wires import Wire


@dataclass(frozen=True, slots=True)
class Visit:
    """Who asks on which wire for what, and how it will be done."""

    exchange: Exchange
    wire: Wire
    marks: Marks
    request: Request
    route: Route
    plan: Plan
    prepare: Run
    """Where work runs that takes time in proportion to the request."""

    def turn(self, emit: Emit, clock: Clock) -> Coroutine[object, object, Outcome]:
        """Run the turn."""
        return self.route.take(self.request, self.plan, emit, clock, self.prepare)

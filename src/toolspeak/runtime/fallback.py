"""Gives a turn to another model if its own cannot answer (POOL-5).

    [models.fast]
    upstream = "farm"
    fallback = ["large", "groq:llama-3.3-70b-versatile"]

A turn moves only while the client has seen nothing of it: all servers of its model are out, the model fails before its
first byte, or the request is longer than its context. It moves only to a model that can do what the request needs.
Tools are no such need: each model gets a plan of its own, and calls are emulated for one that has none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from toolspeak.engine.effects import Outcome
from toolspeak.engine.plan import Plan
from toolspeak.engine.settings import Settings
from toolspeak.facts.model import ModelFacts
from toolspeak.ir.event import CallStarted, Event, Failed, ReasoningDelta, TextDelta
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.message import Image, Result
from toolspeak.ir.request import Request
from toolspeak.runtime.directory import EmitEvents, Route
from toolspeak.runtime.upstream import HttpUpstream
from toolspeak.traces.audit import estimate_tokens

OUT: Final = "out"
"""The reason of a move if no server of the model is in service."""
_MOVES: Final = frozenset(
    (
        FailureKind.TRANSIENT,
        FailureKind.TIMEOUT,
        FailureKind.DISCONNECTED,
        FailureKind.RATE_LIMITED,
        FailureKind.CONTEXT_LENGTH,
    )
)
"""Failures after which another model may answer. A wrong key or a wrong request is for a person to correct."""
_SHOWN = (TextDelta, ReasoningDelta, CallStarted)


@dataclass(frozen=True, slots=True)
class Needs:
    """What a request needs of a model, besides tools."""

    images: bool = False
    tokens: int = 0
    """The estimated size of the prompt, and the answer that the client allows."""

    @classmethod
    def of(cls, request: Request) -> "Needs":
        """Return the needs of a request."""
        parts = [part for message in request.messages for part in message.parts]
        shown = [piece for part in parts for piece in (part.content if isinstance(part, Result) else (part,))]
        tokens = estimate_tokens(request) + (request.sampling.max_tokens or 0)
        return cls(any(isinstance(piece, Image) for piece in shown), tokens)

    def are_met_by(self, facts: ModelFacts, longer_than: int | None = None) -> bool:
        """Return whether a model can do it. `longer_than` is a context that was too short.

        A model of which it is unknown whether it reads images does not get any: servers drop them in silence, and the
        answer would be about nothing. An unknown context is tried, but not after one that was too short.
        """
        if self.images and facts.images is not True:
            return False
        context = facts.context_tokens
        if context is None:
            return longer_than is None
        return self.tokens <= context and (longer_than is None or context > longer_than)


class TakeOnRoute(Protocol):
    """Takes the turn on one route."""

    async def __call__(self, route: Route, plan: Plan, emit: EmitEvents) -> Outcome:
        """Run the turn, emit its events, and return its outcome."""
        ...


@dataclass(frozen=True, slots=True)
class FallbackTurn:
    """A turn that other models may take."""

    route: Route
    request: Request
    asked: Settings
    """The settings of the request, which hold for every model."""
    take: TakeOnRoute
    moved: Callable[[Route, Plan, str], None]
    """Is told of each move, before it: the new route, its plan, and the reason, `OUT` or a kind of failure."""

    async def run(self, plan: Plan, emit: EmitEvents) -> Outcome:
        """Take the turn on its own route, or on the first of the others that can answer it, and return its outcome.

        If no model can answer, the client gets the last failure.
        """
        route, left, longer_than = self.route, list(self.route.fallbacks), None
        if not left:
            return await self.take(route, plan, emit)
        needs = Needs.of(self.request)
        if _is_out(route) and (found := _next(left, needs, longer_than)):
            route, plan = self._move(found, OUT)
        while True:
            held = _HeldFailure(emit)
            outcome = await self.take(route, plan, held.emit)
            if held.failed is None:
                return outcome
            kind = held.failed.failure.kind
            if kind is FailureKind.CONTEXT_LENGTH:
                longer_than = max(longer_than or 0, route.known.context_tokens or 0)
            found = _next(left, needs, longer_than)
            if found is None:
                await emit(held.events)
                return outcome
            route, plan = self._move(found, kind)

    def _move(self, found: Route, why: str) -> tuple[Route, Plan]:
        route = found.of_tenant(self.route.tenant)
        plan = route.plan(self.request, self.asked)
        names = ascii(f"fallback from {self.route.identity} to {route.identity}")[1:-1]  # it becomes a header
        plan = replace(plan, why=f"{plan.why}; {names} ({why})")
        self.moved(route, plan, why)
        return route, plan


def _next(left: list[Route], needs: Needs, longer_than: int | None) -> Route | None:
    """Take the next model that can do it; those whose servers are all out come last."""
    able = [each for each in left if needs.are_met_by(each.known, longer_than)]
    found = next((each for each in able if not _is_out(each)), able[0] if able else None)
    if found is not None:
        left.remove(found)
    return found


def _is_out(route: Route) -> bool:
    return isinstance(route.upstream, HttpUpstream) and route.upstream.is_out


class _HeldFailure:
    """Passes events on, but holds a failure that comes before anything that the client can see."""

    def __init__(self, emit: EmitEvents) -> None:
        self._emit: Final = emit
        self._begun = False
        self.events: Sequence[Event] = ()
        self.failed: Failed | None = None

    async def emit(self, events: Sequence[Event]) -> None:
        last = events[-1] if events else None
        is_first = not self._begun and not any(isinstance(event, _SHOWN) for event in events)
        if is_first and isinstance(last, Failed) and last.failure.kind in _MOVES:
            self.events, self.failed = events, last
            return
        self._begun = True
        await self._emit(events)

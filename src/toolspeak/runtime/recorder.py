"""Records a turn while it runs, as cheaply as possible.

`drive` tells a `TurnWatch` of each request to the upstream and of each batch of its answer. The recorder adds the
batches to a log, which joins text now and then, and folds it when the answer has ended.
"""

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from toolspeak.engine.effects import Open, Outcome
from toolspeak.engine.plan import Plan
from toolspeak.ir.event import Event, Failed, Finished
from toolspeak.ir.failure import Failure
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import EventLog
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.turn_progress import TurnProgress
from toolspeak.traces.trace import StoredPlan, Trace, TraceAttempt, parts_of, stored_tools


class TurnWatch(Protocol):
    """Is told what a turn does. It must be quick: `received` is called for each chunk of a stream."""

    def began(self, seed: int, remembered: Iterable[Tool]) -> None:
        """Note that the turn begins; `seed` is the number that the ids of its emulated calls are made from."""
        ...

    def opened(self, effect: Open) -> None:
        """Note a request to the upstream."""
        ...

    def received(self, batch: list[Event]) -> None:
        """Note more of the answer."""
        ...

    def moved(self, place: str, model: str, plan: Plan) -> None:
        """Note that another model takes the turn from its beginning."""
        ...


class PlanWatch:
    """Passes on when a turn goes on in another way than its plan says, and records nothing."""

    def __init__(self, replanned: Callable[[Plan], None]) -> None:
        """Take the function that is told."""
        self._replanned: Final = replanned

    def began(self, seed: int, remembered: Iterable[Tool]) -> None:
        """Record nothing."""

    def opened(self, effect: Open) -> None:
        """Pass on a plan that changed."""
        if effect.plan is not None:
            self._replanned(effect.plan)

    def received(self, batch: list[Event]) -> None:
        """Record nothing."""

    def moved(self, place: str, model: str, plan: Plan) -> None:
        """Pass on the plan of the other model."""
        del place, model
        self._replanned(plan)


UNWATCHED: Final = PlanWatch(lambda _: None)


class TurnRecorder:
    """Fills in the trace of one turn while it runs. Only the event loop's thread may use it."""

    def __init__(
        self,
        trace: Trace,
        clock: Clock,
        started: float,
        replanned: Callable[[Plan], None],
        progress: TurnProgress | None = None,
    ) -> None:
        """Take the trace with what is known before the turn; `started` is the monotonic time of its arrival.

        `replanned` is told when the turn goes on in another way than its plan says. `progress` knows when the end of
        an answer was read; without it, an answer ends when the turn goes on.
        """
        self._progress: Final = progress
        self._replanned: Final = replanned
        self.trace: Final = trace
        self._now: Final = clock.monotonic
        self._started: Final = started
        self._log = EventLog()
        self._chunks = 0

    def began(self, seed: int, remembered: Iterable[Tool]) -> None:
        """Note the beginning."""
        self.trace.seed, self.trace.remembered = seed, stored_tools(remembered)

    def opened(self, effect: Open) -> None:
        """Note a request to the upstream; the answer before it has ended."""
        self._settle()
        if effect.plan is not None:
            self.trace.taken = effect.plan.line
            self._replanned(effect.plan)
        self.trace.attempts.append(TraceAttempt(effect.tactic, effect.why, self._elapsed()))

    def received(self, batch: list[Event]) -> None:
        """Note more of the answer."""
        if not self._chunks:
            self.trace.attempts[-1].first = self._elapsed()
        self._chunks += 1
        self._log.add(batch)

    def moved(self, place: str, model: str, plan: Plan) -> None:
        """Begin anew: the trace is that of the model that answers, so that a replay works. Its plan has the move."""
        self._settle()
        trace = self.trace
        trace.upstream, trace.upstream_model, trace.plan = place, model, StoredPlan.of(plan)
        trace.attempts.clear()
        self._replanned(plan)

    def ended(self, outcome: Outcome) -> None:
        """Note the end of the turn, and what the client got."""
        self._settle()
        trace = self.trace
        trace.answer = parts_of(outcome.events, outcome.turn)
        last = outcome.events[-1] if outcome.events else None
        if isinstance(last, Finished):
            trace.stop = last.stop
        elif isinstance(last, Failed):
            trace.failure = last.failure
        trace.usage, trace.taken = outcome.usage, outcome.taken.line
        trace.complaints, trace.warnings = list(outcome.complaints), list(outcome.warnings)

    def answered(self, status: int, failure: Failure | None) -> None:
        """Note the response. A turn that was cancelled, because the client left or a limit was reached, ends here."""
        self._settle()
        trace = self.trace
        trace.status, trace.failure = status, failure or trace.failure
        trace.seconds = self._elapsed()

    @property
    def waits_for(self) -> str:
        """What a running turn waits for, in words."""
        attempts = self.trace.attempts
        if not attempts:
            return "the request is being prepared"
        attempt, number = attempts[-1], f"request {len(attempts)}" if len(attempts) > 1 else "the request"
        seconds = self._elapsed() - attempt.opened
        if attempt.ended is not None:
            return "the answer is being checked"
        if attempt.first is None:
            return f"{number} was sent {seconds:.0f} s ago, and the upstream has not begun to answer"
        return f"{number} is being answered: {self._chunks} chunks in {seconds:.0f} s"

    @property
    def phase(self) -> str:
        """What a running turn does, in words that do not change each second."""
        attempts = self.trace.attempts
        if not attempts:
            return "prepares the request"
        if attempts[-1].ended is not None:
            return "checks the answer"
        return "waits for the model" if attempts[-1].first is None else "the model writes"

    def _settle(self) -> None:
        """Fold the events of the answer that has ended."""
        attempts = self.trace.attempts
        if not attempts or attempts[-1].ended is not None:
            return
        attempt, events = attempts[-1], self._log.events
        read = self._progress.ended if self._progress is not None else None
        attempt.ended = self._elapsed() if read is None else max(attempt.opened, read - self._started)
        attempt.parts = parts_of(events)
        last = events[-1] if events else None
        if isinstance(last, Finished):
            attempt.stop, attempt.usage, attempt.stop_sequence = last.stop, last.usage, last.stop_sequence
        elif isinstance(last, Failed):
            attempt.failure, attempt.usage = last.failure, last.usage
        self._log, self._chunks = EventLog(), 0

    def _elapsed(self) -> float:
        return self._now() - self._started

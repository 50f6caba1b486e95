"""Ask a model the tasks of the suite, in one form after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from toolspeak.doctor.forms import Form
from toolspeak.doctor.suite import PARTS
from toolspeak.doctor.task import Kind, Mark, Step, Task, check, is_valid
from toolspeak.doctor.trial import Tally, Try, hold_trial
from toolspeak.doctor.verdict import Report
from toolspeak.engine.outcome import EMULATED, Outcome
from toolspeak.engine.plan import Settings
from toolspeak.errors import UpstreamFailed
from toolspeak.ir.event import Event, StopReason, Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.message import Call, Message, Reasoning, Result, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.turn import Turn
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Route
from toolspeak.runtime.learned import Learned
from toolspeak.runtime.profiles import NO_PROFILES

ROOM: Final = 160
"""Tokens of an answer: enough for two calls, and a model that rambles is not waited for."""
ROOM_TO_THINK: Final = 2048
_HELLO: Final = (Message(Role.USER, (Text("Say hello."),)),)
_GIVES_UP: Final = frozenset(
    (
        FailureKind.AUTH,
        FailureKind.DISCONNECTED,
        FailureKind.NOT_FOUND,
        FailureKind.PERMISSION,
        FailureKind.RATE_LIMITED,
    )
)
"""Nothing that another form could change."""
_PASSES: Final = frozenset((FailureKind.TRANSIENT, FailureKind.TIMEOUT))
_REFUSED: Final = Mark(right=False, problem="the upstream refuses tools", failed=True)
"""Then the turn is emulated, which is another form."""
_PATIENCE: Final = 3
"""Failures in a row that may pass, after which it is given up."""


@dataclass(frozen=True, slots=True)
class Tried:
    """News: what was asked, and with what mark; None while it is asked."""

    step: Try
    mark: Mark | None = None


Tell = Callable[[Tried], None]


async def examine(
    route: Route,
    forms: Sequence[Form],
    parts: Sequence[Sequence[Task]] = PARTS,
    tell: Tell = lambda _: None,
    clock: Clock = CLOCK,
) -> Report:
    """Hold the trial with a model; raises `UpstreamFailed` if it cannot be reached."""
    started = clock.monotonic()
    asking = _Asking(route, clock)
    await asking.greet()
    trial = hold_trial(forms, parts)
    step = next(trial)
    while True:
        tell(Tried(step))
        mark = await asking.mark(step.form, step.task)
        tell(Tried(step, mark))
        try:
            step = trial.send(mark)
        except StopIteration as stop:
            tallies: tuple[Tally, ...] = stop.value
            return Report(route.model, route.profiles.endpoint, tallies, clock.monotonic() - started, route.facts)


class _Asking:
    """Asks one model; what it was measured or learned to be does not count here."""

    def __init__(self, route: Route, clock: Clock) -> None:
        self._route: Final = route
        self._clock: Final = clock
        self._room = ROOM
        self._failures = 0

    async def greet(self) -> None:
        """Ask without tools, so that whatever fails later is about them; see whether it thinks before it speaks."""
        turn = (await self._take(self._route, Request("", _HELLO), Settings())).turn
        if turn.failure is not None:
            raise _given_up(turn.failure)
        if turn.stop is StopReason.LENGTH and turn.reasoning:
            self._room = ROOM_TO_THINK

    async def mark(self, form: Form, task: Task) -> Mark:
        """Ask a task, step by step as long as they are right."""
        started, tried = self._clock.monotonic(), _in_form(self._route, form)
        messages, mark = task.messages, Mark(right=True)
        requests, usage = 0, Usage()
        for step in task.steps:
            outcome = await self._take(tried, Request("", messages, task.tools), form.settings)
            requests, usage = requests + outcome.requests, usage.plus(outcome.usage)
            turn = outcome.turn
            self._count(turn.failure)
            mark = _REFUSED if form.is_native and EMULATED in outcome.warnings else _marked(task, step, turn)
            if not mark.right:
                break
            messages = (*messages, *_replied(turn, step))
        tokens, seconds = usage.input_tokens + usage.output_tokens, self._clock.monotonic() - started
        return replace(mark, requests=requests, tokens=tokens, seconds=seconds)

    async def _take(self, route: Route, request: Request, settings: Settings) -> Outcome:
        sampling = Sampling(max_tokens=self._room, temperature=0)
        request = replace(request, model=route.model, sampling=sampling, stream=True)
        return await route.take(request, route.plan(request, settings), _keep, self._clock)

    def _count(self, failure: Failure | None) -> None:
        """Give up where going on makes no sense."""
        passes = failure is not None and failure.kind in _PASSES
        self._failures = self._failures + 1 if passes else 0
        if failure is not None and (failure.kind in _GIVES_UP or self._failures >= _PATIENCE):
            raise _given_up(failure)


def _in_form(route: Route, form: Form) -> Route:
    """Return the route as it is while a form is tried."""
    facts = route.facts if form.tools is None else replace(route.facts, tools=form.tools)
    return replace(route, facts=facts, learned=Learned(), profiles=NO_PROFILES)


def _marked(task: Task, step: Step, turn: Turn) -> Mark:
    if turn.failure is not None:
        return Mark(right=False, problem=turn.failure.message, failed=True)
    problem = check(step, turn, task.tools)
    spurious = task.kind is Kind.NONE and bool(problem) and (bool(turn.calls) or bool(turn.text.strip()))
    return Mark(not problem, problem, spurious, all(is_valid(call, task.tools) for call in turn.calls))


def _replied(turn: Turn, step: Step) -> tuple[Message, ...]:
    """Return the answer and the results of its calls, as the next step finds them."""
    said = tuple(part for part in turn.parts if isinstance(part, Text | Reasoning | Call))
    results = zip(turn.calls, step.results, strict=False)
    backs = (Message(Role.TOOL, (Result(call.id, (Text(text),), call.name),)) for call, text in results)
    return (Message(Role.ASSISTANT, said), *backs)


def _given_up(failure: Failure) -> UpstreamFailed:
    return UpstreamFailed(failure.message, failure.kind, failure.status)


async def _keep(events: Sequence[Event]) -> None:
    """Leave the events in the outcome."""

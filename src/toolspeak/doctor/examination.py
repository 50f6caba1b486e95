"""Gathers the facts about a model, then asks it the tasks of the suite, in one form after the other.

The command prints the facts first. A probe looks at the server's metadata and sends two requests of one token each
(CAP-3). It does not ask for calls, because the tasks do.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from toolspeak.doctor.call_forms import NO_PROFILE, TODAY, WITH_TOOLS, DoctorForm, candidates
from toolspeak.doctor.report import DoctorReport
from toolspeak.doctor.results import Results
from toolspeak.doctor.suite import FULL, Trial
from toolspeak.doctor.task import DoctorTask, TaskKind, TaskResult, TaskStep, check_answer, is_valid
from toolspeak.doctor.tournament import NextTask, Tournament, with_today
from toolspeak.engine.effects import EMULATED, Outcome
from toolspeak.engine.settings import Settings
from toolspeak.engine.verdict import NOTHING_MEASURED, Depth, Verdict, measured
from toolspeak.errors import UpstreamFailed
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.ir.complaint import Problem
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.event import Event, StopReason, Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.message import Call, Message, Reasoning, Result, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.turn import Turn
from toolspeak.runtime.cache import Memory
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Route
from toolspeak.runtime.learned import Learned
from toolspeak.runtime.prober import Prober
from toolspeak.runtime.profiles import NO_PROFILES
from toolspeak.runtime.upstream import HttpUpstream

_SUPPORT = {
    Support.NATIVE: "the server has tool calling",
    Support.NONE: "the server has no tool calling",
    Support.LEAKS: "the server has tool calling, and returns some calls as text",
    Support.UNKNOWN: "nothing is known",
}


@dataclass(frozen=True, slots=True)
class ServerFact:
    """One fact: its subject, its value, its source."""

    about: str
    says: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """All facts. `facts` decides which forms are tried; `fingerprint` of the server is saved with the profile."""

    findings: tuple[ServerFact, ...]
    facts: ModelFacts
    fingerprint: str = ""


async def gather_facts(route: Route) -> ServerFacts:
    """Return the facts of the directory about a model, completed by a probe of its server."""
    verdict = await _probe(route, Depth.TOKENS)
    facts = measured(route.facts, verdict)
    return ServerFacts(tuple(_facts(route, facts, verdict)), facts, verdict.fingerprint)


async def find_fingerprint(route: Route) -> str:
    """Return the fingerprint of a model's server, from its metadata alone: no token is spent. Empty if unknown."""
    return (await _probe(route, Depth.LOOK)).fingerprint


async def _probe(route: Route, depth: Depth) -> Verdict:
    if not isinstance(route.upstream, HttpUpstream):  # an upstream that is an object has no metadata to look at
        return NOTHING_MEASURED
    fresh = replace(route, learned=Learned())
    return await Prober({}, Memory()).probe(fresh, route.upstream, depth)


def _facts(route: Route, facts: ModelFacts, verdict: Verdict) -> Iterator[ServerFact]:
    kept = route.profiles.of(route.model).profile
    yield ServerFact("tools", _SUPPORT[facts.tools])
    for found in verdict.evidence:
        yield ServerFact("probe", found.reason, found.layer)
    if verdict.server:
        yield ServerFact("server", verdict.server)
    if facts.quirks.constraint is not ConstraintForm.NONE:
        yield ServerFact("form", f"constraints as {facts.quirks.constraint}")
    if facts.dialect:
        yield ServerFact("dialect", facts.dialect)
    if facts.context_tokens:
        yield ServerFact("context", f"{facts.context_tokens} tokens")
    if kept is not None:
        yield ServerFact(
            "profile",
            f"{kept.form} ({kept.measured})",
            route.profiles.suspension(route.model) or "part of what you have today",
        )


ROOM: Final = 160
"""Token limit of an answer: enough for two calls, and a model that rambles is cut off."""
ROOM_TO_THINK: Final = 2048
"""Token limit for a model whose reasoning alone used up `ROOM`."""
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
"""Failures that no other form would change: the examination ends."""
_PASSES: Final = frozenset((FailureKind.TRANSIENT, FailureKind.TIMEOUT))
"""Temporary failures: a single one counts as a wrong answer."""
_REFUSED: Final = TaskResult(right=False, problem="the upstream refuses tools", failed=True)
"""The result of a native form whose turn was emulated: that would measure another form."""
_PATIENCE: Final = 3
"""Temporary failures in a row after which the examination ends."""


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """A task and its result; None while the model is answering. `known` if an earlier trial has asked it."""

    step: NextTask
    mark: TaskResult | None = None
    known: bool = False


ReportProgress = Callable[[TaskProgress], None]


def forms_for(route: Route, *, quick: bool = False) -> tuple[DoctorForm, ...]:
    """Return the forms to compare with what the user has today."""
    bare = replace(route, profiles=NO_PROFILES)
    forms = candidates(route.facts, (route.plan(WITH_TOOLS), bare.plan(WITH_TOOLS)), quick=quick)
    return (NO_PROFILE, *forms) if route.measured.profile is not None else forms


class Examination:
    """One trial of a model's forms. It can be stopped between two tasks, and reports what it knows at any time."""

    def __init__(
        self,
        route: Route,
        forms: Sequence[DoctorForm],
        trial: Trial = FULL,
        results: Results | None = None,
        clock: Clock = CLOCK,
    ) -> None:
        """Take the forms to compare with today; results that are known already are not asked again."""
        self._route: Final = route
        self._clock: Final = clock
        self._tournament: Final = Tournament(with_today(forms), trial)
        self._results: Final = results or Results(None, (), route.plan(WITH_TOOLS))
        self._started: Final = clock.monotonic()
        self._longest = 0.0

    @property
    def report(self) -> DoctorReport:
        """What is known so far."""
        seconds = self._clock.monotonic() - self._started
        route = self._route
        return DoctorReport(route.model, route.profiles.endpoint, self._tournament.standing, seconds, route.facts)

    async def run(self, tell: ReportProgress = lambda _: None, until: float = inf) -> DoctorReport:
        """Ask until the tournament ends, or the next task would hardly end before `until` (monotonic seconds).

        Raises `UpstreamFailed` if the upstream is unreachable or keeps failing.
        """
        asking = _Examiner(self._route, self._clock)
        await asking.greet()
        for step in self._tournament.steps():
            mark = self._results.get(step.form, step.task)
            known = mark is not None
            if mark is None:
                if self._clock.monotonic() + self._longest > until:
                    break
                tell(TaskProgress(step))
                mark = await asking.mark(step.form, step.task)
                self._longest = max(self._longest, mark.seconds)
                self._results.put(step.form, step.task, mark)
            self._tournament.add(mark)
            tell(TaskProgress(step, mark, known))
        return self.report


async def examine(route: Route, forms: Sequence[DoctorForm], trial: Trial = FULL) -> DoctorReport:
    """Examine a model to the end, without a file: see `Examination`."""
    return await Examination(route, forms, trial).run()


class _Examiner:
    """Asks one model. Earlier measurements and learned refusals are ignored: they would decide the form."""

    def __init__(self, route: Route, clock: Clock) -> None:
        self._route: Final = route
        self._clock: Final = clock
        self._room = ROOM
        self._failures = 0

    async def greet(self) -> None:
        """Ask without tools, so that later failures are about tools. Raises `UpstreamFailed` if there is no answer.

        If the reasoning of the model uses up the token limit, the limit is raised for all tasks: the model would
        otherwise be cut off before every call.
        """
        turn = (await self._take(self._route, Request("", _HELLO), Settings())).turn
        if turn.failure is not None:
            raise _given_up(turn.failure)
        if turn.stop is StopReason.LENGTH and turn.reasoning:
            self._room = ROOM_TO_THINK

    async def mark(self, form: DoctorForm, task: DoctorTask) -> TaskResult:
        """Ask a task step by step until an answer is wrong, and return the result with its cost."""
        started, tried = self._clock.monotonic(), _in_form(self._route, form)
        messages, mark = task.messages, TaskResult(right=True)
        requests, usage = 0, Usage()
        for step in task.steps:
            outcome = await self._take(tried, Request("", messages, task.tools), form.settings)
            requests, usage = requests + outcome.requests, usage.plus(outcome.usage)
            turn = outcome.turn
            self._count(turn.failure)
            mark = _REFUSED if form.is_native and EMULATED in outcome.warnings else _result_of(task, step, turn)
            mark = replace(mark, took=_taken_call(step, outcome) if not mark.right else "")
            if not mark.right:
                break
            messages = (*messages, *_replied(turn, step))
        tokens, seconds = usage.input_tokens + usage.output_tokens, self._clock.monotonic() - started
        return replace(mark, requests=requests, tokens=tokens, seconds=seconds)

    async def _take(self, route: Route, request: Request, settings: Settings) -> Outcome:
        sampling = Sampling(max_tokens=self._room, temperature=0)  # 0, so that two examinations give one result
        request = replace(request, model=route.model, sampling=sampling, stream=True)
        return await route.take(request, route.plan(request, settings), _keep, self._clock)

    def _count(self, failure: Failure | None) -> None:
        """Count temporary failures. Raises `UpstreamFailed` if further tasks would fail in the same way."""
        passes = failure is not None and failure.kind in _PASSES
        self._failures = self._failures + 1 if passes else 0
        if failure is not None and (failure.kind in _GIVES_UP or self._failures >= _PATIENCE):
            raise _given_up(failure)


def _taken_call(step: TaskStep, outcome: Outcome) -> str:
    """Return the name of an expected tool whose call a guardrail dropped; empty if there is none."""
    dropped = (complaint.name for complaint in outcome.complaints if complaint.problem is Problem.UNRELATED)
    return next((name for name in dropped if name in {call.name for call in step.calls}), "") or ""


def _in_form(route: Route, form: DoctorForm) -> Route:
    """Return the route for the trial of a form: its tool support, nothing learned, and a profile only for `TODAY`."""
    if form is TODAY:
        return replace(route, learned=Learned())
    facts = route.facts if form.tools is None else replace(route.facts, tools=form.tools)
    return replace(route, facts=facts, learned=Learned(), profiles=NO_PROFILES)


def _result_of(task: DoctorTask, step: TaskStep, turn: Turn) -> TaskResult:
    if turn.failure is not None:
        return TaskResult(right=False, problem=turn.failure.message, failed=True)
    problem = check_answer(step, turn, task.tools)
    spurious = task.kind is TaskKind.NONE and bool(problem) and (bool(turn.calls) or bool(turn.text.strip()))
    return TaskResult(not problem, problem, spurious, all(is_valid(call, task.tools) for call in turn.calls))


def _replied(turn: Turn, step: TaskStep) -> tuple[Message, ...]:
    """Return the answer and the results of its calls, for the next step."""
    said = tuple(part for part in turn.parts if isinstance(part, Text | Reasoning | Call))
    results = zip(turn.calls, step.results, strict=False)
    backs = (Message(Role.TOOL, (Result(call.id, (Text(text),), call.name),)) for call, text in results)
    return (Message(Role.ASSISTANT, said), *backs)


def _given_up(failure: Failure) -> UpstreamFailed:
    return UpstreamFailed(failure.message, failure.kind, failure.status)


async def _keep(events: Sequence[Event]) -> None:
    """Ignore the events: the outcome has the whole turn."""

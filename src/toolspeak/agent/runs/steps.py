"""The steps of a run, independent of where their outcomes are stored (RUN-1, RUN-3, RUN-5).

    turn:N               the Nth turn of the run; a round may have two, if the model is asked for a final text
    asked:ROUND:CALL     a person was asked for approval
    started:ROUND:CALL   a call that must not run twice is about to run
    tool:ROUND:CALL      the result of a call

`RunSteps` defines the steps and their order; a `StepStore` stores their outcomes. There are three stores: `NoStepStore`
stores nothing, `memory.py` has a dict, `durable/step_store.py` a database. A step whose outcome is stored is not
executed again. A `started` without a `tool` means that the outcome of the call is unknown: the process died in between.
The names are stored in databases, so they must not change.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, groupby
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from toolspeak.agent.runs.events import (
    RunEvent,
    ToolCallAsked,
    ToolCallBegan,
    ToolCallEnded,
    ToolCallRejected,
    TurnBegan,
    TurnEnded,
    Watch,
    Wrote,
    run_ended,
    unwatched,
)
from toolspeak.agent.tools.action import CallContext, Ruling, ToolEffect, rule_on
from toolspeak.agent.tools.toolbox import Toolbox
from toolspeak.config.shape import Approval
from toolspeak.engine.agent import (
    NAMELESS,
    STOP,
    Ending,
    RunAnswer,
    RunEffect,
    RunTools,
    TakeTurn,
    Task,
    rejected_arguments,
    run_task,
)
from toolspeak.engine.agent_prompt import denied, unknown_outcome
from toolspeak.engine.effects import Outcome
from toolspeak.engine.journal import result_from, result_json, stands, turn_from, turn_json
from toolspeak.engine.plan import Plan
from toolspeak.engine.settings import NOTHING_SAID, Settings
from toolspeak.engine.trouble import error_result
from toolspeak.errors import ToolspeakError
from toolspeak.ir.event import CallRejected, Event, ReasoningDelta, TextDelta, Usage
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Result, result_text
from toolspeak.ir.request import Request
from toolspeak.ir.round import Compact
from toolspeak.ir.turn import Turn
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import EmitEvents, Route

TakeRecorded: TypeAlias = Callable[[str, Route, Request, Plan, EmitEvents], Awaitable[Outcome]]
"""Takes a turn of the run with this id, and records it where its host keeps records."""


async def take_unrecorded(run: str, route: Route, request: Request, plan: Plan, emit: EmitEvents) -> Outcome:
    """Take a turn, and keep no record of it."""
    del run
    return await route.take(request, plan, emit)


@dataclass(frozen=True, slots=True)
class Work:
    """The model, tools and rules of one run. `run` is its id."""

    run: str
    task: Task
    route: Route
    toolbox: Toolbox
    settings: Settings = NOTHING_SAID
    approval: Approval = Approval.ASK
    watch: Watch = unwatched
    clock: Clock = CLOCK
    take: TakeRecorded = take_unrecorded

    async def turn(self, effect: TakeTurn) -> Turn:
        """Take one turn of the model, and report its text as it streams."""
        began = self.clock.monotonic()
        await self.watch(TurnBegan(effect.round))

        async def emit(events: Sequence[Event]) -> None:
            for event in events:
                if isinstance(event, TextDelta | ReasoningDelta) and event.text:
                    await self.watch(Wrote(effect.round, event.text, isinstance(event, ReasoningDelta)))

        plan = self.route.plan(effect.request, self.settings)
        outcome = await self.take(self.run, self.route, effect.request, plan, emit)
        turn = outcome.turn
        await self.watch(TurnEnded(effect.round, turn.text, len(turn.calls), self.clock.monotonic() - began))
        for rejected in outcome.rejected:
            await self.watch(_rejection(effect.round, rejected))
        return turn

    def ruling(self, call: Call) -> Ruling:
        """Return whether a call may run. A call of an unknown tool may: its result is an error for the model."""
        action = self.toolbox.action(call.name)
        return Ruling.YES if action is None else rule_on(self.approval, action)

    def effect(self, call: Call) -> ToolEffect:
        """Return a call's effect on the world; an unknown tool has none."""
        action = self.toolbox.action(call.name)
        return ToolEffect.READS if action is None else action.effect

    async def tool(self, round: int, index: int, call: Call) -> Result:  # noqa: A002 # the word of the house
        """Run one call, the `index`th of its round. Its idempotency key is `run:round:index`, equal in each attempt."""
        began = self.clock.monotonic()
        await self.watch(ToolCallBegan(round, call.id, call.name, call.arguments))
        result = await self.toolbox.run(call, CallContext(self.run, f"{self.run}:{round}:{index}"))
        await self.ended(round, result, self.clock.monotonic() - began)
        return result

    async def ended(self, round: int, result: Result, seconds: float = 0.0) -> None:  # noqa: A002 # as above
        """Report a result to the watchers."""
        text = result_text(result)
        await self.watch(ToolCallEnded(round, result.call_id, result.name, text, result.is_error, seconds))


def _rejection(round: int, part: CallRejected) -> ToolCallRejected:  # noqa: A002 # as above
    text = result_text(error_result(part.complaint))
    return ToolCallRejected(round, part.complaint.name or NAMELESS, rejected_arguments(part), text)


def told(error: Exception) -> str:
    """Return why a run failed. Messages of toolspeak's own errors are complete; others get the name of their class."""
    return str(error) if isinstance(error, ToolspeakError) else f"{type(error).__name__}: {error}"


PARALLEL_READS: Final = 8
T = TypeVar("T")
Do: TypeAlias = Callable[[], Awaitable[T]]


@dataclass(frozen=True, slots=True)
class TextForm(Generic[T]):
    """How the outcome of a step is stored as text, and read back."""

    write: Callable[[T], str]
    read: Callable[[str], T]


def _as_json(to_json: Callable[[T], JsonObject], from_json: Callable[[Any], T]) -> TextForm[T]:
    return TextForm(lambda outcome: JSON.write(to_json(outcome)), lambda text: from_json(JSON.read(text)))


JSON: Final[TextForm[Any]] = TextForm(lambda value: msgspec.json.encode(value).decode(), msgspec.json.decode)
TURN: Final = _as_json(turn_json, turn_from)
RESULT: Final = _as_json(result_json, result_from)
NOTHING: Final[TextForm[None]] = TextForm(lambda _: "", lambda _: None)
"""For a step without an outcome: only the fact that it was done is stored."""


@dataclass(frozen=True, slots=True)
class Permission:
    """A person's answer whether a call may run, with an optional reason."""

    granted: bool
    reason: str = ""


class StepStore(Protocol):
    """Stores the outcomes of steps, and waits for people's answers.

    This is the seam to the engine of durable runs. DBOS is behind it; `tests/contract/test_run_steps.py` is its
    contract, which a store that replays a recorded history, as Temporal does, passes too.
    """

    async def keep(self, step: str, form: TextForm[T], do: Do[T], *, once: bool = False) -> T:
        """Return the outcome that is stored under this name; if there is none, execute the step and store its outcome.

        This is `get` and `put` in one call, because DBOS numbers a step when it begins and finds it again by its
        number. An implementation must therefore await nothing before the step has its number: `RunSteps` begins steps
        in the same order in every attempt, including parallel ones.

        `once` is for a call that must not run twice. Its start is stored already, so it may begin even if no further
        step may. The store ensures that no other process has the run before it calls `do`.

        Raises `Stopped` if the run was stopped and must end as cancelled.
        """
        ...

    async def ask(self, key: str, call: Call) -> Permission:
        """Wait for a person's approval of a call, or return the stored answer. Raises as `keep` does."""
        ...


class Stopped(Exception):
    """The run was stopped. The program receives STOP."""


class StopSwitch:
    """Stops one attempt at a run: its running steps, and those that would begin.

    It has two strengths. `drain` is for a worker that shuts down: running steps may finish, so that their outcomes are
    stored and not repeated elsewhere. `stop` is for a run that was cancelled or lost: its steps are cancelled at once.
    """

    def __init__(self) -> None:
        """Begin with nothing stopped."""
        self._tasks: Final[dict[asyncio.Task[Any], bool]] = {}
        """The tasks that can be stopped, each with whether it only waits for a person."""
        self._why: BaseException | None = None
        self._stopped = False

    def admit(self) -> None:
        """Raise the reason if no further step may begin."""
        if self._why is not None:
            raise self._why

    def drain(self, why: BaseException) -> None:
        """Let no further step begin. Running steps may finish; waiting for a person ends, since it may take days."""
        self._why = self._why or why
        for task, waits in self._tasks.items():
            if waits:
                task.cancel()

    def stop(self, why: BaseException) -> None:
        """Stop at once. All running steps, and all that would begin, raise `why`."""
        self._why, self._stopped = why, True
        for task in self._tasks:
            task.cancel()

    @contextmanager
    def stoppable(self, *, waits: bool = False) -> Generator[None]:
        """Make the current task stoppable inside this block. A cancellation from elsewhere passes unchanged."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("only a task can be stopped")
        if self._stopped:
            self.admit()
        self._tasks[task] = waits
        before = task.cancelling()
        try:
            yield
        except asyncio.CancelledError:
            if self._why is None:
                raise
            raise self._why from None
        finally:
            del self._tasks[task]
            # The task continues, so it must not count as cancelled: `asyncio.timeout` and `TaskGroup` look at the
            # number of requests. There may be several: a run may be stopped twice while its tool cleans up, and a tool
            # may have caught the cancellation.
            while self._why is not None and task.cancelling() > before:
                task.uncancel()


@dataclass(frozen=True, slots=True)
class _CallStep:
    """A call and its position in its round."""

    round: int
    index: int
    call: Call
    is_free_read: bool
    """The call changes nothing and needs no approval, so it may run in parallel with others."""

    @property
    def key(self) -> str:
        return f"{self.round}:{self.index}"


@dataclass(frozen=True, slots=True)
class RunSteps:
    """One attempt at a run: its work, and the store of its outcomes."""

    work: Work
    store: StepStore
    _turns: Iterator[int] = field(default_factory=count)

    async def run(self, task: Task) -> Ending:
        """Execute a task until it ends. `engine/agent.py` decides each effect, and this executes it."""
        program, answer = run_task(task), None
        try:
            while True:
                answer = await self._answer(program.send(answer))
        except StopIteration as stop:
            ending: Ending = stop.value
            return ending

    async def _answer(self, effect: RunEffect) -> RunAnswer:
        try:
            return await (self._turn(effect) if isinstance(effect, TakeTurn) else self._tools(effect))
        except Stopped:
            return STOP

    async def _turn(self, effect: TakeTurn) -> Turn:
        return await self.store.keep(f"turn:{next(self._turns)}", TURN, partial(self.work.turn, effect))

    async def _tools(self, effect: RunTools) -> tuple[Result, ...]:
        """Run calls in their order; adjacent calls that only read run in parallel."""
        calls = [
            _CallStep(effect.round, index, call, self._is_free_read(call)) for index, call in enumerate(effect.calls)
        ]
        results: list[Result] = []
        for parallel, neighbours in groupby(calls, key=lambda each: each.is_free_read):
            group = list(neighbours)
            results += await self._in_parallel(group) if parallel else [await self._tool(each) for each in group]
        return tuple(results)

    def _is_free_read(self, call: Call) -> bool:
        # The ruling counts as well as the effect: durable runs once ran every read in parallel, so a reading tool with
        # `asks` was never asked about.
        return self.work.effect(call) is ToolEffect.READS and self.work.ruling(call) is Ruling.YES

    async def _in_parallel(self, calls: Sequence[_CallStep]) -> list[Result]:
        """Run calls in parallel, at most `PARALLEL_READS` at a time.

        Their steps begin in the order of the calls, because tasks start in the order of their creation and `keep`
        awaits nothing before a step has its number. Each call waits until the one before it has begun, so that
        watchers see them begin in order as well.
        """
        room = asyncio.Semaphore(PARALLEL_READS)
        begun = [asyncio.Event() for _ in range(len(calls) + 1)]
        begun[0].set()

        async def one(number: int, each: _CallStep) -> Result:
            try:
                return await self._result(each, partial(self._in_turn, each, room, begun[number], begun[number + 1]))
            finally:
                begun[number + 1].set()

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(number, each)) for number, each in enumerate(calls)]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _in_turn(
        self, each: _CallStep, room: asyncio.Semaphore, before: asyncio.Event, begun: asyncio.Event
    ) -> Result:
        await before.wait()
        async with room:
            begun.set()
            return await self.work.tool(each.round, each.index, each.call)

    async def _tool(self, each: _CallStep) -> Result:
        ruling, why = self.work.ruling(each.call), ""
        if ruling is Ruling.ASK:
            permission = await self._permission(each)
            ruling = Ruling.YES if permission.granted else Ruling.NO
            why = f", and permission was refused{permission.reason and ': '}{permission.reason}"
        if ruling is not Ruling.YES:
            refusal = denied(
                each.call, f"the approval mode is {self.work.approval}{why or ', which does not allow it'}"
            )
            return await self._result(each, partial(self._shown, each, refusal))
        return await (self._once(each) if self.work.effect(each.call) is ToolEffect.ONCE else self._run(each))

    async def _permission(self, each: _CallStep) -> Permission:
        """Ask a person, and wait for the answer. No other call of the run executes in the meantime."""
        call = each.call
        shown = partial(self.work.watch, ToolCallAsked(each.round, call.id, call.name, call.arguments))
        # A step of its own, so that a resumed run does not show the question a second time.
        await self.store.keep(f"asked:{each.key}", NOTHING, shown)
        return await self.store.ask(each.key, call)

    async def _run(self, each: _CallStep) -> Result:
        return await self._result(each, partial(self.work.tool, each.round, each.index, each.call))

    async def _once(self, each: _CallStep) -> Result:
        """Run a call that must not run twice: its start is stored before it runs.

        If the start is stored already, an earlier attempt has started the call, and was interrupted before it could
        store the result. This attempt then reports an unknown outcome instead of running the call again.
        """
        is_first = False

        async def start() -> None:
            nonlocal is_first
            is_first = True

        async def tool() -> Result:
            if is_first:
                return await self.work.tool(each.round, each.index, each.call)
            return await self._shown(each, unknown_outcome(each.call))

        await self.store.keep(f"started:{each.key}", NOTHING, start)
        return await self._result(each, tool, once=True)

    async def _shown(self, each: _CallStep, result: Result) -> Result:
        await self.work.ended(each.round, result)
        return result

    async def _result(self, each: _CallStep, do: Do[Result], *, once: bool = False) -> Result:
        return await self.store.keep(f"tool:{each.key}", RESULT, do, once=once)


def progress(task: Task, outcomes: Mapping[str, object]) -> tuple[RunEffect | None, Compact]:
    """Return the next effect of a run (None: it has ended), and the rounds that it would keep if stopped now.

    `outcomes` has the stored turns and results by step name; other entries are ignored.
    """
    turns = count()

    def answered(effect: RunEffect) -> RunAnswer:
        if isinstance(effect, TakeTurn):
            turn = outcomes.get(f"turn:{next(turns)}")
            return turn if isinstance(turn, Turn) else None
        found = [outcomes.get(f"tool:{effect.round}:{index}") for index in range(len(effect.calls))]
        results = tuple(each for each in found if isinstance(each, Result))
        return results if len(results) == len(found) else None

    return stands(task, answered)


def run_usage(outcomes: Mapping[str, object]) -> Usage:
    """Return the tokens of all stored turns of a run; `outcomes` is as in `progress`."""
    total = Usage()
    for outcome in outcomes.values():
        if isinstance(outcome, Turn):
            total = total.plus(outcome.usage)
    return total


# ---------------------------------------------------------------- without a store


AskPermission: TypeAlias = Callable[[Call], Awaitable[bool]]
"""Asks a person whether a call may run."""


async def refuse(call: Call) -> bool:
    """Refuse the call, where there is no person to ask."""
    del call
    return False


@dataclass(frozen=True, slots=True)
class NoStepStore:
    """Stores nothing: each step is executed once. Implements `StepStore`."""

    ask_person: AskPermission = refuse

    async def keep(self, step: str, form: TextForm[T], do: Do[T], *, once: bool = False) -> T:
        """Execute the step."""
        del step, form, once
        return await do()

    async def ask(self, key: str, call: Call) -> Permission:
        """Ask the person now."""
        del key
        return Permission(await self.ask_person(call))


async def run_inline(work: Work, ask: AskPermission = refuse) -> Ending:
    """Execute a run until it ends. `work.watch` gets one event at a time, although calls may run in parallel."""
    work = replace(work, watch=_one_at_a_time(work.watch))
    ending = await RunSteps(work, NoStepStore(ask)).run(work.task)
    await work.watch(run_ended(ending))
    return ending


def _one_at_a_time(watch: Watch) -> Watch:
    """Return a watcher that handles each event completely before it gets the next one."""
    lock = asyncio.Lock()

    async def watched(event: RunEvent) -> None:
        async with lock:
            await watch(event)

    return watched

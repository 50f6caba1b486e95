"""Runs in the memory of this process. They can be watched, cancelled and resumed, and are gone when it exits.

MemoryRuns             all runs by id; of ended runs, only the latest are kept
└── _Run               one run: its log, its steps, the task that executes it
    ├── _Log           its numbered events, for any number of readers
    └── _DictStepStore stores the outcomes of steps, for one attempt at the run
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeAlias

from toolspeak.agent.runs.events import RunEvent, Watch, Wrote, run_ended
from toolspeak.agent.runs.runs import NumberedEvent, RunSummary, RunView, Spec, checked_id
from toolspeak.agent.runs.steps import (
    Do,
    Permission,
    RunSteps,
    Stopped,
    StopSwitch,
    T,
    TextForm,
    Work,
    progress,
    run_usage,
    told,
)
from toolspeak.engine.agent import Ending, Status, Task
from toolspeak.errors import BadField, BadRequest, TooManyRuns, UnknownRun
from toolspeak.ir.message import Call, Message, Role
from toolspeak.ir.round import Compact
from toolspeak.ir.turn import Turn
from toolspeak.runtime.clock import CLOCK, Clock

PrepareRun: TypeAlias = Callable[[str, Spec, Watch, float], AbstractAsyncContextManager[Work]]
"""`preparation.prepare_run` with its configuration. The last argument is when the run began."""
KEPT: Final = 200
"""Ended runs that are kept."""
_NOTHING: Final = Compact(Message(Role.ASSISTANT, ()))
_TOO_EARLY: Final = "cancelled before it began"
_NANO = 1e9


class MemoryRuns:
    """Implements `Runs`."""

    def __init__(self, prepare: PrepareRun, clock: Clock = CLOCK, kept: int = KEPT) -> None:
        """Begin without runs. `kept` ended ones stay."""
        self._prepare: Final = prepare
        self._clock: Final = clock
        self._kept: Final = kept
        self._runs: Final[dict[str, _Run]] = {}
        self._names: Final[dict[tuple[str, str], str]] = {}
        """Ids by tenant and name."""

    async def start(self, spec: Spec, id: str = "", live: int | None = None) -> str:
        """Start a run and return its id. With an id that the tenant has used already, return that run instead.

        Nothing is awaited between the count and the insert, so no other request can exceed the limit in between.
        """
        name = checked_id(id) if id else ""
        if name and (known := self._names.get((spec.tenant, name))):
            return known
        self._check_room(spec.tenant, live)
        self._forget()
        fresh = f"run_{self._clock.fresh_id()}"
        id = name if name and not spec.tenant else fresh
        self._names[spec.tenant, name or id] = id
        self._runs[id] = _Run(id, name or id, spec, self._prepare, self._clock)
        self._runs[id].begin()
        return id

    async def find(self, name: str, tenant: str = "") -> str:
        """Return the id of the run that a tenant knows by this name. Without a tenant, names are ids."""
        id = self._names.get((tenant, name)) if tenant else name
        if id not in self._runs:
            raise UnknownRun(f"no run has the id {name[:80]!r}")
        return id

    async def show(self, id: str) -> RunView:
        """Return the present state of a run."""
        return self._run(id).view

    async def list(self, limit: int = 50, status: Status | None = None, tenant: str = "") -> list[RunSummary]:
        """Return the latest runs, newest first; without a tenant, those of all tenants."""
        lines = (each.line for each in reversed(self._runs.values()))
        found = [line for line in lines if status in (None, line.status) and tenant in ("", line.tenant)]
        return found[:limit]

    def events(self, id: str, after: int = -1) -> AsyncIterator[NumberedEvent]:
        """Yield the events after a number, then new ones as they come. The last one is `RunEnded`."""
        return self._run(id).events(after)

    async def cancel(self, id: str) -> None:
        """Stop a run, and wait until it has stopped; its rounds are kept."""
        await self._run(id).cancel()

    async def resume(self, id: str, live: int | None = None) -> None:
        """Continue a cancelled or failed run from its last stored step; a live run is left alone.

        The limit applies as in `start`: otherwise a client could cancel 20 runs, start 20, resume 20, and have 40.
        """
        found = self._run(id)
        if found.can_resume():
            self._check_room(found.line.tenant, live)
            found.begin()

    async def approve(self, id: str, call_id: str, *, allowed: bool, reason: str = "") -> None:
        """Answer a call that waits for a person's approval. Raises `BadField` if it does not wait."""
        self._run(id).approve(call_id, allowed=allowed, reason=reason)

    async def close(self) -> None:
        """Cancel all live runs."""
        async with asyncio.TaskGroup() as group:
            for each in self._runs.values():
                group.create_task(each.cancel())

    def _run(self, id: str) -> "_Run":
        if id not in self._runs:
            raise UnknownRun(f"no run has the id {id[:80]!r}")
        return self._runs[id]

    def _check_room(self, tenant: str, live: int | None) -> None:
        if live is not None and sum(each.going and each.tenant == tenant for each in self._runs.values()) >= live:
            raise TooManyRuns(live)

    def _forget(self) -> None:
        """Remove the runs that ended first, if too many are kept."""
        ended = sorted((each.line for each in self._runs.values() if not each.going), key=lambda line: line.ended)
        for line in ended[: max(len(ended) - self._kept + 1, 0)]:
            del self._runs[line.id]
            del self._names[line.tenant, line.name]


class _Run:
    def __init__(self, id: str, name: str, spec: Spec, prepare: PrepareRun, clock: Clock) -> None:
        self._id: Final = id
        self._name: Final = name
        self._spec: Final = spec
        self._prepare: Final = prepare
        self._clock: Final = clock
        self._log: Final = _Log()
        self._outcomes: Final[dict[str, Any]] = {}
        """The outcomes of the steps of all attempts, by step name."""
        self._store: _DictStepStore | None = None
        self._model = spec.model
        self._task: Task | None = None
        self._job: asyncio.Task[None] | None = None
        self._ending: Ending | None = None
        self._began: Final = self._now()
        self._ended = 0.0

    @property
    def going(self) -> bool:
        return self._ending is None

    @property
    def tenant(self) -> str:
        return self._spec.tenant

    @property
    def line(self) -> RunSummary:
        going = Status.WAITING if self._asked else Status.RUNNING
        status = going if self._ending is None else self._ending.status
        rounds, spec = len(self._kept.rounds), self._spec
        times = (self._began, self._ended)
        usage = run_usage(self._outcomes)
        return RunSummary(self._id, spec.task, status, self._model, *times, rounds, spec.tenant, self._name, usage)

    @property
    def view(self) -> RunView:
        reason = self._ending.reason if self._ending else ""
        return RunView(self.line, self._spec, self._kept, reason, self._asked)

    @property
    def _asked(self) -> tuple[Call, ...]:
        return () if self._store is None else self._store.asked

    @property
    def _kept(self) -> Compact:
        """Return the rounds so far, as they would be kept if the run were stopped now."""
        if self._ending is not None:
            return self._ending.kept
        return _NOTHING if self._task is None else progress(self._task, self._outcomes)[1]

    def events(self, after: int) -> AsyncIterator[NumberedEvent]:
        return self._log.after(after, lambda: self.going)

    def begin(self) -> None:
        self._ending, self._ended = None, 0.0
        self._job = asyncio.get_running_loop().create_task(self._work())

    async def cancel(self) -> None:
        if self.going and self._job is not None:
            if self._store is None:  # the run is still being prepared
                self._job.cancel()
            else:
                self._store.stop()
            await asyncio.wait((self._job,))
            if self.going:  # asyncio never enters a task that is cancelled before its first step
                self._end(Ending(Status.CANCELLED, self._kept, _TOO_EARLY))

    def can_resume(self) -> bool:
        """Return whether `begin` would make the run live again. Raises `BadRequest` if it never can."""
        if self._ending is None:
            return False
        if self._ending.status not in (Status.CANCELLED, Status.FAILED):
            raise BadRequest(f"run {self._name} is {self._ending.status}: only cancelled and failed ones can go on")
        return True

    def approve(self, call_id: str, *, allowed: bool, reason: str) -> None:
        if self._store is None or not self._store.answer(call_id, Permission(allowed, reason)):
            raise BadField("call_id", f"no call {call_id[:80]!r} of run {self._name} waits for a word")

    async def _work(self) -> None:
        ending: Ending | None = None
        try:
            async with self._prepare(self._id, self._spec, self._log.watch, self._began) as work:
                self._task, self._model = work.task, work.route.model
                self._store = _DictStepStore(self._outcomes)
                ending = await RunSteps(work, self._store).run(work.task)
        except asyncio.CancelledError:
            ending = ending or Ending(Status.CANCELLED, self._kept, _TOO_EARLY)
        except Exception as error:  # noqa: BLE001 # after any error the watchers need an end
            ending = ending or Ending(Status.FAILED, self._kept, told(error))
        self._end(ending)

    def _end(self, ending: Ending) -> None:
        self._store = None
        self._ending, self._ended = ending, self._now()
        self._log.put(run_ended(ending))

    def _now(self) -> float:
        return self._clock.nanoseconds() / _NANO


class _Log:
    """Numbered events. Text that no reader has seen yet grows in place, so an unwatched run has few events."""

    def __init__(self) -> None:
        self._events: Final[list[RunEvent]] = []
        self._read = -1
        self._more = asyncio.Event()

    async def watch(self, event: RunEvent) -> None:
        self.put(event)

    def put(self, event: RunEvent) -> None:
        # An event that a reader has seen must not grow: the reader would miss the rest.
        last = self._events[-1] if len(self._events) - 1 > self._read else None
        if isinstance(event, Wrote) and isinstance(last, Wrote) and last.thought is event.thought:
            self._events[-1] = Wrote(event.round, last.text + event.text, event.thought)
        else:
            self._events.append(event)
        self._more.set()
        # A new event object instead of `clear`: every reader that waits on the old one wakes up.
        self._more = asyncio.Event()

    async def after(self, number: int, going: Callable[[], bool]) -> AsyncIterator[NumberedEvent]:
        at = max(number + 1, 0)
        while True:
            while at < len(self._events):
                self._read = max(self._read, at)
                yield NumberedEvent(at, self._events[at])
                at += 1
            if not going():
                return
            await self._more.wait()


class _DictStepStore:
    """Stores outcomes in the run's dict, for one attempt at the run. Implements `StepStore`.

    A failed turn is not stored: a resumed run takes it again.
    """

    def __init__(self, outcomes: dict[str, Any]) -> None:
        self._outcomes: Final = outcomes
        self._switch: Final = StopSwitch()
        self._waiting: tuple[Call, asyncio.Future[Permission]] | None = None

    @property
    def asked(self) -> tuple[Call, ...]:
        return () if self._waiting is None else (self._waiting[0],)

    def stop(self) -> None:
        """Stop the running steps, and let no further one begin."""
        self._switch.stop(Stopped())

    def answer(self, call_id: str, permission: Permission) -> bool:
        """Pass on a person's answer. Return False if the call does not wait for one."""
        if self._waiting is None or self._waiting[0].id != call_id or self._waiting[1].done():
            return False
        self._waiting[1].set_result(permission)
        return True

    async def keep(self, step: str, form: TextForm[T], do: Do[T], *, once: bool = False) -> T:
        del form, once  # no other process can have the run, and nothing is awaited between a start and its call
        if step in self._outcomes:
            kept: T = self._outcomes[step]
            return kept
        self._switch.admit()
        with self._switch.stoppable():
            outcome = await do()
        if not isinstance(outcome, Turn) or outcome.failure is None:
            self._outcomes[step] = outcome
        return outcome

    async def ask(self, key: str, call: Call) -> Permission:
        step = f"answer:{key}"
        if step not in self._outcomes:
            self._switch.admit()
            self._waiting = (call, asyncio.get_running_loop().create_future())
            try:
                with self._switch.stoppable(waits=True):
                    self._outcomes[step] = await self._waiting[1]
            finally:
                self._waiting = None
        answered: Permission = self._outcomes[step]
        return answered

"""Durable runs in a database: start, show, watch, cancel, resume and approve them. They survive a dead worker."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final, ParamSpec, TypeVar

from toolspeak.agent.durable import dbos_internals, ledger
from toolspeak.agent.durable.database import Database
from toolspeak.agent.durable.lease import lease_end
from toolspeak.agent.durable.ledger import NewRun, RunRow
from toolspeak.agent.durable.step_store import BEGINNING, begun_task
from toolspeak.agent.durable.worker import Worker, WorkerDeps, working
from toolspeak.agent.runs.events import RunEnded, ToolCallAsked
from toolspeak.agent.runs.preparation import conversation
from toolspeak.agent.runs.runs import NumberedEvent, RunSummary, RunView, Spec, checked_id
from toolspeak.agent.runs.steps import JSON, RESULT, TURN, TextForm, progress, run_usage
from toolspeak.config.shape import Config
from toolspeak.engine.agent import RunEffect, RunTools, Status, Task
from toolspeak.errors import BadField, BadRequest, RunsUnavailable, UnknownRun
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Result
from toolspeak.ir.request import Request
from toolspeak.ir.round import Compact
from toolspeak.ir.turn import Turn
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Directory

_LOOK, _LAZY_LOOK = 0.1, 0.5
"""Seconds between two polls for new events: while events arrive, and at most."""
_GRACE: Final = 2.0
_AGAIN: Final = 1.0
"""Seconds until a watcher polls again after the database was unreachable."""
_THREADS: Final = 8
P = ParamSpec("P")
T = TypeVar("T")


class DurableRuns:
    """Runs in a database. Without a worker of its own, other processes execute them.

    With `patience`, a method raises `RunsUnavailable` after that many seconds without a response of the database.
    """

    def __init__(
        self, database: Database, worker: Worker | None = None, clock: Clock = CLOCK, patience: float | None = None
    ) -> None:
        """Use this database; `open_runs` creates all parts."""
        self._database: Final = database
        self._suffix: Final = f".{database.cell}" if database.cell else ""
        """The end of new ids, which tells their cell; see `cells.py`."""
        self._worker: Final = worker
        self._clock: Final = clock
        self._patience: Final = patience
        # Separate threads: a database that hangs must not use up the threads that the rest of the process needs.
        self._threads: Final = ThreadPoolExecutor(_THREADS, "toolspeak-runs")
        self._adoptions: Final[set[asyncio.Task[None]]] = set()

    async def start(self, spec: Spec, id: str = "", live: int | None = None) -> str:
        """Start a run and return its id. With an id that the tenant has used already, return that run instead."""
        fresh = f"run_{self._clock.fresh_id()}{self._suffix}"
        name = checked_id(id) if id else fresh
        # Names are unique within a tenant only. If the chosen name were the id, a taken one would reveal that another
        # tenant has such a run.
        run = fresh if spec.tenant else name
        if await self._ask(ledger.begin, self._database, NewRun(run, name, spec, self._queue), live):
            await self._claim(run)
            return run
        return await self.find(name, spec.tenant)

    async def find(self, name: str, tenant: str = "") -> str:
        """Return the id of the run that a tenant knows by this name. Without a tenant, names are ids."""
        id = await self._ask(ledger.id_of, self._database, tenant, name) if tenant else name
        if id is None:
            raise _unknown(name)
        return id

    async def show(self, id: str) -> RunView:
        """Return the present state of a run. Raises `UnknownRun`."""
        return await self._ask(self._view, id)

    async def list(self, limit: int = 50, status: Status | None = None, tenant: str = "") -> list[RunSummary]:
        """Return the latest runs, newest first."""
        return await self._ask(ledger.lines, self._database, limit, status, tenant)

    async def events(self, id: str, after: int = -1) -> AsyncIterator[NumberedEvent]:
        """Yield the events after a number, then new ones as they come. The last one is `RunEnded`.

        While the database is unreachable, the events pause. Raises `UnknownRun` for a run that is not in it.
        """
        wait = _LOOK
        while True:
            try:
                found, over = await self._ask(self._look, id, after)
            except RunsUnavailable:
                await self._clock.sleep(_AGAIN)
                continue
            for each in found:
                after = each.number
                yield each
                if isinstance(each.event, RunEnded):
                    return
            if over and not found:  # the watcher had seen the end before
                return
            wait = _LOOK if found else min(wait * 1.5, _LAZY_LOOK)
            await self._clock.sleep(wait)

    async def cancel(self, id: str) -> None:
        """Stop a run; its rounds are kept. Cancelling an ended run does nothing."""
        if await self._ask(self._cancel, id) and self._worker is not None:
            self._worker.cancel(id)

    async def resume(self, id: str, live: int | None = None) -> None:
        """Continue a cancelled or failed run from its last stored step, or a run whose worker is dead.

        Raises `BadRequest` for a completed run, and `TooManyRuns` if the tenant has `live` live runs already.
        """
        await self._ask(self._resume, id, live)
        await self._claim(id)
        if self._worker is not None:
            # Its process may have been killed just now, and has a lease for some seconds more. Without another worker
            # nobody would notice its end, and the person who resumed the run would wait for ever.
            task = asyncio.get_running_loop().create_task(self._adopt(id, self._worker.lease.id))
            self._adoptions.add(task)
            task.add_done_callback(self._adoptions.discard)

    async def approve(self, id: str, call_id: str, *, allowed: bool, reason: str = "") -> None:
        """Answer a call that waits for a person's approval; only the first answer counts. Raises `BadField`."""
        await self._ask(self._approve, id, call_id, {"allowed": allowed, "reason": reason})

    async def close(self) -> None:
        """Stop the worker, if there is one. Its runs continue in other workers, or at the next start."""
        for task in self._adoptions:
            task.cancel()
        if self._worker is not None:
            await self._worker.close(_GRACE)

    def let_go(self) -> None:
        """Release the threads. A thread that waits for a hanging database ends when its wait does."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    # ---------------------------------------------------------------- within

    @property
    def _queue(self) -> str:
        return dbos_internals.QUEUE if self._worker is None else dbos_internals.HERE

    async def _claim(self, run: str) -> None:
        if self._worker is not None:
            await self._worker.claim(run)

    async def _adopt(self, run: str, own: str) -> None:
        """Take a run over when the lease of its worker ends; do nothing if the worker renews it, and so is alive."""
        first: tuple[str, float] | None = None
        while True:
            try:
                worker = await self._ask(ledger.worker_of, self._database, run)
                end = await self._ask(lease_end, self._database, worker) if worker and worker != own else None
                if end is None:
                    if worker and worker != own:
                        await self._ask(self._take_over, run)
                        await self._claim(run)
                    return
            except RunsUnavailable:
                await self._clock.sleep(_AGAIN)
                continue
            first = first or (worker, end)
            if first != (worker, end):
                return
            await self._clock.sleep(_LAZY_LOOK)

    async def _ask(self, what: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Call a blocking function in a thread. Only this method turns database errors into `RunsUnavailable`."""
        loop = asyncio.get_running_loop()
        try:
            with self._database.translated_errors():
                async with asyncio.timeout(self._patience):
                    return await loop.run_in_executor(self._threads, partial(what, *arguments, **named))
        except TimeoutError:
            message = f"the database of runs did not respond within {self._patience:.0f} s"
            raise RunsUnavailable(message) from None

    # ---------------------------------------------------------------- in a thread

    def _row(self, run: str) -> RunRow:
        row = ledger.read_run(self._database, run)
        if row is None:
            raise _unknown(run)
        return row

    def _view(self, run: str) -> RunView:
        return view_of(self._row(run), self._steps(run), self._asked(run))

    def _steps(self, run: str) -> dict[str, str]:
        steps = dbos_internals.step_outputs(self._database.client, run)
        return {name: given for _, name, given, raised in steps if not raised and isinstance(given, str)}

    def _asked(self, run: str) -> Sequence[NumberedEvent]:
        return ledger.events_after(self._database, run, -1, "call_asked")

    def _look(self, run: str, after: int) -> tuple[Sequence[NumberedEvent], bool]:
        """Return the next events, and whether no more will come."""
        found = ledger.events_after(self._database, run, after)
        if found or not self._row(run).line.ended:
            return found, False
        return ledger.events_after(self._database, run, after), True  # the end may have been written in between

    def _cancel(self, run: str) -> bool:
        if self._row(run).line.ended:
            return False
        # DBOS first, which stops the execution from storing anything. If this process dies in between,
        # `ledger.end_abandoned_runs` writes the end.
        self._database.client.cancel_workflow(run)
        ledger.end(self._database, run, Status.CANCELLED, "cancelled")
        return True

    def _resume(self, run: str, live: int | None) -> None:
        line = self._row(run).line
        match line.status:
            case Status.CANCELLED:
                if ledger.reopen(self._database, line, live):
                    self._database.client.resume_workflow(run, queue_name=self._queue)
            case Status.FAILED:
                self._retry(line, live)
            case Status.RUNNING | Status.WAITING:
                self._take_over(run)
            case _:
                raise BadRequest(f"run {line.name} is {line.status}: only cancelled and failed ones can go on")

    def _approve(self, run: str, call_id: str, word: JsonObject) -> None:
        row = self._row(run)
        calls = waiting_calls(row, self._steps(run), self._asked(run))
        topic = next((key for key, call in calls.items() if call.id == call_id), None)
        if topic is None:
            raise BadField("call_id", f"no call {call_id[:80]!r} of run {row.line.name} waits for a word")
        # The key makes the first answer win: DBOS ignores a second message with the same key.
        self._database.client.send(run, word, topic, idempotency_key=f"{run}:{topic}")

    def _retry(self, line: RunSummary, live: int | None) -> None:
        """Repeat the turn that failed; if none did, continue after the last step."""
        steps = dbos_internals.step_outputs(self._database.client, line.id)
        after = max((number for number, *_ in steps), default=0) + 1
        if ledger.reopen(self._database, line, live):
            start = failed_turn(steps) or after
            self._database.client.rewind_workflow(
                line.id, start_step=start, queue_name=self._queue, queue_partition_key=line.tenant
            )

    def _take_over(self, run: str) -> None:
        """Put a run back into the queue if its worker has lost its lease."""
        worker = ledger.worker_of(self._database, run)
        if worker and lease_end(self._database, worker) is None:
            dbos_internals.hand_back(self._database.client, run, worker)


def _unknown(name: str) -> UnknownRun:
    return UnknownRun(f"no run has the id {name[:80]!r}")


# ---------------------------------------------------------------- a run from its steps


def view_of(row: RunRow, steps: Mapping[str, str], asked: Iterable[NumberedEvent]) -> RunView:
    """Return the view of a run from its row, its steps by name, and the calls that people were asked about."""
    _, kept = _progress(row.spec, steps)
    line = replace(row.line, usage=run_usage(_outcomes(steps)))
    return RunView(line, row.spec, kept, row.reason, tuple(waiting_calls(row, steps, asked).values()))


def waiting_calls(row: RunRow, steps: Mapping[str, str], asked: Iterable[NumberedEvent]) -> dict[str, Call]:
    """Return the calls that wait for a person's approval, by the key of their steps."""
    effect, _ = _progress(row.spec, steps)
    if row.line.ended or not isinstance(effect, RunTools):
        return {}
    names = {
        each.event.id for each in asked if isinstance(each.event, ToolCallAsked) and each.event.round == effect.round
    }
    calls = {f"{effect.round}:{index}": call for index, call in enumerate(effect.calls)}
    return {key: call for key, call in calls.items() if call.id in names and f"tool:{key}" not in steps}


def failed_turn(steps: Iterable[tuple[int, str, object, bool]]) -> int | None:
    """Return the number of the step at which a run failed: its last turn, if that gave no answer; else None."""
    turns = [step for step in steps if step[1].startswith("turn:")]
    if not turns:
        return None
    number, _, given, raised = turns[-1]
    return number if raised or (isinstance(given, str) and "failure" in JSON.read(given)) else None


def _progress(spec: Spec, steps: Mapping[str, str]) -> tuple[RunEffect | None, Compact]:
    """Return the run's next effect, and the rounds that it would keep if it were stopped now."""
    task = Task(Request(spec.model, conversation(spec)), spec.rounds)
    if BEGINNING in steps:
        task = begun_task(task, JSON.read(steps[BEGINNING]))
    return progress(task, _outcomes(steps))


def _outcomes(steps: Mapping[str, str]) -> dict[str, Turn | Result]:
    return {name: form.read(text) for name, text in steps.items() if (form := _form(name)) is not None}


def _form(step: str) -> TextForm[Turn] | TextForm[Result] | None:
    if step.startswith("turn:"):
        return TURN
    return RESULT if step.startswith("tool:") else None


# ---------------------------------------------------------------- opening


@asynccontextmanager
async def open_runs(
    config: Config,
    directory: Directory | None = None,
    imports: Sequence[str] = (),
    clock: Clock = CLOCK,
    patience: float | None = None,
) -> AsyncGenerator[DurableRuns]:
    """Open the runs of a configuration.

    With a directory of models, this process executes the runs that are started or resumed here, while it is open; they
    may name the functions of `imports`. Without one, `toolspeak worker` executes them. With `patience` and no
    directory, no method waits longer than that many seconds for the database.
    """
    database = await asyncio.to_thread(Database, config.runs, None if directory else patience)
    stack = ExitStack()
    try:
        if directory is None:
            runs = DurableRuns(database, None, clock, patience)
            stack.callback(runs.let_go)
            yield runs
        else:
            deps = WorkerDeps(database, config, directory, takes=False, imports=imports, clock=clock)
            async with working(deps, _GRACE) as worker:
                runs = DurableRuns(database, worker, clock)
                stack.callback(runs.let_go)
                yield runs
    finally:
        stack.close()
        await asyncio.to_thread(database.close)


@asynccontextmanager
async def open_worker(config: Config, directory: Directory, grace: float) -> AsyncGenerator[Worker]:
    """Run a worker on the queue. On exit, running steps have `grace` seconds to finish."""
    database = await asyncio.to_thread(Database, config.runs)
    try:
        deps = WorkerDeps(database, config, directory, takes=True, imports=config.runs.imports)
        async with working(deps, grace) as worker:
            yield worker
    finally:
        await asyncio.to_thread(database.close)

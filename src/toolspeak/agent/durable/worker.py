"""The worker: takes runs from the queue, executes them, and takes over runs of workers that have died.

start      take the lease, launch DBOS, then periodically renew the lease, stop lost runs, release runs of dead workers
close      begin no further step, let running steps finish, put the remaining runs back into the queue

A run has at most one owner that can write. Three checks ensure it. The lease stops a worker before others may take its
runs. The token of the execution is compared in each transaction that stores an event or a step. And a call that must
not run twice begins only right after the lease was confirmed (`RunClaim.assure`).

The events of all its runs are written in batches: one transaction for all events that have come together. Text waits up
to 200 ms for more text, since a durable write per token would cost 3 to 7 ms each. The end of a turn or a call is
written at once, and its step waits for the write: the events of a finished step are never lost.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

import sqlalchemy as sa
from dbos import DBOS
from sqlalchemy.exc import OperationalError

from toolspeak.agent.durable import dbos_internals, ledger
from toolspeak.agent.durable.database import ENGINE, FAILURES, Database, first_line
from toolspeak.agent.durable.dbos_internals import Lost
from toolspeak.agent.durable.lease import RENEWALS, Lease, hand_back_unknown, reap
from toolspeak.agent.durable.ledger import EventBatch, delete_old_runs, end_abandoned_runs
from toolspeak.agent.durable.queue import RunQueue, waiting_runs
from toolspeak.agent.durable.step_store import DbosStepStore, RunClaim
from toolspeak.agent.runs.events import (
    RunEnded,
    RunEvent,
    ToolCallAsked,
    ToolCallEnded,
    TurnEnded,
    Watch,
    Wrote,
    run_ended,
)
from toolspeak.agent.runs.preparation import prepare_run
from toolspeak.agent.runs.runs import Spec, decode_spec
from toolspeak.agent.runs.steps import RunSteps, told
from toolspeak.config.shape import Config
from toolspeak.engine.agent import Ending, Status
from toolspeak.errors import ToolspeakError
from toolspeak.ir.message import Message, Role
from toolspeak.ir.round import Compact
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Directory

_LOG: Final = logging.getLogger("toolspeak.runs")
GATHER: Final = 0.2
_AGAIN: Final = 1.0
"""Seconds between two attempts while the database is unreachable."""
_URGENT: Final = (TurnEnded, ToolCallAsked, ToolCallEnded, RunEnded)


class EventWriter:
    """One writer for all runs of a worker. `work` must run concurrently."""

    def __init__(self, database: Database) -> None:
        """Take the database to write to."""
        self._database: Final = database
        self._said: dict[tuple[str, str], list[RunEvent]] = {}
        self._waiting: list[tuple[tuple[str, str], asyncio.Future[bool]]] = []
        self._some: Final = asyncio.Event()
        self._urgent: Final = asyncio.Event()
        self._ending = False
        self._thread: Final = ThreadPoolExecutor(1, "toolspeak-events")

    def watch(self, run: str, token: str) -> Watch:
        """Return the event sink of one execution. It raises `Lost` once another execution owns the run."""
        key = (run, token)

        async def said(event: RunEvent) -> None:
            _join(self._said.setdefault(key, []), event)
            self._some.set()
            # The step waits for the write: once its outcome is stored, a run that is taken over does not repeat it, so
            # an event that was not written would be missing for good.
            if isinstance(event, _URGENT) and not await self._kept(key):
                raise Lost(run)

        return said

    async def work(self) -> None:
        """Write until `end` is called and all events are written."""
        while not self._ending or self._said:
            await self._some.wait()
            await self._gather()
            self._some.clear()
            # Cleared before the events are taken: an event that comes during the write sets the flag again.
            self._urgent.clear()
            said, waiting = self._said, self._waiting
            self._said, self._waiting = {}, []
            await self._write(said, waiting)
        self._thread.shutdown(wait=False)

    def end(self) -> None:
        """Write the remaining events, and stop."""
        self._ending = True
        self._some.set()
        self._urgent.set()

    async def _gather(self) -> None:
        try:
            async with asyncio.timeout(GATHER):
                await self._urgent.wait()
        except TimeoutError:
            pass

    async def _kept(self, key: tuple[str, str]) -> bool:
        kept: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, kept))
        self._urgent.set()
        return await kept

    async def _write(
        self,
        said: Mapping[tuple[str, str], list[RunEvent]],
        waiting: list[tuple[tuple[str, str], asyncio.Future[bool]]],
    ) -> None:
        batch = [EventBatch(run, token, events) for (run, token), events in said.items()]
        refused = await self._insist(batch)
        for key, kept in waiting:
            if not kept.done():
                kept.set_result(key not in refused)

    async def _insist(self, batch: list[EventBatch]) -> set[tuple[str, str]]:
        """Write, and repeat until the database can be reached. The runs wait in the meantime, as for their steps.

        A worker that shuts down gives up after a failure: steps that were not stored are executed again elsewhere. An
        outage is logged once, however long it lasts.
        """
        is_logged = False
        while True:
            try:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._thread, ledger.write, self._database, batch)
            except OperationalError as error:
                if not is_logged:
                    _LOG.warning("runs wait until their database can be written: %s", first_line(error.orig or error))
                is_logged = True
                if self._ending:
                    return {(each.run, each.token) for each in batch}
                await asyncio.sleep(_AGAIN)


def _join(events: list[RunEvent], event: RunEvent) -> None:
    """Append an event; consecutive text of one kind becomes a single event."""
    last = events[-1] if events else None
    if (
        isinstance(event, Wrote)
        and isinstance(last, Wrote)
        and (last.round, last.thought) == (event.round, event.thought)
    ):
        events[-1] = Wrote(last.round, last.text + event.text, last.thought)
    else:
        events.append(event)


BEAT: Final = 0.4
"""Seconds between two beats: a run that is cancelled in another process stops here within this time."""
POLL: Final = 0.25
"""Seconds between two polls of the queue. With the default of DBOS (1 s), a run waited 0.5 to 0.8 s for its start."""
_CLEAN: Final = 600.0
_THREADS: Final = 2 * ENGINE
"""Threads of DBOS. More threads than connections would only wait for a connection, and delay the event loop."""
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerDeps:
    """Dependencies of a worker. With `takes` it works off the queue; without, it executes runs of its own process."""

    database: Database
    config: Config
    directory: Directory
    takes: bool
    imports: Sequence[str] = ()
    """Names or globs of functions that specs may name, as in `prepare_run`."""
    clock: Clock = CLOCK


class Worker:
    """Executes runs. There is one per process, because DBOS has one instance per process."""

    def __init__(self, deps: WorkerDeps) -> None:
        """Create a worker that has not started."""
        self._deps: Final = deps
        self.lease: Final = Lease(deps.database, deps.config.runs.lease, deps.clock)
        self._queue: Final = RunQueue(deps.database, self.lease.id, deps.config.runs.concurrent_per_tenant, deps.clock)
        self._claimed: Final[list[tuple[str, str]]] = []
        """Runs that are claimed and not started, each with its token."""
        self._busy: Final = Counter[str]()
        """Executions of each run that have not ended. DBOS begins one a moment after its start, and a run that is
        resumed at once may have two."""
        self._lost_answer = False
        """The database broke off during a claim: it may have given us runs that we do not know."""
        self._room: Final = asyncio.Event()
        """Set when a run has ended here: its place can be taken before the next poll."""
        self._writer: Final = EventWriter(deps.database)
        self._claims: Final[set[RunClaim]] = set()
        self._idle: Final = asyncio.Event()
        self._idle.set()
        self._ended: Final = asyncio.Event()
        self.lost: Final = asyncio.Event()
        """Set when the lease is gone: other workers have the runs, and this one can only exit."""
        self._is_open = False
        """Whether runs may be claimed: from the launch of DBOS until `close` begins."""
        self._reap_at = self._clean_at = 0.0
        # Two threads for the lease and the ledger alone: a hundred steps that wait for DBOS's threads must not delay a
        # renewal, or the worker would lose all its runs under load.
        self._ledger_threads: Final = ThreadPoolExecutor(2, "toolspeak-keeper")
        self._engine: Final = deps.database.new_engine(ENGINE)
        self._dbos: DBOS | None = None

    @property
    def place(self) -> str:
        """Return the URL of the database, without its password."""
        return self._deps.database.url.render_as_string()

    @property
    def is_ready(self) -> bool:
        """Return whether this worker claims runs: it has started, does not shut down, and holds its lease."""
        return self._is_open and self.lease.held

    @property
    def running(self) -> int:
        """Return how many runs this worker works on."""
        return self._busy.total()

    async def load(self) -> tuple[int, float]:
        """Return how many runs wait, and this worker's running runs with its share of those. Raises `RunsUnavailable`.

        The loads of all workers add up to the runs that need one, so their average is what to scale by.
        """
        with self._deps.database.translated_errors():
            waiting, workers = await self._keep(waiting_runs, self._deps.database)
        return waiting, self.running + waiting / max(1, workers)

    # ---------------------------------------------------------------- beginning and end

    async def start(self) -> None:
        """Launch DBOS. `beat`, `write` and `take` must run concurrently. Raises `BadConfig` if DBOS is in use."""
        dbos_internals.check_free()
        dbos = new_dbos(self._engine, self.lease.id, self._work_on)
        dbos_internals.work_on_this_loop(dbos)
        self._dbos = dbos
        # The launch blocks for a while: in a thread, so that `beat` renews the lease in the meantime.
        await asyncio.to_thread(DBOS.launch)
        self._is_open = True

    async def write(self) -> None:
        """Write the events of all runs until `close`."""
        await self._writer.work()

    async def close(self, grace: float) -> None:
        """Stop: running steps have `grace` seconds to finish, then they are cancelled. Other workers continue the runs.

        The order matters: no new runs, no new steps, then cancellation. The lease is dropped last, since another worker
        may start the runs from that moment on.
        """
        self._is_open = False
        for claim in self._claims:
            claim.drain(dbos_internals.Lost(claim.run))
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._idle.wait()
        for claim in self._claims:
            claim.stop(dbos_internals.Lost(claim.run))
        self._writer.end()
        self._ended.set()
        self._room.set()
        try:
            await self._keep(self.lease.drop)
        except OperationalError:
            _LOG.warning("the database of runs does not answer: others go on when the lease has run out")
        if self._dbos is None:
            return
        dbos_internals.forget_tasks(self._dbos)
        self._dbos = None
        await asyncio.to_thread(DBOS.destroy)
        self._engine.dispose()  # DBOS leaves connections open that it was given
        # DBOS has replaced the loop's default executor by its own, and closed it: the caller needs a working one.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())

    def let_go(self) -> None:
        """Shut down the ledger's threads. Call it after `beat` has ended."""
        self._ledger_threads.shutdown(wait=False)

    # ---------------------------------------------------------------- the beat

    async def beat(self) -> None:
        """Renew the lease and do periodic work until `close`. An unreachable database is logged, and tried again."""
        while not self._ended.is_set():
            try:
                await self._beat()
            except OperationalError as error:
                _LOG.warning("the database of runs does not answer: %s", type(error.orig).__name__)
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT):
                    await self._ended.wait()

    async def _beat(self) -> None:
        if self.lease.due and not await self._keep(self.lease.renew) and not self._ended.is_set():
            self._lose()
        if self._claims:
            await self._stop_foreign()
        if self._deps.takes and self._is_time("_reap_at", self.lease.seconds / RENEWALS):
            if count := await self._keep(reap, self._deps.database):
                _LOG.info("took over %d runs of workers that died", count)
            await self._keep(end_abandoned_runs, self._deps.database)
        if self._is_time("_clean_at", _CLEAN):
            await self._keep(delete_old_runs, self._deps.database, self._deps.config.runs.keep)

    def _is_time(self, what: str, seconds: float) -> bool:
        now = self._deps.clock.monotonic()
        if now < getattr(self, what):
            return False
        setattr(self, what, now + seconds)
        return True

    def _lose(self) -> None:
        if not self.lost.is_set():
            _LOG.error("the lease ran out, and others have taken over the runs of this worker")
        self.lost.set()
        for claim in self._claims:
            claim.stop(dbos_internals.Lost(claim.run))

    async def _stop_foreign(self) -> None:
        """Stop runs that were cancelled or taken over elsewhere: their token in the database has changed."""
        claims = {each.run: each for each in self._claims}
        for run_id, token, status in await self._keep(_owners, self._deps.database, list(claims)):
            if token != claims[run_id].token:
                why = (
                    dbos_internals.Cancelled(run_id)
                    if status == dbos_internals.CANCELLED
                    else dbos_internals.Lost(run_id)
                )
                claims[run_id].stop(why)

    async def _keep(self, what: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Call a blocking function in the ledger's own threads."""
        return await asyncio.get_running_loop().run_in_executor(
            self._ledger_threads, partial(what, *arguments, **named)
        )

    # ---------------------------------------------------------------- the queue

    async def take(self) -> None:
        """Claim runs of the queue until `close`, in turn over the tenants. Without `takes`, do nothing."""
        while self._deps.takes and not self._ended.is_set():
            self._room.clear()
            try:
                await self._take()
            except FAILURES:  # `beat` logs it
                self._lost_answer = True
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await self._room.wait()

    async def _take(self) -> None:
        if not self._is_open or not self.lease.held:
            return
        if self._lost_answer:
            known = {*self._busy, *(run for run, _ in self._claimed)}
            await self._keep(hand_back_unknown, self._deps.database, self.lease.id, known)
            self._lost_answer = False
        room = self._deps.config.runs.concurrent - self._busy.total() - len(self._claimed)
        if room > 0:
            self._claimed.extend(await self._keep(self._queue.claim, room))
        while self._claimed and self._is_open:
            await self._begin(*self._claimed[0])
            del self._claimed[0]

    async def _begin(self, run_id: str, token: str) -> None:
        """Start a run that was claimed. Raises one of `FAILURES` if the database is away: it has not started then."""
        try:
            await self._started(run_id, dbos_internals.start_claimed, token)
        except FAILURES:
            raise
        except Exception:  # noqa: BLE001 # a run that cannot be read must not hold up the others; DBOS has ended it
            _LOG.warning("run %s cannot be started", run_id, exc_info=True)

    # ---------------------------------------------------------------- runs

    async def claim(self, run_id: str) -> bool:
        """Start a waiting run here. Return False if another worker was faster, or this one is not running."""
        return await self._started(run_id, dbos_internals.claim, self.lease.id, self._deps.clock.fresh_id())

    async def _started(self, run_id: str, start: Callable[..., bool], *arguments: str) -> bool:
        """Start a run by this function, and count it from before its start until its execution ends."""
        if self._dbos is None:
            return False
        self._busy[run_id] += 1
        started = False
        try:
            started = await asyncio.to_thread(start, self._dbos, run_id, *arguments)
        finally:
            if not started:
                self._free(run_id)
        return started

    def _free(self, run_id: str) -> None:
        self._busy[run_id] -= 1
        if not self._busy[run_id]:
            del self._busy[run_id]
        self._room.set()

    def cancel(self, run_id: str) -> None:
        """Stop a run at once, if this worker executes it."""
        for claim in self._claims:
            if claim.run == run_id:
                claim.stop(dbos_internals.Cancelled(run_id))

    async def _work_on(self, run_id: str, text: str) -> str:
        try:
            return await self._work_as_owner(run_id, text)
        finally:
            self._free(run_id)

    async def _work_as_owner(self, run_id: str, text: str) -> str:
        token = dbos_internals.token(run_id)
        took = await asyncio.to_thread(ledger.take, self._deps.database, run_id, token)
        if took is None:  # the run's end was written, but its worker died before DBOS had recorded it
            return ""
        if not took:
            raise dbos_internals.Lost(run_id)
        claim = RunClaim(run_id, token, self.lease)
        self._claims.add(claim)
        self._idle.clear()
        try:
            return await self._to_its_end(claim, decode_spec(text))
        finally:
            self._claims.discard(claim)
            if not self._claims:
                self._idle.set()

    async def _to_its_end(self, claim: RunClaim, spec: Spec) -> str:
        watch = self._writer.watch(claim.run, claim.token)
        try:
            ending = await self._drive(claim, spec, watch)
        except Exception as error:  # noqa: BLE001 # after any error the run must end, or its watchers wait for ever
            if not isinstance(error, ToolspeakError):
                _LOG.exception("run %s failed", claim.run)
            ending = Ending(Status.FAILED, Compact(Message(Role.ASSISTANT, ())), told(error))
        # Raises if the run was cancelled or lost meanwhile, or this worker shuts down: others then write the end.
        claim.admit()
        await watch(run_ended(ending))
        return ending.status.value

    async def _drive(self, claim: RunClaim, spec: Spec, watch: Watch) -> Ending:
        deps = self._deps
        began = await asyncio.to_thread(ledger.began, deps.database, claim.run)
        ready = prepare_run(claim.run, spec, deps.config, deps.directory, watch, imports=deps.imports, began=began)
        async with ready as work:
            if not spec.model:
                await asyncio.to_thread(ledger.name_model, deps.database, claim.run, work.route.model)
            store = DbosStepStore(claim)
            return await RunSteps(work, store).run(await store.beginning(work.task))


@asynccontextmanager
async def working(deps: WorkerDeps, grace: float) -> AsyncGenerator[Worker]:
    """Run a worker. On exit, running steps have `grace` seconds to finish. Raises `BadConfig`, `RunsUnavailable`."""
    worker = Worker(deps)
    with deps.database.translated_errors(opening=True):  # the first write, which fails on a full disk
        await asyncio.to_thread(worker.lease.take)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.beat())  # before `start`, which may take longer than the lease
            group.create_task(worker.write())
            group.create_task(worker.take())
            try:
                with deps.database.translated_errors(opening=True):
                    await worker.start()
                yield worker
            finally:
                await worker.close(grace)
    except BaseExceptionGroup as errors:  # the caller gets the plain error: the task group is an internal detail
        raise errors.exceptions[0] from None
    finally:
        worker.let_go()


def _owners(database: Database, runs: list[str]) -> list[tuple[str, str, str]]:
    workflows = dbos_internals.WORKFLOWS
    wanted = sa.select(workflows.c.workflow_uuid, workflows.c.owner_xid, workflows.c.status)
    with database.theirs.begin() as connection:
        rows = connection.execute(wanted.where(workflows.c.workflow_uuid.in_(runs)))
        return [(str(run_id), str(token), str(status)) for run_id, token, status in rows]


def new_dbos(engine: sa.Engine, executor: str, work_on: Callable[[str, str], Any]) -> DBOS:
    """Configure DBOS in this process, with the workflow that executes a run."""

    async def durable_run(text: str) -> str:
        kept: str = await work_on(DBOS.workflow_id or "", text)
        return kept

    dbos_internals.share_the_log()
    dbos = DBOS(
        config={
            "name": dbos_internals.APPLICATION,
            "system_database_engine": engine,
            "serializer": dbos_internals.SERIALIZER,
            "application_version": dbos_internals.VERSION,
            "executor_id": executor,
            # `Database` has migrated the tables already.
            "run_migrations": False,
            "enable_otlp": False,
            "log_level": "CRITICAL",
            # `Database` migrates by a client, which creates no triggers for NOTIFY: on PostgreSQL an approval was seen
            # after 60 s, when DBOS looks without a notification.
            "use_listen_notify": False,
            "notification_listener_polling_interval_sec": POLL,
            "scheduler_polling_interval_sec": _CLEAN,
            "max_executor_threads": _THREADS,
        }
    )
    DBOS.workflow(name=dbos_internals.WORKFLOW)(durable_run)
    DBOS.listen_queues([])  # `Worker.take` claims runs itself: DBOS knows no turns of tenants
    return dbos

"""Runs that survive the death of whoever works on them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from toolspeak.config.shape import Config
from toolspeak.engine.agent import Status
from toolspeak.errors import BadField, BadRequest, UnknownRun
from toolspeak.runs.durable import ledger, seam
from toolspeak.runs.durable.database import Database
from toolspeak.runs.durable.lease import is_alive
from toolspeak.runs.durable.ledger import Row
from toolspeak.runs.durable.views import failed_turn, view, waiting_calls
from toolspeak.runs.durable.worker import Worker, Workshop, working
from toolspeak.runs.runs import Line, Numbered, View, checked_id
from toolspeak.runs.spec import Spec
from toolspeak.runs.watch import RunEnded
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Directory

_LOOK, _LAZY_LOOK = 0.1, 0.5
"""Seconds between looks for new events: while some come, and at most."""
_GRACE: Final = 2.0


class DurableRuns:
    """Keeps runs in a database. Without a worker of its own, it leaves the work to others."""

    def __init__(self, database: Database, worker: Worker | None = None, clock: Clock = CLOCK) -> None:
        """Ask this database; `open_runs` makes everything ready."""
        self._database: Final = database
        self._worker: Final = worker
        self._clock: Final = clock

    async def start(self, spec: Spec, id: str = "") -> str:
        """Begin a run, and return its id; one that is begun already is not begun twice."""
        run = checked_id(id) if id else f"run_{self._clock.fresh_id()}"
        if await asyncio.to_thread(ledger.begin, self._database, run, spec, self._queue):
            await self._claim(run)
        return run

    async def show(self, id: str) -> View:
        """Return a run as it stands."""
        return view(await self._row(id), await self._steps(id), await self._asked(id))

    async def list(self, limit: int = 50, status: Status | None = None, tenant: str = "") -> list[Line]:
        """Return the latest runs, the newest first."""
        return await asyncio.to_thread(ledger.lines, self._database, limit, status, tenant)

    async def events(self, id: str, after: int = -1) -> AsyncIterator[Numbered]:
        """Give the events behind a number, those to come as well; the last one is `RunEnded`."""
        await self._row(id)
        wait, over = _LOOK, False
        while True:
            found = await asyncio.to_thread(ledger.events_after, self._database, id, after)
            for each in found:
                after = each.number
                yield each
                if isinstance(each.event, RunEnded):
                    return
            if over and not found:  # who has seen the end already hears no more
                return
            over = not found and (await self._row(id)).line.ended > 0
            wait = _LOOK if found else min(wait * 1.5, _LAZY_LOOK)
            await self._clock.sleep(0 if over else wait)

    async def cancel(self, id: str) -> None:
        """Stop a run; its rounds are kept."""
        row = await self._row(id)
        if row.line.ended:
            return
        await self._database.client.cancel_workflow_async(id)
        await asyncio.to_thread(ledger.end, self._database, id, Status.CANCELLED, "cancelled")
        if self._worker is not None:
            self._worker.cancel(id)

    async def resume(self, id: str) -> None:
        """Go on with a run that was cancelled or failed, from where it stood; or whose process is gone."""
        row = await self._row(id)
        match row.line.status:
            case Status.CANCELLED:
                await asyncio.to_thread(ledger.reopen, self._database, id)
                await self._database.client.resume_workflow_async(id, queue_name=self._queue)
            case Status.FAILED:
                await self._retry(id)
            case Status.RUNNING | Status.WAITING:
                await asyncio.to_thread(self._take_over, id)
            case _:
                raise BadRequest(f"run {id} is {row.line.status}: only cancelled and failed ones can go on")
        await self._claim(id)

    async def approve(self, id: str, call_id: str, *, allowed: bool, reason: str = "") -> None:
        """Give a person's word on a call that waits for it; the first word counts."""
        calls = waiting_calls(await self._row(id), await self._steps(id), await self._asked(id))
        topic = next((key for key, call in calls.items() if call.id == call_id), None)
        if topic is None:
            raise BadField("call_id", f"no call {call_id[:80]!r} of run {id} waits for a word")
        word = {"allowed": allowed, "reason": reason}
        await self._database.client.send_async(id, word, topic, idempotency_key=f"{id}:{topic}")

    async def close(self) -> None:
        """Let go of everything; runs go on elsewhere or later."""
        if self._worker is not None:
            await self._worker.close(_GRACE)

    # ---------------------------------------------------------------- within

    @property
    def _queue(self) -> str:
        return seam.QUEUE if self._worker is None else seam.HERE

    async def _claim(self, run: str) -> None:
        if self._worker is not None:
            await self._worker.claim(run)

    async def _row(self, run: str) -> Row:
        row = await asyncio.to_thread(ledger.find, self._database, run)
        if row is None:
            raise UnknownRun(f"no run has the id {run[:80]!r}")
        return row

    async def _steps(self, run: str) -> dict[str, str]:
        steps = await asyncio.to_thread(seam.step_outputs, self._database.client, run)
        return {name: given for _, name, given, raised in steps if not raised and isinstance(given, str)}

    async def _asked(self, run: str) -> Sequence[Numbered]:
        return await asyncio.to_thread(ledger.events_after, self._database, run, -1, "call_asked")

    async def _retry(self, run: str) -> None:
        """Take the turn again that failed; without one, go on behind the last step."""
        steps = await asyncio.to_thread(seam.step_outputs, self._database.client, run)
        after = max((number for number, *_ in steps), default=0) + 1
        await asyncio.to_thread(ledger.reopen, self._database, run)
        start = failed_turn(steps) or after
        await self._database.client.rewind_workflow_async(run, start_step=start, queue_name=self._queue)

    def _take_over(self, run: str) -> None:
        """Put a run whose worker is gone back into the queue."""
        worker = ledger.worker_of(self._database, run)
        if worker and not is_alive(self._database, worker):
            seam.hand_back(self._database.client, run, worker)


@asynccontextmanager
async def open_runs(
    config: Config, directory: Directory | None = None, imports: Sequence[str] = (), clock: Clock = CLOCK
) -> AsyncGenerator[DurableRuns]:
    """Open the runs of a configuration.

    With a directory of models, those that are started or resumed here are worked on here, as long as it is open, and
    may name the functions of `imports`; without one, `toolspeak worker` works on them.
    """
    database = await asyncio.to_thread(Database, config.runs)
    try:
        if directory is None:
            yield DurableRuns(database, None, clock)
        else:
            shop = Workshop(database, config, directory, takes=False, imports=imports, clock=clock)
            async with working(shop, _GRACE) as worker:
                yield DurableRuns(database, worker, clock)
    finally:
        await asyncio.to_thread(database.close)


@asynccontextmanager
async def open_worker(config: Config, directory: Directory, grace: float) -> AsyncGenerator[Worker]:
    """Work off the queue, as long as it is open; what runs then has so many seconds to end."""
    database = await asyncio.to_thread(Database, config.runs)
    try:
        shop = Workshop(database, config, directory, takes=True, imports=config.runs.imports)
        async with working(shop, grace) as worker:
            yield worker
    finally:
        await asyncio.to_thread(database.close)

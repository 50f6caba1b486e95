"""Writes the events of all runs of a worker in batches: one transaction for all events that have come together.

Text waits up to 200 ms for more text: a durable write per token would cost 3 to 7 ms each. The end of a turn or a call
is written at once, and its step waits for the write: the events of a finished step are never lost.
"""

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from sqlalchemy.exc import OperationalError

from toolspeak.agent.durable import ledger
from toolspeak.agent.durable.database import Database, first_line
from toolspeak.agent.durable.dbos_internals import Lost
from toolspeak.agent.durable.ledger import EventBatch
from toolspeak.agent.runs.events import RunEnded, RunEvent, ToolCallAsked, ToolCallEnded, TurnEnded, Watch, Wrote

GATHER: Final = 0.2
_AGAIN: Final = 1.0
"""Seconds between two attempts while the database is unreachable."""
_LOG: Final = logging.getLogger("toolspeak.runs")
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

"""A run that a worker has taken: whether it may go on, and what must stop if it may not."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from toolspeak.runs.durable.lease import Lease
from toolspeak.runs.durable.seam import Lost


class Taken:
    """One execution of a run. DBOS keeps none of its steps once `token` is not the run's any more."""

    def __init__(self, run: str, token: str, lease: Lease) -> None:
        """Begin one."""
        self.run: Final = run
        self.token: Final = token
        self._lease: Final = lease
        self._tasks: Final[dict[asyncio.Task[Any], bool]] = {}
        """What can be stopped, and whether it only waits."""
        self._why: BaseException | None = None
        self._stopped = False

    def admit(self) -> None:
        """Raise if no further step may begin."""
        if self._why is not None:
            raise self._why

    def drain(self) -> None:
        """Begin no further step; the one that runs may end, waiting for a person may not go on."""
        self._why = self._why or Lost(self.run)
        for task, waits in self._tasks.items():
            if waits:
                task.cancel()

    def stop(self, why: BaseException) -> None:
        """Stop at once."""
        self._why, self._stopped = why, True
        for task in self._tasks:
            task.cancel()

    @contextmanager
    def stoppable(self, *, waits: bool = False) -> Generator[None]:
        """Do what may be stopped; whoever stops it says what is raised."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("only a task can be stopped")
        if self._stopped:
            self.admit()
        self._tasks[task] = waits
        try:
            yield
        except asyncio.CancelledError:
            if self._why is None:
                raise
            task.uncancel()
            raise self._why from None
        finally:
            del self._tasks[task]

    async def assure(self) -> None:
        """Return only while nobody else can have this worker's runs: asked for right before what must not run twice."""
        while not self._lease.held:
            if not await asyncio.to_thread(self._lease.renew):
                raise Lost(self.run)

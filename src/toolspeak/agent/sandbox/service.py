"""A confined program that runs until it is stopped: started with pipes, watched, and ended with all that it started.

async with hosted(sandbox, service) as host:
    host.process.stdin, host.process.stdout       the caller's to write and to read
    host.why                                      why toolspeak or the guard has stopped it, if so

A service is in the same guard as a command, and the same watch looks at what it uses.
"""

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from toolspeak.agent.sandbox import journal
from toolspeak.agent.sandbox.child import end_process, kill_all, spawn
from toolspeak.agent.sandbox.disk import DiskBudget, DiskMeter
from toolspeak.agent.sandbox.journal import JournalEntry
from toolspeak.agent.sandbox.processes import ProcessTree
from toolspeak.agent.sandbox.sandbox import Sandbox, Service
from toolspeak.agent.sandbox.watch import ResourceWatch
from toolspeak.errors import BadField

_PAUSE: Final = 0.25
"""Seconds between two looks at what it uses: a service idles for days, and a look costs CPU time."""


class RunningService:
    """A service that runs."""

    def __init__(self, process: Process, entry: JournalEntry | None) -> None:
        """Take the process that all others of the service come from, and what its guard writes."""
        self.process: Final = process
        self._entry: Final = entry
        self._breach = ""
        self._stopped = ""

    @property
    def is_guarded(self) -> bool:
        """The process is a guard."""
        return self._entry is not None

    @property
    def why(self) -> str:
        """Why it was stopped: what it used too much of, or what it has made in its folders."""
        return self._breach or self._stopped or (self._entry.stopped if self._entry is not None else "")

    async def watch(self, watch: ResourceWatch) -> None:
        """Kill the service once it uses more than it may."""
        while self.process.returncode is None:
            if breach := await watch.breach():
                self._breach = breach
                return kill_all(self.process, spares_guard=self.is_guarded)
            await asyncio.sleep(_PAUSE)
        return None

    async def end(self) -> None:
        """Kill what is left of it, and wait until it is gone."""
        await end_process(self.process, lambda: wait_until_exited(self.process), is_guarded=self.is_guarded)

    async def report(self, name: str) -> None:
        """Log what the service has left in its folders that programs on the host obey: no result can tell it."""
        if self._entry is None:
            return
        reports = await asyncio.to_thread(self._entry.reports)
        self._stopped = next((each.stopped for each in reports), "")
        self._entry.remove()
        journal.warn(reports, f"The service {name}")


@asynccontextmanager
async def run_service(sandbox: Sandbox, service: Service) -> AsyncGenerator[RunningService]:
    """Start a service. Raises `OSError` and `BadField`."""
    limits = service.limits
    budget = service.budget or DiskBudget(limits.folder_growth, limits.folder_files)
    async with sandbox.prepare(service) as start:
        meter = DiskMeter(budget, (*service.writable, *start.scratch), limits.file_size)
        if refusal := await asyncio.to_thread(meter.begin):
            raise BadField("folders", refusal)
        host = RunningService(await spawn(start, stdin=PIPE, stderr=PIPE), start.entry)
        family = ProcessTree(host.process.pid, start.is_guarded)
        watching = asyncio.get_running_loop().create_task(host.watch(ResourceWatch(family, limits, meter)))
        try:
            yield host
        finally:
            watching.cancel()
            try:
                await host.end()
            finally:
                meter.end(family)
                await asyncio.wait((watching,))
                await host.report(service.name)


async def wait_until_exited(process: Process) -> None:
    """Wait for the exit itself: `wait` would wait for the pipes too, which a grandchild may hold open."""
    while process.returncode is None:  # noqa: ASYNC110 # asyncio has no event for it
        await asyncio.sleep(0.01)

"""A confined process while it runs: its output is read and capped, its time and its use are watched, its end is whole.

Whatever happens, cancelling too, nobody leaves here while a process of it lives.
"""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from toolspeak.agent.sandbox.disk import DiskBudget, DiskMeter
from toolspeak.agent.sandbox.output import Capped
from toolspeak.agent.sandbox.processes import ProcessTree, tree
from toolspeak.agent.sandbox.sandbox import Command, Ran, Start
from toolspeak.agent.sandbox.watch import ResourceWatch

_CHUNK: Final = 1 << 16
_PATIENCE: Final = 5.0
"""Seconds for the kernel to clear away what was killed."""
_GUARD_PATIENCE: Final = 30.0
"""Seconds for the guard to look through a large folder."""
_REFUSED: Final = 125


async def spawn(start: Start, *, stdin: int, stderr: int, limit: int = _CHUNK) -> Process:
    """Start a process whose output is a pipe. The plan has a descriptor: stdin belongs to the program inside."""
    plan = _memory(start.plan) if start.plan else None
    try:
        return await asyncio.create_subprocess_exec(
            *start.words,
            *(() if plan is None else (str(plan),)),
            stdin=stdin,
            stdout=PIPE,
            stderr=stderr,
            env=dict(start.env),
            cwd=start.folder or None,
            limit=limit,
            start_new_session=True,
            pass_fds=() if plan is None else (plan,),
        )
    finally:
        if plan is not None:
            os.close(plan)


def _memory(data: bytes) -> int:
    """Put data into a file that has no name, to be read from its beginning."""
    descriptor = os.memfd_create("plan", os.MFD_CLOEXEC)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def kill_all(process: Process, *, spares_guard: bool) -> None:
    """Kill all of it at once: each process, since the first alone may die before it has taken the others along.

    The guard, if it is to be spared, is only asked to end, so that it can clean up.
    """
    for pid in tree(process.pid) if process.returncode is None else ():
        how = signal.SIGTERM if spares_guard and pid == process.pid else signal.SIGKILL
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, how)
    if not spares_guard:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


async def end_process(process: Process, gone: Callable[[], Awaitable[None]], *, is_guarded: bool) -> None:
    """Kill what is left, and wait until it is `gone`. If a guard does not end, `journal.py` finishes its work."""
    for spares_guard in (True, False) if is_guarded else (False,):
        kill_all(process, spares_guard=spares_guard)
        with suppress(TimeoutError):
            async with asyncio.timeout(_GUARD_PATIENCE if spares_guard else _PATIENCE):
                return await gone()
    return None


async def run_process(start: Start, command: Command) -> Ran:
    """Run it to its end, or end it; a run that is far over its disk budget gets no process at all."""
    limits = command.limits
    budget = command.budget or DiskBudget(limits.folder_growth, limits.folder_files)
    meter = DiskMeter(budget, (command.folder, *start.scratch), limits.file_size)
    if refusal := await asyncio.to_thread(meter.begin):
        return Ran(_REFUSED, "", killed=refusal)
    process = await spawn(start, stdin=DEVNULL, stderr=STDOUT)
    family = ProcessTree(process.pid, start.is_guarded)
    child = _Child(process, command, ResourceWatch(family, limits, meter), is_guarded=start.is_guarded)
    try:
        await child.work()
    finally:
        try:
            await child.end()
        finally:
            meter.end(family)
    return child.ran


class _Child:
    def __init__(self, process: Process, command: Command, watch: ResourceWatch, *, is_guarded: bool) -> None:
        self._process: Final = process
        self._is_guarded: Final = is_guarded
        self._command: Final = command
        self._watch: Final = watch
        self._output: Final = Capped(command.limits.output)
        self._timed_out = False
        self._killed = ""

    async def work(self) -> None:
        """Read until nobody can write any more."""
        try:
            async with asyncio.timeout(self._command.seconds), asyncio.TaskGroup() as group:
                guard = group.create_task(self._guard())
                await self._read()
                guard.cancel()
        except TimeoutError:
            self._timed_out = True
            self._killed = f"it ran for {self._command.seconds:g} seconds"

    async def end(self) -> None:
        """Kill what is left, and wait until it is gone; what it had still to say is read."""
        await end_process(self._process, self._gone, is_guarded=self._is_guarded)

    async def _gone(self) -> None:
        await self._read()
        await self._process.wait()

    @property
    def ran(self) -> Ran:
        """Return how it ended."""
        status = self._process.returncode
        return Ran(-signal.SIGKILL if status is None else status, self._output.text, self._timed_out, self._killed)

    async def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 # we asked for it
        while chunk := await self._process.stdout.read(_CHUNK):
            self._output.take(chunk)
            if self._output.seen > self._command.limits.flood and not self._killed:
                self._stop(f"it wrote more than {self._command.limits.flood} bytes")

    async def _guard(self) -> None:
        while True:
            if why := await self._watch.breach():
                return self._stop(why)
            await self._watch.pause()

    def _stop(self, why: str) -> None:
        self._killed = why
        kill_all(self._process, spares_guard=self._is_guarded)

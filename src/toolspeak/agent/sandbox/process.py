"""A confined process while it runs: output capped, time and resources watched, ended with all that it has started.

    ran = await run_process(start, command)                   a command, to its end
    async with run_service(sandbox, service) as host:         a program that runs until it is stopped
        host.process.stdin, host.process.stdout               the caller writes and reads them
        host.why                                              why toolspeak or the guard has stopped it, if so

Neither function returns, cancelled or not, while a process that it has started lives.

Only head and tail of a command's output are ever held, so a flood costs time and no memory. Characters that would move
a terminal's cursor, set its title, turn the direction of text or hide in it are shown as escapes.
"""

import asyncio
import os
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from toolspeak.agent.sandbox import journal
from toolspeak.agent.sandbox.disk import DiskBudget, DiskMeter
from toolspeak.agent.sandbox.journal import JournalEntry
from toolspeak.agent.sandbox.processes import ProcessTree, tree
from toolspeak.agent.sandbox.resources import ResourceWatch
from toolspeak.agent.sandbox.sandbox import Command, Ran, Sandbox, Service, Start
from toolspeak.errors import BadField
from toolspeak.runtime.tether import tethered
from toolspeak.text.display import visible

_ENDS = re.compile(r"\r\n?")


class Capped:
    """Keeps the first and the last bytes of a stream, and counts the rest."""

    def __init__(self, most: int) -> None:
        """Hold at most so many bytes, and a chunk."""
        self._first: Final = most - most // 2
        self._last: Final = most // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.seen = 0

    def take(self, chunk: bytes) -> None:
        """Take more of the stream."""
        self.seen += len(chunk)
        room = self._first - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        del self._tail[: max(0, len(self._tail) - self._last)]

    @property
    def left_out(self) -> int:
        """Return how many bytes are not kept."""
        return self.seen - len(self._head) - len(self._tail)

    @property
    def text(self) -> str:
        """Return what was kept, harmless, with a note of what was not."""
        if not self.left_out:
            return harmless((self._head + self._tail).decode("utf-8", "replace"))
        head, tail = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
        return f"{harmless(head)}\n[… {self.left_out} bytes left out …]\n{harmless(tail)}"


def harmless(text: str) -> str:
    """Write control characters, and all that are not seen, as escapes; a lone carriage return ends a line."""
    return visible(_ENDS.sub("\n", text))


# ---------------------------------------------------------------- commands


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


# ---------------------------------------------------------------- services


_SERVICE_PAUSE: Final = 0.25
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
            await asyncio.sleep(_SERVICE_PAUSE)
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


# ---------------------------------------------------------------- without a sandbox


_UNCONFINED_ENV: Final = (("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("TERM", "dumb"))


class Unconfined:
    """Runs commands with all our rights. Time and output are limited all the same, and what it uses is watched."""

    @property
    def name(self) -> str:
        """Return what people call it."""
        return "unsafe"

    async def run(self, command: Command) -> Ran:
        """Run a command."""
        words = ("/bin/sh", "-c", command.text)
        return await run_process(Start(words, b"", (*_UNCONFINED_ENV, *command.env), str(command.folder)), command)

    @asynccontextmanager
    async def prepare(self, service: Service) -> AsyncGenerator[Start]:
        """Start a service as it is. On Linux its first process ends with ours; what it has started may stay."""
        yield Start(tuple(tethered(service.argv)), env=service.env, folder=service.cwd)

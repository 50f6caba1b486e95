"""Runs a confined process: caps its output, watches its time and resources, and ends every process that it started.

    ran = await run_process(start, command)                   runs a command to its end
    async with run_service(sandbox, service) as host:         runs a program until it is stopped
        host.process.stdin, host.process.stdout               the caller writes and reads them
        host.why                                              the reason if toolspeak or the guard has stopped it

Neither function returns, even if cancelled, while a process that it has started lives.

Only head and tail of a command's output are kept in memory, so a flood costs time but no memory. Characters that move
a terminal's cursor, set its title, change the direction of text or are invisible are shown as escapes.
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
        """Keep at most `most` bytes; while a chunk is taken, one chunk more is in memory."""
        self._first: Final = most - most // 2
        self._last: Final = most // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.seen = 0

    def take(self, chunk: bytes) -> None:
        """Add a chunk of the stream."""
        self.seen += len(chunk)
        room = self._first - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        del self._tail[: max(0, len(self._tail) - self._last)]

    @property
    def left_out(self) -> int:
        """Return the number of bytes that were dropped."""
        return self.seen - len(self._head) - len(self._tail)

    @property
    def text(self) -> str:
        """Return the kept bytes as displayable text, with a note where bytes were dropped."""
        if not self.left_out:
            return harmless((self._head + self._tail).decode("utf-8", "replace"))
        head, tail = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
        return f"{harmless(head)}\n[… {self.left_out} bytes left out …]\n{harmless(tail)}"


def harmless(text: str) -> str:
    """Replace control characters and invisible characters by escapes; a lone carriage return ends a line."""
    return visible(_ENDS.sub("\n", text))


# ---------------------------------------------------------------- commands


_CHUNK: Final = 1 << 16
_PATIENCE: Final = 5.0
"""Seconds to wait until the kernel has removed killed processes."""
_GUARD_PATIENCE: Final = 30.0
"""Seconds to wait for a guard that ends: it walks the folder, which may be large."""
_REFUSED: Final = 125


async def spawn(start: Start, *, stdin: int, stderr: int, limit: int = _CHUNK) -> Process:
    """Start a process whose stdout is a pipe. The plan is passed by descriptor: stdin belongs to the inner program."""
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
    """Write data to a memfd, and return its descriptor at position 0."""
    descriptor = os.memfd_create("plan", os.MFD_CLOEXEC)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def kill_all(process: Process, *, spares_guard: bool) -> None:
    """Send SIGKILL to every process of the tree: the first one may die before it has ended the others.

    With `spares_guard`, the guard gets SIGTERM instead, so that it can clean up the folder.
    """
    # SIGKILL, because a command may ignore SIGTERM. The tree and not only the process group: a daemon has left the
    # group.
    for pid in tree(process.pid) if process.returncode is None else ():
        how = signal.SIGTERM if spares_guard and pid == process.pid else signal.SIGKILL
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, how)
    if not spares_guard:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


async def end_process(process: Process, gone: Callable[[], Awaitable[None]], *, is_guarded: bool) -> None:
    """Kill the tree and await `gone()`. A guard that does not end in time is killed; `journal.py` finishes its work."""
    for spares_guard in (True, False) if is_guarded else (False,):
        kill_all(process, spares_guard=spares_guard)
        with suppress(TimeoutError):
            async with asyncio.timeout(_GUARD_PATIENCE if spares_guard else _PATIENCE):
                return await gone()
    return None


async def run_process(start: Start, command: Command) -> Ran:
    """Run a command until it ends or is stopped. A run that is far over its disk budget gets no process at all."""
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
        """Read output until every process that holds the pipe has closed it."""
        try:
            async with asyncio.timeout(self._command.seconds), asyncio.TaskGroup() as group:
                guard = group.create_task(self._guard())
                await self._read()
                guard.cancel()
        except TimeoutError:
            self._timed_out = True
            self._killed = f"it ran for {self._command.seconds:g} seconds"

    async def end(self) -> None:
        """Kill the remaining processes, read the rest of the output, and wait until they are gone."""
        await end_process(self._process, self._gone, is_guarded=self._is_guarded)

    async def _gone(self) -> None:
        await self._read()
        await self._process.wait()

    @property
    def ran(self) -> Ran:
        """Return the result."""
        status = self._process.returncode
        return Ran(-signal.SIGKILL if status is None else status, self._output.text, self._timed_out, self._killed)

    async def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 # `spawn` asks for a pipe
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
        # The guard survives and settles the folder; `end` waits for it.
        self._killed = why
        kill_all(self._process, spares_guard=self._is_guarded)


# ---------------------------------------------------------------- services


_SERVICE_PAUSE: Final = 0.25
"""Seconds between two checks of a service's resources: a service idles for days, and each check costs CPU time."""


class RunningService:
    """A running service."""

    def __init__(self, process: Process, entry: JournalEntry | None) -> None:
        """Take the first process of the service, and the journal entry of its guard."""
        self.process: Final = process
        self._entry: Final = entry
        self._breach = ""
        self._stopped = ""

    @property
    def is_guarded(self) -> bool:
        """Whether the process is a guard."""
        return self._entry is not None

    @property
    def why(self) -> str:
        """The reason why the service was stopped: a limit that it exceeded, or a forbidden file that it made."""
        return self._breach or self._stopped or (self._entry.stopped if self._entry is not None else "")

    async def watch(self, watch: ResourceWatch) -> None:
        """Check the service until it exits, and kill it once it exceeds a limit."""
        while self.process.returncode is None:
            if breach := await watch.breach():
                self._breach = breach
                return kill_all(self.process, spares_guard=self.is_guarded)
            await asyncio.sleep(_SERVICE_PAUSE)
        return None

    async def end(self) -> None:
        """Kill all its processes, and wait until they are gone."""
        await end_process(self.process, lambda: wait_until_exited(self.process), is_guarded=self.is_guarded)

    async def report(self, name: str) -> None:
        """Log the files in its folders that programs on the host obey: a service has no result that could list them."""
        if self._entry is None:
            return
        reports = await asyncio.to_thread(self._entry.reports)
        self._stopped = next((each.stopped for each in reports), "")
        self._entry.remove()
        journal.warn(reports, f"The service {name}")


@asynccontextmanager
async def run_service(sandbox: Sandbox, service: Service) -> AsyncGenerator[RunningService]:
    """Start a service, and end it on exit. Raises `OSError`, and `BadField` if the disk budget is exceeded."""
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
    """Wait for the exit alone: `Process.wait` also waits for the pipes, which a grandchild may keep open."""
    while process.returncode is None:  # noqa: ASYNC110 # asyncio has no event for the exit without the pipes
        await asyncio.sleep(0.01)


# ---------------------------------------------------------------- without a sandbox


_UNCONFINED_ENV: Final = (("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("TERM", "dumb"))


class Unconfined:
    """Runs commands with toolspeak's own rights. Time, output and resources are limited as in a sandbox."""

    @property
    def name(self) -> str:
        """Return the display name."""
        return "unsafe"

    async def run(self, command: Command) -> Ran:
        """Run a command with `/bin/sh`."""
        words = ("/bin/sh", "-c", command.text)
        return await run_process(Start(words, b"", (*_UNCONFINED_ENV, *command.env), str(command.folder)), command)

    @asynccontextmanager
    async def prepare(self, service: Service) -> AsyncGenerator[Start]:
        """Start a service without a sandbox. On Linux its first process dies with toolspeak; its children may not."""
        yield Start(tuple(tethered(service.argv)), env=service.env, folder=service.cwd)

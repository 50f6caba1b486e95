"""A confined process while it runs: its output is read and capped, its time and its use are watched, its end is whole.

Whatever happens, cancelling too, nobody leaves here while a process of it lives.
"""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from contextlib import suppress
from typing import Final, NamedTuple

from toolspeak.runtime.sandbox.output import Capped
from toolspeak.runtime.sandbox.sandbox import Command, Ran
from toolspeak.runtime.sandbox.watch import Watch, tree

_CHUNK: Final = 1 << 16
_PAUSE: Final = 0.1
"""Seconds between two looks at what it uses."""
_PATIENCE: Final = 5.0
"""Seconds for the kernel to clear away what was killed."""


class Start(NamedTuple):
    """How a confined process is begun: its words, and what it reads."""

    words: tuple[str, ...]
    input: bytes = b""
    env: tuple[tuple[str, str], ...] = ()
    folder: str = "/"


async def carry(start: Start, command: Command) -> Ran:
    """Run it to its end, or end it."""
    process = await asyncio.create_subprocess_exec(
        *start.words,
        stdin=PIPE if start.input else DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        env=dict(start.env),
        cwd=start.folder,
        start_new_session=True,
    )
    child = _Child(process, command)
    try:
        await child.work(start.input)
    finally:
        await child.end()
    return child.ran


class _Child:
    def __init__(self, process: Process, command: Command) -> None:
        self._process: Final = process
        self._command: Final = command
        self._output: Final = Capped(command.limits.output)
        self._timed_out = False
        self._killed = ""

    async def work(self, given: bytes) -> None:
        """Read until nobody can write any more."""
        try:
            async with asyncio.timeout(self._command.seconds), asyncio.TaskGroup() as group:
                guard = group.create_task(self._guard())
                await self._give(given)
                await self._read()
                guard.cancel()
        except TimeoutError:
            self._timed_out = True
            self._killed = f"it ran for {self._command.seconds:g} seconds"

    async def end(self) -> None:
        """Kill what is left, and wait until it is gone; what it had still to say is read."""
        self._kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._read()
                await self._process.wait()

    @property
    def ran(self) -> Ran:
        """Say how it ended."""
        status = self._process.returncode
        return Ran(-signal.SIGKILL if status is None else status, self._output.text, self._timed_out, self._killed)

    async def _give(self, given: bytes) -> None:
        if self._process.stdin is not None:
            with suppress(BrokenPipeError, ConnectionResetError):
                self._process.stdin.write(given)
                await self._process.stdin.drain()
            self._process.stdin.close()

    async def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 # we asked for it
        while chunk := await self._process.stdout.read(_CHUNK):
            self._output.take(chunk)
            if self._output.seen > self._command.limits.flood and not self._killed:
                self._stop(f"it wrote more than {self._command.limits.flood} bytes")

    async def _guard(self) -> None:
        watch = Watch(self._process.pid, self._command)
        while True:
            if why := await watch.breach():
                return self._stop(why)
            await asyncio.sleep(_PAUSE)

    def _stop(self, why: str) -> None:
        self._killed = why
        self._kill()

    def _kill(self) -> None:
        """Kill all of it at once: each process, since the first alone may die before it has taken the others along."""
        for pid in tree(self._process.pid) if self._process.returncode is None else ():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

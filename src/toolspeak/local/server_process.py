"""A child process in its own process group, tied to ours: it and everything it starts can be ended together.

Its output is read all the time, because a full pipe would block it; the last lines are kept.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from subprocess import Popen
from threading import Thread
from typing import IO, Final

from toolspeak.runtime.tether import tethered

_KEPT: Final = 16_384
_READ: Final = 65_536
_SOON: Final = 1.0


class Tail:
    """Reads a process's output to its end in a thread, and keeps the last bytes."""

    def __init__(self, process: Popen[bytes]) -> None:
        """Start to read. The process must have an unbuffered pipe as its output."""
        if process.stdout is None:
            raise ValueError("the process has no pipe for its output")
        self._kept = b""
        self._thread: Final = Thread(target=self._drain, args=(process.stdout,), name="llama-output", daemon=True)
        self._thread.start()

    def lines(self, count: int) -> list[str]:
        """Return the last lines that are not blank."""
        kept = self._kept.decode(errors="replace").splitlines()
        return [line for line in kept if line.strip()][-count:]

    def end(self) -> None:
        """Wait for the rest of the output of a process that has ended."""
        self._thread.join(_SOON)

    def _drain(self, pipe: IO[bytes]) -> None:
        with pipe:
            while chunk := pipe.read(_READ):
                self._kept = (self._kept + chunk)[-_KEPT:]


_LAST_LINES: Final = 12
_IS_WINDOWS: Final = sys.platform == "win32"


class Child:
    """A started process. Its input is a pipe that closes when we exit. The end of its output is kept."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it in another process group, since Ctrl-C is meant for us. Raises `OSError` without such a program."""
        self._process: Final = subprocess.Popen(  # noqa: S603 # the user's own program
            tethered(command),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=None if _IS_WINDOWS else 0,
        )
        self._tail: Final = Tail(self._process)
        self.pid: Final = self._process.pid

    @property
    def lives(self) -> bool:
        """Return whether it has not ended yet."""
        return self._process.poll() is None

    def ask_to_end(self) -> None:
        """Ask its group to end (SIGTERM)."""
        if self.lives:
            self._signal(hard=False)

    def kill(self) -> None:
        """Kill its group (SIGKILL)."""
        if self.lives:
            self._signal(hard=True)

    def wait(self) -> None:
        """Wait until it has ended."""
        self._process.wait()

    def ends_within(self, seconds: float) -> bool:
        """Wait at most this long; return whether it has ended."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def buried(self) -> tuple[str, list[str]]:
        """Wait for its end, and kill the rest of its group. Return the cause of its end, and its last lines."""
        status = self._process.wait()
        # Helpers of the server are in its group. They must not outlive it, and would keep the output pipe open.
        self._signal(hard=True)
        self._tail.end()
        if self._process.stdin is not None:
            self._process.stdin.close()
        return _cause(status), self._tail.lines(_LAST_LINES)

    def _signal(self, *, hard: bool) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.terminate()
            else:
                os.killpg(self.pid, signal.SIGKILL if hard else signal.SIGTERM)


def _cause(status: int) -> str:
    if status >= 0:
        return f"it ended with status {status}"
    name = next((each.name for each in signal.Signals if each.value == -status), str(-status))
    return f"it was ended by {name}"

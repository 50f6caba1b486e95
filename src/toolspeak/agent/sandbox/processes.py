"""Processes of a command, seen from outside: which there are, and how they are held still."""

import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Self

from toolspeak.runtime.clock import CLOCK

_STILL_SECONDS: Final = 1.0
_STEP: Final = 0.001
_STOPPED: Final = "TtZX"


class ProcessTree(NamedTuple):
    """The processes of one command, by the process that toolspeak has started."""

    first: int
    is_guarded: bool = False
    """The first process is the guard, which is part of toolspeak and not of the command."""

    def pids(self) -> list[int]:
        """Return the processes of the command that exist now."""
        found = tree(self.first)
        return found[1:] if self.is_guarded else found


class Stillness:
    """Stops processes, and lets them go on. `held` tells afterwards whether none has moved.

    A guard is never stopped. If toolspeak is killed in this moment, nothing lets the stopped processes go on; only the
    guard can end them then, and a stopped guard would not receive the signal that tells it so.
    """

    def __init__(self, families: Collection[ProcessTree]) -> None:
        """Take the commands that are to be held still."""
        self._families: Final = tuple(families)
        self._ours: Final = set[int]()
        self.pids: tuple[int, ...] = ()
        self._complete = False

    def __enter__(self) -> Self:
        late, known = CLOCK.monotonic() + _STILL_SECONDS, set[int]()
        while not self._complete and CLOCK.monotonic() < late:
            pids = set(self._all())
            for pid in pids:
                if not _is_stopped(pid):
                    self._stop(pid)
            self._complete = pids == known and all(map(_is_stopped, pids))
            known = pids
            self.pids = tuple(pids)
            if not self._complete:
                time.sleep(_STEP)  # noqa: TID251 # in a thread of its own
        return self

    @property
    def held(self) -> bool:
        """A timer can send SIGCONT to its own process, and a new process would not be in the list."""
        return self._complete and set(self.pids) == set(self._all()) and all(map(_is_stopped, self.pids))

    def __exit__(self, *_: object) -> None:
        for pid in self._ours:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGCONT)

    def _all(self) -> Iterator[int]:
        for family in self._families:
            yield from family.pids()

    def _stop(self, pid: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGSTOP)
            self._ours.add(pid)


def _is_stopped(pid: int) -> bool:
    return all(state(f"/proc/{pid}/task/{thread}") in _STOPPED for thread in threads(pid))


def state(thread: str) -> str:
    """Return the letter of a thread's state; X if it is gone."""
    return read_proc(f"{thread}/stat").rpartition(")")[2].strip()[:1] or "X"


def tree(pid: int) -> list[int]:
    """Return a process and all that come from it."""
    found, ahead = list[int](), [pid]
    while ahead:
        found.append(parent := ahead.pop())
        for thread in threads(parent):
            ahead += map(int, read_proc(f"/proc/{parent}/task/{thread}/children").split())
    return found


def threads(pid: int) -> list[str]:
    """Return the threads of a process; none if it is gone."""
    with suppress(OSError):
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 # ten times a second
    return []


def link(path: str) -> str:
    """Return where a link leads; nothing if it cannot be read."""
    with suppress(OSError):
        return os.readlink(path)  # noqa: PTH115 # as above
    return ""


def read_proc(path: str) -> str:
    """Return the text of a file; nothing if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

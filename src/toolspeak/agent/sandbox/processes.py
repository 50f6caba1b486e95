"""Inspects the processes of a command through /proc: lists them, stops them, and finds the files that they hold.

Files without a name are found as well: those held by a descriptor, by a mapping, or in the queue of a socket.
"""

import os
import signal
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Self

from toolspeak.runtime.clock import CLOCK

_STILL_SECONDS: Final = 1.0
_STEP: Final = 0.001
_STOPPED: Final = "TtZX"


class ProcessTree(NamedTuple):
    """The processes of one command, found from the first process that toolspeak has started."""

    first: int
    is_guarded: bool = False
    """Whether the first process is the guard, which is part of toolspeak and not of the command."""

    def pids(self) -> list[int]:
        """Return the ids of the command's processes that exist now."""
        found = tree(self.first)
        return found[1:] if self.is_guarded else found


class Stillness:
    """Context manager that stops processes with SIGSTOP, and continues them on exit.

    `held` tells at the end whether all of them stayed stopped. The guard is never stopped. If toolspeak is killed in
    this moment, only the guard can end the stopped processes, and a stopped guard would not receive the signal that
    tells it so.
    """

    def __init__(self, families: Collection[ProcessTree]) -> None:
        """Take the commands to stop."""
        self._families: Final = tuple(families)
        self._ours: Final = set[int]()
        self.pids: tuple[int, ...] = ()
        self._complete = False

    def __enter__(self) -> Self:
        # A process that is not stopped yet can fork. So this repeats until two looks in a row find the same processes,
        # all of them stopped. A command that forks faster than that for a second is not held, and `held` is False.
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
                time.sleep(_STEP)  # noqa: TID251 # this runs in a worker thread
        return self

    @property
    def held(self) -> bool:
        """Whether every process stayed stopped: a timer can send SIGCONT, and a new process is not in the list."""
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
    """Return the letter of a thread's state; X if the thread is gone."""
    return read_proc(f"{thread}/stat").rpartition(")")[2].strip()[:1] or "X"


def tree(pid: int) -> list[int]:
    """Return a process and all its descendants. The first process comes first."""
    found, ahead = list[int](), [pid]
    while ahead:
        found.append(parent := ahead.pop())
        for thread in threads(parent):
            ahead += map(int, read_proc(f"/proc/{parent}/task/{thread}/children").split())
    return found


def threads(pid: int) -> list[str]:
    """Return the ids of a process's threads; an empty list if the process is gone."""
    with suppress(OSError):
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 # ten times a second
    return []


def link(path: str) -> str:
    """Return the target of a link; an empty string if it cannot be read."""
    with suppress(OSError):
        return os.readlink(path)  # noqa: PTH115 # as above
    return ""


def read_proc(path: str) -> str:
    """Return the text of a file; an empty string if it cannot be read, for example because the process is gone."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def is_root() -> bool:
    """Return whether this process is root of the whole machine, and not only of a user namespace."""
    if os.geteuid() != 0:
        return False
    try:
        first, outside, *_ = Path("/proc/self/uid_map").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return True
    return (first, outside) == ("0", "0")


# ---------------------------------------------------------------- files without a name


BLOCK: Final = 512
UNKNOWN: Final = 1 << 62
"""Size of a file in flight, in bytes: larger than any disk, so the caller limits it to the unexplained loss."""
_CONNECTING: Final = "02"


class Held(NamedTuple):
    """Files without a name that processes hold."""

    disk: dict[int, int]
    """Size in bytes by inode, on a disk."""
    memory: dict[int, int]
    """Size in bytes by inode, in memory (memfd)."""
    mapped_disk: set[tuple[str, str]]
    """Device and inode of files that only a mapping holds and whose size cannot be read."""
    mapped_memory: set[tuple[str, str]]
    in_flight: bool
    """Whether a unix socket holds descriptors, or a process hides its own."""

    def hidden(self, mapped: Collection[tuple[str, str]], largest: int) -> int:
        """Return the upper bound of the bytes in files of unknown size; `largest` is the maximum size of one."""
        return UNKNOWN if self.in_flight else len(mapped) * largest


def held_files(pids: Iterable[int]) -> Held:
    """Return the files without a name that these processes hold."""
    held = _Holding()
    for pid in pids:
        held.look(pid)
    return Held(held.disk, held.memory, held.mapped_disk, held.mapped_memory, held.in_flight)


class _Holding:
    def __init__(self) -> None:
        self.disk, self.memory = dict[int, int](), dict[int, int]()
        self.mapped_disk, self.mapped_memory = set[tuple[str, str]](), set[tuple[str, str]]()
        self.in_flight = False
        self._networks: Final = {link("/proc/self/ns/net")}
        self._small: Final = set[int]()
        """Devices of the sandbox's own `/tmp` and `/dev/shm`: they are in memory and have a size limit."""

    def look(self, pid: int) -> None:
        for place in ("tmp", "dev/shm"):
            self._temporary(f"/proc/{pid}/root", place)
        for thread in threads(pid):
            # A thread may have its own descriptor table (clone without CLONE_FILES), so every thread is inspected.
            self._descriptors(f"/proc/{pid}/task/{thread}")
        self._take(f"/proc/{pid}/exe")
        self._maps(pid)
        self._backlog(pid)

    def _temporary(self, root: str, place: str) -> None:
        with suppress(OSError):
            device = os.stat(f"{root}/{place}").st_dev  # noqa: PTH116 # thousands of paths
            if device not in (os.stat("/").st_dev, os.stat("/tmp").st_dev):  # noqa: PTH116, S108 # the host's
                self._small.add(device)

    def _descriptors(self, thread: str) -> None:
        try:
            names = os.listdir(f"{thread}/fd")  # noqa: PTH208 # as above
        except PermissionError:  # the process has made itself unreadable (PR_SET_DUMPABLE), or it is dead
            self.in_flight |= state(thread) not in "ZX"
            return
        except OSError:
            return
        for name in names:
            self._take(f"{thread}/fd/{name}")
            if link(f"{thread}/fd/{name}").startswith("socket:"):
                self.in_flight |= _queued(f"{thread}/fdinfo/{name}")

    def _take(self, path: str) -> bool:
        with suppress(OSError):
            status = os.stat(path)  # noqa: PTH116 # as above
            if not stat.S_ISREG(status.st_mode) or status.st_nlink or status.st_dev in self._small:
                return True
            kind = self.memory if link(path).startswith("/memfd:") else self.disk
            kind[status.st_ino] = status.st_blocks * BLOCK
            return True
        return False

    def _maps(self, pid: int) -> None:
        small = {f"{os.major(device):02x}:{os.minor(device):02x}" for device in self._small}
        for line in read_proc(f"/proc/{pid}/maps").splitlines():
            if not line.endswith(" (deleted)"):
                continue
            place, _, _, device, inode, path = line.split(None, 5)
            if path.startswith(("/SYSV", "/dev/zero", "/anon_hugepage")) or device in small:
                continue
            known = int(inode) in self.disk or int(inode) in self.memory
            # Only the machine's root may follow these links. They give the exact size.
            if not known and not self._take(f"/proc/{pid}/map_files/{_shortest(place)}"):
                (self.mapped_memory if path.startswith("/memfd:") else self.mapped_disk).add((device, inode))

    def _backlog(self, pid: int) -> None:
        """Look for connections that are not accepted yet: before Linux 6.3 no descriptor shows their queue."""
        network = link(f"/proc/{pid}/ns/net")
        if network in self._networks:
            return
        self._networks.add(network)
        rows = (line.split() for line in read_proc(f"/proc/{pid}/net/unix").splitlines()[1:])
        self.in_flight |= any(row[5] == _CONNECTING for row in rows)


def _queued(path: str) -> bool:
    words = (line.split() for line in read_proc(path).splitlines())
    return any(line[0] == "scm_fds:" and line[1] != "0" for line in words if len(line) > 1)


def _shortest(place: str) -> str:
    """Format an address range as `map_files` does: `maps` pads it with zeros, `map_files` does not."""
    return "-".join(f"{int(part, 16):x}" for part in place.split("-"))

"""Files without a name that processes hold: by a descriptor, by a mapping, or in the queue of a socket."""

import os
import stat
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from toolspeak.agent.sandbox.processes import link, read_proc, state, threads

BLOCK: Final = 512
UNKNOWN: Final = 1 << 62
"""Bytes of a file in flight."""
_CONNECTING: Final = "02"


class Held(NamedTuple):
    """Files without a name that processes hold."""

    disk: dict[int, int]
    """Bytes by inode, on the disk."""
    memory: dict[int, int]
    """Bytes by inode, of files that are memory (memfd)."""
    mapped_disk: set[tuple[str, str]]
    """Device and inode of those that only a mapping holds, where their size cannot be read."""
    mapped_memory: set[tuple[str, str]]
    in_flight: bool
    """A unix socket holds descriptors, or a process does not show what it holds."""

    def hidden(self, mapped: Collection[tuple[str, str]], largest: int) -> int:
        """Return how many bytes may be in files of unknown size."""
        return UNKNOWN if self.in_flight else len(mapped) * largest


def held_files(pids: Iterable[int]) -> Held:
    """Return what processes hold that has no name."""
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
        """Devices of the sandbox's own `/tmp` and `/dev/shm`: memory, and limited in size."""

    def look(self, pid: int) -> None:
        for place in ("tmp", "dev/shm"):
            self._temporary(f"/proc/{pid}/root", place)
        for thread in threads(pid):
            # A thread may have descriptors of its own (clone without CLONE_FILES): each is asked.
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
        except PermissionError:  # it has made itself unreadable (PR_SET_DUMPABLE), or it is dead
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
            # Only the machine's root may follow these links; they are exact.
            if not known and not self._take(f"/proc/{pid}/map_files/{_shortest(place)}"):
                (self.mapped_memory if path.startswith("/memfd:") else self.mapped_disk).add((device, inode))

    def _backlog(self, pid: int) -> None:
        """Look for connections that are not accepted yet: before Linux 6.3 their queue shows at no descriptor."""
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
    """Write a range as `map_files` does: without the zeros that `maps` puts before."""
    return "-".join(f"{int(part, 16):x}" for part in place.split("-"))

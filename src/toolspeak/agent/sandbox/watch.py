"""What a command uses, seen from outside: the memory of all its processes, and what it puts on the disk.

Limits of single processes are the kernel's; here they are added up, ten times a second. First comes what is cheap to
ask (resident sizes, free memory, free space); only if that is suspicious, what is exact (shares of pages, files).
"""

import asyncio
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from toolspeak.agent.sandbox.disk import DOUBTS, DiskMeter
from toolspeak.agent.sandbox.open_files import BLOCK, held_files
from toolspeak.agent.sandbox.processes import ProcessTree, read_proc
from toolspeak.agent.sandbox.sandbox import SandboxLimits

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_LOOKS: Final = 0.1
"""Seconds between two looks."""
_GLANCES: Final = 5
"""Glances at the free space between two looks: a command can write 2.5 GB in a second, into the page cache."""
_SCARCE: Final = 10
"""Less than a tenth of the machine's memory left is scarce."""


class ResourceWatch:
    """Watches one command."""

    def __init__(self, family: ProcessTree, limits: SandboxLimits, meter: DiskMeter) -> None:
        """Begin to watch the processes of a command."""
        self._family: Final = family
        self._limits: Final = limits
        self._meter: Final = meter
        self._most_available = _available()
        self._doubts = 0

    async def breach(self) -> str:
        """Return what it uses too much of, if anything."""
        if self._takes_memory(self._family.pids()):
            return f"it took more than {self._limits.memory >> 20} MiB of memory"
        if not self._meter.is_suspicious(self._family):
            return ""
        return await asyncio.to_thread(self._meter.breach)

    async def pause(self) -> None:
        """Wait until the next look: a tenth of a second, or less if the disk loses more than the command may take."""
        for _ in range(_GLANCES):
            await asyncio.sleep(_LOOKS / _GLANCES)
            if self._meter.is_over():
                return

    def _takes_memory(self, pids: list[int]) -> bool:
        most, files = self._limits.memory, _memory_files(pids)
        left = _available()
        self._most_available = max(self._most_available, left)  # others may have freed as much
        lost = self._most_available - left
        own = shared = 0
        if sum(map(_resident, pids)) + files > most:
            own, shared = map(sum, zip(*map(_shares, pids), strict=True))
            if own + max(shared, files) > most:
                return True
        if lost <= most:
            return False
        # The machine has lost more than the command may have. A file of memory (memfd) that is in flight, or mapped
        # and closed, shows neither as resident nor as a descriptor: then the loss counts as the command's.
        held = held_files(pids)
        known = own + max(shared, sum(held.memory.values()))
        over = known + min(lost - known, held.hidden(held.mapped_memory, self._limits.file_size)) > most
        self._doubts = self._doubts + 1 if over else 0
        return self._doubts >= DOUBTS or left < _total() // _SCARCE


def _resident(pid: int) -> int:
    fields = read_proc(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if fields else 0


def _shares(pid: int) -> tuple[int, int]:
    """Return a process's memory: its own, and that of files of memory; of what is shared its share."""
    words = (line.split() for line in read_proc(f"/proc/{pid}/smaps_rollup").splitlines())
    sizes = {line[0]: int(line[1]) << 10 for line in words if line[0].startswith("Pss")}
    return (sizes["Pss_Anon:"], sizes["Pss_Shmem:"]) if "Pss_Anon:" in sizes else (_resident(pid), 0)


def _memory_files(pids: Iterable[int]) -> int:
    """Add up files that are memory and have no name (memfd), mapped or not."""
    sizes = dict[int, int]()
    for path in _descriptors(pids):
        with suppress(OSError):
            if os.readlink(path).startswith("/memfd:"):  # noqa: PTH115 # ten times a second
                status = os.stat(path)  # noqa: PTH116 # as above
                sizes[status.st_ino] = status.st_blocks * BLOCK
    return sum(sizes.values())


def _descriptors(pids: Iterable[int]) -> Iterator[str]:
    for pid in pids:
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 # as above
                yield f"/proc/{pid}/fd/{name}"


def _total() -> int:
    return _meminfo("MemTotal:")


def _available() -> int:
    return _meminfo("MemAvailable:")


def _meminfo(field: str) -> int:
    lines = (line.split() for line in read_proc("/proc/meminfo").splitlines())
    return next((int(words[1]) << 10 for words in lines if words[0] == field), 0)

"""What a command uses, seen from outside: memory of all its processes, and what it puts on the disk.

Limits of single processes are the kernel's; here they are added up, a few times in a second. First comes what is cheap
to ask (resident sizes, free space); only if that is suspicious, what is exact (shares of pages, the files themselves).
"""

import asyncio
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from toolspeak.runtime.clock import CLOCK
from toolspeak.runtime.sandbox.sandbox import Command

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_BLOCK: Final = 512
_SCARCE: Final = 10
"""Less than a tenth of the machine's memory left is scarce."""
FILES: Final = 500_000
"""New files of one command."""


class Used(NamedTuple):
    """What lies on a disk."""

    size: int
    files: int


class Watch:
    """Watches one command."""

    def __init__(self, pid: int, command: Command) -> None:
        """Begin to watch, with the process that all others come from."""
        self._pid: Final = pid
        self._folder: Final = command.folder
        self._limits: Final = command.limits
        self._began: Final = CLOCK.seconds() - 2  # file systems' clocks are coarse
        self._free = _free(command.folder)
        self._available: Final = _available()

    async def breach(self) -> str:
        """Say what it uses too much of, if anything."""
        pids = tree(self._pid)
        if self._takes_memory(pids):
            return f"it took more than {self._limits.memory >> 20} MiB of memory"
        if self._suspicious() and await asyncio.to_thread(self._fills_disk, pids):
            return f"it put more than {self._limits.folder_growth >> 20} MiB, or {FILES} files, on the disk"
        return ""

    def _takes_memory(self, pids: list[int]) -> bool:
        most, files = self._limits.memory, _memory_files(pids)
        if sum(map(_resident, pids)) + files > most:
            own, shared = map(sum, zip(*map(_shares, pids), strict=True))
            if own + max(shared, files) > most:
                return True
        total, left = _total(), _available()
        return self._available - left > most and left < total // _SCARCE

    def _suspicious(self) -> bool:
        now = _free(self._folder)
        return self._free.size - now.size > self._limits.folder_growth or self._free.files - now.files > FILES

    def _fills_disk(self, pids: Iterable[int]) -> bool:
        """Count what is new, and what was deleted but is still open; if it was others, begin anew from here."""
        size = files = 0
        disk = os.stat(self._folder).st_dev  # noqa: PTH116 # as everywhere here
        for status in (*_new(self._folder, self._began), *_deleted(pids, disk)):
            size, files = size + status.st_blocks * _BLOCK, files + 1
        if size > self._limits.folder_growth or files > FILES:
            return True
        now = _free(self._folder)
        self._free = Used(now.size + size, now.files + files)
        return False


def tree(pid: int) -> list[int]:
    """Return a process and all that come from it."""
    found, ahead = list[int](), [pid]
    while ahead:
        found.append(parent := ahead.pop())
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{parent}/task"):  # noqa: PTH208 # ten times a second
                ahead += map(int, _read(f"/proc/{parent}/task/{thread}/children").split())
    return found


def _free(folder: Path) -> Used:
    status = os.statvfs(folder)
    return Used(status.f_bavail * status.f_frsize, status.f_favail)


def _new(folder: Path, since: float) -> Iterator[os.stat_result]:
    """Give all that was made or changed; nobody can set that time back."""
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                status = os.lstat(os.path.join(place, name))  # noqa: PTH118 # half a million of them
                if status.st_ctime >= since:
                    yield status


def _deleted(pids: Iterable[int], disk: int) -> Iterator[os.stat_result]:
    seen = set[int]()
    for path in _descriptors(pids):
        with suppress(OSError):
            status = os.stat(path)  # noqa: PTH116 # it is no file's path
            if status.st_dev == disk and not status.st_nlink and status.st_ino not in seen:
                seen.add(status.st_ino)
                yield status


def _resident(pid: int) -> int:
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if fields else 0


def _shares(pid: int) -> tuple[int, int]:
    """Return a process's memory: its own, and that of files of memory; of what is shared its share."""
    words = (line.split() for line in _read(f"/proc/{pid}/smaps_rollup").splitlines())
    sizes = {line[0]: int(line[1]) << 10 for line in words if line[0].startswith("Pss")}
    return (sizes["Pss_Anon:"], sizes["Pss_Shmem:"]) if "Pss_Anon:" in sizes else (_resident(pid), 0)


def _memory_files(pids: Iterable[int]) -> int:
    """Add up files that are memory and have no name (memfd), mapped or not."""
    sizes = dict[int, int]()
    for path in _descriptors(pids):
        with suppress(OSError):
            if os.readlink(path).startswith("/memfd:"):  # noqa: PTH115 # ten times a second
                status = os.stat(path)  # noqa: PTH116 # as above
                sizes[status.st_ino] = status.st_blocks * _BLOCK
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
    lines = (line.split() for line in _read("/proc/meminfo").splitlines())
    return next((int(words[1]) << 10 for words in lines if words[0] == field), 0)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

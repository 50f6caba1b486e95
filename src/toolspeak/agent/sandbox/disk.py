"""What a run puts on the disk, counted so that no file can hide from it.

    budget = DiskBudget(2 << 30)      one for a run, shared by all its commands
    meter = DiskMeter(budget, …)      one for a command: `begin`, `is_suspicious` ten times a second, `breach`, `end`

An upper bound is cheap: how much the free space of the file system has gone down. While that is within the budget,
nothing is counted. Beyond it, the command is held still (SIGSTOP) and its files are counted, with names and without:

- files in the folder that are new or changed since the run began, by their inode;
- files without a name that a descriptor holds, of every thread, or a running program;
- files without a name that only a mapping holds: root reads their size, anybody else takes the largest allowed;
- files in flight: descriptors in the queue of a unix socket. Nothing tells their size.

The last two have taken 6,000 MiB past a limit that looked at descriptors only. A file of unknown size counts with all
that the file system has lost and no other file explains. If every file is known, other programs have taken the space,
and the command goes on.

Holding still is part of the proof. A thread in `fcntl(F_SETLKW)` holds a file whose descriptor another thread has
closed, and two processes can pass a file to and fro while they are looked at; a stopped thread is in no system call.
"""

import os
import stat
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from toolspeak.agent.sandbox.processes import BLOCK, UNKNOWN, ProcessTree, Stillness, held_files, read_proc
from toolspeak.runtime.clock import CLOCK


class Used(NamedTuple):
    """What lies on a disk."""

    size: int
    files: int


SIZE: Final = 2048 << 20
DEEPEST: Final = 256
"""Folders within folders. Paths end at 4096 bytes, so a count must walk by descriptors, and it has that many."""
_COARSE: Final = 2.0
"""Seconds that a file system's clock may be late."""
_PERIOD: Final = 0.1
"""Seconds after which files are counted although the free space looks well: others may have freed as much. With a full
second, a command wrote 320 MiB unseen while another one's files were deleted."""
_SHARE: Final = 20
"""Then counting takes at most a twentieth of the time."""
_PAUSES: Final = 4
"""A suspicious command is counted again after so many times what the last count took."""
_CHEAP: Final = 0.1
_NOTHING: Final = Used(1 << 20, 100)
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
DOUBTS: Final = 3
"""Looks in a row at which a file in flight is seen before it is taken for hidden: programs pass files in passing."""
_GLIMPSE: Final = 0.01
"""Seconds between these looks."""
_SPARE: Final = 4
"""A run that is over its budget by a quarter of it gets no further command; up to there, one may delete files."""


@dataclass(slots=True)
class DiskBudget:
    """What a run may add to its folder. It outlives each command; after a restart it is counted from files again."""

    size: int
    files: int = 500_000
    began: float = field(default_factory=lambda: float(CLOCK.seconds()))
    """When the run began (seconds since 1970): files that have changed since count as its own."""
    added: Used | None = None
    """At most so much is added already; None: not counted in this process yet."""
    base: Used | None = None
    """What the folder held when the run began, known from the first count on."""
    is_cheap: bool = False
    """The folder is so small that it is counted before every command."""
    live: set[ProcessTree] = field(default_factory=set[ProcessTree])
    """The commands that run now: what they hold counts together."""

    @property
    def refusal(self) -> str:
        """Return why no further command may run, if so."""
        most = Used(self.size + self.size // _SPARE, self.files + self.files // _SPARE)
        if self.added is None or (self.added.size <= most.size and self.added.files <= most.files):
            return ""
        size, files = self.added
        return (
            f"the run has added {size >> 20} MiB in {files} files to its folder, and its disk budget is "
            f"{self.size >> 20} MiB and {self.files} files. A person must delete files there, or raise disk_mib"
        )


def disk_budget(size: int = SIZE, began: float | None = None) -> DiskBudget:
    """Make the budget of a run that began then, or now."""
    return DiskBudget(size) if began is None else DiskBudget(size, began=began)


class _Count(NamedTuple):
    used: Used
    """What the run has added, by its files."""
    hidden: int
    """Bytes that may be in files of unknown size."""
    too_deep: bool


class DiskMeter:
    """Measures one command against the budget of its run."""

    def __init__(self, budget: DiskBudget, folders: Sequence[Path], largest: int) -> None:
        """Take the budget, the folders that the command can write to, and how large one file can be."""
        self._budget: Final = budget
        self._folders: Final = folders
        self._largest: Final = largest
        self._disks: Final = _disks(folders)
        self._peak = self._free = _free(self._disks)
        self._before = Used(0, 0)
        self._most = Used(budget.size, budget.files)
        self._next = self._period = 0.0
        self._drops = 0
        """Bytes that the disk has lost from look to look, whatever others have freed in between."""

    def begin(self) -> str:
        """Count what the run has added before, if need be; return why the command may not run. Call it in a thread."""
        budget = self._budget
        if budget.added is None or budget.is_cheap or _exceeds(budget.added, self._most):
            began = CLOCK.monotonic()
            budget.added = self._count(()).used
            budget.is_cheap = CLOCK.monotonic() - began < _CHEAP
        self._before = budget.added
        # A run that is over its budget can still delete files, as long as it adds nothing worth mentioning.
        self._most = Used(
            max(budget.size, self._before.size + _NOTHING.size), max(budget.files, self._before.files + _NOTHING.files)
        )
        self._peak = self._free = _free(self._disks)
        self._after(0.0)
        return budget.refusal

    def is_suspicious(self, family: ProcessTree) -> bool:
        """Return whether files must be counted (`breach`); cheap enough to ask ten times a second."""
        self._budget.live.add(family)
        now = CLOCK.monotonic()
        return now >= self._next if self._is_over(self._bound()) else now >= self._period

    def is_over(self) -> bool:
        """Return whether the disk has lost more than the command may take, and it is time to count."""
        return self._is_over(self._bound()) and CLOCK.monotonic() >= self._next

    def breach(self) -> str:
        """Count, and say what is too much, if anything. It may take seconds: call it in a thread."""
        began, bound = CLOCK.monotonic(), self._bound()
        if not self._is_over(bound):
            count = self._count(pid for family in (*self._budget.live,) for pid in family.pids())
            used = count.used
        else:
            used, count = self._judge(bound)
            self._before, self._peak, self._drops = used, self._free, 0
        self._after(CLOCK.monotonic() - began)
        return self._problem(used, count)

    def end(self, family: ProcessTree) -> None:
        """Note what is left of the command, which has ended."""
        self._budget.live.discard(family)
        bound, known = self._bound(), self._budget.added or Used(0, 0)
        self._budget.added = Used(max(bound.size, known.size), max(bound.files, known.files))

    def _bound(self) -> Used:
        """Return what the run has added at most: what it had, and what the disk has lost since its emptiest moment."""
        before, free = self._free, _free(self._disks)
        self._free = free
        self._drops += max(0, before.size - free.size)
        self._peak = Used(max(self._peak.size, free.size), max(self._peak.files, free.files))
        lost = Used(self._peak.size - free.size, self._peak.files - free.files)
        return Used(self._before.size + lost.size, self._before.files + lost.files)

    def _is_over(self, bound: Used) -> bool:
        return _exceeds(bound, self._most) or self._before.size + self._drops > self._most.size

    def _judge(self, bound: Used) -> tuple[Used, _Count]:
        """Count while nothing moves; what may hide counts with all that no file explains."""
        used, count = self._held_still(bound)
        for _ in range(DOUBTS - 1):
            if not count.hidden or not _exceeds(used, self._most) or _exceeds(count.used, self._most):
                break
            time.sleep(_GLIMPSE)  # noqa: TID251 # in a thread of its own
            used, count = self._held_still(bound)
        return used, count

    def _held_still(self, bound: Used) -> tuple[Used, _Count]:
        with Stillness(self._budget.live) as still:
            count = self._count(still.pids)
            if not still.held:
                count = count._replace(hidden=UNKNOWN)
        known, hidden = count.used, count.hidden
        # What hides may be all that was ever written: the space that others have freed in the meantime proves nothing.
        lost = max(bound.size, self._before.size + self._drops)
        size = known.size + min(max(0, lost - known.size), hidden)
        return Used(size, max(known.files, bound.files) if hidden == UNKNOWN else known.files), count

    def _problem(self, used: Used, count: _Count) -> str:
        if count.too_deep:
            return f"it nested folders more than {DEEPEST} deep, where its files cannot be counted"
        if not _exceeds(used, self._most):
            return ""
        size, files = self._budget.size >> 20, self._budget.files
        return f"the run put more than {size} MiB, or {files} files, on the disk; delete what is not needed"

    def _after(self, cost: float) -> None:
        now = CLOCK.monotonic()
        self._next = now + _PAUSES * cost
        self._period = now + max(_PERIOD, _SHARE * cost)

    def _count(self, pids: Iterable[int]) -> _Count:
        budget, walk, held = self._budget, _Walk(self._budget.began - _COARSE), held_files(pids)
        for folder in self._folders:
            walk.go(folder)
        if budget.base is None:
            budget.base = Used(walk.all.size - walk.new.size, walk.all.files - walk.new.files)
        size, files = max(0, walk.all.size - budget.base.size), max(0, walk.all.files - budget.base.files)
        size += sum(size for inode, size in held.disk.items() if inode not in walk.linked)
        hidden = UNKNOWN if walk.is_incomplete else held.hidden(held.mapped_disk, self._largest)
        return _Count(Used(size, files + len(held.disk)), hidden, walk.too_deep)


def _exceeds(used: Used, most: Used) -> bool:
    return used.size > most.size or used.files > most.files


# ---------------------------------------------------------------- files with a name


def _disks(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Return one place on each file system: the folders', and what is mounted below them."""
    places = [*folders]
    for line in read_proc("/proc/self/mountinfo").splitlines():
        place = Path(line.split()[4].replace("\\040", " "))
        places += [place] if any(place.is_relative_to(folder) for folder in folders) else []
    found = dict[int, Path]()
    for place in places:
        with suppress(OSError):
            found.setdefault(place.stat().st_dev, place)
    return tuple(found.values())


def _free(disks: Iterable[Path]) -> Used:
    seen = [os.statvfs(disk) for disk in disks]
    return Used(sum(each.f_bavail * each.f_frsize for each in seen), sum(each.f_ffree for each in seen))


class _Walk:
    """Adds up files and folders: all, and those that have changed since a moment.

    That is their ctime, which the kernel sets: no program can set it back.
    """

    def __init__(self, since: float) -> None:
        self._since: Final = since
        self._size = self._files = self._new_size = self._new_files = 0
        self.linked: Final = set[int]()
        """Inodes with more than one name, which count once."""
        self.too_deep = self.is_incomplete = False

    @property
    def all(self) -> Used:
        return Used(self._size, self._files)

    @property
    def new(self) -> Used:
        return Used(self._new_size, self._new_files)

    def go(self, folder: Path) -> None:
        try:
            found = os.open(folder, _FOLDER)
        except OSError:
            self.is_incomplete = True
        else:
            self._enter(found, 1)

    def _enter(self, folder: int, depth: int) -> None:
        try:
            with os.scandir(folder) as entries:
                below = [entry.name for entry in entries if self._is_folder(entry)]
            for name in below:
                self._below(folder, name, depth)
        finally:
            os.close(folder)

    def _below(self, folder: int, name: str, depth: int) -> None:
        if depth == DEEPEST:
            self.too_deep = True
            return
        try:
            found = os.open(name, _FOLDER, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError:  # the command has taken our right to read it (chmod 0), or we have no descriptor left
            self.is_incomplete = True
        else:
            self._enter(found, depth + 1)

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        with suppress(OSError):
            status = entry.stat(follow_symlinks=False)
            self._add(status, is_folder=stat.S_ISDIR(status.st_mode))
            return stat.S_ISDIR(status.st_mode)
        return False

    def _add(self, status: os.stat_result, *, is_folder: bool) -> None:
        if status.st_nlink > 1 and not is_folder:
            if status.st_ino in self.linked:
                return
            self.linked.add(status.st_ino)
        size = status.st_blocks * BLOCK
        self._size, self._files = self._size + size, self._files + 1
        if status.st_ctime >= self._since:
            self._new_size, self._new_files = self._new_size + size, self._new_files + 1

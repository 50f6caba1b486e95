"""Measures the disk space that a run takes, including files that have no name any more.

    budget = DiskBudget(2 << 30)      one per run, shared by all its commands
    meter = DiskMeter(budget, …)      one per command: `begin`, `is_suspicious` ten times a second, `breach`, `end`

The loss of free space on the file system is a cheap upper bound. While it is within the budget, the command runs on and
is only counted from time to time, since other programs may have freed as much. Beyond it, the command is stopped for a
moment (SIGSTOP) and its files are counted, with names and without:

- files in the folder that are new or changed since the run began, by their inode;
- unlinked files that are open in any thread, or are a running program;
- unlinked files that only a mapping holds: root reads their size, other users assume the largest allowed size;
- files in flight: descriptors in the queue of a unix socket. The kernel does not report their size.

In an attack, each of the last two ways put 6,000 MiB past a limit of 2 GiB that looked at open descriptors only. A
file of unknown size therefore counts with all lost space that no other file explains. If the size of every file is
known, the rest of the loss comes from other programs, and the command continues.

The limit belongs to the run because a limit per command can be multiplied: three commands left 5,881 MiB.

The count is only valid while the command is stopped. A thread in `fcntl(F_SETLKW)` holds a file whose descriptor
another thread has closed, and two processes can pass a file back and forth during the count. A stopped thread is in no
system call.
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
    """An amount of disk space: bytes and number of files."""

    size: int
    files: int


SIZE: Final = 2048 << 20
DEEPEST: Final = 256
"""Maximum nesting of folders. Paths end at 4096 bytes, so the walk uses one descriptor for each level."""
_COARSE: Final = 2.0
"""Seconds that a file system's timestamps may be late."""
_PERIOD: Final = 0.1
"""Seconds after which files are counted even if the free space looks unchanged: other programs may have freed as much.
With a period of one second, a command wrote 320 MiB unnoticed while files of another one were deleted."""
_SHARE: Final = 20
"""This periodic count takes at most a twentieth of the time."""
_PAUSES: Final = 4
"""A suspicious command is counted again after this many times the duration of the last count."""
_CHEAP: Final = 0.1
_NOTHING: Final = Used(1 << 20, 100)
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
DOUBTS: Final = 3
"""Consecutive looks that must see a file in flight before it counts as hidden: ordinary programs pass files too."""
_GLIMPSE: Final = 0.01
"""Seconds between these looks."""
_SPARE: Final = 4
"""A run that exceeds its budget by a quarter gets no further command. Up to there, commands may run to delete files."""


@dataclass(slots=True)
class DiskBudget:
    """The disk budget of a run, shared by its commands. After a restart, the usage is counted from the files again."""

    size: int
    files: int = 500_000
    began: float = field(default_factory=lambda: float(CLOCK.seconds()))
    """When the run began (seconds since 1970). Files that changed later belong to the run."""
    added: Used | None = None
    """Upper bound of what the run has added; None: not counted in this process yet."""
    base: Used | None = None
    """Content of the folder when the run began; set by the first count."""
    is_cheap: bool = False
    """Counting the folder is fast enough to do it before every command."""
    live: set[ProcessTree] = field(default_factory=set[ProcessTree])
    """The commands that are running now. Files that they hold count together."""

    @property
    def refusal(self) -> str:
        """Return the reason why no further command may run, or an empty string."""
        most = Used(self.size + self.size // _SPARE, self.files + self.files // _SPARE)
        if self.added is None or (self.added.size <= most.size and self.added.files <= most.files):
            return ""
        size, files = self.added
        return (
            f"the run has added {size >> 20} MiB in {files} files to its folder, and its disk budget is "
            f"{self.size >> 20} MiB and {self.files} files. A person must delete files there, or raise disk_mib"
        )


def disk_budget(size: int = SIZE, began: float | None = None) -> DiskBudget:
    """Return the budget of a run that began at `began`, or now."""
    return DiskBudget(size) if began is None else DiskBudget(size, began=began)


class _Count(NamedTuple):
    used: Used
    """Files of the run whose sizes are known."""
    hidden: int
    """Upper bound of the bytes in files of unknown size."""
    too_deep: bool


class DiskMeter:
    """Measures one command against the budget of its run."""

    def __init__(self, budget: DiskBudget, folders: Sequence[Path], largest: int) -> None:
        """Take the budget, the folders that the command can write to, and the maximum size of one file."""
        self._budget: Final = budget
        self._folders: Final = folders
        self._largest: Final = largest
        self._disks: Final = _disks(folders)
        self._peak = self._free = _free(self._disks)
        self._before = Used(0, 0)
        self._most = Used(budget.size, budget.files)
        self._next = self._period = 0.0
        self._drops = 0
        """Sum of all decreases of the free space between two looks, regardless of what others freed in between."""

    def begin(self) -> str:
        """Count what the run has added so far, if needed. Return the refusal, if any. Blocks: call it in a thread."""
        budget = self._budget
        if budget.added is None or budget.is_cheap or _exceeds(budget.added, self._most):
            began = CLOCK.monotonic()
            budget.added = self._count(()).used
            budget.is_cheap = CLOCK.monotonic() - began < _CHEAP
        self._before = budget.added
        # A run that is over its budget may still delete files, as long as it adds no more than `_NOTHING`.
        self._most = Used(
            max(budget.size, self._before.size + _NOTHING.size), max(budget.files, self._before.files + _NOTHING.files)
        )
        self._peak = self._free = _free(self._disks)
        self._after(0.0)
        return budget.refusal

    def is_suspicious(self, family: ProcessTree) -> bool:
        """Return whether `breach` must count files now. Cheap enough to call ten times a second."""
        self._budget.live.add(family)
        return self.is_over() or CLOCK.monotonic() >= self._period  # which is never before the next count is due

    def is_over(self) -> bool:
        """Return whether the disk has lost more than the command may take, and the next count is due."""
        return self._is_over(self._bound()) and CLOCK.monotonic() >= self._next

    def breach(self) -> str:
        """Count files, and return the problem if the budget is exceeded. May take seconds: call it in a thread."""
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
        """Record what the run has added, after the command has ended."""
        self._budget.live.discard(family)
        bound, known = self._bound(), self._budget.added or Used(0, 0)
        self._budget.added = Used(max(bound.size, known.size), max(bound.files, known.files))

    def _bound(self) -> Used:
        """Return the most that the run can have added: the last count, plus the loss since the peak of free space."""
        before, free = self._free, _free(self._disks)
        self._free = free
        # Files that other programs delete raise the free space, and would hide as much of what the command writes. The
        # peak and the sum of decreases keep what the difference to the start would lose.
        self._drops += max(0, before.size - free.size)
        self._peak = Used(max(self._peak.size, free.size), max(self._peak.files, free.files))
        lost = Used(self._peak.size - free.size, self._peak.files - free.files)
        return Used(self._before.size + lost.size, self._before.files + lost.files)

    def _is_over(self, bound: Used) -> bool:
        return _exceeds(bound, self._most) or self._before.size + self._drops > self._most.size

    def _judge(self, bound: Used) -> tuple[Used, _Count]:
        """Count while the command is stopped. A file of unknown size counts with all unexplained loss."""
        used, count = self._held_still(bound)
        for _ in range(DOUBTS - 1):
            if not count.hidden or not _exceeds(used, self._most) or _exceeds(count.used, self._most):
                break
            time.sleep(_GLIMPSE)  # noqa: TID251 # this runs in a worker thread
            used, count = self._held_still(bound)
        return used, count

    def _held_still(self, bound: Used) -> tuple[Used, _Count]:
        with Stillness(self._budget.live) as still:
            count = self._count(still.pids)
            # A process that moved during the count may have hidden any file, so the size of all is unknown.
            if not still.held:
                count = count._replace(hidden=UNKNOWN)
        known, hidden = count.used, count.hidden
        # Hidden files may hold everything that was ever written: space that others freed meanwhile hides as much of
        # the loss, so the sum of all decreases counts here and not the difference to the peak.
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
        # The first count of a run: what is older than the run is the base. Files that have changed since then are the
        # run's, also in a worker that has taken it over.
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
    """Return one path on each file system: those of the folders, and those mounted below them."""
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
    """Sums up files and folders: all of them, and those that have changed since a moment.

    The change is judged by ctime, not by mtime: the kernel sets ctime, and no program can set it back.
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
        except OSError:  # the command has removed read permission (chmod 0), or no descriptor is left
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

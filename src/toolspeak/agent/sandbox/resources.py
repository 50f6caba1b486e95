"""Limits the total resources of a command: with a control group where one can be created, by watching in every case.

The kernel's rlimits apply to single processes. `ResourceWatch` adds up the memory of all processes of a command and
their use of the disk, ten times a second. It reads the cheap values first (resident sizes, free memory, free space),
and the exact ones (proportional shares of pages, files) only if the cheap ones are suspicious.

A control group is created below toolspeak's own group, so that the command stays within the limits that apply to
toolspeak. In version 2 that works only where the own group delegates its controllers. Elsewhere the rlimits and the
watch are the limit.
"""

import asyncio
import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from toolspeak.agent.sandbox.disk import DOUBTS, DiskMeter
from toolspeak.agent.sandbox.processes import BLOCK, Held, ProcessTree, Stillness, held_files, is_root, read_proc
from toolspeak.agent.sandbox.sandbox import SandboxLimits

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_LOOKS: Final = 0.1
"""Seconds between two checks."""
_GLANCES: Final = 5
"""Reads of the free space between two checks: a command can write 2.5 GB per second into the page cache."""
_SCARCE: Final = 10
"""Memory is scarce if less than a tenth of the machine's total is available."""


class _MachineMemory(NamedTuple):
    total: int
    available: int
    shared: int


def _machine_memory() -> _MachineMemory:
    lines = (line.split() for line in read_proc("/proc/meminfo").splitlines())
    sizes = {words[0]: int(words[1]) << 10 for words in lines}
    return _MachineMemory(*(sizes.get(name, 0) for name in ("MemTotal:", "MemAvailable:", "Shmem:")))


class ResourceWatch:
    """Watches the resources of one command."""

    def __init__(self, family: ProcessTree, limits: SandboxLimits, meter: DiskMeter) -> None:
        """Take the processes of a command, its limits, and the meter of its disk budget."""
        self._family: Final = family
        self._limits: Final = limits
        self._meter: Final = meter
        memory = _machine_memory()
        self._most_available, self._shared = memory.available, memory.shared
        self._risen = 0
        """Sum of all increases of the machine's shared memory between two looks, regardless of what others freed."""
        self._doubts = 0

    async def breach(self) -> str:
        """Return which limit the command exceeds, or an empty string."""
        if self._takes_memory(self._family.pids()):
            return f"it took more than {self._limits.memory >> 20} MiB of memory"
        if not self._meter.is_suspicious(self._family):
            return ""
        return await asyncio.to_thread(self._meter.breach)

    async def pause(self) -> None:
        """Wait until the next check: a tenth of a second, or less if the disk loses more than the command may take."""
        for _ in range(_GLANCES):
            await asyncio.sleep(_LOOKS / _GLANCES)
            self._lost(_machine_memory())
            if self._meter.is_over():
                return

    def _takes_memory(self, pids: list[int]) -> bool:
        most, files = self._limits.memory, _memory_files(pids)
        machine = _machine_memory()
        lost = self._lost(machine)
        own = shared = 0
        # Resident sizes count a shared page once per process, so they are only an upper bound. The exact shares are
        # slow to read.
        if sum(map(_resident, pids)) + files > most:
            own, shared = map(sum, zip(*map(_shares, pids), strict=True))
            if own + max(shared, files) > most:
                return True
        if lost <= most:
            return False
        # The machine has lost more memory than the command may use. A memfd that is in flight, or mapped and closed,
        # is neither resident nor an open descriptor. If such files may exist, the loss counts as the command's. It must
        # be seen DOUBTS times in a row, unless memory is scarce: ordinary programs pass files too.
        held = held_files(pids)
        known, hidden = own + max(shared, sum(held.memory.values())), self._hidden(held)
        if not hidden:
            self._forget_rises()
        over = known + min(lost - known, hidden) > most
        self._doubts = self._doubts + 1 if over else 0
        return self._doubts >= DOUBTS or machine.available < machine.total // _SCARCE

    def _lost(self, machine: _MachineMemory) -> int:
        """Return the upper bound of the memory that the command may hold in files of unknown size."""
        # Memory that other programs free hides as much of what the command takes: a memfd of 480 MiB passed a limit
        # of 192 while another command was killed. The peak keeps what the difference to the start would lose, and the
        # sum of increases what the peak loses; memfds are shared memory, so this sum is nearly theirs alone. All of
        # them together are no larger than the machine's shared memory is now.
        self._most_available = max(self._most_available, machine.available)
        self._risen += max(0, machine.shared - self._shared)
        self._shared = machine.shared
        return max(self._most_available - machine.available, min(self._risen, machine.shared))

    def _hidden(self, held: Held) -> int:
        return held.hidden(held.mapped_memory, self._limits.file_size)

    def _forget_rises(self) -> None:
        """Start the sum of increases anew if the command, held still, has no file of unknown size: others grew."""
        if self._risen <= self._limits.memory:
            return
        with Stillness((self._family,)) as still:
            if not self._hidden(held_files(still.pids)) and still.held:
                self._risen = 0


def _resident(pid: int) -> int:
    fields = read_proc(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if fields else 0


def _shares(pid: int) -> tuple[int, int]:
    """Return a process's memory as (private, memfd), each page divided by the number of processes that share it."""
    words = (line.split() for line in read_proc(f"/proc/{pid}/smaps_rollup").splitlines())
    sizes = {line[0]: int(line[1]) << 10 for line in words if line[0].startswith("Pss")}
    return (sizes["Pss_Anon:"], sizes["Pss_Shmem:"]) if "Pss_Anon:" in sizes else (_resident(pid), 0)


def _memory_files(pids: Iterable[int]) -> int:
    """Return the total size of open memfds, mapped or not. Unmapped ones are in no process's resident size."""
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


# ---------------------------------------------------------------- control groups


ROOT: Final = Path("/sys/fs/cgroup")
_PREFIX: Final = "toolspeak"
_SPARE: Final = 8
"""Processes of bubblewrap and the launcher, which are in the group too."""
_numbers: Final = count()
_ours: Final[set[str]] = set()


@contextmanager
def confined(limits: SandboxLimits, root: Path = ROOT) -> Generator[tuple[str, ...]]:
    """Create control groups, yield their `cgroup.procs` files, and remove the groups on exit.

    The tuple is empty where no group can be created.
    """
    name = f"{_PREFIX}-{os.getpid()}-{next(_numbers)}"
    _ours.add(name)
    made = [group for parent, settings in _parents(limits, root) if (group := _made(parent / name, settings))]
    try:
        yield tuple(str(group / "cgroup.procs") for group in made)
    finally:
        _ours.discard(name)
        for group in made:
            _remove(group)


def _parents(limits: SandboxLimits, root: Path) -> Iterator[tuple[Path, dict[str, int]]]:
    """Yield the groups of this process, each with the settings for a group below it. Only root may create groups."""
    if not is_root():
        return
    pids = {"pids.max": limits.processes + _SPARE}
    for line in _own():
        _, controllers, path = line.split(":", 2)
        if controllers == "pids":
            yield root / controllers / path.strip("/"), pids
        elif controllers == "memory":
            most = limits.memory
            yield root / controllers / path.strip("/"), {"memory.limit_in_bytes": most}
        elif not controllers and _hands_down(below := root / path.strip("/")):
            yield below, {**pids, "memory.max": limits.memory, "memory.swap.max": 0}


def _own() -> list[str]:
    try:
        return Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _hands_down(group: Path) -> bool:
    with suppress(OSError):
        return {"pids", "memory"} <= set((group / "cgroup.subtree_control").read_text(encoding="ascii").split())
    return False


def _made(group: Path, settings: dict[str, int]) -> Path | None:
    """Create a group with these settings. Return None, and leave no group, if the kernel refuses any of it."""
    _sweep(group.parent)
    try:
        group.mkdir()
    except OSError:
        return None
    try:
        for name, value in settings.items():
            (group / name).write_text(str(value), encoding="ascii")
    except OSError:
        _remove(group)
        return None
    return group


def _sweep(parent: Path) -> None:
    """Remove groups of toolspeak processes that were killed, or that could not be removed while still in use."""
    for group in parent.glob(f"{_PREFIX}-*-*"):
        maker = group.name.split("-")[1]
        alive = group.name in _ours if maker == str(os.getpid()) else Path("/proc", maker).exists()
        if not alive:
            _remove(group)


def _remove(group: Path) -> None:
    with suppress(OSError):
        group.rmdir()

"""A control group for one command, where we may make one: the kernel itself then counts its memory and processes.

It is made below our own group, so that nothing gets out of the limits that we live in. In version 2 that works only
where our own group hands its controllers down. Where it does not work, the limits of processes and `watch.py` hold.
"""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

from toolspeak.agent.sandbox.rights import is_root
from toolspeak.agent.sandbox.sandbox import SandboxLimits

ROOT: Final = Path("/sys/fs/cgroup")
_PREFIX: Final = "toolspeak"
_SPARE: Final = 8
"""Processes of bubblewrap and the launcher."""
_numbers: Final = count()
_ours: Final[set[str]] = set()


@contextmanager
def confined(limits: SandboxLimits, root: Path = ROOT) -> Generator[tuple[str, ...]]:
    """Make groups, and give the files that take a process in; they are removed in the end."""
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
    """Give our own groups, with what to set below them."""
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
    """Make a group, or leave none behind."""
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
    """Remove what processes of ours have left that were killed, or could not remove yet."""
    for group in parent.glob(f"{_PREFIX}-*-*"):
        maker = group.name.split("-")[1]
        alive = group.name in _ours if maker == str(os.getpid()) else Path("/proc", maker).exists()
        if not alive:
            _remove(group)


def _remove(group: Path) -> None:
    with suppress(OSError):
        group.rmdir()

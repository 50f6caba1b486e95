"""How much CPU and memory a process and its children have used, read from /proc."""

import contextlib
import os
from collections.abc import Generator, Iterator
from pathlib import Path

RAN, WAITED = 0, 1
"""The places in a line of schedstat."""
URGENT = -15
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, by any of its threads; a process that is ending has none."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in read(task).split()]


def tree(pid: int) -> Iterator[int]:
    """Yield a process and all below it."""
    yield pid
    for child in children(pid):
        yield from tree(child)


def cpu_s(pid: int, *, lost_threads: bool = False) -> float:
    """Return the CPU seconds of a process tree, to the nanosecond.

    A thread that has ended is no longer in the sum of threads. Where threads come and go (`lost_threads`), the coarse
    counter of the process may be the larger one, and is then taken.
    """
    return sum(max(of_threads(one, RAN), of_process(one) if lost_threads else 0.0) for one in tree(pid))


def waited_s(pid: int) -> float:
    """Return how long a process tree was ready to run, but other processes had its core."""
    return sum(of_threads(one, WAITED) for one in tree(pid))


def of_threads(pid: int, place: int) -> float:
    stats = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int((read(stat).split() or "00")[place]) for stat in stats) / 1e9


def of_process(pid: int) -> float:
    fields = read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S if fields else 0.0


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process tree."""
    pages = sum(int(read(Path(f"/proc/{one}/statm")).split()[1]) for one in tree(pid))
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.contextmanager
def urgent() -> Generator[None]:
    """Give this session priority on a busy machine, where Linux weighs sessions and we may set the weight.

    That needs root. A process in its own CPU cgroup has no autogroup, and the file is empty or missing.
    """
    group = Path("/proc/self/autogroup")
    before = read(group).split()[-1:]
    if os.geteuid() or not before:
        yield
        return
    group.write_text(str(URGENT))
    try:
        yield
    finally:
        group.write_text(before[0])


def read(path: Path) -> str:
    """Return the text of a file of /proc, or nothing if its process or thread is gone."""
    try:
        return path.read_text()
    except OSError:
        return ""

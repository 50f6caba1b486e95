"""Counts requests and tokens for limits: in this process, or in memory that all workers of a gateway share.

The shared counts are plain numbers in anonymous maps, which the workers inherit from the process that forks them.
A limit is checked and counted under one lock of all workers, so it holds over all of them exactly. That takes
microseconds; a question to another process (Redis, or the supervisor over a socket) takes a hundred times as long, and
each request would wait for it.

Each worker has a column of its own: a worker that is killed leaves its open requests behind, and the supervisor clears
the column. Times are monotonic seconds, which all processes of a machine share.
"""

import logging
import mmap
import os
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from enum import IntEnum
from hashlib import blake2b
from pathlib import Path
from typing import Final, Protocol

from typing_extensions import override

from toolspeak.runtime.clock import Clock
from toolspeak.runtime.upstream_activity import UpstreamActivity

if sys.platform != "win32":
    import fcntl

_LOG: Final = logging.getLogger(__name__)
_ALL: Final = 0
"""The row of the requests of all clients."""
_ROWS: Final = 16_384
"""Subjects of limits that are counted over all workers. Memory that is never written costs nothing."""
_NAME: Final = 16
"""Bytes of the digest that stands for a subject."""
_TRIES: Final = 20_000
"""Attempts to take the lock, of about 2 µs each. It is held for microseconds, unless its owner is suspended."""
_UNLOCKED: Final = nullcontext()


class Meter(IntEnum):
    """What is limited by the minute."""

    REQUESTS = 0
    INPUT_TOKENS = 1
    OUTPUT_TOKENS = 2


class LimitTally(Protocol):
    """The requests that are open, and the rates of subjects: keys and models.

    Everything about a subject is called under `lock`.
    """

    def lock(self) -> AbstractContextManager[None]:
        """Keep other processes from counting while the block runs. It must not await, and is not reentrant."""
        ...

    @property
    def total(self) -> int:
        """The open requests of all clients."""
        ...

    def add_total(self, change: int) -> None:
        """Count a request that begins (1) or ends (-1) in this process."""
        ...

    def open_of(self, subject: str) -> int:
        """Return the open requests of a subject."""
        ...

    def add(self, subject: str, change: int) -> None:
        """Count a request of a subject that begins (1) or ends (-1) in this process."""
        ...

    def used_up_at(self, subject: str, meter: Meter) -> float:
        """Return when what a subject has spent would be used up, if it were spent evenly."""
        ...

    def spend(self, subject: str, meter: Meter, until: float) -> None:
        """Set that time."""
        ...


class ProcessTally:
    """Counts in this process alone."""

    def __init__(self) -> None:
        """Start with no request."""
        self.total = 0
        self._open: Final[dict[str, int]] = {}
        self._used_up: Final[dict[tuple[str, Meter], float]] = {}

    def lock(self) -> AbstractContextManager[None]:
        """Do nothing: the event loop runs one check at a time."""
        return _UNLOCKED

    def add_total(self, change: int) -> None:
        """Count a request."""
        self.total += change

    def open_of(self, subject: str) -> int:
        """Return the open requests of a subject."""
        return self._open.get(subject, 0)

    def add(self, subject: str, change: int) -> None:
        """Count a request of a subject."""
        self._open[subject] = self._open.get(subject, 0) + change

    def used_up_at(self, subject: str, meter: Meter) -> float:
        """Return when what the subject has spent would be used up."""
        return self._used_up.get((subject, meter), 0.0)

    def spend(self, subject: str, meter: Meter, until: float) -> None:
        """Set that time."""
        self._used_up[subject, meter] = until


class SharedTally:
    """Counts in memory that processes inherit by a fork. The supervisor makes it, and each worker sets its `column`.

    A subject gets its row from the first process that counts it: keys can be made while the gateway runs.
    """

    def __init__(self, lock_file: Path, columns: int, rows: int = _ROWS) -> None:
        """Reserve the memory for this many processes at one time, and this many subjects."""
        self.column = 0
        self._columns: Final = columns
        self._most: Final = rows
        self._rows: Final[dict[str, int | None]] = {}
        """The rows that this process knows; None for a subject that it counts alone."""
        self._alone: Final = ProcessTally()
        self._is_locked = False
        self._counts: Final = memoryview(mmap.mmap(-1, 4 * rows * columns)).cast("B").cast("i")
        self._used_up: Final = memoryview(mmap.mmap(-1, 8 * rows * len(Meter))).cast("B").cast("d")
        self._names: Final = mmap.mmap(-1, _NAME * rows)
        self._used_rows: Final = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("B").cast("i")
        self._used_rows[0] = 1  # the row of all
        self._lock_file: Final = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def clear(self, column: int) -> None:
        """Forget the open requests of a process that has ended."""
        with self.lock():
            for row in range(self._used_rows[0]):
                self._counts[row * self._columns + column] = 0

    @contextmanager
    def lock(self) -> Generator[None]:
        """Take the lock of all processes. The system releases it if this process dies.

        If its owner is suspended (SIGSTOP, a debugger), the block runs without it: counts may then be off by a request
        for each worker, which is better than a gateway that stands still.
        """
        self._is_locked = self._take()
        try:
            yield
        finally:
            if self._is_locked:
                self._is_locked = False
                fcntl.lockf(self._lock_file, fcntl.LOCK_UN)

    def _take(self) -> bool:
        # A record lock belongs to the process, so the inherited descriptor serves all of them; with flock, which
        # belongs to the open file, they would all hold it at once.
        for _ in range(_TRIES):
            with suppress(BlockingIOError, PermissionError):
                fcntl.lockf(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            os.sched_yield()
        return False

    @property
    def total(self) -> int:
        """The open requests of all clients, in all processes."""
        return self._sum(_ALL)

    def add_total(self, change: int) -> None:
        """Count a request of this process."""
        # No other process writes this cell while this one lives.
        self._counts[_ALL * self._columns + self.column] += change

    def open_of(self, subject: str) -> int:
        """Return the open requests of a subject, in all processes."""
        row = self._row(subject)
        return self._alone.open_of(subject) if row is None else self._sum(row)

    def add(self, subject: str, change: int) -> None:
        """Count a request of a subject in this process."""
        row = self._row(subject)
        if row is None:
            self._alone.add(subject, change)
        else:
            self._counts[row * self._columns + self.column] += change

    def used_up_at(self, subject: str, meter: Meter) -> float:
        """Return when what the subject has spent would be used up."""
        row = self._row(subject)
        return self._alone.used_up_at(subject, meter) if row is None else self._used_up[row * len(Meter) + meter]

    def spend(self, subject: str, meter: Meter, until: float) -> None:
        """Set that time."""
        row = self._row(subject)
        if row is None:
            self._alone.spend(subject, meter, until)
        else:
            self._used_up[row * len(Meter) + meter] = until

    def _row(self, subject: str) -> int | None:
        if subject not in self._rows:
            self._rows[subject] = self._shared_row(blake2b(subject.encode(), digest_size=_NAME).digest())
        return self._rows[subject]

    def _shared_row(self, name: bytes) -> int | None:
        """Find the row of a subject, or take the next one; None if there is none left."""
        used = self._used_rows[0]
        for row in range(1, used):
            if self._names[row * _NAME : (row + 1) * _NAME] == name:
                return row
        # Without the lock another process may be taking the same row, and two keys would share their limits.
        if not self._is_locked or used >= self._most:
            why = "there is no room" if used >= self._most else "another worker is suspended"
            _LOG.warning("the limits of one key or model are counted by this worker alone: %s", why)
            return None
        self._names[used * _NAME : (used + 1) * _NAME] = name
        self._used_rows[0] = used + 1
        return used

    def _sum(self, row: int) -> int:
        return sum(self._counts[row * self._columns : (row + 1) * self._columns])


class SharedActivity(UpstreamActivity):
    """The users' turns of all workers: probes and the doctor of one worker wait for the turns of the others."""

    def __init__(self, tally: SharedTally, clock: Clock) -> None:
        """Take a tally whose rows are upstreams. The time of a row is that of the end of its last turn."""
        super().__init__(clock)
        self._tally: Final = tally

    # Under the lock, for the first process that counts an upstream gives it its row.

    @override
    def _begin(self, place: str) -> None:
        with self._tally.lock():
            self._tally.add(place, 1)

    @override
    def _end(self, place: str, now: float) -> None:
        with self._tally.lock():
            self._tally.add(place, -1)
            self._tally.spend(place, Meter.REQUESTS, now)

    @override
    def _open_turns(self, place: str) -> int:
        with self._tally.lock():
            return self._tally.open_of(place)

    @override
    def _last_end(self, place: str) -> float:
        with self._tally.lock():
            return self._tally.used_up_at(place, Meter.REQUESTS)

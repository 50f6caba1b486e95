"""Counts requests for the limits of keys: in this process, or in memory that all workers of a gateway share.

The shared counts are plain numbers in two anonymous maps, which the workers inherit from the process that forks them.
A limit is checked and counted under one lock of all workers, so it holds over all of them exactly. That takes
microseconds; a question to another process (Redis, or the supervisor over a socket) takes a hundred times as long, and
each request would wait for it.

Each worker has a column of its own: a worker that is killed leaves its open requests behind, and the supervisor clears
the column. Times are monotonic seconds, which all processes of a machine share.
"""

import mmap
import os
import sys
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final, Protocol

from typing_extensions import override

from toolspeak.errors import BadConfig
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.upstream_activity import UpstreamActivity

if sys.platform != "win32":
    import fcntl

_ALL: Final = 0
"""The row of the requests of all tenants."""
_SPARE: Final = 4096
"""Rows for tenants that a later configuration adds. Memory that is never written costs nothing."""
_TRIES: Final = 20_000
"""Attempts to take the lock, of about 2 µs each. It is held for microseconds, unless its owner is suspended."""
_UNLOCKED: Final = nullcontext()


class RequestTally(Protocol):
    """The requests that are open, and the rates of tenants."""

    def lock(self) -> AbstractContextManager[None]:
        """Keep other processes from counting while the block runs. It must not await."""
        ...

    @property
    def total(self) -> int:
        """The open requests of all tenants."""
        ...

    def open_of(self, tenant: str) -> int:
        """Return the open requests of a tenant."""
        ...

    def add(self, tenant: str, change: int) -> None:
        """Count a request that begins (1) or ends (-1) in this process."""
        ...

    def used_up_at(self, tenant: str) -> float:
        """Return when the requests that a tenant has sent would be used up, if they came evenly."""
        ...

    def spend(self, tenant: str, until: float) -> None:
        """Set that time."""
        ...


class ProcessTally:
    """Counts in this process alone."""

    def __init__(self) -> None:
        """Start with no request."""
        self.total = 0
        self._open: Final[dict[str, int]] = {}
        self._used_up: Final[dict[str, float]] = {}

    def lock(self) -> AbstractContextManager[None]:
        """Do nothing: the event loop runs one check at a time."""
        return _UNLOCKED

    def open_of(self, tenant: str) -> int:
        """Return the open requests of a tenant."""
        return self._open.get(tenant, 0)

    def add(self, tenant: str, change: int) -> None:
        """Count a request."""
        self.total += change
        self._open[tenant] = self._open.get(tenant, 0) + change

    def used_up_at(self, tenant: str) -> float:
        """Return when the tenant's requests would be used up."""
        return self._used_up.get(tenant, 0.0)

    def spend(self, tenant: str, until: float) -> None:
        """Set that time."""
        self._used_up[tenant] = until


class SharedTally:
    """Counts in memory that processes inherit by a fork. The supervisor makes it, and each worker sets its `column`."""

    def __init__(self, lock_file: Path, tenants: int, columns: int) -> None:
        """Reserve the memory for this many tenants and some more, and for this many processes at one time."""
        self.column = 0
        self._columns: Final = columns
        self._most: Final = _SPARE + tenants
        self._rows: Final[dict[str, int]] = {}
        self._counts: Final = memoryview(mmap.mmap(-1, 4 * self._most * columns)).cast("B").cast("i")
        self._used_up: Final = memoryview(mmap.mmap(-1, 8 * self._most)).cast("B").cast("d")
        self._lock_file: Final = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def make_rows(self, tenants: Iterable[str]) -> None:
        """Give each tenant a row, before the processes that count it are forked. Raises `BadConfig` without room."""
        for tenant in tenants:
            row = self._rows.setdefault(tenant, len(self._rows) + 1)
            if row >= self._most:
                del self._rows[tenant]
                raise BadConfig(f"there is no room for further tenants ({len(self._rows)}). Restart the gateway.")

    def clear(self, column: int) -> None:
        """Forget the open requests of a process that has ended."""
        with self.lock():
            for row in range(len(self._rows) + 1):
                self._counts[row * self._columns + column] = 0

    @contextmanager
    def lock(self) -> Generator[None]:
        """Take the lock of all processes. The system releases it if this process dies.

        If its owner is suspended (SIGSTOP, a debugger), the block runs without it: counts may then be off by a request
        for each worker, which is better than a gateway that stands still.
        """
        taken = self._take()
        try:
            yield
        finally:
            if taken:
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
        """The open requests of all tenants, in all processes."""
        return self._sum(_ALL)

    def open_of(self, tenant: str) -> int:
        """Return the open requests of a tenant, in all processes."""
        return self._sum(self._rows[tenant])

    def add(self, tenant: str, change: int) -> None:
        """Count a request of this process."""
        # No other process writes these two cells while this one lives.
        self._counts[_ALL * self._columns + self.column] += change
        self._counts[self._rows[tenant] * self._columns + self.column] += change

    def used_up_at(self, tenant: str) -> float:
        """Return when the tenant's requests would be used up."""
        return self._used_up[self._rows[tenant]]

    def spend(self, tenant: str, until: float) -> None:
        """Set that time."""
        self._used_up[self._rows[tenant]] = until

    def _sum(self, row: int) -> int:
        return sum(self._counts[row * self._columns : (row + 1) * self._columns])


class SharedActivity(UpstreamActivity):
    """The users' turns of all workers: probes and the doctor of one worker wait for the turns of the others."""

    def __init__(self, tally: SharedTally, clock: Clock) -> None:
        """Take a tally whose rows are upstreams. The time of a row is that of the end of its last turn."""
        super().__init__(clock)
        self._tally: Final = tally

    # Without the lock: a process writes only its own count, and the later of two ends wins.

    @override
    def _begin(self, place: str) -> None:
        self._tally.add(place, 1)

    @override
    def _end(self, place: str, now: float) -> None:
        self._tally.add(place, -1)
        self._tally.spend(place, now)

    @override
    def _open_turns(self, place: str) -> int:
        return self._tally.open_of(place)

    @override
    def _last_end(self, place: str) -> float:
        return self._tally.used_up_at(place)

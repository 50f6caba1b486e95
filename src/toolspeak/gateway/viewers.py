"""Bounds what pages of the dashboard may take: live streams, and the work on one response.

A page that is left open in a browser holds its stream for days. So streams do not count among the requests that are
being answered (`limits.concurrent`), have a bound of their own, and end at once when the gateway shuts down. They also
end when the configuration is reloaded: the browser connects again, and its session is checked with the new keys.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, TypeVar

from toolspeak.gateway.exchange import Refused
from toolspeak.ir.failure import Failure, FailureKind

_MOST: Final = 64
_MOST_OF_TENANT: Final = 16
_WORKERS: Final = 2
T = TypeVar("T")


class Viewers:
    """The live streams that are open, and the threads that prepare pages."""

    def __init__(self) -> None:
        """Start with none."""
        self._of_tenant: Final[Counter[str]] = Counter()
        self._over = asyncio.Event()
        """Set when the open streams must end."""
        self._is_closed = False
        self._workers: Final = asyncio.Semaphore(_WORKERS)

    @contextmanager
    def enter(self, tenant: str) -> Generator[asyncio.Event]:
        """Count one stream while it is open; raises `Refused` (503) if there are too many.

        The event is set when the stream must end.
        """
        if self._is_closed or self._of_tenant.total() >= _MOST or self._of_tenant[tenant] >= _MOST_OF_TENANT:
            message = "too many pages watch live: close some of them, or reload this one to see what is new"
            raise Refused(Failure(FailureKind.TRANSIENT, message, 503, retry_after=30.0))
        self._of_tenant[tenant] += 1
        try:
            yield self._over
        finally:
            self._of_tenant[tenant] -= 1

    def restart(self) -> None:
        """End all streams; new ones may begin."""
        self._over.set()
        self._over = asyncio.Event()

    def close(self) -> None:
        """End all streams, and accept no more."""
        self._is_closed = True
        self._over.set()

    async def compute(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, which runs in a thread; few pages are prepared at one time."""
        async with self._workers:
            return await asyncio.to_thread(work)


async def passes(over: asyncio.Event, seconds: float) -> bool:
    """Wait; return whether the time has passed without the event."""
    try:
        async with asyncio.timeout(seconds):
            await over.wait()
    except TimeoutError:
        return True
    return False

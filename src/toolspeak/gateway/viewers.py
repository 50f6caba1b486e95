"""Counts the pages of the dashboard that watch a live stream, and ends them when the gateway shuts down.

A page that is left open in a browser holds a connection for days. So streams do not count among the requests that are
being answered (`limits.concurrent`), have a bound of their own, and must not hold up a shutdown.
"""

import asyncio
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from toolspeak.gateway.exchange import Refused
from toolspeak.ir.failure import Failure, FailureKind

_MOST: Final = 64
_MOST_OF_TENANT: Final = 16


class Viewers:
    """The live streams that are open."""

    def __init__(self) -> None:
        """Start with none."""
        self._of_tenant: Final[Counter[str]] = Counter()
        self._closing: Final = asyncio.Event()

    @contextmanager
    def enter(self, tenant: str) -> Generator[None]:
        """Count one stream while it is open; raises `Refused` (503) if there are too many."""
        if self._closing.is_set() or self._of_tenant.total() >= _MOST or self._of_tenant[tenant] >= _MOST_OF_TENANT:
            message = "too many pages watch live: close some of them, or reload this one to see what is new"
            raise Refused(Failure(FailureKind.TRANSIENT, message, 503, retry_after=30.0))
        self._of_tenant[tenant] += 1
        try:
            yield
        finally:
            self._of_tenant[tenant] -= 1

    async def pause(self, seconds: float) -> bool:
        """Wait; return whether the stream may go on. It may not once the gateway shuts down."""
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            return True
        return False

    def close(self) -> None:
        """End all streams, and accept no more."""
        self._closing.set()

"""Keeps the event loop responsive while large requests are read and written.

Decoding a request, compiling its schemas and writing its prompt are pure functions, and take time in proportion to the
request. The size of the body decides where they run:

    up to GATED bytes      at once
    up to THREADED bytes   on the event loop, one piece of work per pass: a burst of requests that arrive together
                           does not add up to one long pause for everybody's streams
    up to HUGE bytes       in a thread; the interpreter switches threads every few milliseconds
    above                  in another thread, so that an agent's 200 KB do not wait behind somebody's 30 MB

Threads share the interpreter lock, so one long call into C still stops the loop for as long as it lasts: that is why
`wires/limits.py` bounds what a request contains. Two threads at huge bodies would stop it for two such calls, one after
the other (four bodies of 28 MB at once: `/health` took 328 ms), and would be no faster: each kind has one thread.
"""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

T = TypeVar("T")
GATED: Final = 8 << 10
THREADED: Final = 64 << 10
HUGE: Final = 1 << 20
SWITCH_INTERVAL: Final = 0.001
"""Seconds after which a thread must offer the interpreter lock: the event loop waits for it after every poll."""


class Run(Protocol):
    """Runs a piece of work somewhere."""

    async def __call__(self, work: Callable[[], T]) -> T:
        """Return what the work returns, and raise what it raises; `StopIteration` cannot be raised through it."""
        ...


class Offload:
    """Decides where work runs. Nothing is started before it is needed."""

    def __init__(self) -> None:
        """Prepare both threads; each is started by the first work that it gets."""
        self._large: Final = ThreadPoolExecutor(1, "toolspeak-large-request")
        self._huge: Final = ThreadPoolExecutor(1, "toolspeak-huge-request")
        self._gate: Final = asyncio.Lock()
        self.waiting = 0
        """Pieces of work that wait for a thread, or run in one."""

    def for_size(self, body_bytes: int) -> Run:
        """Return where the work on a body of this size runs."""
        if body_bytes <= GATED:
            return at_once
        if body_bytes <= THREADED:
            return self._in_turn
        return self._in_large if body_bytes <= HUGE else self._in_huge

    def close(self) -> None:
        """Let the threads end; what still runs is not waited for."""
        for pool in (self._large, self._huge):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _in_turn(self, work: Callable[[], T]) -> T:
        async with self._gate:
            done = work()
            await asyncio.sleep(0)  # whatever else is ready comes before the next piece
            return done

    async def _in_large(self, work: Callable[[], T]) -> T:
        return await self._in_thread(self._large, work)

    async def _in_huge(self, work: Callable[[], T]) -> T:
        return await self._in_thread(self._huge, work)

    async def _in_thread(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        sys.setswitchinterval(SWITCH_INTERVAL)
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, work)
        finally:
            self.waiting -= 1


async def at_once(work: Callable[[], T]) -> T:
    """Run it here and now."""
    return work()

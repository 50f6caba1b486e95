"""Keeps the event loop responsive while large requests are read and written.

Decoding a request, compiling its schemas and writing its prompt are pure functions, and take time in proportion to the
request. The size of the body decides where they run:

    up to GATED bytes      at once
    up to THREADED bytes   on the event loop, some milliseconds of work per pass: a burst of requests that arrive
                           together does not add up to one long pause for all streams
    up to HUGE bytes       in a thread; the interpreter switches threads every few milliseconds
    above                  in another thread, so that the 200 KB of an agent do not queue up after a body of 30 MB

One legal request could stop all clients before: 120 tools with 200 KB of schema each delayed `/health` by 23 seconds.

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
_PASS: Final = 0.002
"""Seconds of a pass of the event loop after which no further piece of work begins."""
_TICK: Final = 1e-6
"""Seconds for which work counts that is shorter than the clock can tell."""
SWITCH_INTERVAL: Final = 0.001
"""Seconds after which a thread must offer the interpreter lock. The event loop needs the lock after every poll, so with
Python's default of 5 ms each pass could wait that long."""


class Run(Protocol):
    """Runs a function on the event loop or in a thread."""

    async def __call__(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, or raise its exception. `work` must not raise `StopIteration`."""
        ...


class Offload:
    """Decides where the work on a request runs, by the size of its body."""

    def __init__(self) -> None:
        """Prepare both threads; each starts with its first work."""
        self._large: Final = ThreadPoolExecutor(1, "toolspeak-large-request")
        self._huge: Final = ThreadPoolExecutor(1, "toolspeak-huge-request")
        self._gate: Final = asyncio.Lock()
        self._spent = 0.0
        """Seconds of work on medium requests in this pass of the event loop."""
        self.waiting = 0
        """Pieces of work that wait for a thread or run in one."""

    def for_size(self, body_bytes: int) -> Run:
        """Return the runner for work on a body of this size."""
        if body_bytes <= GATED:
            return at_once
        if body_bytes <= THREADED:
            return self._in_turn
        return self._in_large if body_bytes <= HUGE else self._in_huge

    def close(self) -> None:
        """Shut the threads down: queued work is cancelled, running work is not awaited."""
        for pool in (self._large, self._huge):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _in_turn(self, work: Callable[[], T]) -> T:
        # Twenty bodies that arrive in one pass of the event loop would otherwise be decoded in one long pause. But a
        # request whose tools are known takes a fraction of `_PASS`: it need not wait for another pass after each piece.
        if self._spent >= _PASS:
            async with self._gate:  # the pieces go on in the order in which they came
                while self._spent >= _PASS:  # noqa: ASYNC110 # the next pass sets it to zero
                    await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        if not self._spent:
            loop.call_soon(self._begin_pass)
        began = loop.time()
        try:
            return work()
        finally:
            self._spent += loop.time() - began or _TICK

    def _begin_pass(self) -> None:
        self._spent = 0.0

    async def _in_large(self, work: Callable[[], T]) -> T:
        return await self._in_thread(self._large, work)

    async def _in_huge(self, work: Callable[[], T]) -> T:
        return await self._in_thread(self._huge, work)

    async def _in_thread(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        sys.setswitchinterval(SWITCH_INTERVAL)  # here, so that a program without large requests keeps its own interval
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, work)
        finally:
            self.waiting -= 1


async def at_once(work: Callable[[], T]) -> T:
    """Run the work directly, in the calling task."""
    return work()

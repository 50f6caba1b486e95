"""Decides when CPython's garbage collector runs in a server: while no request is open, or when memory has grown.

The collector holds the event loop while it looks at objects, about a microsecond for each, and a stream has about 350.
By default it runs when so many more objects were made than freed. While streams begin and end that number goes up and
down, and meanwhile the youngest generation comes to hold the objects of all open streams: with 438 of them a collection
of it took 52 to 70 ms of CPU, and lower thresholds made it worse (`docs/scale.md`).

It finds next to nothing: a turn leaves no reference cycles, whether it ends, is cut, fails or is left by its client
(`tests/gateway/test_garbage.py`). What other libraries, or mistakes of ours, leave behind is freed here.
"""

import asyncio
import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from toolspeak.gateway.overload import resident_bytes
from toolspeak.runtime.clock import Clock

LOOK_EVERY: Final = 1.0
"""Seconds between two looks at requests and memory."""
_IDLE_PAUSE: Final = 30.0
"""Seconds at least between two collections while no request is open; each takes some ten milliseconds."""
_BUSY_PAUSE: Final = 10.0
"""Seconds at least between two collections while requests are open."""
_MADE: Final = 10_000
"""So many more objects must have been made than freed: fewer are hardly worth a look."""
_GROWTH: Final = 64 << 20
"""Bytes by which the memory must have grown, and also by half, to collect while requests are open."""
_THRESHOLDS: Final = (1_000_000, 10, 10)
"""For the collector itself: a last resort where the size of the memory is unknown, as outside Linux."""


def freeze_loaded() -> None:
    """Exempt all modules and tables that are loaded by now from every collection."""
    gc.collect()
    gc.freeze()


class Collector:
    """Runs the collector of one process."""

    def __init__(self, requests: Callable[[], int], clock: Clock) -> None:
        """Take what returns how many requests are being answered."""
        self._requests: Final = requests
        self._clock: Final = clock
        self._last = clock.monotonic()
        self._least = resident_bytes()
        """The smallest resident memory since the last collection."""
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def thresholds(self) -> Generator[None]:
        """Keep the collector from running by itself."""
        before = gc.get_threshold()
        gc.set_threshold(*_THRESHOLDS)
        try:
            yield
        finally:
            gc.set_threshold(*before)

    def start(self) -> None:
        """Look at requests and memory from now on; needs a running event loop."""
        self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY, self._look_on)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_on(self) -> None:
        self.look()
        self.start()

    def look(self) -> None:
        """Collect if nobody waits for it, or if memory has grown."""
        since = self._clock.monotonic() - self._last
        resident = resident_bytes()
        self._least = min(self._least, resident)
        if self._requests():
            is_due = since >= _BUSY_PAUSE and resident - self._least >= max(_GROWTH, self._least // 2)
        else:
            is_due = since >= _IDLE_PAUSE and gc.get_count()[0] >= _MADE
        if is_due:
            gc.collect()
            self._last, self._least = self._clock.monotonic(), resident_bytes()

"""Knows which upstreams serve users now, and for how long the others have been idle.

    with activity.serving("up"):        a user's turn runs
        ...
    activity.idle_seconds("up")         0 while a turn runs; then the time since the last one ended

Probes and the doctor take a server's time from users, so both ask here whether an upstream is idle. Only turns through
this gateway count: a program that asks the server directly is not seen.
"""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from math import inf
from typing import Final

from toolspeak.runtime.clock import CLOCK, Clock


class UpstreamActivity:
    """The users' turns of this process, by the name of the upstream. `gateway.tally` has those of all workers."""

    def __init__(self, clock: Clock = CLOCK) -> None:
        """Start with no turn."""
        self._clock: Final = clock
        self._open: Final[Counter[str]] = Counter()
        self._ends: Final[dict[str, float]] = {}
        """When the last turn ended, in monotonic seconds."""

    @contextmanager
    def serving(self, place: str) -> Generator[None]:
        """Count a user's turn while the block runs."""
        self._begin(place)
        try:
            yield
        finally:
            self._end(place, self._clock.monotonic())

    def idle_seconds(self, place: str) -> float:
        """Return for how long the upstream has had no turn: 0 while one runs, infinite if it never had one."""
        return 0.0 if self._open_turns(place) else self._clock.monotonic() - self._last_end(place)

    def _begin(self, place: str) -> None:
        self._open[place] += 1

    def _end(self, place: str, now: float) -> None:
        self._open[place] -= 1
        self._ends[place] = now

    def _open_turns(self, place: str) -> int:
        return self._open[place]

    def _last_end(self, place: str) -> float:
        return self._ends.get(place, -inf)

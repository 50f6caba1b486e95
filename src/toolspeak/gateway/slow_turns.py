"""Logs what a slow turn waits for, at growing intervals: one line for each turn and step (OBS-7).

An agent on a slow model once got no answer for 240 seconds, and the gateway said nothing until the client hung up.
"""

import logging
from typing import Final

from toolspeak.gateway.access_log import AccessEntry, safe_name, safe_words
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.turn_progress import TurnProgress

_LOG: Final = logging.getLogger(__name__)
STEPS: Final = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Seconds of a turn after which a line is due; after the last, one each time as many seconds have passed again."""
_FLOWING: Final = 10.0
"""Seconds. A stream whose client got something just now is not waiting for anything."""


class SlowTurn:
    """Watches one turn. It is asked when its next line is due, and needs no timer of its own."""

    def __init__(self, entry: AccessEntry, progress: TurnProgress, clock: Clock) -> None:
        """Take what is logged about the turn, and where its upstream notes how far it is."""
        self._entry: Final = entry
        self._progress: Final = progress
        self._clock: Final = clock
        self._step = 0

    async def beat(self) -> float:
        """Log a line if one is due, for a client that has got nothing yet; return in how many seconds to ask again."""
        return self.look(self._entry.started)

    def look(self, last: float) -> float:
        """Log a line if one is due; return the seconds to the next. `last` is when the client last got something."""
        now = self._clock.monotonic()
        if now >= self._due:
            while now >= self._due:
                self._step += 1
            if now - last >= _FLOWING:
                self._tell(now)
        return self._due - now

    @property
    def _due(self) -> float:
        further = max(0, self._step + 1 - len(STEPS))
        return self._entry.started + STEPS[min(self._step, len(STEPS) - 1)] + further * STEPS[-1]

    def _tell(self, now: float) -> None:
        entry = self._entry
        entry.was_slow = True
        waits = self._progress.describe(safe_name(entry.upstream))
        _LOG.info("%s after %.0f s: %s", entry.trace[:8], now - entry.started, safe_words(waits))

"""What traffic has shown about models: an upstream that refused tools need not be asked every turn.

A verdict is forgotten after a while, since servers are restarted with other settings. It lives in this process; another
one learns it for the price of one refused request.
"""

from typing import Final

from toolspeak.engine.outcome import Outcome
from toolspeak.facts.model import ModelFacts, Source, Support
from toolspeak.ir.failure import FailureKind
from toolspeak.runtime.clock import CLOCK, Clock

FRESH: Final = 600.0
"""Seconds that a verdict counts."""
_MOST = 4096


class Learned:
    """Verdicts about the models of one upstream."""

    def __init__(self, clock: Clock = CLOCK) -> None:
        """Know nothing."""
        self._clock: Final = clock
        self._refused: Final[dict[str, float]] = {}

    def facts(self, model: str, facts: ModelFacts) -> ModelFacts:
        """Return the facts, with what was learned, unless the user knows better."""
        until = self._refused.get(model)
        if until is None or self._clock.monotonic() >= until:
            return facts
        return facts.with_tools(Support.NONE, Source.MEASURED)

    def note(self, model: str, outcome: Outcome) -> None:
        """Take a turn into account."""
        if outcome.refused is not FailureKind.TOOLS_UNSUPPORTED:
            return
        if len(self._refused) >= _MOST:
            self._refused.pop(next(iter(self._refused)))
        self._refused[model] = self._clock.monotonic() + FRESH

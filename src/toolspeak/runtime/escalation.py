"""Asks a stronger model for the calls that a model gets wrong (POOL-6).

    [models.fast]
    escalate_to = "large"
    escalations_per_minute = 10

The engine decides when: the calls of a turn stay wrong after the questions that its settings allow, and nothing has
left that an answer of another model could contradict. This module decides how often.
"""

from collections.abc import Iterable
from typing import Final

from toolspeak.engine.effects import Open
from toolspeak.engine.plan import Plan
from toolspeak.ir.event import Event
from toolspeak.ir.tool import Tool
from toolspeak.runtime.recorder import TurnWatch

PER_MINUTE: Final = 10
_MINUTE: Final = 60.0


class EscalationLimit:
    """Allows so many escalations a minute; up to as many at once after a quiet minute."""

    def __init__(self, per_minute: int = PER_MINUTE) -> None:
        """Begin with a full minute's share."""
        self._per_minute: Final = per_minute
        self._left = float(per_minute)
        self._at: float | None = None

    def spend(self, now: float) -> bool:
        """Return whether an escalation is allowed, and count it; `now` is in monotonic seconds."""
        since = now - self._at if self._at is not None else 0.0
        self._at = now
        self._left = min(self._per_minute, self._left + since * self._per_minute / _MINUTE)
        if self._left < 1:
            return False
        self._left -= 1
        return True


class EscalatedWatch:
    """Adds the requests of the stronger model to the record of the turn, each with the reason."""

    def __init__(self, watch: TurnWatch, model: str, why: str) -> None:
        """Take the watch of the turn, the name of the stronger model, and why it is asked."""
        self._watch: Final = watch
        self._why: Final = f"escalated to {model}: {why}"

    def began(self, seed: int, remembered: Iterable[Tool]) -> None:
        """Record nothing: the seed of the turn is that of its own model."""

    def opened(self, effect: Open) -> None:
        """Note a request to the stronger model. Its plan is not that of the turn."""
        why = f"{self._why}; {effect.why}" if effect.why else self._why
        self._watch.opened(Open(effect.request, None, effect.tactic, why))

    def received(self, batch: list[Event]) -> None:
        """Note more of its answer."""
        self._watch.received(batch)

    def moved(self, place: str, model: str, plan: Plan) -> None:
        """Record nothing: a stronger model has no fallback."""

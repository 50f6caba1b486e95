"""What is known in this process about the models of one upstream: measured by probes, moved by traffic (CAP-4).

A refusal, a leaked call, an answer with nothing in it and a good native call each say something about tools, for the
requests that come later: a plan is frozen while its request runs. So does a constraint that was refused or ignored: the
model is then asked without for a while. Verdicts are forgotten in time, since servers are restarted with other
settings.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Final

from toolspeak.engine.outcome import Kept, Outcome
from toolspeak.engine.plan import Way
from toolspeak.engine.verdict import LIKELY, NOTHING_MEASURED, SURE, Verdict, measured
from toolspeak.facts.model import Constrain, ModelFacts, Support
from toolspeak.ir.failure import FailureKind
from toolspeak.runtime.cache import SHORT, lifetime
from toolspeak.runtime.clock import CLOCK, Clock

EMPTIES: Final = 3
"""Empty answers in a row, after which it is taken to swallow its calls."""
CLEAN: Final = 20
"""Native calls in a row, after which it is taken to leak no more."""
_MOST = 4096
_LEAKED = "a call came as text"


@dataclass(slots=True)
class _Known:
    """One model."""

    verdict: Verdict = NOTHING_MEASURED
    until: float = -inf
    check: float = -inf
    """When to look whether others know better."""
    empties: int = 0
    clean: int = 0
    moved: bool = False
    """Traffic has moved the verdict, and nobody else was told."""
    free_until: float = -inf
    """Until when no constraint is asked for: it was refused, or ignored."""


class Learned:
    """Verdicts about the models of one upstream."""

    def __init__(self, clock: Clock = CLOCK) -> None:
        """Know nothing."""
        self._clock: Final = clock
        self._models: Final[dict[str, _Known]] = {}

    def facts(self, model: str, facts: ModelFacts) -> ModelFacts:
        """Return the facts, with what was measured and learned where they know nothing."""
        known, now = self._models.get(model), self._clock.monotonic()
        if known is None:
            return facts
        if now < known.free_until and facts.constraint is None:
            facts = replace(facts, constraint=Constrain.OFF)
        return measured(facts, known.verdict) if now < known.until else facts

    def verdict(self, model: str) -> Verdict:
        """Return what is held to be true at present."""
        known = self._models.get(model)
        return known.verdict if known and self._clock.monotonic() < known.until else NOTHING_MEASURED

    def is_due(self, model: str) -> bool:
        """Tell whether it is time to look for a better verdict."""
        known = self._models.get(model)
        return known is None or self._clock.monotonic() >= known.check

    def keep(self, model: str, verdict: Verdict, check: float) -> None:
        """Take a verdict that a probe has found, here or elsewhere; look again after `check` seconds.

        It is looked for a new one before the old one is over, and a probe that broke off takes nothing away.
        """
        known, now = self._known(model), self._clock.monotonic()
        lasts = lifetime(verdict)
        known.check, known.moved = now + min(check, lasts / 2), False
        if not (verdict.stopped and verdict.tools is Support.UNKNOWN and now < known.until):
            known.verdict, known.until = verdict, now + lasts

    def later(self, model: str, seconds: float) -> None:
        """Look again only after a while: somebody else is at it."""
        self._known(model).check = self._clock.monotonic() + seconds

    def merged(self, model: str, verdict: Verdict) -> Verdict:
        """Return what a probe has found, unless traffic knows better: a leak that was seen is not probed away."""
        before = self.verdict(model)
        if verdict.tools is Support.NATIVE and before.tools is Support.LEAKS:
            return _told(verdict, Support.LEAKS, SURE, _LEAKED)
        return verdict

    def take_moved(self, model: str) -> Verdict | None:
        """Return the verdict that others should be told of, once."""
        known = self._models.get(model)
        if known is None or not known.moved:
            return None
        known.moved = False
        return known.verdict

    def note(self, model: str, outcome: Outcome) -> None:
        """Take a turn into account."""
        if outcome.constraint in (Kept.IGNORED, Kept.REFUSED):
            self._known(model).free_until = self._clock.monotonic() + SHORT
        if not _says_something(outcome):
            return
        known = self._known(model)
        known.empties = known.empties + outcome.empty if not (outcome.native or outcome.rescued) else 0
        known.clean = 0 if outcome.rescued else known.clean + outcome.native
        before = self.verdict(model)
        after = _moved(before, outcome, known)
        if after is not before:
            known.verdict, known.moved = after, True
            known.until = self._clock.monotonic() + lifetime(after)

    def _known(self, model: str) -> _Known:
        """Return a model's entry, made if it is new; the oldest one goes where there are too many (P7)."""
        if model not in self._models and len(self._models) >= _MOST:
            self._models.pop(next(iter(self._models)))
        return self._models.setdefault(model, _Known())


def _says_something(outcome: Outcome) -> bool:
    refused = outcome.refused is FailureKind.TOOLS_UNSUPPORTED
    sent = outcome.plan.way in (Way.NATIVE, Way.FALLBACK)
    return refused or (sent and bool(outcome.native or outcome.rescued or outcome.empty))


def _moved(verdict: Verdict, outcome: Outcome, known: _Known) -> Verdict:
    """Return the verdict after a turn; the same one if the turn says nothing new."""
    if outcome.refused is FailureKind.TOOLS_UNSUPPORTED:
        return _told(verdict, Support.NONE, SURE, "a request with tools was refused")
    if outcome.rescued:
        return _told(verdict, Support.LEAKS, SURE, _LEAKED)
    if known.empties >= EMPTIES:
        return _told(verdict, Support.NONE, LIKELY, f"{EMPTIES} answers with nothing in them came one after the other")
    if outcome.native and (verdict.tools is not Support.LEAKS or known.clean >= CLEAN):
        return _told(verdict, Support.NATIVE, SURE, "a call came as a call")
    return verdict


def _told(verdict: Verdict, tools: Support, confidence: float, reason: str) -> Verdict:
    return verdict if verdict.tools is tools and tools is not Support.NONE else verdict.told(tools, confidence, reason)

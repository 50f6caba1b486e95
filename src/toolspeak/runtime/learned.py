"""Facts about the models of one upstream, in this process: measured by probes, questioned by traffic (CAP-4, CAP-6).

Verdicts are shared by all tenants, so no single client may move one. A turn is evidence: it counts once, however many
hidden requests it took, and under the tenant that asked. Evidence that contradicts a verdict asks for a neutral probe,
whose result decides. Without a probe a verdict moves only when the evidence reaches the quorum: several turns of
several tenants. A library has one owner, so there one turn is a quorum.

What one request met is remembered for those like it: tools or a constraint that were refused, for the tenant and its
tools, whose schemas may be the reason. So an agent pays for a refusal once. A refusal that may be an echo is remembered
for its conversation only: it can only come from the client that it is remembered for. (The prompt of Claude Code
contains "does not support", as do the refusals of Ollama.)

A plan is frozen while its request runs, and verdicts expire: servers are restarted with other settings. All times are
monotonic, so that a change of the wall clock neither keeps nor ends a verdict.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from math import inf
from typing import Final

import msgspec

from toolspeak.engine.memory import memory_key
from toolspeak.engine.outcome import Kept, Outcome
from toolspeak.engine.plan import Way
from toolspeak.engine.verdict import LIKELY, NOTHING_MEASURED, SURE, Verdict, measured
from toolspeak.facts.model import Constrain, ModelFacts, Support
from toolspeak.ir.event import Failed
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.request import Request
from toolspeak.runtime.cache import NEGATIVE, SHORT, lifetime
from toolspeak.runtime.clock import CLOCK, Clock

EMPTIES: Final = 3
"""Turns in a row with an empty answer, after which the upstream is taken to swallow its calls."""
CLEAN: Final = 20
"""Turns in a row with native calls, after which a model that leaked is taken to leak no more."""
DOUBT_REST: Final = SHORT
"""Seconds between two probes of one model that traffic asks for, whatever clients do."""
_MOST = 4096
_MOST_TENANTS = 16
_LEAKED = "a call came as text"


@dataclass(frozen=True, slots=True)
class Quorum:
    """Evidence that moves a verdict without a probe: this many turns, of this many tenants."""

    turns: int
    tenants: int


OWNER: Final = Quorum(1, 1)
"""One program asks for itself."""
SHARED: Final = Quorum(3, 2)
"""Many clients share the facts. Without keys they are all one tenant, so that only a probe moves a verdict."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a turn comes from: its tenant and its request."""

    tenant: str = ""
    request: Request | None = field(default=None, repr=False)

    def tools_key(self, model: str) -> str:
        """Return what requests of this tenant with the same tools have in common."""
        tools = self.request.tools if self.request else ()
        return _digest(model, self.tenant, [(tool.name, tool.parameters) for tool in tools])

    def conversation_key(self, model: str) -> str:
        """Return what the requests of one conversation have in common: its opening, and everything but the messages."""
        request = self.request
        if request is None:
            return _digest(model, self.tenant)
        return _digest(model, memory_key(request, self.tenant), replace(request, messages=()))


def _digest(*values: object) -> str:
    return sha256(msgspec.json.encode(values, enc_hook=repr)).hexdigest()


UNKNOWN_ORIGIN: Final = Origin()


class _Sign(StrEnum):
    """What a turn says about tools; the values are the reasons that a verdict gives."""

    REFUSED = "a request with tools was refused"
    LEAKED = _LEAKED
    EMPTY = f"{EMPTIES} answers with nothing in them came one after the other"
    NATIVE = "a call came as a call"


_SUPPORT: Final = {
    _Sign.REFUSED: (Support.NONE, SURE),
    _Sign.LEAKED: (Support.LEAKS, SURE),
    _Sign.EMPTY: (Support.NONE, LIKELY),
    _Sign.NATIVE: (Support.NATIVE, SURE),
}
_ENDS: Final = {
    _Sign.NATIVE: (_Sign.REFUSED, _Sign.EMPTY),
    _Sign.LEAKED: (_Sign.NATIVE, _Sign.EMPTY),
}
"""Evidence that another sign makes void: it must come in a row."""


@dataclass(slots=True)
class _Evidence:
    """Turns that say the same."""

    turns: int = 0
    tenants: set[str] = field(default_factory=set[str])
    last: float = -inf

    def add(self, tenant: str, now: float) -> None:
        """Count one turn; after a long silence, from the beginning."""
        if now - self.last > NEGATIVE:
            self.turns = 0
            self.tenants.clear()
        self.turns, self.last = self.turns + 1, now
        if len(self.tenants) < _MOST_TENANTS:
            self.tenants.add(tenant)


@dataclass(slots=True)
class _Known:
    """One model."""

    verdict: Verdict = NOTHING_MEASURED
    until: float = -inf
    check: float = -inf
    """When to look whether other processes know better."""
    moved: bool = False
    """A quorum has moved the verdict, and other processes were not told."""
    evidence: dict[_Sign, _Evidence] = field(default_factory=dict[_Sign, _Evidence])
    doubted: bool = False
    """Traffic contradicts the verdict: a probe is to decide."""
    next_doubt: float = -inf


class _Recent:
    """Keys of requests that met something; forgotten after a while, or the oldest first (P7)."""

    def __init__(self) -> None:
        self._until: Final[dict[str, float]] = {}

    def put(self, key: str, now: float) -> None:
        """Remember one."""
        self._until.pop(key, None)
        if len(self._until) >= _MOST:
            self._until.pop(next(iter(self._until)))
        self._until[key] = now + SHORT

    def holds(self, key: Callable[[str], str], model: str, now: float) -> bool:
        """Return whether a request with this key met it lately.

        To make a key costs a hash of the request, so that none is made unless something was met lately.
        """
        while self._until and now >= next(iter(self._until.values())):  # the first to be put is the first to end
            self._until.pop(next(iter(self._until)))
        return bool(self._until) and key(model) in self._until


class Learned:
    """Verdicts about the models of one upstream."""

    def __init__(self, clock: Clock = CLOCK, quorum: Quorum = OWNER) -> None:
        """Know nothing; `quorum` is what moves a verdict without a probe."""
        self._clock: Final = clock
        self._quorum: Final = quorum
        self._models: Final[dict[str, _Known]] = {}
        self._unconstrained: Final = _Recent()
        self._refused: Final = _Recent()
        """By tools."""
        self._refused_echo: Final = _Recent()
        """By conversation."""

    @property
    def is_shared(self) -> bool:
        """Return whether clients that do not trust each other use these facts."""
        return self._quorum.tenants > 1

    def facts(self, model: str, facts: ModelFacts, origin: Origin = UNKNOWN_ORIGIN) -> ModelFacts:
        """Return the facts, with what was measured and learned where they know nothing."""
        verdict, now = self.verdict(model), self._clock.monotonic()
        if facts.constraint is None and self._unconstrained.holds(origin.tools_key, model, now):
            facts = replace(facts, constraint=Constrain.OFF)
        refused = self._refused.holds(origin.tools_key, model, now)
        if refused or self._refused_echo.holds(origin.conversation_key, model, now):
            verdict = verdict.told(*_SUPPORT[_Sign.REFUSED], _Sign.REFUSED.value)
        return facts if verdict is NOTHING_MEASURED else measured(facts, verdict)

    def verdict(self, model: str) -> Verdict:
        """Return what is held to be true at present."""
        known = self._models.get(model)
        return known.verdict if known and self._clock.monotonic() < known.until else NOTHING_MEASURED

    def is_due(self, model: str) -> bool:
        """Return whether it is time to look for a better verdict."""
        known = self._models.get(model)
        return known is None or known.doubted or self._clock.monotonic() >= known.check

    def keep(self, model: str, verdict: Verdict, check: float) -> None:
        """Take a verdict that a probe has found, here or elsewhere; look again after `check` seconds.

        A new verdict is looked for before the old one is over. A probe that broke off takes nothing away.
        """
        known, now = self._known(model), self._clock.monotonic()
        lasts = lifetime(verdict)
        known.check, known.moved = now + min(check, lasts / 2), False
        if verdict.stopped and verdict.tools is Support.UNKNOWN and now < known.until:
            return
        if verdict != known.verdict or now >= known.until:
            known.evidence.clear()
        known.verdict, known.until = verdict, now + lasts

    def later(self, model: str, seconds: float) -> None:
        """Look again only after a while."""
        self._known(model).check = self._clock.monotonic() + seconds

    def merged(self, model: str, verdict: Verdict) -> Verdict:
        """Return what a probe has found, unless traffic knows better: a leak that was seen is not probed away."""
        before = self.verdict(model)
        if verdict.tools is Support.NATIVE and before.tools is Support.LEAKS:
            return verdict.told(Support.LEAKS, SURE, _LEAKED)
        return verdict

    def take_moved(self, model: str) -> Verdict | None:
        """Return the verdict that other processes should be told of, once."""
        known = self._models.get(model)
        if known is None or not known.moved:
            return None
        known.moved = False
        return known.verdict

    def take_doubt(self, model: str) -> bool:
        """Return whether traffic asks for a probe, once; the next such probe has to wait for `DOUBT_REST`."""
        known = self._models.get(model)
        if known is None or not known.doubted:
            return False
        known.doubted, known.next_doubt = False, self._clock.monotonic() + DOUBT_REST
        known.evidence.clear()
        return True

    def note(self, model: str, outcome: Outcome, origin: Origin = UNKNOWN_ORIGIN, *, is_real: bool = True) -> None:
        """Take a turn into account; of a model that may be invented, only for requests like it."""
        now = self._clock.monotonic()
        if _met_no_constraint(outcome):
            self._unconstrained.put(origin.tools_key(model), now)
        if outcome.refused is FailureKind.TOOLS_UNSUPPORTED and origin.request is not None:
            if outcome.echoed:
                self._refused_echo.put(origin.conversation_key(model), now)
            else:
                self._refused.put(origin.tools_key(model), now)
        sign = _sign_of(outcome)
        if sign is not None and (is_real or not self.is_shared):
            self._count(model, sign, origin.tenant, now)

    def _count(self, model: str, sign: _Sign, tenant: str, now: float) -> None:
        """Add to the evidence; move the verdict, or ask for a probe, if it is enough."""
        known = self._known(model)
        for other in _ENDS.get(sign, ()):
            known.evidence.pop(other, None)
        evidence = known.evidence.setdefault(sign, _Evidence())
        evidence.add(tenant, now)
        verdict, (tools, confidence) = self.verdict(model), _SUPPORT[sign]
        needed = _turns_needed(sign, verdict)
        if evidence.turns >= max(needed, self._quorum.turns) and len(evidence.tenants) >= self._quorum.tenants:
            if verdict.tools is not tools or tools is Support.NONE:
                known.verdict, known.moved = verdict.told(tools, confidence, sign.value), True
                known.until = now + lifetime(known.verdict)
        elif (tools is Support.NONE) != (verdict.tools is Support.NONE):  # only this difference changes a plan
            measured_before = verdict.tools is not Support.UNKNOWN
            # tools that were refused are not sent again by the same client: the first refusal must be enough
            at_once = sign is _Sign.REFUSED or not measured_before
            enough = evidence.turns >= (needed if at_once else max(needed, self._quorum.turns))
            wanted = tools is Support.NONE or measured_before
            known.doubted = known.doubted or (enough and wanted and now >= known.next_doubt)

    def _known(self, model: str) -> _Known:
        """Return a model's entry, made if it is new; the oldest one is dropped where there are too many (P7)."""
        if model not in self._models and len(self._models) >= _MOST:
            self._models.pop(next(iter(self._models)))
        return self._models.setdefault(model, _Known())


def _sign_of(outcome: Outcome) -> _Sign | None:
    """Return what a turn says about native tools; hidden retries of one turn make one sign."""
    if outcome.refused is FailureKind.TOOLS_UNSUPPORTED:
        return None if outcome.echoed else _Sign.REFUSED
    if outcome.plan.way not in (Way.NATIVE, Way.FALLBACK):
        return None
    if outcome.rescued:
        return _Sign.LEAKED
    if outcome.native:
        return _Sign.NATIVE
    return _Sign.EMPTY if outcome.empty else None


def _turns_needed(sign: _Sign, verdict: Verdict) -> int:
    if sign is _Sign.EMPTY:
        return EMPTIES
    return CLEAN if sign is _Sign.NATIVE and verdict.tools is Support.LEAKS else 1


def _met_no_constraint(outcome: Outcome) -> bool:
    """Return whether a constraint was ignored, or refused by an upstream that answered without it."""
    if outcome.constraint is Kept.REFUSED:
        return not (outcome.events and isinstance(outcome.events[-1], Failed))
    return outcome.constraint is Kept.IGNORED

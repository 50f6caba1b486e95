"""Holds this process's verdicts about an upstream's models: probes set them, traffic questions them (CAP-4, CAP-6).

All tenants share the verdicts, so no single client may change one. One client once could: an upstream echoed the field
`"user": "this does not support tools"` in its error, and every client's next requests were emulated for ten minutes.
Now a turn is evidence: it counts once, however many hidden requests it took, and under its tenant. Evidence against a
verdict causes a neutral probe, whose result decides. Without a probe a verdict changes only when the evidence reaches
the quorum: several turns of several tenants. A library has one owner, so there one turn is a quorum.

A refusal is also remembered for similar requests. If an upstream refused tools or a constraint, requests of the same
tenant with the same tools (their schemas may be the reason) are sent without. So an agent pays for a refusal once. A
refusal that may echo the request is remembered for its conversation only, so that it affects only its own client. (The
prompt of Claude Code contains "does not support", as do the refusals of Ollama.)

A server may also drop tools in silence. The model's word for it ("I have no tools") is remembered for the conversation,
since a request can ask for these words, and for the tenant and tools only if the tenant has a key. Too few tokens in
the upstream's count of the prompt are no words of a client: seen twice, they are remembered for the tenant and tools.

The form of calls that a model prefers to the one that it is taught is remembered in the same way, for the tenant and
the tools: a client can ask its model for any form.

A plan is frozen while its request runs, and verdicts expire, because servers are restarted with other settings. All
times are monotonic: a change of the wall clock neither extends nor ends a verdict.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from math import inf
from typing import Final

import msgspec

from toolspeak.engine.effects import Kept, Outcome
from toolspeak.engine.memory import ToolMemory, memory_key
from toolspeak.engine.plan import Way
from toolspeak.engine.verdict import LIKELY, NOTHING_MEASURED, SURE, Verdict, measured
from toolspeak.facts.families import family_facts
from toolspeak.facts.model import Constrain, ModelFacts, Support
from toolspeak.ir.event import Failed
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.request import Request
from toolspeak.runtime.cache import NEGATIVE, SHORT, lifetime
from toolspeak.runtime.clock import CLOCK, Clock

EMPTIES: Final = 3
"""Turns in a row with an empty answer, after which the upstream is assumed to drop calls that it cannot parse."""
CLEAN: Final = 20
"""Turns in a row with native calls, after which a model that leaked calls as text is assumed to leak no more."""
DROPS: Final = 2
"""Turns in a row that show tools to be dropped in silence, after which they are assumed to be (CAP-7)."""
RELAPSES: Final = 3
"""Turns in a row with calls in the same form, not the taught one, after which the model is taught that form (INL-9)."""
DOUBT_REST: Final = SHORT
"""Seconds between two probes of one model that traffic causes: clients must not be able to start them at will."""
_MOST = 4096
"""Models, and remembered requests of each kind; the oldest is dropped first."""
_MOST_TENANTS = 16
"""Tenants counted for one piece of evidence; no quorum needs more."""
_LEAKED = "a call came as text"


@dataclass(frozen=True, slots=True)
class Quorum:
    """The evidence that changes a verdict without a probe: this many turns, of this many tenants."""

    turns: int
    tenants: int


OWNER: Final = Quorum(1, 1)
"""For a library: a single program uses the facts."""
SHARED: Final = Quorum(3, 2)
"""For a gateway: many clients share the facts. Without keys they are one tenant, so only a probe changes a verdict."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a turn comes from: its tenant and its request."""

    tenant: str = ""
    request: Request | None = field(default=None, repr=False)

    def tools_key(self, model: str) -> str:
        """Return a key that is equal for requests of this tenant with the same tools."""
        tools = self.request.tools if self.request else ()
        # The description too: a client that pads it to forge a count of tokens (CAP-7) must meet no other client's key.
        return _digest(model, self.tenant, [(tool.name, tool.description, tool.parameters) for tool in tools])

    def conversation_key(self, model: str) -> str:
        """Return a key that is equal for requests of one conversation: its opening, and all but its messages."""
        request = self.request
        if request is None:
            return _digest(model, self.tenant)
        return _digest(model, memory_key(request, self.tenant), replace(request, messages=()))


def _digest(*values: object) -> str:
    return sha256(msgspec.json.encode(values, enc_hook=repr)).hexdigest()


UNKNOWN_ORIGIN: Final = Origin()


class _Sign(StrEnum):
    """What a turn shows about native tools. The values are the reasons in verdicts."""

    REFUSED = "a request with tools was refused"
    LEAKED = _LEAKED
    EMPTY = f"{EMPTIES} answers with nothing in them came one after the other"
    DROPPED = "the model did not see the tools that were sent"
    NATIVE = "a call came as a call"


_SUPPORT: Final = {
    _Sign.REFUSED: (Support.NONE, SURE),
    _Sign.LEAKED: (Support.LEAKS, SURE),
    _Sign.EMPTY: (Support.NONE, LIKELY),
    _Sign.DROPPED: (Support.NONE, LIKELY),
    _Sign.NATIVE: (Support.NATIVE, SURE),
}
_ENDS: Final = {
    _Sign.NATIVE: (_Sign.REFUSED, _Sign.EMPTY, _Sign.DROPPED),
    _Sign.LEAKED: (_Sign.NATIVE, _Sign.EMPTY, _Sign.DROPPED),
}
"""The evidence that a sign deletes: evidence must come in a row. One native call, for example, disproves that the
upstream refuses tools or drops calls."""


@dataclass(slots=True)
class _Evidence:
    """Turns in a row with the same sign."""

    turns: int = 0
    tenants: set[str] = field(default_factory=set[str])
    last: float = -inf

    def add(self, tenant: str, now: float) -> None:
        """Count one turn. After `NEGATIVE` seconds without one, the count starts again."""
        if now - self.last > NEGATIVE:
            self.turns = 0
            self.tenants.clear()
        self.turns, self.last = self.turns + 1, now
        if len(self.tenants) < _MOST_TENANTS:
            self.tenants.add(tenant)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The verdict of a probe, of this process or another, and when this process got it in monotonic seconds."""

    verdict: Verdict
    at: float


@dataclass(slots=True)
class _Known:
    """The state of one model. Times are monotonic seconds.

    A verdict changes in three ways: `keep` sets the result of a probe, a quorum of traffic moves it (`moved`), or it
    expires (`until`). Evidence that is not a quorum only sets `doubted`, which makes a probe due.
    """

    verdict: Verdict = NOTHING_MEASURED
    until: float = -inf
    """When the verdict expires."""
    check: float = -inf
    """When to look for a newer verdict, in the store or by a probe."""
    moved: bool = False
    """A quorum has changed the verdict, and it is not in the store yet."""
    evidence: dict[_Sign, _Evidence] = field(default_factory=dict[_Sign, _Evidence])
    doubted: bool = False
    """Traffic contradicts the verdict, so a probe must decide."""
    next_doubt: float = -inf
    """When traffic may cause the next probe."""
    last: "ProbeResult | None" = None
    """The last probe, also if its verdict has expired or has changed nothing."""


@dataclass(slots=True)
class _Preference:
    """The form that a model is taught for similar requests, and the other one that it has written lately."""

    dialect: str = ""
    """The form that it prefers; empty before `RELAPSES`."""
    relapse: str = ""
    turns: int = 0
    """Turns in a row with calls in the form `relapse`."""
    until: float = -inf

    def note(self, relapse: str, now: float) -> None:
        """Count a turn with calls in another form than the taught one; in the taught one, `relapse` is empty."""
        if now >= self.until:
            self.dialect = self.relapse = ""
        self.turns = self.turns + 1 if relapse == self.relapse else 1
        self.relapse, self.until = relapse, now + NEGATIVE
        if relapse and self.turns >= RELAPSES:
            self.dialect, self.relapse = relapse, ""


class _Recent:
    """Keys of requests that were refused. Each expires after `SHORT` seconds; the oldest is dropped first (P7)."""

    def __init__(self) -> None:
        self._until: Final[dict[str, float]] = {}

    def put(self, key: str, now: float) -> None:
        """Remember a key, or renew it."""
        self._until.pop(key, None)
        if len(self._until) >= _MOST:
            self._until.pop(next(iter(self._until)))
        self._until[key] = now + SHORT

    def drop(self, key: Callable[[str], str], model: str) -> None:
        """Forget a key. It is computed as in `holds`."""
        if self._until:
            self._until.pop(key(model), None)

    def holds(self, key: Callable[[str], str], model: str, now: float) -> bool:
        """Return whether a request with this key was refused lately.

        A key costs a hash of the request, so it is only computed while there are entries. Before expired entries were
        dropped here, a single refusal made every later request of the upstream pay for two hashes.
        """
        while self._until and now >= next(iter(self._until.values())):  # all live equally long: the first ends first
            self._until.pop(next(iter(self._until)))
        return bool(self._until) and key(model) in self._until


class Learned:
    """The verdicts about the models of one upstream, and the recent refusals of its requests."""

    def __init__(self, clock: Clock = CLOCK, quorum: Quorum = OWNER) -> None:
        """Start without verdicts. `quorum` is the evidence that changes a verdict without a probe."""
        self._clock: Final = clock
        self._quorum: Final = quorum
        self._models: Final[dict[str, _Known]] = {}
        self._preferences: Final[dict[str, _Preference]] = {}
        """The forms of calls that models prefer, by tools."""
        self._unconstrained: Final = _Recent()
        """Requests whose constraint was refused or ignored, by tools."""
        self._refused: Final = _Recent()
        """Requests whose tools were refused, by tools."""
        self._refused_echo: Final = _Recent()
        """Requests whose tools were refused in words that the request itself contains, by conversation."""
        self._suspected: Final = _Recent()
        """Requests whose tools seem to have been dropped once, by tools."""
        self.secret: Final = clock.fresh_id().encode()
        """Makes the keys of keyed markers, so that no client can guess one (SAFE-4)."""
        self.tool_memory: Final = ToolMemory()
        """The tools of recent conversations (INL-4)."""

    @property
    def is_shared(self) -> bool:
        """Return whether clients that do not trust each other share these facts."""
        return self._quorum.tenants > 1

    def facts(self, model: str, facts: ModelFacts, origin: Origin = UNKNOWN_ORIGIN) -> ModelFacts:
        """Return the facts, completed by the verdict and by recent refusals of requests like that of `origin`."""
        verdict, now = self.verdict(model), self._clock.monotonic()
        # A dialect that the user has stated is kept: only the one of the family's table gives way. As in `holds`, the
        # key costs a hash of the tools.
        if self._preferences and facts.dialect == family_facts(model).dialect:
            preferred = self._preferences.get(origin.tools_key(model))
            if preferred is not None and preferred.dialect and now < preferred.until:
                facts = replace(facts, dialect=preferred.dialect)
        if facts.constraint is None and self._unconstrained.holds(origin.tools_key, model, now):
            facts = replace(facts, constraint=Constrain.OFF)
        refused = self._refused.holds(origin.tools_key, model, now)
        if refused or self._refused_echo.holds(origin.conversation_key, model, now):
            verdict = verdict.told(*_SUPPORT[_Sign.REFUSED], _Sign.REFUSED.value)
        return facts if verdict is NOTHING_MEASURED else measured(facts, verdict)

    def verdict(self, model: str) -> Verdict:
        """Return the current verdict; `NOTHING_MEASURED` if there is none or it has expired."""
        known = self._models.get(model)
        return known.verdict if known and self._clock.monotonic() < known.until else NOTHING_MEASURED

    def last_probe(self, model: str) -> ProbeResult | None:
        """Return the last probe of a model; None if this process knows of none."""
        known = self._models.get(model)
        return known.last if known is not None else None

    def is_due(self, model: str) -> bool:
        """Return whether it is time to look for a newer verdict."""
        known = self._models.get(model)
        return known is None or known.doubted or self._clock.monotonic() >= known.check

    def keep(self, model: str, verdict: Verdict, check: float) -> None:
        """Set the verdict of a probe, of this process or another; it is due again after `check` seconds.

        It is due at half of its lifetime at the latest, so that a new verdict is there before the old one expires. An
        interrupted probe without a result does not replace a valid verdict.
        """
        known, now = self._known(model), self._clock.monotonic()
        lasts = lifetime(verdict)
        known.check, known.moved = now + min(check, lasts / 2), False
        known.last = ProbeResult(verdict, now)
        # The server was busy or unreachable: that says nothing about tools.
        if verdict.stopped and verdict.tools is Support.UNKNOWN and now < known.until:
            return
        if verdict != known.verdict or now >= known.until:
            known.evidence.clear()
        known.verdict, known.until = verdict, now + lasts

    def later(self, model: str, seconds: float) -> None:
        """Make the model due again only after some seconds."""
        self._known(model).check = self._clock.monotonic() + seconds

    def merged(self, model: str, verdict: Verdict) -> Verdict:
        """Return the verdict of a probe, corrected by traffic: a probe does not disprove a leak that was seen.

        Some servers leak only in some turns, for example with many tools.
        """
        before = self.verdict(model)
        if verdict.tools is Support.NATIVE and before.tools is Support.LEAKS:
            return verdict.told(Support.LEAKS, SURE, _LEAKED)
        return verdict

    def take_moved(self, model: str) -> Verdict | None:
        """Return the verdict that must be stored for other processes, or None; the mark is cleared."""
        known = self._models.get(model)
        if known is None or not known.moved:
            return None
        known.moved = False
        return known.verdict

    def take_doubt(self, model: str) -> bool:
        """Return whether traffic asks for a probe, and clear the mark. The next one must wait for `DOUBT_REST`."""
        known = self._models.get(model)
        if known is None or not known.doubted:
            return False
        known.doubted, known.next_doubt = False, self._clock.monotonic() + DOUBT_REST
        known.evidence.clear()
        return True

    def note(self, model: str, outcome: Outcome, origin: Origin = UNKNOWN_ORIGIN, *, is_real: bool = True) -> None:
        """Take the outcome of a turn into account.

        If clients may have invented the model (`is_real` is false), only similar requests are affected: evidence about
        it would fill the table, and cause probes.
        """
        now = self._clock.monotonic()
        if _met_no_constraint(outcome):
            self._unconstrained.put(origin.tools_key(model), now)
        if outcome.refused is FailureKind.TOOLS_UNSUPPORTED and origin.request is not None:
            if outcome.echoed:
                self._refused_echo.put(origin.conversation_key(model), now)
            else:
                self._refused.put(origin.tools_key(model), now)
        if outcome.plan.facts.tools is Support.UNKNOWN and origin.request is not None:
            self._note_dropped(model, outcome, origin, now)
        if not is_real and self.is_shared:
            return
        self._note_form(model, outcome, origin, now)
        sign = _sign_of(outcome)
        if sign is not None:
            self._count(model, sign, origin.tenant, now)

    def _note_dropped(self, model: str, outcome: Outcome, origin: Origin, now: float) -> None:
        """Remember tools that the upstream seems to drop for requests like this one (CAP-7)."""
        if outcome.native or outcome.rescued:
            self._suspected.drop(origin.tools_key, model)
            return
        if outcome.denied:
            self._refused_echo.put(origin.conversation_key(model), now)
        if outcome.unseen or (outcome.denied and (origin.tenant or not self.is_shared)):
            twice = self._suspected.holds(origin.tools_key, model, now)
            (self._refused if twice else self._suspected).put(origin.tools_key(model), now)

    def _note_form(self, model: str, outcome: Outcome, origin: Origin, now: float) -> None:
        """Count the forms of calls in emulated turns; calls in the taught form end the count (INL-9)."""
        relapse = outcome.written if outcome.written != outcome.plan.dialect else ""
        if not outcome.written or not (relapse or self._preferences):
            return
        known = self._preferences.pop(key := origin.tools_key(model), _Preference() if relapse else None)
        if known is None:
            return
        known.note(relapse, now)
        if len(self._preferences) >= _MOST:
            self._preferences.pop(next(iter(self._preferences)))
        self._preferences[key] = known

    def _count(self, model: str, sign: _Sign, tenant: str, now: float) -> None:
        """Add a turn to the evidence. With a quorum the verdict changes; with less evidence a probe may become due."""
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
            # After a refusal, requests of the same tenant with these tools are emulated. Further refusals would never
            # come, so the first one must be enough to cause a probe.
            at_once = sign is _Sign.REFUSED or not measured_before
            enough = evidence.turns >= (needed if at_once else max(needed, self._quorum.turns))
            wanted = tools is Support.NONE or measured_before
            known.doubted = known.doubted or (enough and wanted and now >= known.next_doubt)

    def _known(self, model: str) -> _Known:
        """Return a model's entry, creating it if needed; beyond `_MOST` the oldest is dropped (P7)."""
        if model not in self._models and len(self._models) >= _MOST:
            self._models.pop(next(iter(self._models)))
        return self._models.setdefault(model, _Known())


def _sign_of(outcome: Outcome) -> _Sign | None:
    """Return what a turn shows about native tools, or None. A turn with hidden retries still gives one sign."""
    if outcome.refused is FailureKind.TOOLS_UNSUPPORTED:
        return None if outcome.echoed else _Sign.REFUSED
    if outcome.plan.way not in (Way.NATIVE, Way.FALLBACK):  # an emulated turn sends no tools, so it shows nothing
        return None
    if outcome.rescued:
        return _Sign.LEAKED
    if outcome.native:
        return _Sign.NATIVE
    if outcome.denied or outcome.unseen:
        return _Sign.DROPPED
    return _Sign.EMPTY if outcome.empty else None


def _turns_needed(sign: _Sign, verdict: Verdict) -> int:
    if sign in (_Sign.EMPTY, _Sign.DROPPED):
        return EMPTIES if sign is _Sign.EMPTY else DROPS
    return CLEAN if sign is _Sign.NATIVE and verdict.tools is Support.LEAKS else 1


def _met_no_constraint(outcome: Outcome) -> bool:
    """Return whether a constraint was ignored, or refused by an upstream that answered without it."""
    if outcome.constraint is Kept.REFUSED:
        return not (outcome.events and isinstance(outcome.events[-1], Failed))
    return outcome.constraint is Kept.IGNORED

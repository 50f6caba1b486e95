"""What the dashboard says about a model: how its tools are handled, why, and where that is known from (OBS-17)."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from shlex import quote
from time import gmtime, strftime
from typing import Final

from toolspeak.engine.plan import Plan, Way, plan_text
from toolspeak.engine.settings import Mode
from toolspeak.engine.verdict import Finding, Layer, Verdict
from toolspeak.facts.families import families_of
from toolspeak.facts.model import Profile, Source, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.directory import Listed, Route
from toolspeak.text.display import visible

LONGEST_NAME: Final = 200
_WITH_TOOLS: Final = Request("", (), (Tool("any"),))
_NANO: Final = 1e9
_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class KnownFrom:
    """The source of a plan: a short label, and a sentence."""

    label: str
    sentence: str


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """The last probe of a model."""

    time: str
    """UTC, for `<time>`."""
    clock: str
    seconds: float
    """How long ago it was."""
    verdict: Verdict
    is_expired: bool
    """Plans no longer follow it."""

    @property
    def words(self) -> str:
        """The result in words."""
        if self.verdict.stopped:
            return self.verdict.why or "broken off"
        return f"{_SUPPORT_WORDS[self.verdict.tools]} ({self.verdict.confidence:.0%} sure)"


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """The doctor's profile of a model."""

    profile: Profile
    state: str
    """`in use`, `suspended …` or `void`."""
    note: str
    """What the state means; empty if it is in use."""
    scores: tuple[tuple[str, int, int, bool], ...]
    """Form, right answers, tasks, and whether it won; the best first."""


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model, under the name by which clients request it."""

    id: str
    """Unique on the page, for HTML."""
    name: str
    model: str
    """Its name at the upstream."""
    upstream: str
    alias: bool
    is_default: bool
    is_listed: bool
    tools: str
    """native, rescued, emulated, plain or off: the colour."""
    plan: Plan
    does: str
    """What happens to a request with tools, in a few words."""
    known: KnownFrom
    evidence: tuple[Finding, ...]
    family: tuple[str, str]
    """The name of its family, and how that is known; both empty if it is unknown."""
    details: tuple[tuple[str, str], ...]
    probe: ProbeRow | None
    is_probing: bool
    profile: ProfileRow | None

    @property
    def doctor_name(self) -> str:
        """The name as a word of a shell; empty if it could be taken for an option, or has characters that hide."""
        is_plain = visible(self.name) == self.name and "\n" not in self.name and not self.name.startswith("-")
        return quote(self.name) if is_plain else ""


@dataclass(frozen=True, slots=True)
class UpstreamRows:
    """An upstream, whether it answers, and its models."""

    name: str
    url: str
    """Empty if it must not be shown."""
    is_known: bool
    answers: bool
    problem: str
    rows: tuple[ModelRow, ...]


def model_row(listed: Listed, clock: Clock, default: Route | None, *, is_probing: bool, is_listed: bool) -> ModelRow:
    """Describe a model."""
    route = listed.route
    plan, known = route.plan(_WITH_TOOLS), route.known
    last, verdict = route.learned.last_probe(route.model), route.learned.verdict(route.model)
    families = families_of(route.model)
    evidence = verdict.evidence or (last.verdict.evidence if last is not None else ())
    return ModelRow(
        f"m-{sha256(listed.name.encode('utf-8', 'replace')).hexdigest()[:_DIGITS]}",
        listed.name,
        route.model,
        route.place,
        bool(route.alias),
        default is not None and route.identity == default.identity,
        is_listed,
        _tools(plan),
        plan,
        plan_text(plan, known.tools),
        _known_from(route, plan, verdict),
        evidence,
        (families[-1].name, families[-1].why) if families else ("", ""),
        tuple(_details(plan, verdict)),
        None if last is None else _probe_row(last.verdict, last.at, clock, is_expired=not verdict.evidence),
        is_probing,
        _profile_row(route),
    )


def _tools(plan: Plan) -> str:
    match plan.way:
        case Way.FORCE:
            return "emulated"
        case Way.NATIVE | Way.FALLBACK:
            return "rescued" if plan.facts.tools is Support.LEAKS and plan.settings.rescue else "native"
        case Way.PLAIN | Way.OFF:
            return plan.way.value


def _known_from(route: Route, plan: Plan, verdict: Verdict) -> KnownFrom:
    settings, measured, known = route.settings, route.measured, route.known
    if settings.chat or settings.mode not in (None, Mode.AUTO):
        return KnownFrom("configuration", f"Set in the configuration: {plan.why}.")
    profile = measured.profile
    if profile is not None and (measured.tools is not None or measured.settings.mode is not None):
        return KnownFrom("doctor", f"The doctor measured on {profile.date} that {profile.form} does best.")
    match known.source:
        case Source.SAID:
            return KnownFrom("configuration", f"Set in the configuration: tools are {known.tools}.")
        case Source.TABLE:
            return KnownFrom("facts table", "The same for all models of this vendor.")
        case Source.MEASURED:
            is_traffic = any(one.layer is Layer.TRAFFIC and one.reason == verdict.why for one in verdict.evidence)
            return KnownFrom("learned" if is_traffic else "probe", _sentence(verdict.why))
        case Source.NOBODY:
            return KnownFrom("not known yet", "Tools are sent, and a refusal or a probe decides.")


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}." if words else "Measured."


_SUPPORT_WORDS: Final = {
    Support.NATIVE: "has tools",
    Support.NONE: "has no tools",
    Support.LEAKS: "has tools, and leaks some calls as text",
    Support.UNKNOWN: "no result",
}
_YES_NO: Final = {True: "yes", False: "no", None: "not measured"}


def _details(plan: Plan, verdict: Verdict) -> Iterator[tuple[str, str]]:
    facts = plan.facts
    yield "dialect of emulated calls", plan.dialect
    yield "context", f"{facts.context_tokens} tokens" if facts.context_tokens else "not known"
    constraint = facts.quirks.constraint
    yield "constrained decoding", "not known" if constraint is ConstraintForm.NONE else constraint.value
    yield "server", verdict.server or "not known"
    yield "several calls in one answer", _YES_NO[verdict.parallel]
    yield "calls in a stream", _YES_NO[verdict.streamed]
    yield "answers after a result", _YES_NO[verdict.continues]


def _probe_row(verdict: Verdict, at: float, clock: Clock, *, is_expired: bool) -> ProbeRow:
    seconds = max(0.0, clock.monotonic() - at)
    moment = gmtime(clock.nanoseconds() / _NANO - seconds)
    time, short = strftime("%Y-%m-%dT%H:%M:%SZ", moment), strftime("%H:%M:%S", moment)
    return ProbeRow(time, short, seconds, verdict, is_expired)


def _profile_row(route: Route) -> ProfileRow | None:
    kept, suspended = route.profiles.of(route.model).profile, route.profiles.suspension(route.model)
    if kept is None:
        return None
    state, note = "in use", ""
    if suspended:
        state = suspended
        note = "Since it was used, more answers had no call than before. Run the doctor again, or delete the profile."
    elif route.measured.profile is None:
        state, note = "void", "The server has changed since it was measured. Run the doctor again."
    scores = ((form, one.right, one.asked, form == kept.form) for form, one in kept.scores.items())
    best = tuple(sorted(scores, key=lambda one: (not one[3], -(one[1] / one[2] if one[2] else 0.0))))
    return ProfileRow(kept, state, note, best)

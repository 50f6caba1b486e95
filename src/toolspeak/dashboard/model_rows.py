"""What the dashboard says about a model: how its tools are handled, why, and where that is known from (OBS-17)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from shlex import quote
from time import gmtime, strftime
from typing import Final

from toolspeak.engine.plan import Plan, Way
from toolspeak.engine.settings import Mode, Strategy
from toolspeak.engine.verdict import Finding, Layer, Verdict
from toolspeak.facts.families import families_of
from toolspeak.facts.model import Profile, Source, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.directory import Listed, Route
from toolspeak.runtime.learned import ProbeResult
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
    label: str
    """The same in words."""
    plan: Plan
    does: str
    """What happens to the tools of a request, in a few words."""
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
    servers: str = ""
    """How many of its servers are in service, in words; empty if it has only one."""


@dataclass(frozen=True, slots=True)
class PageContext:
    """What all rows of a page have in common."""

    clock: Clock
    default: Route | None
    hides_failures: bool
    """How an upstream fails concerns the operator, and not the tenants."""


def model_row(listed: Listed, context: PageContext, *, is_probing: bool, is_listed: bool) -> ModelRow:
    """Describe a model."""
    route = listed.route
    plan, default = route.plan(_WITH_TOOLS), context.default
    last, verdict = route.learned.last_probe(route.model), route.learned.verdict(route.model)
    if last is not None and last.verdict.stopped and context.hides_failures:
        last = replace(last, verdict=_without_failure(last.verdict))
    if verdict.stopped and context.hides_failures:
        verdict = _without_failure(verdict)
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
        *_handling(plan),
        _known_from(route, plan, verdict),
        evidence,
        (families[-1].name, families[-1].why) if families else ("", ""),
        tuple(_details(plan, verdict)),
        None if last is None else _probe_row(last, context.clock, is_expired=not verdict.evidence),
        is_probing,
        _profile_row(route),
    )


def _handling(plan: Plan) -> tuple[str, str, Plan, str]:
    """Return the colour, the label, the plan, and what happens in a few words."""
    how = Strategy.DECISION if plan.settings.strategy is Strategy.DECISION else plan.dialect
    as_text = f"calls are written as text ({how})"
    match plan.way, plan.facts.tools:
        case Way.FORCE, _:
            return "emulated", "emulated", plan, f"Tools are taught in the prompt, and {as_text}."
        case Way.FALLBACK, _:
            return "native", "native, then emulated", plan, f"Tools are sent; if no call comes, {as_text}."
        case Way.NATIVE, Support.UNKNOWN:
            return "plain", "native first", plan, f"Tools are sent; if they are refused, {as_text}."
        case Way.NATIVE, Support.LEAKS if plan.settings.rescue:
            return "rescued", "native, rescued", plan, "Tools are sent, and calls that come as text are read."
        case Way.NATIVE, _:
            return "native", "native", plan, "Tools are sent as they are."
        case Way.PLAIN, _:
            return "plain", "removed", plan, "Tools are removed from requests."
        case Way.OFF, _:
            return "off", "unchanged", plan, "Requests and answers are passed on unchanged."


def _known_from(route: Route, plan: Plan, verdict: Verdict) -> KnownFrom:
    settings, measured, known = route.settings, route.measured, route.known
    if settings.chat or settings.mode not in (None, Mode.AUTO):
        return KnownFrom("configuration", f"Set in the configuration: {plan.why}.")
    profile = measured.profile
    if profile is not None and (measured.tools is not None or measured.settings.mode is not None):
        source, who = ("shipped profile", "We") if profile.is_shipped else ("doctor", "The doctor")
        return KnownFrom(source, f"{who} measured on {profile.date} that {profile.form} does best.")
    match known.source:
        case Source.SAID:
            return KnownFrom("configuration", f"Set in the configuration: it {_SUPPORT_WORDS[known.tools]}.")
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


def _without_failure(verdict: Verdict) -> Verdict:
    """Return the verdict of a probe that broke off, without the words of the upstream."""
    return replace(verdict, evidence=(Finding(Layer.METADATA, Support.UNKNOWN, "the probe was broken off"),))


def _probe_row(last: ProbeResult, clock: Clock, *, is_expired: bool) -> ProbeRow:
    seconds, verdict = max(0.0, clock.monotonic() - last.at), last.verdict
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

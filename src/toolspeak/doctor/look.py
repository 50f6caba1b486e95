"""What is known of a model before the first task: shown first, so that a person sees what the rest is about.

The server is looked at, and asked two questions of one token (CAP-3): calls are what the tasks ask for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from toolspeak.engine.verdict import NOTHING_MEASURED, Depth, Verdict, measured
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.runtime.cache import Memory
from toolspeak.runtime.directory import Route
from toolspeak.runtime.learned import Learned
from toolspeak.runtime.prober import Prober
from toolspeak.runtime.upstream import HttpUpstream

_SUPPORT = {
    Support.NATIVE: "the server has tool calling",
    Support.NONE: "the server has no tool calling",
    Support.LEAKS: "the server has tool calling, and returns some calls as text",
    Support.UNKNOWN: "nothing is known",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is known: what it is about, what it says, where it is from."""

    about: str
    says: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Looked:
    """All that is known; the facts choose the forms that are tried, the fingerprint is kept with the profile."""

    findings: tuple[Finding, ...]
    facts: ModelFacts
    fingerprint: str = ""


async def look(route: Route) -> Looked:
    """Return what the directory knows of a model, and what its server tells."""
    verdict = NOTHING_MEASURED
    if isinstance(route.upstream, HttpUpstream):
        fresh = replace(route, learned=Learned())
        verdict = await Prober({}, Memory()).probe(fresh, route.upstream, Depth.TOKENS)
    facts = measured(route.facts, verdict)
    return Looked(tuple(_findings(route, facts, verdict)), facts, verdict.fingerprint)


def _findings(route: Route, facts: ModelFacts, verdict: Verdict) -> Iterator[Finding]:
    kept = route.profiles.of(route.model).profile
    yield Finding("tools", _SUPPORT[facts.tools])
    for found in verdict.evidence:
        yield Finding("probe", found.reason, found.layer)
    if verdict.server:
        yield Finding("server", verdict.server)
    if facts.quirks.constraint is not ConstraintForm.NONE:
        yield Finding("form", f"constraints as {facts.quirks.constraint}")
    if facts.dialect:
        yield Finding("dialect", facts.dialect)
    if facts.context_tokens:
        yield Finding("context", f"{facts.context_tokens} tokens")
    if kept is not None:
        yield Finding("profile", f"{kept.form}, measured {kept.date}", "will be replaced")

"""Gathers the facts about a model before the first task; the command prints them first.

A probe looks at the server's metadata and sends two requests of one token each (CAP-3). It does not ask for calls,
because the tasks do.
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
class ServerFact:
    """One fact: its subject, its value, its source."""

    about: str
    says: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """All facts. `facts` decides which forms are tried; `fingerprint` of the server is saved with the profile."""

    findings: tuple[ServerFact, ...]
    facts: ModelFacts
    fingerprint: str = ""


async def gather_facts(route: Route) -> ServerFacts:
    """Return the facts of the directory about a model, completed by a probe of its server."""
    verdict = NOTHING_MEASURED
    if isinstance(route.upstream, HttpUpstream):  # an upstream that is an object has no metadata to look at
        fresh = replace(route, learned=Learned())
        verdict = await Prober({}, Memory()).probe(fresh, route.upstream, Depth.TOKENS)
    facts = measured(route.facts, verdict)
    return ServerFacts(tuple(_facts(route, facts, verdict)), facts, verdict.fingerprint)


def _facts(route: Route, facts: ModelFacts, verdict: Verdict) -> Iterator[ServerFact]:
    kept = route.profiles.of(route.model).profile
    yield ServerFact("tools", _SUPPORT[facts.tools])
    for found in verdict.evidence:
        yield ServerFact("probe", found.reason, found.layer)
    if verdict.server:
        yield ServerFact("server", verdict.server)
    if facts.quirks.constraint is not ConstraintForm.NONE:
        yield ServerFact("form", f"constraints as {facts.quirks.constraint}")
    if facts.dialect:
        yield ServerFact("dialect", facts.dialect)
    if facts.context_tokens:
        yield ServerFact("context", f"{facts.context_tokens} tokens")
    if kept is not None:
        yield ServerFact("profile", f"{kept.form}, measured {kept.date}", "will be replaced")

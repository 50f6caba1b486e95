"""What is known of a model before it is asked anything: shown first, so that a person sees what the rest is about."""

from collections.abc import Iterator
from dataclasses import dataclass

from toolspeak.facts.model import ModelFacts, Support
from toolspeak.runtime.directory import Route

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
    """Return what the directory knows of a model."""
    return Looked(tuple(_findings(route)), route.facts)


def _findings(route: Route) -> Iterator[Finding]:
    facts, kept = route.facts, route.profiles.of(route.model).profile
    yield Finding("tools", _SUPPORT[facts.tools])
    if facts.dialect:
        yield Finding("dialect", facts.dialect)
    if facts.context_tokens:
        yield Finding("context", f"{facts.context_tokens} tokens")
    if kept is not None:
        yield Finding("profile", f"{kept.form}, measured {kept.date}", "will be replaced")

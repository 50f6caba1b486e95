"""What was measured about a model behind an upstream: a verdict, its confidence, and the evidence for it (CAP-3).

>>> measured(UNKNOWN_MODEL, Verdict(Support.NONE, 0.95)).tools
<Support.NONE: 'none'>

`unknown` is a verdict too: what could not be measured is not guessed.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from toolspeak.facts.model import ModelFacts, Source, Support
from toolspeak.ir.constraint import ConstraintForm

SURE: Final = 0.9
"""From here on a question is settled: later layers need not ask it again."""
LIKELY: Final = 0.5
"""From here on a plan is made by it."""
MOST_EVIDENCE: Final = 24


class Depth(StrEnum):
    """How far a probe goes; each has all of those before it."""

    OFF = "off"
    LOOK = "look"
    """Only what the server says about itself: free."""
    TOKENS = "tokens"
    """And two requests of one token."""
    FULL = "full"
    """And calls."""

    def reaches(self, other: "Depth") -> bool:
        """Return whether this depth has all of the other."""
        depths = list(Depth)
        return depths.index(self) >= depths.index(other)


class Layer(StrEnum):
    """Where evidence comes from, the cheapest first."""

    METADATA = "metadata"
    TOKENS = "tokens"
    FORCED = "forced"
    CALL = "call"
    MANY = "many tools"
    PARALLEL = "parallel"
    STREAMED = "streamed"
    CONTINUED = "continued"
    TRAFFIC = "traffic"
    """Not a probe: what a user's request came to."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one layer says about tools, and why, in a sentence."""

    layer: Layer
    says: Support
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is held to be true. None in `parallel`, `streamed` and `continues` means that it was not found out."""

    tools: Support = Support.UNKNOWN
    confidence: float = 0.0
    evidence: tuple[Finding, ...] = ()
    parallel: bool | None = None
    """Two calls came in one answer."""
    streamed: bool | None = None
    """A call came in a stream."""
    continues: bool | None = None
    """A history with a call and its result was answered."""
    context_tokens: int | None = None
    server: str = ""
    """The kind of server, by the name of its preset; empty if it does not tell."""
    fingerprint: str = ""
    """Changes when the server's build, its template or the model does."""
    constraint: ConstraintForm = ConstraintForm.NONE
    """How this kind of server is told what an answer must look like."""
    depth: Depth = Depth.OFF
    stopped: bool = False
    """The probe broke off: what failed was not about tools, and may pass."""

    @property
    def why(self) -> str:
        """Return the reason of the last finding that says the same as the verdict."""
        return next((found.reason for found in reversed(self.evidence) if found.says is self.tools), "")

    def told(self, tools: Support, confidence: float, reason: str) -> "Verdict":
        """Return the verdict after traffic has moved it; the oldest evidence of traffic goes first."""
        probed = [found for found in self.evidence if found.layer is not Layer.TRAFFIC]
        traffic = [found for found in self.evidence if found.layer is Layer.TRAFFIC]
        room = max(1, MOST_EVIDENCE - len(probed))
        evidence = (*probed, *[*traffic, Finding(Layer.TRAFFIC, tools, reason)][-room:])
        return replace(self, tools=tools, confidence=confidence, evidence=evidence)


NOTHING_MEASURED: Final = Verdict()


def measured(facts: ModelFacts, verdict: Verdict) -> ModelFacts:
    """Return the facts with what was measured: it beats a table, and never what the user says."""
    if facts.context_tokens is None and verdict.context_tokens is not None:
        facts = replace(facts, context_tokens=verdict.context_tokens)
    facts = facts.with_constraint(verdict.constraint)
    return facts if verdict.confidence < LIKELY else facts.with_tools(verdict.tools, Source.MEASURED)

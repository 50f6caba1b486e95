"""The verdict of a probe about one model of an upstream, with its confidence and its evidence (CAP-3).

>>> measured(UNKNOWN_MODEL, Verdict(Support.NONE, 0.95)).tools
<Support.NONE: 'none'>

`unknown` is a verdict too: a question that could not be measured gets no guess.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from toolspeak.facts.model import ModelFacts, Source, Support
from toolspeak.ir.constraint import ConstraintForm

SURE: Final = 0.9
"""The confidence from which a question is settled, so that later layers skip it."""
LIKELY: Final = 0.5
"""The confidence from which plans follow the verdict."""
MOST_EVIDENCE: Final = 24
"""Findings of one verdict: traffic adds one each time it moves the verdict, so there must be a limit (P7)."""


class Depth(StrEnum):
    """How far a probe goes; each depth includes those before it."""

    OFF = "off"
    LOOK = "look"
    """Only what the server says about itself; this costs no tokens."""
    TOKENS = "tokens"
    """Also two requests of one token."""
    FULL = "full"
    """Also calls: up to nine short requests in all."""

    def reaches(self, other: "Depth") -> bool:
        """Return whether this depth includes the other."""
        depths = list(Depth)
        return depths.index(self) >= depths.index(other)


class Layer(StrEnum):
    """The sources of evidence, the cheapest first."""

    METADATA = "metadata"
    TOKENS = "tokens"
    FORCED = "forced"
    CALL = "call"
    MANY = "many tools"
    PARALLEL = "parallel"
    STREAMED = "streamed"
    CONTINUED = "continued"
    TRAFFIC = "traffic"
    """Not a probe: the outcome of a client's request."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One piece of evidence: what a layer says about tools, with the reason in a sentence."""

    layer: Layer
    says: Support
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a probe. None in `parallel`, `streamed` and `continues` means that it was not measured."""

    tools: Support = Support.UNKNOWN
    confidence: float = 0.0
    evidence: tuple[Finding, ...] = ()
    parallel: bool | None = None
    """Whether two calls came in one answer."""
    streamed: bool | None = None
    """Whether a call came in a stream."""
    continues: bool | None = None
    """Whether a history with a call and its result was answered."""
    context_tokens: int | None = None
    server: str = ""
    """The kind of server, by the name of its preset; empty if unknown."""
    fingerprint: str = ""
    """Changes with the server's build, its template or the model. A verdict with another fingerprint is void: the same
    name may be a restarted server with other flags."""
    constraint: ConstraintForm = ConstraintForm.NONE
    """The form of constrained decoding of this kind of server."""
    depth: Depth = Depth.OFF
    stopped: bool = False
    """Whether the probe broke off because of an error that is not about tools and may pass."""

    @property
    def why(self) -> str:
        """The reason of the last finding that agrees with the verdict; empty if there is none."""
        return next((found.reason for found in reversed(self.evidence) if found.says is self.tools), "")

    def told(self, tools: Support, confidence: float, reason: str) -> "Verdict":
        """Return the verdict after traffic has moved it; over the limit, the oldest evidence of traffic is dropped."""
        probed = [found for found in self.evidence if found.layer is not Layer.TRAFFIC]
        traffic = [found for found in self.evidence if found.layer is Layer.TRAFFIC]
        room = max(1, MOST_EVIDENCE - len(probed))
        evidence = (*probed, *[*traffic, Finding(Layer.TRAFFIC, tools, reason)][-room:])
        return replace(self, tools=tools, confidence=confidence, evidence=evidence)


NOTHING_MEASURED: Final = Verdict()


def measured(facts: ModelFacts, verdict: Verdict) -> ModelFacts:
    """Return the facts with a verdict applied: it wins over tables, and never over what the user says."""
    if facts.context_tokens is None and verdict.context_tokens is not None:
        facts = replace(facts, context_tokens=verdict.context_tokens)
    facts = facts.with_constraint(verdict.constraint)
    return facts if verdict.confidence < LIKELY else facts.with_tools(verdict.tools, Source.MEASURED)

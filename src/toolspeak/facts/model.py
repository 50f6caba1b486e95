"""What is known about one model behind one upstream."""

from dataclasses import dataclass
from enum import StrEnum

from toolspeak.ir.quirks import QUIRKS, Quirks


class Support(StrEnum):
    """What became of `tools` when they were sent."""

    NATIVE = "native"
    NONE = "none"
    """Refused, or dropped in silence."""
    LEAKS = "leaks"
    """The model calls, but the server returns some calls as text."""
    UNKNOWN = "unknown"


class Constrain(StrEnum):
    """How much an upstream is asked to keep an emulated answer in form, where it can (CHK-8)."""

    OFF = "off"
    RETRY = "retry"
    """Only where a call must come, or when it is asked again because a call was bad."""
    TEXT = "text"
    """Text is free, and a call that is begun can only be a right one."""
    JSON = "json"
    """The whole answer is JSON: a thought, then calls or the answer."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The defaults are those of a model that nobody knows."""

    tools: Support = Support.UNKNOWN
    dialect: str = ""
    """The text form of calls that the model has learned; empty if unknown."""
    decides: bool = False
    """Does better with a decision of its own than with calls inside its answer."""
    calls_in_reasoning: bool = False
    starts_in_reasoning: bool = False
    few_shot: bool = False
    answer_tool: bool = False
    context_tokens: int | None = None
    constraint: Constrain | None = None
    """What works best with the model, where its upstream has a form for it; None if unknown."""
    quirks: Quirks = QUIRKS


UNKNOWN_MODEL = ModelFacts()

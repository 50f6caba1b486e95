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
    quirks: Quirks = QUIRKS


UNKNOWN_MODEL = ModelFacts()

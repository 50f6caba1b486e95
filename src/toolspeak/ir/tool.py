"""Tools that a request offers, and what it says about using them."""

from dataclasses import dataclass, field
from enum import StrEnum

from toolspeak.ir.json import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the model may call. `parameters` is a JSON Schema for the arguments object."""

    name: str
    description: str = ""
    parameters: JsonObject = field(default_factory=dict[str, Json])
    strict: bool = False


class ChoiceMode(StrEnum):
    """How much freedom the model has."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """`name` only with NAMED; `parallel` False means at most one call per turn."""

    mode: ChoiceMode = ChoiceMode.AUTO
    name: str = ""
    parallel: bool = True


AUTO = ToolChoice()

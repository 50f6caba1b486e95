"""The tools that a request offers, and its tool choice."""

from dataclasses import dataclass, field
from enum import StrEnum

from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Vendor


class ToolKind(StrEnum):
    """The kind of a tool for the client; the model sees functions only."""

    FUNCTION = "function"
    CUSTOM = "custom"
    """Takes free text, not JSON: a function with the one string parameter `input`."""
    SEARCH = "tool_search"
    """The client's own search for deferred tools."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The grammar of a custom tool's free text; `syntax` is `lark` or `regex`."""

    syntax: str
    definition: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the model may call. `parameters` is a JSON Schema for the arguments object.

    `name` is what the model sees, unique in its request. A client that groups its tools knows this one as
    `local_name` in `namespace`. A `deferred` tool is not shown before a result refers to it.
    """

    name: str
    description: str = ""
    parameters: JsonObject = field(default_factory=dict[str, Json])
    strict: bool = False
    kind: ToolKind = ToolKind.FUNCTION
    grammar: Grammar | None = None
    namespace: str = ""
    local_name: str = ""
    deferred: bool = False
    vendor: Vendor | None = None


class ChoiceMode(StrEnum):
    """How much freedom the model has."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Which tools the model may or must call. `name` is set only with NAMED.

    If `allowed` is not empty, the model may call only these tools. `parallel` False means at most one call per turn.
    """

    mode: ChoiceMode = ChoiceMode.AUTO
    name: str = ""
    parallel: bool = True
    allowed: tuple[str, ...] = ()


AUTO = ToolChoice()

"""The words of this wire, and what they mean."""

from typing import Final

from toolspeak.ir.event import Usage
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ToolKind
from toolspeak.wires._counts import read_counts, write_counts

NAME: Final = "openai_responses"
LONGEST_NAME: Final = 64

MESSAGE: Final = "message"
REASONING: Final = "reasoning"
MORE_TOOLS: Final = "additional_tools"
SEARCH_TOOL: Final = "tool_search"
NAMESPACE: Final = "namespace"

FUNCTION_CALL: Final = "function_call"
CUSTOM_CALL: Final = "custom_tool_call"
SEARCH_CALL: Final = "tool_search_call"
CALL_TYPES: Final = {
    ToolKind.FUNCTION: FUNCTION_CALL,
    ToolKind.CUSTOM: CUSTOM_CALL,
    ToolKind.SEARCH: SEARCH_CALL,
}
"""The items by which a model calls a tool of each kind."""
RESULT_TYPES: Final = {
    FUNCTION_CALL: "function_call_output",
    CUSTOM_CALL: "custom_tool_call_output",
    SEARCH_CALL: "tool_search_output",
}
"""The items that answer them."""

BEFORE: Final = "before"
"""In the vendor's fields of a message: the items that stand in front of it and only tell of more tools."""
HEAD: Final = "message"
"""In the vendor's fields of an assistant's text: the item that begins with it has these fields."""
ITEM: Final = "item"
"""In the vendor's fields of an opaque part: it is an item of its own. Of a tool: an item of this type declares it."""

_CODEX = "x-codex"


def is_codex(request: Request) -> bool:
    """Return whether the client is Codex, which takes an incomplete response for a broken stream and asks again."""
    metadata = request.extra.get(NAME, {}).get("client_metadata")
    return isinstance(metadata, dict) and any(key.startswith(_CODEX) for key in metadata)


def usage_of(value: Json) -> Usage:
    """Read token counts; what is no number counts as none."""
    return read_counts(value, "input", "output")


def usage_body(usage: Usage) -> JsonObject:
    """Write token counts."""
    return write_counts(usage, "input", "output")

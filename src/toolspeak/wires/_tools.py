"""Tools of a request, as all wires need them: by name, by kind, and made from what vendors write."""

from collections.abc import Callable, Iterable
from typing import Final, Protocol, cast

import msgspec

from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Grammar, Tool, ToolKind
from toolspeak.toolset.memo import Cache, Memo
from toolspeak.wires._arguments import FREE_FORM
from toolspeak.wires._body import dump

_WRITTEN: Final = Memo[msgspec.Raw]()


class ReadTools(Protocol):
    """How a wire reads the bytes of its `tools`."""

    def __call__(self, raw: bytes) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
        """Return the tools, and the bodies of those that only the vendor's own servers can run."""
        ...


def cached(read: ReadTools) -> ReadTools:
    """Remember what was read from the same bytes: what comes out is frozen and shared."""
    known = Cache[bytes, tuple[tuple[Tool, ...], tuple[JsonObject, ...]]]()

    def read_tools(raw: bytes) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
        return known.find(raw) or known.keep(raw, read(raw), len(raw))

    return read_tools


def written_once(tools: tuple[Tool, ...], wire: str, write: Callable[[], list[Json]]) -> Json:
    """Return the tools as JSON that is written already, for a body that is to be dumped."""
    known = _WRITTEN.find(tools, wire)
    if known is None:
        known = msgspec.Raw(dump(write()))
        _WRITTEN.keep(tools, known, len(known), wire)
    return cast("Json", known)


def free_form_parameters(grammar: Grammar | None) -> JsonObject:
    """Return the schema by which a model sees a custom tool: one string."""
    says = f"Free text that matches this {grammar.syntax} grammar:\n{grammar.definition}" if grammar else "Free text."
    return {
        "type": "object",
        "properties": {FREE_FORM: {"type": "string", "description": says}},
        "required": [FREE_FORM],
        "additionalProperties": False,
    }


def unique(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Keep one tool of each name, the last, in the place of the first."""
    return tuple({tool.name: tool for tool in tools}.values())


class Toolbox:
    """Finds the tools of a request by the name that the model uses."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Take all tools of a request."""
        self._tools: Final = {tool.name: tool for tool in tools}

    def kind(self, name: str) -> ToolKind:
        """Return what the client takes a tool for; one that nobody knows is a function."""
        tool = self._tools.get(name)
        return tool.kind if tool is not None else ToolKind.FUNCTION

    def split(self, name: str) -> tuple[str, str]:
        """Return the namespace and the name by which the client knows a tool."""
        tool = self._tools.get(name)
        return (tool.namespace, tool.local_name or name) if tool is not None else ("", name)

"""Tools of a request, as all wires need them: by name, by kind, with names that the wire allows.

mcp.files:read  ->  mcp_files_read_1f0c9a3e   (OpenAI: letters, digits, `_` and `-`, at most 64)
"""

import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Final, Protocol, cast

import msgspec

from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Grammar, Tool, ToolKind
from toolspeak.toolset.memo import Cache, Memo
from toolspeak.wires.shared.calls import FREE_FORM
from toolspeak.wires.shared.json_body import dump_body

_WRITTEN: Final = Memo[msgspec.Raw]()


class ReadTools(Protocol):
    """Reads the bytes of a wire's `tools`."""

    def __call__(self, raw: bytes) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
        """Return the tools, and the bodies of tools that only the vendor's servers can run."""
        ...


def cache_tools(read: ReadTools) -> ReadTools:
    """Cache the tools by their bytes; the results are frozen and shared."""
    known = Cache[bytes, tuple[tuple[Tool, ...], tuple[JsonObject, ...]]]()

    def read_tools(raw: bytes) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
        return known.find(raw) or known.keep(raw, read(raw), len(raw))

    return read_tools


def write_tools_once(tools: tuple[Tool, ...], wire: str, write: Callable[[], list[Json]]) -> Json:
    """Return the tools as encoded JSON to embed in a body; the same tools are encoded once."""
    known = _WRITTEN.find(tools, wire)
    if known is None:
        known = msgspec.Raw(dump_body(write()))
        _WRITTEN.keep(tools, known, len(known), wire)
    return cast("Json", known)


def free_form_parameters(grammar: Grammar | None) -> JsonObject:
    """Return the schema that a model sees for a custom tool: one string."""
    says = f"Free text that matches this {grammar.syntax} grammar:\n{grammar.definition}" if grammar else "Free text."
    return {
        "type": "object",
        "properties": {FREE_FORM: {"type": "string", "description": says}},
        "required": [FREE_FORM],
        "additionalProperties": False,
    }


def unique_tools(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Keep the last tool of each name, at the position of the first."""
    return tuple({tool.name: tool for tool in tools}.values())


class ToolIndex:
    """Finds the tools of a request by the name that the model uses."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Index all tools of a request."""
        self._tools: Final = {tool.name: tool for tool in tools}

    def kind(self, name: str) -> ToolKind:
        """Return the kind of a tool; an unknown tool is a function."""
        tool = self._tools.get(name)
        return tool.kind if tool is not None else ToolKind.FUNCTION

    def split(self, name: str) -> tuple[str, str]:
        """Return the namespace and the name by which the client knows a tool."""
        tool = self._tools.get(name)
        return (tool.namespace, tool.local_name or name) if tool is not None else ("", name)


# ---------------------------------------------------------------- names
#
# An alias depends on the name alone, so that it is the same in every turn of a conversation.

_LEGAL = re.compile(r"[A-Za-z0-9_-]+")
_LETTER_FIRST = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS = 8
_NAMES: Final = Memo["ToolNames"]()
_FEW: Final = 4
"""Tools whose map is made faster than it is found."""


class ToolNames:
    """Maps the names of one request to those of its upstream, and back."""

    __slots__ = ("_back", "_given", "_legal", "_longest", "known")

    def __init__(self, names: Iterable[str], longest: int, *, letter_first: bool = False) -> None:
        """Map `names`; `longest` is the number of characters that the wire allows."""
        self._longest = longest
        self._legal = _LETTER_FIRST if letter_first else _LEGAL
        self._back: dict[str, str] = {}
        self._given = frozenset(names)
        self.known = frozenset(self.out(name) for name in self._given)
        """The tools' names as the upstream knows them."""

    @classmethod
    def of(cls, tools: tuple[Tool, ...], longest: int, *, letter_first: bool = False) -> "ToolNames":
        """Return the map for these tools, from a cache if the same tools came before.

        The cached map is copied, because it grows: a history may have calls of tools that the request does not have.
        """
        if len(tools) <= _FEW:
            return cls((tool.name for tool in tools), longest, letter_first=letter_first)
        more = (longest, letter_first)
        known = _NAMES.find(tools, more)
        if known is None:
            known = cls((tool.name for tool in tools), longest, letter_first=letter_first)
            _NAMES.keep(tools, known, sum(map(len, known.known)), more)
        names = object.__new__(cls)
        for place in cls.__slots__:
            setattr(names, place, getattr(known, place))
        names._back = dict(known._back)  # it grows
        return names

    def out(self, name: str) -> str:
        """Return the name for the upstream."""
        if len(name) <= self._longest and self._legal.fullmatch(name):
            return name
        digits = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        stem = _ILLEGAL.sub("_", name)
        stem = stem if self._legal.match(stem) else f"_{stem}"
        alias = f"{stem[: self._longest - _DIGITS - 1]}_{digits[:_DIGITS]}"
        while alias in self._given:  # another tool has this very name: use other digits
            digits = digits[1:]
            alias = f"{stem[: self._longest - _DIGITS - 1]}_{digits[:_DIGITS]}"
        self._back[alias] = name
        return alias

    def back(self, name: str) -> str:
        """Return the name as the request has it."""
        return self._back.get(name, name)

"""Guess which tools a text calls, for a text that comes without tool definitions.

A reader accepts a call only if its name is that of a tool. `AnyTools` accepts every name that a tool could have: each
name that a reader looks up becomes a tool with free arguments. The output of `explain` says that it is a guess.
"""

# `ToolSet` is used by overriding, and `typing.override` is not there before Python 3.12:
# pyright: reportImplicitOverride=false

import re
from collections.abc import Iterable
from itertools import islice
from typing import Final

from toolspeak.dialects import Dialect
from toolspeak.ir.json import JsonObject
from toolspeak.ir.tool import Tool
from toolspeak.toolset.names import UNKNOWN, Match
from toolspeak.toolset.toolset import MOST_TOOLS, ToolSet, compile_tools

_NAME = re.compile(r"(?a:[A-Za-z_][\w.:/-]{0,127})")
_NAMESPACE = re.compile(r"(?:functions?|tools?|default_api)[./:]")
_ELEMENT = re.compile(r"(?a:<(?!tool_calls?>|think)([A-Za-z_]\w{0,127})>)")
_NOT_A_TOOL: Final = "print"
"""Some models wrap their calls in `print(…)`."""
_MOST_ELEMENTS: Final = 64
_UNUSED: Final = Tool("a.tool.that.no.text.calls")


class AnyTools(ToolSet):
    """A tool set in which every plausible name is a tool."""

    def __init__(self, elements: Iterable[str] = (), *, without: Iterable[str] = ()) -> None:
        """Exclude the names in `without`.

        Some dialects write both tools and parameters as `elements` of XML, so that each name can be either.
        """
        super().__init__()
        self._without = frozenset((*without, _NOT_A_TOOL))
        known: JsonObject = {name: {} for name in elements}
        self._parameters: JsonObject = {"type": "object", "properties": known, "additionalProperties": True}
        for name in known:
            self.find(name)

    def __bool__(self) -> bool:
        return True

    @property
    def names(self) -> tuple[str, ...]:
        """The names that were looked up so far."""
        return tuple(self._entries)

    def find(self, name: str, *, counters: bool = False) -> Match:
        """Look a name up, and add it as a tool if it is plausible."""
        del counters
        name = name.partition("<|")[0].strip()
        while found := _NAMESPACE.match(name):
            name = name[found.end() :]
        if name in self._entries:
            return Match(name)
        if name in self._without or not _NAME.fullmatch(name) or len(self) >= MOST_TOOLS:
            return UNKNOWN
        made = compile_tools([Tool(name, parameters=self._parameters)])
        self._entries.update(made._entries)  # noqa: SLF001 - of our own class
        return Match(name)


def guessed_tools(text: str, dialect: Dialect) -> AnyTools:
    """Return tools with which the reader of this dialect finds the calls in a text."""
    elements = dict.fromkeys(found[1] for found in islice(_ELEMENT.finditer(text), _MOST_ELEMENTS))
    any_tools = AnyTools(elements)
    called = {call.name for call in dialect.read(text, any_tools).calls}
    if not any(_is_key(name, text) for name in called):
        return any_tools
    meant = {complaint.name for complaint in dialect.read(text, [_UNUSED]).complaints}
    if None in meant:  # this dialect writes the names of tools as keys
        return any_tools
    return AnyTools(elements, without=(name for name in called - meant if _is_key(name, text)))


def _is_key(name: str, text: str) -> bool:
    """Whether the text has `{"weather": {…}}`, which is an answer in JSON as likely as a call."""
    return re.search(rf'"{re.escape(name)}"\s{{0,9}}:', text) is not None

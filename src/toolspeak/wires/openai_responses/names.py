"""Names of tools in namespaces, and the one flat name by which a model knows each of them.

    {"type": "namespace", "name": "agents", "tools": [{"name": "close"}]}   ->  agents__close

A call goes back to the client under both names: Codex refuses `close`, `agents.close` and `agents__close` alike. The
flat name depends on the two names alone, unless another tool has it already.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Final

from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool, ToolKind
from toolspeak.wires._ids import USABLE
from toolspeak.wires._names import Names
from toolspeak.wires.openai_responses.words import LONGEST_NAME, NAME, SEARCH_TOOL

_DIGITS = 8


class FlatNames:
    """Gives the tools of a client's request, and those that its history has called, their flat names."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Take all tools; those without a namespace keep the name that they have."""
        known = tuple(tools)
        self._plain: Final = {tool.name for tool in known if not tool.namespace and tool.kind is not ToolKind.SEARCH}
        self._taken: Final = set(self._plain)
        self._flat: Final[dict[tuple[str, str], str]] = {}
        self._by_local: Final[dict[str, list[str]]] = {}
        self.search: Final = self._new("", SEARCH_TOOL)
        for tool in known:
            if tool.namespace:
                self.of(tool.namespace, tool.local_name)

    def of(self, namespace: str, name: str) -> str:
        """Return the flat name of a tool that the client knows by these two."""
        if not namespace:
            return name
        if (known := self._flat.get((namespace, name))) is not None:
            return known
        if namespace == name and name in self._plain:  # so the vendor calls a deferred tool that has no namespace
            return name
        flat = self._flat[namespace, name] = self._new(namespace, name)
        self._by_local.setdefault(name, []).append(flat)
        return flat

    def find(self, name: str) -> str:
        """Return the flat name of the only tool of this name, in whatever namespace; else the name as it is."""
        inside = self._by_local.get(name, [])
        return inside[0] if name not in self._plain and len(inside) == 1 else name

    def is_flat(self, name: str) -> bool:
        """Return whether this is the flat name of a tool that has a namespace."""
        return name in self._taken and name not in self._plain

    def named(self, tools: Iterable[Tool]) -> Iterator[Tool]:
        """Give each tool its flat name."""
        for tool in tools:
            name = self.of(tool.namespace, tool.local_name) if tool.namespace else tool.name
            name = self.search if tool.kind is ToolKind.SEARCH else name
            yield tool if name == tool.name else replace(tool, name=name)

    def _new(self, namespace: str, name: str) -> str:
        flat, tries = _joined(namespace, name), 0
        while not USABLE.fullmatch(flat) or flat in self._taken:
            flat, tries = _hashed(namespace, name, tries), tries + 1
        self._taken.add(flat)
        return flat


def _joined(namespace: str, name: str) -> str:
    return f"{namespace}__{name}" if namespace else name


def _hashed(namespace: str, name: str, tries: int) -> str:
    digits = sha256(f"{tries}:{namespace}\0{name}".encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    legal = "".join(char if USABLE.fullmatch(char) else "_" for char in _joined(namespace, name)[:LONGEST_NAME])
    return f"{legal[: LONGEST_NAME - _DIGITS - 1]}_{digits}"


class UpstreamNames:
    """Maps the names of a request to those of its upstream, and back.

    The clients of this wire name their tools themselves, and are the only ones that have namespaces.
    """

    def __init__(self, request: Request) -> None:
        """Take the request that is sent."""
        same_wire = NAME in request.extra
        searches = (tool.name for tool in request.tools if tool.kind is ToolKind.SEARCH)
        self.search: Final = next(searches, SEARCH_TOOL)
        """The name of the client's own search."""
        spaced = [tool for tool in request.tools if tool.namespace and same_wire]
        self._inside: Final = {tool.name: (tool.namespace, tool.local_name) for tool in spaced}
        self._flat: Final = {both: name for name, both in self._inside.items()}
        self._aliases: Final = None if same_wire else Names((tool.name for tool in request.tools), LONGEST_NAME)

    def out(self, name: str) -> tuple[str, str]:
        """Return the namespace (maybe empty) and the name for the upstream."""
        return self._inside.get(name) or ("", self._aliases.out(name) if self._aliases is not None else name)

    def back(self, namespace: str, name: str) -> str:
        """Return the name as the request has it."""
        if (flat := self._flat.get((namespace, name))) is not None:
            return flat
        if namespace not in ("", name):
            return _joined(namespace, name)
        return self._aliases.back(name) if self._aliases is not None else name

"""What was worked out of a request's tools, remembered by the very tuple that they stand in.

Agents send the same 30 KB of tools every turn, and the wires read the same bytes into the same tuple: to look that up
costs nothing, to compare or to hash it would cost as much as the work that is saved.
"""

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from toolspeak.ir.tool import Tool

V = TypeVar("V")
MOST: Final = 64


class Memo(Generic[V]):
    """At most `most` values, the oldest forgotten first. It keeps the tuples, so that no other gets their identity."""

    def __init__(self, most: int = MOST) -> None:
        """Start empty."""
        self._most: Final = most
        self._known: Final[dict[tuple[int, Hashable], tuple[tuple[Tool, ...], V]]] = {}

    def find(self, tools: tuple[Tool, ...], more: Hashable = None) -> V | None:
        """Return what was made of these tools, and of whatever else it depends on, if it is remembered."""
        found = self._known.get((id(tools), more))
        return None if found is None else found[1]

    def keep(self, tools: tuple[Tool, ...], value: V, more: Hashable = None) -> V:
        """Remember a value."""
        if len(self._known) >= self._most:
            self._known.pop(next(iter(self._known)), None)
        self._known[id(tools), more] = (tools, value)
        return value

"""What was worked out of a request's tools, remembered by the very tuple that they are in.

Agents send the same 30 KB of tools every turn, and the wires read the same bytes into the same tuple: to look that up
costs nothing, to compare or to hash it would cost as much as the work that is saved.

Every cache has a limit of entries and one of bytes. Compiled, a schema takes about ten times its text: with a limit of
entries alone, 64 different tool sets left 450 MB in a gateway.
"""

from collections import OrderedDict
from collections.abc import Hashable
from contextlib import suppress
from typing import Final, Generic, TypeVar

from toolspeak.ir.tool import Tool

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
MOST: Final = 64
MOST_BYTES: Final = 1 << 20
LARGEST: Final = MOST_BYTES // 4


class Cache(Generic[K, V]):
    """The most recently used values. `size` is in bytes of the text that a value was made from.

    Two threads may use it: each step is one operation of an `OrderedDict`, and whatever happens between two of them
    costs at most an entry.
    """

    def __init__(self, most: int = MOST) -> None:
        """Take how many values are kept at most."""
        self._most: Final = most
        self._known: Final[OrderedDict[K, tuple[V, int]]] = OrderedDict()
        self._bytes = 0

    def find(self, key: K) -> V | None:
        """Return the value of a key, if it is remembered."""
        found = self._known.get(key)
        if found is None:
            return None
        with suppress(KeyError):  # another thread has evicted it
            self._known.move_to_end(key)
        return found[0]

    def keep(self, key: K, value: V, size: int) -> V:
        """Remember a value, unless it is too large, and return it."""
        if size > LARGEST or key in self._known:
            return value
        self._known[key] = (value, size)
        self._bytes += size
        while len(self._known) > self._most or self._bytes > MOST_BYTES:
            with suppress(KeyError):
                self._bytes -= self._known.popitem(last=False)[1][1]
        return value


class Memo(Generic[V]):
    """A cache by the identity of tuples of tools. It keeps the tuples, so that no other gets their identity."""

    def __init__(self, most: int = MOST) -> None:
        """Start empty."""
        self._cache: Final = Cache[tuple[int, Hashable], tuple[tuple[Tool, ...], V]](most)

    def find(self, tools: tuple[Tool, ...], more: Hashable = None) -> V | None:
        """Return what was made of these tools, and of whatever else it depends on, if it is remembered."""
        found = self._cache.find((id(tools), more))
        return None if found is None else found[1]

    def keep(self, tools: tuple[Tool, ...], value: V, size: int, more: Hashable = None) -> V:
        """Remember a value, and return it."""
        self._cache.keep((id(tools), more), (tools, value), size)
        return value

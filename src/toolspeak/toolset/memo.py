"""Caches for values that are computed from a request's tools, keyed by the identity of their tuple.

Agents send the same 30 KB of tools in every turn, and the wires read the same bytes into the same tuple. A lookup by
identity costs nothing. To dump 30 tools for a cache key cost a quarter of a request.

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
"""Entries of one cache."""
MOST_BYTES: Final = 1 << 20
"""Bytes of text of one cache."""
LARGEST: Final = MOST_BYTES // 4
"""Bytes of text of one entry. A larger one would evict most others, so it is not cached."""


class Cache(Generic[K, V]):
    """A cache of the most recently used values. `size` is in bytes of the text that a value was made from.

    Two threads may use it without a lock: the gateway prepares large requests in a worker thread. Each step is one
    operation of an `OrderedDict`, and a race between two steps costs at most an entry.
    """

    def __init__(self, most: int = MOST) -> None:
        """Start empty; keep at most so many values."""
        self._most: Final = most
        self._known: Final[OrderedDict[K, tuple[V, int]]] = OrderedDict()
        self._bytes = 0

    def find(self, key: K) -> V | None:
        """Return the value of a key; None if it is not cached."""
        found = self._known.get(key)
        if found is None:
            return None
        with suppress(KeyError):  # another thread has evicted it
            self._known.move_to_end(key)
        return found[0]

    def keep(self, key: K, value: V, size: int) -> V:
        """Cache a value unless it is too large; return the value."""
        if size > LARGEST or key in self._known:
            return value
        self._known[key] = (value, size)
        self._bytes += size
        while len(self._known) > self._most or self._bytes > MOST_BYTES:
            with suppress(KeyError):  # another thread has emptied it in between
                self._bytes -= self._known.popitem(last=False)[1][1]
        return value


class Memo(Generic[V]):
    """A cache by the identity of tuples of tools.

    It keeps the tuples alive. Without that, Python could give the identity of a dead tuple to a new one, and a request
    would get the tools of another client.
    """

    def __init__(self, most: int = MOST) -> None:
        """Start empty."""
        self._cache: Final = Cache[tuple[int, Hashable], tuple[tuple[Tool, ...], V]](most)

    def find(self, tools: tuple[Tool, ...], more: Hashable = None) -> V | None:
        """Return the value for these tools; `more` is everything else that it depends on. None if it is not cached."""
        found = self._cache.find((id(tools), more))
        return None if found is None else found[1]

    def keep(self, tools: tuple[Tool, ...], value: V, size: int, more: Hashable = None) -> V:
        """Cache a value unless it is too large; return the value."""
        self._cache.keep((id(tools), more), (tools, value), size)
        return value

"""Stores responses, so that later requests can continue them by their id (WIRE-8).

The store is in the process, or in a file that the workers of one gateway share: the next request of a conversation may
come to any of them. It is bounded for each tenant by number, bytes and time; the oldest response is dropped first (P7).
A tenant finds its own responses only: an id of another one is as unknown as an invented one.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

import msgspec
from typing_extensions import override

from toolspeak.config.shape import Responses
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.local_store import Bounds, LocalStore
from toolspeak.wires import FindResponse, StoredResponse


class _Entry(NamedTuple):
    conversation: StoredResponse
    size: int
    expires: float
    """In monotonic time: a clock that is set back must not keep a response for longer."""


class _Shelf:
    """The responses of one tenant, the oldest first."""

    def __init__(self) -> None:
        self.entries: Final = OrderedDict[str, _Entry]()
        self.size = 0

    def take_out(self, id: str) -> None:
        self.size -= self.entries.pop(id).size


class ResponseStore:
    """The stored responses of all tenants. Tenants are as many as the operator has made keys for."""

    def __init__(self, limits: Responses, clock: Clock) -> None:
        """Start empty."""
        self._limits: Final = limits
        self._clock: Final = clock
        self._shelves: Final[dict[str, _Shelf]] = {}

    @property
    def is_open(self) -> bool:
        """Whether anything is stored at all."""
        return self._limits.entries > 0

    def keep(self, tenant: str, id: str, conversation: StoredResponse) -> None:
        """Store a response, and drop those that are expired or over a limit. One that is too large alone is dropped."""
        shelf = self._shelves.setdefault(tenant, _Shelf())
        size = len(conversation.items) + len(conversation.answer)
        if id in shelf.entries:
            shelf.take_out(id)
        shelf.entries[id] = _Entry(conversation, size, self._clock.monotonic() + self._limits.seconds)
        shelf.size += size
        self._tidy(shelf)

    def finder(self, tenant: str) -> FindResponse:
        """Return the lookup of one tenant's responses."""
        return lambda id: self._find(tenant, id)

    def drop(self, tenant: str, id: str) -> bool:
        """Delete a response; return whether it was there."""
        found = self._find(tenant, id) is not None
        if found:
            self._shelves[tenant].take_out(id)
        return found

    def _find(self, tenant: str, id: str) -> StoredResponse | None:
        shelf = self._shelves.get(tenant)
        if shelf is None:
            return None
        self._tidy(shelf)
        entry = shelf.entries.get(id)
        return entry.conversation if entry is not None else None

    def _tidy(self, shelf: _Shelf) -> None:
        """Drop the oldest responses. All live equally long, so the oldest is also the first to expire."""
        limits, now = self._limits, self._clock.monotonic()
        while shelf.entries:
            id, entry = next(iter(shelf.entries.items()))
            if len(shelf.entries) <= limits.entries and shelf.size <= limits.bytes and entry.expires > now:
                break
            shelf.take_out(id)


_STORED_RESPONSES: Final = "response:"
_read_stored = msgspec.msgpack.Decoder(StoredResponse).decode


class SharedResponseStore(ResponseStore):
    """The stored responses of all workers of a gateway."""

    def __init__(self, limits: Responses, clock: Clock, store: LocalStore) -> None:
        """Take the store that the workers share."""
        super().__init__(limits, clock)
        self._store: Final = store

    @override
    def keep(self, tenant: str, id: str, conversation: StoredResponse) -> None:
        limits, data = self._limits, msgspec.msgpack.encode(conversation)
        bounds = Bounds(limits.seconds, limits.entries, limits.bytes)
        self._store.put(_STORED_RESPONSES + tenant, id, data, bounds)

    @override
    def drop(self, tenant: str, id: str) -> bool:
        return self._store.delete(_STORED_RESPONSES + tenant, id)

    @override
    def _find(self, tenant: str, id: str) -> StoredResponse | None:
        found = self._store.get(_STORED_RESPONSES + tenant, id)
        return _read_stored(found) if found is not None else None

"""How many connections clients may hold, in all and from one address.

A connection costs a file descriptor, and so does the one to the upstream that its request opens. With the usual limit
of 1,024 descriptors a few hundred idle keep-alive connections once locked out every new client. Now a new connection
that finds no room takes the place of the connection that has been idle for longest; only when all of them are busy is
it refused. A connection is idle until a whole request has arrived, so that half-sent bodies lock out nobody either.
"""

import sys
from collections import Counter, OrderedDict
from typing import Final, Protocol

from toolspeak.config.shape import Limits

if sys.platform != "win32":
    import resource

_RESERVED: Final = 64
"""Descriptors kept free for listeners, the log, DNS, databases."""
_PER_CLIENT: Final = 2
"""Descriptors that a busy client takes: its own connection and the one to the upstream."""


class Idle(Protocol):
    """A connection that can be closed while no request is being answered on it."""

    def close_idle(self) -> None:
        """Close it."""
        ...


class Connections:
    """The open connections of one server."""

    def __init__(self, limits: Limits) -> None:
        """Take the limits; fewer file descriptors than they need lower them."""
        self._most: Final = min(limits.connections, _descriptors())
        self._most_per_address: Final = min(limits.connections_per_address, max(1, self._most // 2))
        self._address: Final[dict[Idle, str]] = {}
        self._count: Final[Counter[str]] = Counter()
        self._idle: Final[OrderedDict[Idle, None]] = OrderedDict()
        """Connections without a whole request, the longest idle first."""
        self.refused = 0
        self.reclaimed = 0

    def __len__(self) -> int:
        return len(self._address)

    def add(self, connection: Idle, address: str) -> bool:
        """Count a new connection, which is idle until its first request; False if there is no room for it."""
        full = len(self._address) >= self._most
        crowded = self._count[address] >= self._most_per_address
        if (full or crowded) and not self._reclaim(address if crowded else None):
            self.refused += 1
            return False
        self._address[connection] = address
        self._count[address] += 1
        self._idle[connection] = None
        return True

    def remove(self, connection: Idle) -> None:
        """Forget a closed connection; one that was refused was never counted."""
        self._idle.pop(connection, None)
        address = self._address.pop(connection, None)
        if address is not None:
            self._count[address] -= 1
            if not self._count[address]:
                del self._count[address]

    def busy(self, connection: Idle) -> None:
        """Mark that a request is being answered: the connection cannot be reclaimed."""
        self._idle.pop(connection, None)

    def idle(self, connection: Idle) -> None:
        """Mark that the response is complete, or that the head of the next request is."""
        if connection in self._address:
            self._idle[connection] = None
            self._idle.move_to_end(connection)

    def _reclaim(self, address: str | None) -> bool:
        """Close the connection that has been idle for longest, of this address if one is given."""
        found = next((each for each in self._idle if address in (None, self._address[each])), None)
        if found is None:
            return False
        self.remove(found)  # its own `connection_lost` comes later
        self.reclaimed += 1
        found.close_idle()
        return True


def _descriptors() -> int:
    """Return how many clients the limit of open files leaves room for."""
    if sys.platform == "win32":
        return sys.maxsize
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft < 0 else max(1, (soft - _RESERVED) // _PER_CLIENT)

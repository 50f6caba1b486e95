"""Limits the requests that are answered at one time, of all clients and of one key, and the requests a minute of a key.

The limits protect tenants from each other, so a refused request must cost nothing: it is refused before its body is
read. The rate limit is a GCRA (a leaky bucket in one number): `_next[tenant]` is when the tenant's requests would be
used up if they came evenly. A tenant may spend a whole minute's requests at once and then one at a time; no counter
needs resetting, and a tenant costs one float. Each process counts for itself: with N processes a tenant gets N times
its limits.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from toolspeak.config.shape import Key, Limits
from toolspeak.gateway.exchange import Refused
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.clock import Clock

_MINUTE = 60.0
_ROUNDING = 0.001  # sums of 60 / n differ from 60 in their last digits


class Admission:
    """Counts the requests being answered, and their rate."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        """Start with no request inside."""
        self._limits: Final = limits
        self._clock: Final = clock
        self._inside = 0
        self._of_tenant: Final[dict[str, int]] = {}
        self._next: Final[dict[str, float]] = {}
        """Monotonic time at which each tenant's requests would be used up, if they came evenly."""

    @property
    def inside(self) -> int:
        """The number of requests being answered."""
        return self._inside

    @contextmanager
    def enter(self, key: Key) -> Generator[None]:
        """Count one request while it is answered; raises `Refused` (429, with `Retry-After`) if there is no room."""
        self._check(key)  # nothing is awaited between check and count, so two requests cannot both take the last slot
        self._inside += 1
        self._of_tenant[key.tenant] = self._of_tenant.get(key.tenant, 0) + 1
        try:
            yield
        finally:
            self._inside -= 1
            self._of_tenant[key.tenant] -= 1

    def _check(self, key: Key) -> None:
        if self._inside >= self._limits.concurrent:
            raise _busy(f"the gateway already has {self._inside} requests (limits.concurrent)", 1.0)
        if key.concurrent is not None and self._of_tenant.get(key.tenant, 0) >= key.concurrent:
            raise _busy(f"this key already has {key.concurrent} requests open", 1.0)
        if key.requests_per_minute is not None:
            self._check_rate(key, key.requests_per_minute)

    def _check_rate(self, key: Key, per_minute: int) -> None:
        now = self._clock.monotonic()
        spent = max(self._next.get(key.tenant, now), now) + _MINUTE / per_minute
        wait = spent - now - _MINUTE
        if wait > _ROUNDING:
            raise _busy(f"this key may ask {per_minute} times a minute", wait)
        # Only an admitted request counts: a client that ignores `Retry-After` does not lock itself out forever.
        self._next[key.tenant] = spent


def _busy(message: str, after: float) -> Refused:
    return Refused(Failure(FailureKind.RATE_LIMITED, message, 429, retry_after=after))

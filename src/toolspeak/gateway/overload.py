"""Refuses new requests before the process runs out of memory or time, as Envoy's overload manager does.

Three things are watched, and each has a stated bound:

    memory        `limits.memory_bytes` of resident memory. Above it new requests get 503 until it falls.
    large bodies  `limits.buffered_bytes` of bodies held at one time, and half of that for one tenant. A body that
                  does not fit gets 503. The first 64 KiB of a body do not count, so that ordinary requests always have
                  room.
    loop delay    `limits.loop_delay_seconds`: how late the event loop runs its timers. Above it, and with many
                  requests inside, new requests get 503. A single user is never refused for it: a laptop that wakes
                  up has a delay of hours.

A refused request is a 503 with `Retry-After`: SDKs retry it, and a load balancer sends it elsewhere. Without these
bounds one body of 19 MB held up all clients for 23 seconds, and the memory that it had used was never returned.

`GET /health/load` answers `report()`.
"""

import asyncio
import ctypes
import sys
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Final

from toolspeak.config.shape import Limits
from toolspeak.gateway.admission import NO_LIMIT_FIGURES, LimitFigures
from toolspeak.gateway.exchange import Refused
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import JsonObject
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.offload import THREADED

TICK: Final = 0.1
"""Seconds between two measurements."""
_SAMPLES: Final = 600
"""Measurements that are kept: one minute of them."""
_BUSY: Final = 16
"""From this many requests on, a late event loop is an overload and not a pause of the machine."""
_RETRY_AFTER: Final = 2.0
"""Seconds of `Retry-After`."""
_MEMORY: Final = Path("/proc/self/statm")
_MILLISECONDS: Final = 1000


_SHED: Final = ("memory", "loop_delay", "buffered")
"""Why requests are refused."""


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """The figures of an overload that `GET /metrics` has, in base units."""

    requests: int
    delay_p50: float
    delay_p99: float
    resident_bytes: int
    buffered_bytes: int
    shed: Mapping[str, int]
    """Requests refused so far, by reason."""
    limits: LimitFigures = NO_LIMIT_FIGURES


class Overload:
    """Measures one process, and refuses requests while a measurement is over its limit."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        """Take the limits; `start` begins to measure."""
        self.limits = limits
        """A reload replaces them."""
        self._clock: Final = clock
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        """When the next measurement should run; how much later it does is the delay of the event loop."""
        self._delays: Final[deque[float]] = deque((0.0,), maxlen=_SAMPLES)
        self._resident = 0
        """Resident memory at the last measurement: `check` runs for each request and must not read /proc."""
        self._buffered: Final[Counter[str]] = Counter()
        """Bytes of large bodies, by tenant, without the first 64 KiB of each."""
        self._untrimmed = False
        """A large body was released since freed memory was last returned to the system."""
        self._trimming: asyncio.Future[None] | None = None
        """Keeps a reference to the running trim."""
        self._shed: Final[Counter[str]] = Counter()
        """Refused requests, by reason."""

    def start(self) -> None:
        """Start measuring; needs a running event loop."""
        self._resident = resident_bytes()
        self._schedule()

    def stop(self) -> None:
        """Stop measuring."""
        if self._timer is not None:
            self._timer.cancel()

    def check(self, inside: int) -> None:
        """Raise `Refused` (503) while the process is overloaded. `inside` is the number of requests being answered."""
        if self._resident > self.limits.memory_bytes:
            raise self._refusal("memory", "the gateway uses all of its memory (limits.memory_bytes)")
        if inside >= _BUSY and self._delays[-1] > self.limits.loop_delay_seconds:
            raise self._refusal("loop_delay", "the gateway is late (limits.loop_delay_seconds)")

    def hold(self, tenant: str, held: int, more: int) -> None:
        """Count `more` bytes of a body of which `held` have arrived. Raises `Refused` (503) if there is no room.

        A tenant may hold half of the budget, so that one tenant's large bodies leave room for those of the others.
        """
        counted = max(0, held + more - THREADED) - max(0, held - THREADED)
        most = self.limits.buffered_bytes
        if counted and (self._buffered.total() + counted > most or self._buffered[tenant] + counted > most // 2):
            raise self._refusal("buffered", "other large requests are being answered (limits.buffered_bytes)")
        self._buffered[tenant] += counted

    def release(self, tenant: str, held: int) -> None:
        """Return the budget of a body of `held` bytes."""
        if held > THREADED:
            self._buffered[tenant] -= held - THREADED
            self._untrimmed = True
            if not self._buffered[tenant]:
                del self._buffered[tenant]

    def report(self, inside: int) -> JsonObject:
        """Return the figures of `GET /health/load`: delays of the last minute, the rest as of now."""
        delays = sorted(self._delays)
        return {
            "requests": inside,
            "loop_delay_ms": {
                "last": round(self._delays[-1] * _MILLISECONDS, 1),
                "p99": round(_quantile(delays, 0.99) * _MILLISECONDS, 1),
                "max": round(delays[-1] * _MILLISECONDS, 1),
                "limit": round(self.limits.loop_delay_seconds * _MILLISECONDS, 1),
            },
            "memory_bytes": {"resident": self._resident, "limit": self.limits.memory_bytes},
            "buffered_bytes": {"held": self._buffered.total(), "limit": self.limits.buffered_bytes},
            "shed": {reason: self._shed[reason] for reason in _SHED},
        }

    def load(self, inside: int, limits: LimitFigures = NO_LIMIT_FIGURES) -> LoadFigures:
        """Return the figures of `GET /metrics`, with those of limits; the delays are those of the last minute."""
        delays = sorted(self._delays)
        shed = {reason: self._shed[reason] for reason in _SHED}
        p50, p99 = _quantile(delays, 0.5), _quantile(delays, 0.99)
        return LoadFigures(inside, p50, p99, self._resident, self._buffered.total(), shed, limits)

    def _schedule(self) -> None:
        self._due = self._clock.monotonic() + TICK
        self._timer = asyncio.get_running_loop().call_later(TICK, self._measure)

    def _measure(self) -> None:
        self._delays.append(max(0.0, self._clock.monotonic() - self._due))
        self._resident = resident_bytes()
        # Only when no large body is left: malloc_trim walks the whole heap, and the next body would need it again.
        if self._untrimmed and not self._buffered.total():
            self._untrimmed = False
            self._trimming = asyncio.get_running_loop().run_in_executor(None, trim_memory)
        self._schedule()

    def _refusal(self, reason: str, message: str) -> Refused:
        self._shed[reason] += 1
        return Refused(Failure(FailureKind.TRANSIENT, f"{message}: try again", 503, retry_after=_RETRY_AFTER))


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[ceil(len(ordered) * share) - 1]


def resident_bytes() -> int:
    """Return the resident memory of this process; 0, which disables the limit, on systems without /proc."""
    try:
        pages = int(_MEMORY.read_bytes().split()[1])
    except OSError:
        return 0
    return pages * _PAGE


def trim_memory() -> None:
    """Return freed memory to the system.

    glibc keeps what large requests used: after the schemas of one request the process stayed at 453 MB. It would look
    full, and refuse requests, without holding anything.
    """
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except AttributeError:  # musl has no such function, and keeps less
            return


def _page_size() -> int:
    if sys.platform == "win32":
        return 4096
    import resource  # noqa: PLC0415 # not on Windows

    return resource.getpagesize()


_PAGE: Final = _page_size()

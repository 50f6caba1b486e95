"""Decides whether a request fits under the limits of a key or a model, where the counts are in this process or machine.

A rate is a GCRA (a leaky bucket in one number): the time at which what a subject has spent would be used up if it were
spent evenly. A subject may spend a whole minute at once and then as much as flows in; no counter needs resetting.
Requests are spent when they are admitted. Tokens are known at the end of an answer and spent then: a request is
admitted while a token is left, an answer may spend more than that, and the subject waits until the debt is paid. So
the average holds, whatever the size of one answer.

`fleet_limits.py` decides by the same rules in Redis, and by these while Redis is away.
"""

from dataclasses import dataclass
from typing import Final, Protocol

from toolspeak.config.shape import RateLimits
from toolspeak.gateway.tally import LimitTally, Meter
from toolspeak.runtime.clock import Clock

MINUTE: Final = 60.0
ROUNDING: Final = 0.001
"""Seconds: sums of 60 / n differ from 60 in their last digits."""
FULL_WAIT: Final = 1.0
"""Seconds to wait for one of the open requests to end; nobody knows when that is."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A request that wants to be answered under the limits of a subject, such as `key:anna` or `model:box:qwen3`."""

    subject: str
    limits: RateLimits
    lease: str
    """Identifies the request among the open ones of the subject."""
    is_free: bool = False
    """It does not count against rates, only among the open requests."""

    def rates(self) -> list[tuple[Meter, int]]:
        """Return the limits by the minute that apply."""
        limits = self.limits
        pairs = (
            (Meter.REQUESTS, limits.requests_per_minute),
            (Meter.INPUT_TOKENS, limits.input_tokens_per_minute),
            (Meter.OUTPUT_TOKENS, limits.output_tokens_per_minute),
        )
        return [] if self.is_free else [(meter, limit) for meter, limit in pairs if limit is not None]


@dataclass(frozen=True, slots=True)
class Spent:
    """What a request has spent at its end, beyond itself."""

    input_tokens: int = 0
    output_tokens: int = 0
    is_refunded: bool = False
    """The request was refused after all: it takes back what it spent when it was admitted."""

    def amount(self, meter: Meter) -> int:
        """Return what is spent of a meter."""
        match meter:
            case Meter.REQUESTS:
                return -1 if self.is_refunded else 0
            case Meter.INPUT_TOKENS:
                return self.input_tokens
            case Meter.OUTPUT_TOKENS:
                return self.output_tokens


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a request is refused: a meter, or None for the open requests; and the seconds after which there is room."""

    meter: Meter | None
    wait: float


class LimitStore(Protocol):
    """Counts what the subjects of limits have open and have spent. No method raises."""

    @property
    def is_alone(self) -> bool:
        """Whether the counts should be shared by a fleet, and are not at present."""
        ...

    async def take(self, demand: Demand) -> Denial | None:
        """Count a request if it fits; else return why not, and count nothing."""
        ...

    def end(self, demand: Demand, spent: Spent) -> None:
        """Count the end of a request that was admitted, and what it has spent."""
        ...

    async def close(self) -> None:
        """Give back what is open."""
        ...


class LocalLimits:
    """Counts in a tally, of this process or of all workers of this gateway."""

    is_alone = False

    def __init__(self, tally: LimitTally, clock: Clock) -> None:
        """Take the counts."""
        self._tally: Final = tally
        self._clock: Final = clock

    async def take(self, demand: Demand) -> Denial | None:
        """Count a request if it fits."""
        return self.decide(demand)

    def decide(self, demand: Demand) -> Denial | None:
        """Count a request if it fits; nothing is awaited."""
        # Other workers wait between check and count, so two requests cannot take the last place.
        with self._tally.lock():
            denial = self._check(demand)
            if denial is None:
                self._count(demand)
        return denial

    def count(self, demand: Demand) -> None:
        """Count a request that was admitted elsewhere."""
        with self._tally.lock():
            self._count(demand)

    def end(self, demand: Demand, spent: Spent) -> None:
        """Count the end of a request, and what it has spent."""
        with self._tally.lock():
            if demand.limits.concurrent is not None:
                self._tally.add(demand.subject, -1)
            for meter, limit in demand.rates():
                if amount := spent.amount(meter):
                    self._spend(demand.subject, meter, amount * MINUTE / limit)

    async def close(self) -> None:
        """Do nothing: the counts end with their processes."""

    def _check(self, demand: Demand) -> Denial | None:
        most = demand.limits.concurrent
        if most is not None and self._tally.open_of(demand.subject) >= most:
            return Denial(None, FULL_WAIT)
        now, denial = self._clock.monotonic(), None
        for meter, limit in demand.rates():
            wait = max(self._tally.used_up_at(demand.subject, meter) - now, 0.0) + MINUTE / limit - MINUTE
            if wait > max(ROUNDING, denial.wait if denial is not None else 0.0):
                denial = Denial(meter, wait)
        return denial

    def _count(self, demand: Demand) -> None:
        if demand.limits.concurrent is not None:
            self._tally.add(demand.subject, 1)
        # Only an admitted request counts: a client that ignores `Retry-After` does not lock itself out forever.
        for meter, limit in demand.rates():
            if meter is Meter.REQUESTS:
                self._spend(demand.subject, meter, MINUTE / limit)

    def _spend(self, subject: str, meter: Meter, seconds: float) -> None:
        used_up = max(self._tally.used_up_at(subject, meter), self._clock.monotonic())
        self._tally.spend(subject, meter, used_up + seconds)

"""Confidence intervals of 95 %."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Z = 1.959964
RESAMPLES = 2000
FEWEST = 10
SEED = 20260


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval, as shares from 0 to 1 (a difference from -1 to 1)."""

    value: float
    low: float
    high: float
    count: int

    @property
    def is_clear(self) -> bool:
        """Tell whether a difference is surely not zero."""
        return self.low > 0 or self.high < 0


def share(hits: int, count: int) -> Estimate | None:
    """Return a share with Wilson's interval, which stays honest near 0 and 1; None of nothing."""
    if not count:
        return None
    part, spread = hits / count, Z * Z / count
    middle = (part + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * math.sqrt(part * (1 - part) / count + spread / (4 * count))
    return Estimate(part, max(0.0, middle - half), min(1.0, middle + half), count)


def average(sets: Mapping[str, Sequence[float]], least: float = 0.0) -> Estimate | None:
    """Return the mean of the sets' means; its interval comes from resampling the tasks of every set.

    Resampling a few tasks with equal results shows no variation: with too few tasks the interval is `least` to 1.
    """
    if not sets or not all(sets.values()):
        return None
    if min(map(len, sets.values())) < FEWEST:
        return Estimate(_mean([_mean(values) for values in sets.values()]), least, 1.0, sum(map(len, sets.values())))
    chance = random.Random(SEED)
    means = sorted(_mean([_mean(chance.choices(values, k=len(values))) for values in sets.values()]) for _ in _DRAWS)
    edge = round(RESAMPLES * 0.025)
    value = _mean([_mean(values) for values in sets.values()])
    return Estimate(value, means[edge], means[-1 - edge], sum(map(len, sets.values())))


_DRAWS = range(RESAMPLES)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)

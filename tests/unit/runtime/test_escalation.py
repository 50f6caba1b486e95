"""How often a stronger model is asked: at most so many times a minute (POOL-6)."""

from random import Random

import pytest

from toolspeak.runtime.escalation import EscalationLimit


def test_a_minutes_share_may_be_spent_at_once_and_grows_back_pool6() -> None:
    limit = EscalationLimit(3)
    assert [limit.spend(0.0) for _ in range(5)] == [True, True, True, False, False]
    assert not limit.spend(19.0)
    assert limit.spend(20.1)
    assert not limit.spend(20.2)
    assert [limit.spend(1000.0) for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize("seed", range(10))
def test_in_no_minute_more_than_twice_the_limit_pool6(seed: int) -> None:
    random, limit, now = Random(seed), EscalationLimit(10), 0.0
    asked: list[float] = []
    for _ in range(3000):
        now += random.expovariate(2.0)
        if limit.spend(now):
            asked.append(now)
    assert all(sum(start <= at < start + 60 for at in asked) <= 20 for start in asked)
    assert len(asked) <= 10 + now / 6 + 1

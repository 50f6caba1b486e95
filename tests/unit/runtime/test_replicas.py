"""Which server of a pool gets a request, and which servers are out of service: decisions without a network."""

from random import Random

import pytest

from toolspeak.runtime.replicas import (
    EJECT_AFTER,
    EJECTION,
    LONGEST_EJECTION,
    LONGEST_REST,
    MOST_FAILED,
    RECENT,
    Replica,
    ReplicaPool,
    RetryBudget,
)

URLS = tuple(f"http://127.0.0.1:{port}/v1" for port in range(8000, 8005))


def taken(pool: ReplicaPool, key: str = "", now: float = 0.0, avoid: tuple[Replica, ...] = ()) -> Replica:
    """Choose, and end the request at once."""
    replica = pool.take(now, key, avoid=avoid)
    replica.in_flight -= 1
    return replica


def eject(pool: ReplicaPool, replica: Replica, now: float = 0.0) -> None:
    pool.fail(replica, now, is_down=True)
    assert replica.is_out


# ---------------------------------------------------------------- choice


def test_without_a_key_the_least_loaded_server_gets_the_request_pool1() -> None:
    pool = ReplicaPool(URLS)
    for _ in range(50):
        pool.take(0.0)
    assert [each.in_flight for each in pool.replicas] == [10] * 5


def test_between_equals_chance_decides_pool1() -> None:
    pool = ReplicaPool(URLS[:2])
    assert pool.take(0.0, tie=0.0).url == URLS[0]
    pool = ReplicaPool(URLS[:2])
    assert pool.take(0.0, tie=0.99).url == URLS[1]


def test_a_conversation_stays_with_its_server_and_conversations_are_spread_pool1() -> None:
    pool, other_process = ReplicaPool(URLS), ReplicaPool(URLS)
    keys = [f"conversation {number}" for number in range(500)]
    first = {key: taken(pool, key).url for key in keys}
    assert {key: taken(other_process, key).url for key in keys} == first
    shares = [list(first.values()).count(url) for url in URLS]
    assert min(shares) > 60, shares


def test_only_the_conversations_of_an_ejected_server_move_and_they_return_with_it_pool1() -> None:
    pool = ReplicaPool(URLS)
    keys = [f"conversation {number}" for number in range(300)]
    before = {key: taken(pool, key) for key in keys}
    gone = pool.replicas[2]
    eject(pool, gone)
    during = {key: taken(pool, key) for key in keys}
    assert all(during[key] is before[key] for key in keys if before[key] is not gone)
    assert all(during[key] is not gone for key in keys)
    assert gone.take_probe(EJECTION)
    gone.end_probe(EJECTION, answers=True)
    assert {key: taken(pool, key) for key in keys} == before


@pytest.mark.parametrize("seed", range(20))
def test_no_server_gets_much_more_than_the_least_loaded_whatever_comes_pool1(seed: int) -> None:
    random, pool = Random(seed), ReplicaPool(URLS)
    open_requests: list[Replica] = []
    for _ in range(600):
        if open_requests and random.random() < 0.45:
            open_requests.pop(random.randrange(len(open_requests))).in_flight -= 1
        key = random.choice(("", "one hot conversation", f"conversation {random.randrange(30)}"))
        least = min(each.in_flight for each in pool.replicas)
        chosen = pool.take(0.0, key, random.random())
        open_requests.append(chosen)
        assert chosen.in_flight - 1 <= 2 * least + 4
        assert sum(each.in_flight for each in pool.replicas) == len(open_requests)


def test_a_server_that_failed_this_request_is_avoided_pool4() -> None:
    pool = ReplicaPool(URLS[:3])
    tried = tuple(pool.replicas[:2])
    assert taken(pool, "any", avoid=tried) is pool.replicas[2]
    assert pool.has_other(0.0, tried)
    assert not pool.has_other(0.0, pool.replicas)
    assert taken(pool, "any", avoid=pool.replicas) in pool.replicas


# ---------------------------------------------------------------- health


def test_failures_in_a_row_eject_a_server_and_a_success_between_them_does_not_pool2() -> None:
    pool = ReplicaPool(URLS[:2])
    bad = pool.replicas[0]
    for _ in range(EJECT_AFTER - 1):
        pool.fail(bad, 0.0)
    bad.succeed(0.0)
    for _ in range(EJECT_AFTER - 1):
        pool.fail(bad, 0.0)
    assert not bad.is_out
    pool.fail(bad, 0.0)
    assert bad.is_out
    assert bad.ejected == 1


def test_a_server_that_fails_every_other_request_is_an_outlier_pool2() -> None:
    pool = ReplicaPool(URLS[:2])
    bad = pool.replicas[0]
    for _ in range(RECENT // 2 - 1):
        bad.succeed(0.0)
        pool.fail(bad, 0.0)
    assert not bad.is_out
    bad.succeed(0.0)
    pool.fail(bad, 0.0)
    assert bad.is_out
    assert bad.failed == MOST_FAILED


def test_each_ejection_in_a_row_is_longer_up_to_a_limit_pool2() -> None:
    pool = ReplicaPool(URLS[:2])
    bad, now, seconds = pool.replicas[0], 0.0, list[float]()
    for _ in range(8):
        pool.fail(bad, now, is_down=True)
        seconds.append(bad.out_until - now)
        now = bad.out_until
        assert bad.take_probe(now)
        bad.end_probe(now, answers=True)
    assert seconds == [5, 10, 20, 40, 80, 120, 120, 120]
    now += LONGEST_EJECTION + 1  # it has served for long: the next ejection is short again
    pool.fail(bad, now, is_down=True)
    assert bad.out_until - now == EJECTION


def test_an_ejected_server_returns_by_a_probe_when_its_time_is_up_pool3() -> None:
    pool = ReplicaPool(URLS[:2])
    bad = pool.replicas[0]
    eject(pool, bad)
    assert pool.due(EJECTION - 0.1) == []
    assert pool.due(EJECTION) == [bad]
    assert pool.due(EJECTION) == []  # one caller probes
    bad.end_probe(EJECTION, answers=False)
    assert bad.is_out
    assert pool.due(EJECTION + 2 * EJECTION) == [bad]
    bad.end_probe(15.0, answers=None)  # cancelled: the next caller probes
    assert pool.due(15.0) == [bad]
    bad.end_probe(15.0, answers=True)
    assert not bad.is_out


def test_a_server_that_lists_its_models_and_fails_turns_is_out_after_one_failure_pool3() -> None:
    pool = ReplicaPool(URLS[:2])
    bad = pool.replicas[0]
    eject(pool, bad)
    assert bad.take_probe(EJECTION)
    bad.end_probe(EJECTION, answers=True)
    pool.fail(bad, EJECTION)
    assert bad.is_out
    assert bad.out_until - EJECTION == 2 * EJECTION


def test_the_pool_never_refuses_a_request_pool2() -> None:
    pool = ReplicaPool(URLS[:3])
    for number, replica in enumerate(pool.replicas):
        eject(pool, replica, float(number))
    assert pool.is_out()
    assert taken(pool, "any", 3.0) is pool.replicas[0]  # due back first
    pool.replicas[0].succeed(3.0)
    assert not pool.is_out()


def test_a_busy_server_is_spared_and_is_not_ejected_pool2() -> None:
    pool = ReplicaPool(URLS[:2])
    busy, other = pool.replicas
    busy.rest(0.0, 3600.0)
    assert {taken(pool, f"c{number}", 1.0) for number in range(20)} == {other}
    assert not busy.is_out
    assert busy.serves(LONGEST_REST)
    other.rest(0.0, 10.0)
    assert taken(pool, "c", 1.0) is other  # all are busy: the one that is free first


@pytest.mark.parametrize("seed", range(20))
def test_whatever_fails_a_request_finds_a_server_that_serves_if_there_is_one_pool2(seed: int) -> None:
    random, pool, now = Random(seed), ReplicaPool(URLS), 0.0
    for _ in range(500):
        now += random.random() * 3
        for replica in pool.due(now):
            replica.end_probe(now, answers=random.random() < 0.5)
        serving = [each for each in pool.replicas if each.serves(now)]
        chosen = pool.take(now, f"c{random.randrange(9)}")
        assert chosen in serving or not serving
        match random.randrange(4):
            case 0:
                pool.fail(chosen, now, is_down=random.random() < 0.3)
            case 1:
                chosen.rest(now, random.random() * 9)
            case _:
                chosen.succeed(now)
        chosen.in_flight -= 1
    assert [each.in_flight for each in pool.replicas] == [0] * len(URLS)


# ---------------------------------------------------------------- budget


def test_retries_are_a_share_of_requests_pool4() -> None:
    budget = RetryBudget()
    for _ in range(1000):
        budget.count_request(0.0)
        budget.spend(0.0)
        budget.spend(0.0)
    assert budget.used == 210  # a fifth, and ten
    assert budget.used + budget.denied == 2000


def test_a_quiet_upstream_may_be_retried_and_the_past_is_forgotten_pool4() -> None:
    budget = RetryBudget()
    assert [budget.spend(0.0) for _ in range(11)] == [True] * 10 + [False]
    assert budget.spend(60.0)


@pytest.mark.parametrize("seed", range(10))
def test_in_the_long_run_retries_stay_below_a_fifth_and_one_a_second_pool4(seed: int) -> None:
    random, budget, now, requests = Random(seed), RetryBudget(), 0.0, 0
    for _ in range(5000):
        now += random.random() * 0.05
        requests += 1
        budget.count_request(now)
        for _ in range(random.randrange(4)):
            budget.spend(now)
    assert budget.used <= 0.2 * requests + 1.0 * now + 30


def test_a_server_that_dies_with_many_requests_leaves_a_retry_for_each_pool4() -> None:
    pool = ReplicaPool(URLS[:2])
    lost = [pool.take(0.0, "one hot conversation") for _ in range(200)]
    dead = lost[0]
    spent = 0
    for replica in lost:
        if replica is dead:
            dead.in_flight -= 1
            pool.fail(dead, 0.0)
            spent += pool.budget.spend(0.0)
    assert spent == lost.count(dead) > 20

"""The schedule of faults of `just fleet`."""

from collections import Counter
from itertools import pairwise

import pytest

from bench.fleet.schedule import CALM, NATURES, Kind, Part, Targets, schedule

NAMES = {
    Part.GATEWAY: [f"gateway-{number}" for number in range(4)],
    Part.RUN_WORKER: ["run-worker-0", "run-worker-1"],
    Part.UPSTREAM: [f"upstream-{number}" for number in range(3)],
    Part.PROXY: ["proxy"],
    Part.REDIS: ["redis"],
    Part.POSTGRES: ["postgres"],
}
TARGETS: Targets = {kind: [name for each in NATURES[kind] for name in NAMES[each.part]] for kind in Kind}


def test_a_seed_gives_the_same_faults_each_time_and_another_seed_others() -> None:
    assert schedule(7, 1200, TARGETS) == schedule(7, 1200, TARGETS)
    assert schedule(7, 1200, TARGETS) != schedule(8, 1200, TARGETS)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("seconds", [60.0, 300.0, 1200.0])
def test_faults_come_after_the_calm_and_end_before_the_last_one(seed: int, seconds: float) -> None:
    faults = schedule(seed, seconds, TARGETS)
    assert len(faults) >= 7
    assert all(seconds * CALM <= fault.at and fault.ends <= seconds * (1 - CALM) for fault in faults)
    assert [fault.at for fault in faults] == sorted(fault.at for fault in faults)


@pytest.mark.parametrize("seed", range(20))
def test_twenty_minutes_have_every_kind_twice_and_no_kind_much_more_often(seed: int) -> None:
    counts = Counter(fault.kind for fault in schedule(seed, 1200, TARGETS))
    assert set(counts) == set(Kind)
    assert min(counts.values()) >= 2
    assert max(counts.values()) - min(counts.values()) <= 2


@pytest.mark.parametrize("seed", range(20))
def test_two_minutes_have_every_kind(seed: int) -> None:
    assert {fault.kind for fault in schedule(seed, 120, TARGETS)} == set(Kind)


@pytest.mark.parametrize("seed", range(20))
def test_a_target_has_one_fault_at_a_time(seed: int) -> None:
    faults = schedule(seed, 1200, TARGETS)
    for target in {fault.target for fault in faults}:
        own = [fault for fault in faults if fault.target == target]
        assert all(first.ends <= second.at for first, second in pairwise(own)), target


def test_faults_last_as_long_as_their_kind_says() -> None:
    for fault in schedule(3, 3000, TARGETS):
        [nature] = [each for each in NATURES[fault.kind] if fault.target.startswith(each.part)]
        assert nature.shortest_s <= fault.seconds <= nature.longest_s


def test_a_kind_without_a_target_is_left_out() -> None:
    faults = schedule(1, 1200, {**TARGETS, Kind.FULL_DISK: (), Kind.CLOCK_STEP: ()})
    assert not {fault.kind for fault in faults} & {Kind.FULL_DISK, Kind.CLOCK_STEP}


def test_no_target_at_all_is_no_fault() -> None:
    assert schedule(1, 600, {}) == ()

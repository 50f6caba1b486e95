"""The counts that workers share: exact over processes, whatever happens to one of them."""

import os
import signal
import sys
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
from typing_extensions import override

from tests.gateway.scene import finished
from toolspeak.config.shape import Key, Limits, RateLimits
from toolspeak.gateway.admission import Admission
from toolspeak.gateway.exchange import Refused
from toolspeak.gateway.tally import Meter, SharedActivity, SharedTally
from toolspeak.runtime.clock import CLOCK

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")


class _Hesitant(SharedTally):
    """Waits between check and count, so that processes without a lock would admit too many."""

    @override
    def add(self, subject: str, change: int) -> None:
        time.sleep(0.0005)
        super().add(subject, change)

    @override
    def add_total(self, change: int) -> None:
        time.sleep(0.0005)
        super().add_total(change)

    @override
    def spend(self, subject: str, meter: Meter, until: float) -> None:
        time.sleep(0.0005)
        super().spend(subject, meter, until)


@pytest.fixture
def tally(tmp_path: Path) -> SharedTally:
    return _Hesitant(tmp_path / "lock", columns=4)


def open_of(tally: SharedTally, subject: str) -> int:
    with tally.lock():
        return tally.open_of(subject)


def forked(tally: SharedTally, column: int, attempts: int, key: Key, limits: Limits) -> int:
    """Start a process that enters without leaving, and ends with the number of requests that were admitted."""
    pid = os.fork()
    if pid:
        return pid
    tally.column = column
    admission, inside = Admission(limits, CLOCK, tally), AsyncExitStack()
    for _ in range(attempts):
        with suppress(Refused):
            finished(inside.enter_async_context(admission.enter(key)))
    os._exit(admission.inside)


def admitted(pids: list[int]) -> list[int]:
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


@pytest.mark.parametrize(
    ("key", "limits"),
    [
        (Key("anna", b"", limits=RateLimits(concurrent=150)), Limits()),
        (Key("anna", b"", limits=RateLimits(requests_per_minute=150)), Limits()),
        (Key("anna", b""), Limits(concurrent=150)),
    ],
    ids=["open-of-a-key", "rate-of-a-key", "open-of-all"],
)
def test_a_limit_is_exact_while_processes_race_obs20(tally: SharedTally, key: Key, limits: Limits) -> None:
    began = time.monotonic()
    counts = admitted([forked(tally, column, 1000, key, limits) for column in range(4)])
    back = int((time.monotonic() - began) * 150 / 60) + 1 if key.limits.requests_per_minute else 0
    assert 150 <= sum(counts) <= 150 + back
    assert open_of(tally, "key:bert") == 0


def test_what_a_dead_process_left_open_is_cleared_and_the_rest_stays_obs20(tally: SharedTally) -> None:
    admitted(
        [forked(tally, column, 3, Key("anna", b"", limits=RateLimits(concurrent=9)), Limits()) for column in (1, 2)]
    )
    assert (open_of(tally, "key:anna"), tally.total) == (6, 6)
    tally.clear(1)
    assert (open_of(tally, "key:anna"), tally.total) == (3, 3)


def test_a_suspended_owner_of_the_lock_stops_no_other_process_obs20(tally: SharedTally) -> None:
    pid = os.fork()
    if not pid:
        with tally.lock():
            os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    os.waitpid(pid, os.WUNTRACED)
    try:
        with tally.lock():
            tally.add_total(1)
            tally.add("anna", 1)
            assert (tally.total, tally.open_of("anna")) == (1, 1)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_killed_owner_of_the_lock_releases_it(tally: SharedTally) -> None:
    pid = os.fork()
    if not pid:
        with tally.lock():
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert tally._take()


def test_a_subject_that_one_process_counts_first_is_known_to_the_others_obs20(tally: SharedTally) -> None:
    """Keys are made while the workers run: no row can be given out before they are forked."""
    made = [Key(name, b"", limits=RateLimits(concurrent=9)) for name in ("anna", "bert")]
    admitted([forked(tally, column, column, made[column % 2], Limits()) for column in (1, 2, 3)])
    assert (open_of(tally, "key:anna"), open_of(tally, "key:bert")) == (2, 4)


def test_without_room_for_a_further_subject_each_process_counts_it_alone(tmp_path: Path) -> None:
    small = SharedTally(tmp_path / "lock", columns=2, rows=2)
    with small.lock():
        for subject in ("anna", "bert", "bert"):
            small.add(subject, 1)
        assert (small.open_of("anna"), small.open_of("bert")) == (1, 2)


def test_the_turns_of_other_workers_keep_an_upstream_busy_until_they_end_or_die_cap4(tmp_path: Path) -> None:
    turns = SharedTally(tmp_path / "turns", columns=4)
    activity = SharedActivity(turns, CLOCK)
    assert activity.idle_seconds("up") > 0
    pid = os.fork()
    if not pid:
        turns.column = 1
        with activity.serving("up"):
            os._exit(0)
    os.waitpid(pid, 0)
    assert activity.idle_seconds("up") == 0
    assert activity.idle_seconds("other") > 0
    turns.clear(1)
    assert activity.idle_seconds("up") > 0
    with activity.serving("up"):
        assert activity.idle_seconds("up") == 0
    assert 0 < activity.idle_seconds("up") < 60 < activity.idle_seconds("other")

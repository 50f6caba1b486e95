"""The judge of `just attack`: what counts as harm to others."""

from typing import Any

import pytest

from testkit.protocols import WIRES
from tests.attack.arena import LOG_FLOOR, log_faults, stalls
from tests.attack.bodies import BODIES, LIMIT
from tests.attack.observer import ASK_S, Interval

CALM: dict[str, Any] = {"health_p99_ms": 3.0, "own_lag_p99_ms": 1.0, "gap_max_ms": 55.0, "own_lag_max_ms": 5.0}


@pytest.mark.parametrize(
    ("figures", "harmed"),
    [
        ({}, 0),
        ({"health_p99_ms": 251.0}, 1),
        ({"gap_max_ms": 505.0}, 1),
        ({"health_p99_ms": 900.0, "gap_max_ms": 900.0}, 2),
        ({"health_p99_ms": 900.0, "own_lag_p99_ms": 800.0}, 0),
    ],
)
def test_a_stall_is_harm_unless_the_observer_was_late_itself(figures: dict[str, float], harmed: int) -> None:
    assert len(stalls({**CALM, **figures})) == harmed


def test_one_request_that_waits_counts_for_those_that_could_not_be_sent() -> None:
    interval = Interval()
    for _ in range(200):
        interval.add_health(0.001)
    interval.add_health(1.0)
    assert len(interval.health) == 200 + round(1.0 / ASK_S)
    assert interval.figures()["health_p99_ms"] > 900


def test_tracebacks_and_floods_in_the_log_are_harm() -> None:
    assert log_faults(b"one line\n", 1) == []
    assert log_faults(b"x" * (LOG_FLOOR + 2_000), 1) == [f"{LOG_FLOOR + 2_000} bytes of log for 1 requests"]
    assert log_faults(b"Traceback (most recent call last):", 1) == ["a traceback in the log"]


@pytest.mark.parametrize("name", ["schemas", "messages", "pairs", "markers", "backticks"])
def test_the_worst_bodies_fit_the_size_limit_on_every_wire(name: str) -> None:
    for wire in WIRES:
        path, body = BODIES[name](wire)
        assert path.startswith("/")
        assert 4 << 20 < len(body) <= LIMIT


def test_a_pause_of_the_machine_counts_in_both_figures_alike() -> None:
    """Half a second without CPU time is half a second of late requests and of late ticks."""
    interval = Interval()
    for _ in range(100):
        interval.add_health(0.002)
        interval.add_lag(0.0001)
    interval.add_health(0.5)
    interval.add_lag(0.5)
    figures = interval.figures()
    assert figures["health_p99_ms"] - figures["own_lag_p99_ms"] < 30
    assert not stalls(figures)


def test_a_stall_while_the_observer_has_its_cpu_time_is_the_gateways() -> None:
    interval = Interval()
    for _ in range(100):
        interval.add_health(0.002)
        interval.add_lag(0.0001)
    interval.add_health(0.6)
    assert stalls(interval.figures())

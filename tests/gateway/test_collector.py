"""The garbage collector of a server runs when nobody waits for it, or when memory has grown."""

import gc
import weakref
from collections.abc import Iterator
from itertools import repeat

import pytest
from typing_extensions import override

from toolspeak.gateway import collector
from toolspeak.gateway.collector import Collector
from toolspeak.runtime.clock import Clock

MB = 1 << 20


class Hand(Clock):
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    @override
    def monotonic(self) -> float:
        return self.now


class Node:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _off() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def garbage(size: int = collector._MADE) -> "weakref.ref[Node]":
    """Leave cycles behind, and return a look at one of them."""
    return [weakref.ref(Node()) for _ in range(size)][-1]


def test_it_runs_when_no_request_is_open_and_objects_were_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "resident_bytes", lambda: 100 * MB)
    clock, inside = Hand(), [1]
    subject = Collector(lambda: inside[0], clock)
    left = garbage()
    clock.now = 3600.0
    subject.look()
    assert left() is not None  # a stream would wait for it
    inside[0] = 0
    subject.look()
    assert left() is None


def test_it_rests_between_two_runs_and_where_nothing_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "resident_bytes", lambda: 100 * MB)
    clock = Hand()
    subject = Collector(lambda: 0, clock)
    left = garbage()
    subject.look()
    assert left() is not None
    clock.now = 31.0
    subject.look()
    assert left() is None
    few = garbage(10)
    clock.now = 3600.0
    subject.look()
    assert few() is not None


@pytest.mark.parametrize(("sizes", "runs"), [((100, 163), False), ((100, 165), True), ((300, 400), False)])
@pytest.mark.parametrize("before", [(), (500,)], ids=["grown", "fallen-before"])
def test_with_open_requests_it_runs_when_memory_has_grown(
    monkeypatch: pytest.MonkeyPatch, before: tuple[int, ...], sizes: tuple[int, ...], *, runs: bool
) -> None:
    said = iter((*(before or sizes[:1]), *sizes, *repeat(sizes[-1], 3)))
    monkeypatch.setattr(collector, "resident_bytes", lambda: next(said) * MB)
    clock = Hand()
    subject = Collector(lambda: 1, clock)
    left = garbage(1)
    for _ in sizes:
        clock.now += 11.0
        subject.look()
    assert (left() is None) == runs


def test_the_thresholds_of_the_process_come_back() -> None:
    before = gc.get_threshold()
    with Collector(lambda: 0, Hand()).thresholds():
        assert gc.get_threshold()[0] >= 1_000_000
    assert gc.get_threshold() == before

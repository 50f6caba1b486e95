"""The store that workers share: lifetimes, bounds, claims, and a disk that fails."""

import asyncio
import os
import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from typing_extensions import override

from toolspeak.engine.verdict import Verdict
from toolspeak.facts.model import Support
from toolspeak.runtime.cache import Subject
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.local_store import Bounds, LocalStore, LocalVerdicts

LASTING = Bounds(1000.0)


class _Clock(Clock):
    now = 5.0

    @override
    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def store(tmp_path: Path, clock: _Clock) -> Generator[LocalStore]:
    opened = LocalStore(tmp_path / "state.sqlite", clock)
    yield opened
    opened.close()


def test_another_opening_of_the_file_finds_a_value_until_it_is_too_old(
    store: LocalStore, clock: _Clock, tmp_path: Path
) -> None:
    store.put("a", "key", b"one", Bounds(60.0))
    store.put("a", "key", b"two", Bounds(60.0))
    with closing(LocalStore(tmp_path / "state.sqlite", clock)) as other:
        assert (other.get("a", "key"), other.get("b", "key"), other.get("a", "no")) == (b"two", None, None)
        clock.now += 60.0
        assert other.get("a", "key") is None


@pytest.mark.parametrize("bounds", [Bounds(60.0, entries=2), Bounds(60.0, bytes=20)], ids=["entries", "bytes"])
def test_the_oldest_of_a_space_make_room(store: LocalStore, bounds: Bounds) -> None:
    store.put("other", "0", b"x" * 10, bounds)
    for key in "1234":
        store.put("mine", key, b"x" * 10, bounds)
    assert [key for key in "1234" if store.get("mine", key)] == ["3", "4"]
    assert store.get("other", "0")


def test_a_value_that_is_too_large_alone_is_not_kept(store: LocalStore) -> None:
    store.put("mine", "1", b"x" * 30, Bounds(60.0, bytes=20))
    assert store.get("mine", "1") is None


def test_only_one_gets_a_new_key_until_it_is_deleted_or_too_old(store: LocalStore, clock: _Clock) -> None:
    assert [store.put_new("a", "key", token, 60.0) for token in (b"one", b"two")] == [True, False]
    assert [store.delete("a", "key", token) for token in (b"two", b"one", b"one")] == [False, True, False]
    assert store.put_new("a", "key", b"three", 60.0)
    clock.now += 61.0
    assert store.put_new("a", "key", b"four", 60.0)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")
def test_processes_that_write_at_once_lose_nothing(store: LocalStore, tmp_path: Path, clock: _Clock) -> None:
    pids: list[int] = []
    for process in range(3):
        pids.append(os.fork())
        if not pids[-1]:
            own = LocalStore(tmp_path / "state.sqlite", clock)
            for number in range(100):
                own.put("a", f"{process}-{number}", b"x", LASTING)
            os._exit(0)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0, 0, 0]
    assert all(store.get("a", f"{process}-{number}") for process in range(3) for number in range(100))


def test_an_error_of_the_file_is_logged_and_nothing_is_found(
    store: LocalStore, caplog: pytest.LogCaptureFixture
) -> None:
    store._database.execute("DROP TABLE entries")
    store.put("a", "key", b"one", LASTING)
    assert store.get("a", "key") is None
    assert not store.put_new("a", "key", b"", 1.0)
    assert not store.delete("a", "key")
    assert caplog.text.count("the store that workers share failed: no such table: entries") == 4


def test_a_verdict_and_a_claim_are_those_of_all_workers(store: LocalStore, tmp_path: Path, clock: _Clock) -> None:
    one, two = LocalVerdicts(store, clock), LocalVerdicts(LocalStore(tmp_path / "state.sqlite", clock), clock)
    subject = Subject("http://box/v1", "m")
    verdict = Verdict(tools=Support.NATIVE, fingerprint="f1")

    async def story() -> None:
        assert await one.find(subject) is None
        token = await one.claim(subject)
        assert token
        assert await two.claim(subject) == ""
        await one.keep(subject, verdict)
        await one.release(subject, token)
        assert await two.find(subject) == verdict
        assert await two.find(subject.of("f2")) is None
        assert await two.claim(subject)
        await two.close()

    asyncio.run(story())

"""Traces are kept apart by tenant, bounded, found by words, and survive a restart in a file."""

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolspeak.errors import BadConfig
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.traces.store import FileStore, MemoryStore, TraceQuery, TraceStore
from toolspeak.traces.trace import AnswerPart, Trace

NOW = 1_700_000_000.0


def trace(id: str, tenant: str = "", model: str = "qwen2.5-coder", when: float = NOW, **fields: object) -> Trace:
    made = Trace(id, when, tenant, "openai_chat", "/v1/chat/completions", '{"canary": 1}', model)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def settled(store: TraceStore, query: TraceQuery, count: int) -> list[str]:
    """Return the ids that a search finds, after the thread that writes has had time for `count` of them."""
    deadline = time.monotonic() + 10
    while len(found := store.search(query)) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    return [one.id for one in found]


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TraceStore]:
    made: TraceStore = MemoryStore(100, 1 << 20) if request.param == "memory" else FileStore(tmp_path / "t.sqlite", 30)
    yield made
    made.close()


def test_the_newest_come_first(store: TraceStore) -> None:
    for number in range(3):
        store.add(trace(f"t{number}", when=NOW + number))
    assert settled(store, TraceQuery(), 3) == ["t2", "t1", "t0"]
    assert [one.id for one in store.search(TraceQuery(limit=1))] == ["t2"]


def test_a_tenant_sees_its_own_traces_only(store: TraceStore) -> None:
    store.add(trace("mine", "anna", when=NOW))
    store.add(trace("theirs", "bert", when=NOW + 1))
    assert settled(store, TraceQuery(), 2) == ["theirs", "mine"]
    assert [one.id for one in store.search(TraceQuery("anna"))] == ["mine"]
    assert [one.id for one in store.search(TraceQuery("anna", "qwen2.5"))] == ["mine"]
    assert store.find("theirs", "anna") is None
    found = store.find("mine", "anna")
    assert found is not None
    assert found.body == '{"canary": 1}'


def test_traces_are_found_by_the_words_of_model_tool_and_error(store: TraceStore) -> None:
    store.add(trace("a", model="qwen2.5-coder", answer=[AnswerPart("call", "{}", "get_weather")]))
    store.add(trace("b", model="llama", when=NOW + 1, failure=Failure(FailureKind.RATE_LIMITED, "slow", 429)))
    assert settled(store, TraceQuery(), 2) == ["b", "a"]
    assert settled(store, TraceQuery(words="get_weather"), 1) == ["a"]
    assert settled(store, TraceQuery(words="QWEN"), 1) == ["a"]
    assert settled(store, TraceQuery(words="rate_limited llama"), 1) == ["b"]
    assert store.search(TraceQuery(words="qwen llama")) == []
    assert [one.id for one in store.search(TraceQuery(is_failed=True))] == ["b"]


@pytest.mark.parametrize("words", ['"', "'; DROP TABLE traces", "a OR b", "text:x", "*", "(", "NEAR(a b)", "\x00"])
def test_a_search_takes_any_words(store: TraceStore, words: str) -> None:
    store.add(trace("a"))
    assert settled(store, TraceQuery(), 1) == ["a"]
    store.search(TraceQuery("", words))
    assert settled(store, TraceQuery(), 1) == ["a"]


def test_memory_is_bounded_by_number_and_size() -> None:
    store = MemoryStore(10, 100_000)
    for number in range(50):
        store.add(trace(f"t{number}", when=NOW + number))
    assert [one.id for one in store.search(TraceQuery())] == [f"t{number}" for number in range(49, 39, -1)]
    store.add(trace("big", when=NOW + 99, answer=[AnswerPart("text", "x" * 90_000)]))
    assert next(one.id for one in store.search(TraceQuery())) == "big"
    assert len(store.search(TraceQuery())) < 5
    store.add(trace("huge", answer=[AnswerPart("text", "x" * 200_000)]))
    assert store.find("huge", None) is None


def test_a_file_survives_a_restart_and_is_private(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "t.sqlite"
    store = FileStore(file, 30)
    store.add(trace("a", "anna"))
    store.close()
    assert file.stat().st_mode & 0o077 == 0
    again = FileStore(file, 30)
    assert again.find("a", "anna") is not None
    again.close()


def test_old_traces_are_deleted(tmp_path: Path) -> None:
    file = tmp_path / "t.sqlite"
    store = FileStore(file, keep_days=1)
    store.add(trace("old", when=NOW - 2 * 86_400))
    for number in range(2100):
        store.add(trace(f"t{number}", when=NOW))
    store.close()
    with sqlite3.connect(file) as database:
        (left,) = database.execute("SELECT count(*) FROM traces WHERE id = 'old'").fetchone()
        (words,) = database.execute("SELECT count(*) FROM words").fetchone()
        (traces,) = database.execute("SELECT count(*) FROM traces").fetchone()
    database.close()
    assert (left, words) == (0, traces)


def test_a_file_that_is_no_database_is_a_mistake_in_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("buy milk " * 100)
    with pytest.raises(BadConfig, match=r"notes\.txt cannot be used as a database of traces.*Name another file"):
        FileStore(file, 30)
    assert file.read_text().startswith("buy milk")

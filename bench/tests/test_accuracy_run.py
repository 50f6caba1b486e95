"""A run does each task in all forms, may stop anywhere, and continues where it stopped."""

import asyncio
import json
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typing_extensions import override

from bench.accuracy import data, kept
from bench.accuracy.answers import Answers, compact
from bench.accuracy.data import Task, task_of
from bench.accuracy.forms import forms
from bench.accuracy.report import rescored
from bench.accuracy.run import ServerLost, jobs, measured, options_of
from bench.accuracy.split import Split
from testkit.json_server import JsonHandler, json_server
from testkit.llama_models import DEFAULT

FUNCTION: Any = {
    "name": "get.weather",
    "description": "",
    "parameters": {"type": "dict", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
TEXT = '```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```'


def task(name: str, number: int) -> Task:
    question = [[{"role": "user", "content": f"Weather in Oslo, {name} {number}?"}]]
    answers: list[Any] = [] if name == "irrelevance" else [{"get.weather": {"city": ["Oslo"]}}]
    return task_of(name, {"id": f"{name}_{number}", "question": question, "function": [FUNCTION]}, answers)


class Handler(JsonHandler):
    """A llama.cpp server whose model writes its calls as text."""

    path_of_model = ""
    asked = 0
    names: ClassVar[list[str]] = []
    """The model name in each answer; later answers have none."""
    meeting: ClassVar[threading.Barrier | None] = None
    """No request is answered before this many are waiting."""

    @override
    def info(self) -> object:
        return {"build_info": "b1", "model_path": self.path_of_model}

    @override
    def answer(self, body: Any) -> object:
        type(self).asked += 1
        if self.meeting:
            self.meeting.wait()
        message = {"role": "assistant", "content": TEXT}
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
        named = {"model": self.names.pop(0)} if self.names else {}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage, **named}


@contextmanager
def server() -> Generator[str]:
    Handler.asked = 0
    with json_server(Handler) as url:
        yield url


@pytest.fixture(autouse=True)
def tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    def sample(name: str, count: int, _seed: int, _split: Split) -> list[Task]:
        return [task(name, number) for number in range(min(count, 3))]

    def load(name: str) -> list[Task]:
        return sample(name, 3, 0, Split.HELD_OUT)

    monkeypatch.setattr(data, "sample", sample)
    monkeypatch.setattr(data, "load", load)


def ran(folder: Path, url: str, *more: str) -> tuple[int, int]:
    options = options_of(
        [
            *("--url", url, "--set", "multiple", "irrelevance", "--form", "native", "native+rescue"),
            *("--out", str(folder / "lines.jsonl"), "--answers", str(folder), "--archive", str(folder / "archive")),
            *more,
        ]
    )
    return asyncio.run(measured(options, url))


def test_every_form_has_a_task_before_the_next_task_begins() -> None:
    order = [
        (job.task.id, job.form.name)
        for job in jobs(forms(["native", "hermes"]), ["multiple", "irrelevance"], 2, 1, Split.HELD_OUT)
    ]
    assert order[:5] == [
        ("multiple_0", "native"),
        ("multiple_0", "hermes"),
        ("irrelevance_0", "native"),
        ("irrelevance_0", "hermes"),
        ("multiple_1", "native"),
    ]
    assert len(order) == 8


def test_a_run_keeps_lines_and_the_next_goes_on(tmp_path: Path) -> None:
    with server() as url:
        assert ran(tmp_path, url, "--tasks", "1", "--lanes", "2") == (4, 4)
        assert ran(tmp_path, url, "--tasks", "3") == (8, 8)
        assert ran(tmp_path, url, "--tasks", "3") == (0, 0)
    lines = {(line.form, line.task): line for line in kept.read(tmp_path / "lines.jsonl")}
    assert len(lines) == 12
    assert not lines["native", "multiple_2"].right
    assert lines["native", "irrelevance_2"].right
    assert lines["native+rescue", "multiple_2"].right
    assert not lines["native+rescue", "irrelevance_2"].right
    line = lines["native", "multiple_0"]
    assert (line.requests, line.input_tokens, line.cached_tokens) == (1, 10, 4)


def test_two_lanes_ask_two_tasks_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both forms send the same request: lanes that shared a task would ask the server one thing at a time."""
    monkeypatch.setattr(Handler, "meeting", threading.Barrier(2, timeout=10))
    with server() as url:
        assert ran(tmp_path, url, "--tasks", "2", "--lanes", "2") == (8, 8)
    assert Handler.asked == 4
    assert not any(line.failure for line in kept.read(tmp_path / "lines.jsonl"))


def test_forms_that_begin_alike_ask_once_even_at_the_same_time(tmp_path: Path) -> None:
    with server() as url:
        assert ran(tmp_path, url, "--tasks", "1", "--lanes", "4") == (4, 4)
    with sqlite3.connect(tmp_path / f"answers-{DEFAULT}.sqlite") as kept_answers:
        assert kept_answers.execute("select count(*) from answer").fetchone() == (2,)
    assert Handler.asked == 2


def test_saved_answers_give_the_same_lines_without_a_server(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with server() as url:
        ran(first, url, "--tasks", "2")
    answers = Answers(DEFAULT, first, first / "archive")
    assert answers.save() == 4
    answers.close()
    replay = ("--archive", str(first / "archive"), "--replay")
    assert ran(second, "", "--tasks", "3", *replay) == (8, 12)  # the third tasks have no answers, and no lines

    def lines(folder: Path) -> set[tuple[object, ...]]:
        return {(line.key, line.right, tuple(line.calls), line.requests) for line in kept.read(folder / "lines.jsonl")}

    assert lines(second) == lines(first)


def test_a_compact_stream_reads_as_the_whole_one() -> None:
    def sse(*chunks: object) -> bytes:
        return b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"

    def piece(text: str) -> dict[str, Any]:
        delta = {"content": text}
        return {"id": "x", "created": 1, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}

    begin = {"id": "x", "choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]}
    end: dict[str, Any] = {
        "id": "x",
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "timings": {"ms": 3},
    }
    made = compact("text/event-stream", sse(begin, piece("Hel"), piece("lo"), end, {"choices": [], "usage": {"a": 1}}))
    chunks = [json.loads(line[6:]) for line in made.splitlines() if line.startswith("data: {")]
    assert [chunk["choices"][0]["delta"] for chunk in chunks[:3]] == [{"role": "assistant"}, {"content": "Hello"}, {}]
    assert chunks[2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[3]["usage"] == {"a": 1}
    assert "timings" not in made
    assert made.endswith("data: [DONE]\n\n")


def test_a_form_that_is_surely_better_is_asked_no_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    race = ("--set", "multiple", "--tasks", "3", "--until-certain", "native", "--error-rate", "0.9")
    with server() as url:
        assert ran(tmp_path, url, *race) == (4, 6)
        assert ran(tmp_path, url, *race) == (0, 2)  # known results count
    assert capsys.readouterr().out.count("native+rescue against native: better: 2 won, 0 lost of 2 tasks") == 2


def test_a_race_needs_two_forms(tmp_path: Path) -> None:
    with server() as url, pytest.raises(SystemExit, match="name it and another form"):
        ran(tmp_path, url, "--tasks", "1", "--until-certain", "hermes")


def test_a_run_that_has_no_time_does_nothing(tmp_path: Path) -> None:
    with server() as url:
        assert ran(tmp_path, url, "--tasks", "1", "--minutes", "0.0000001") == (0, 4)


def test_a_server_that_is_gone_leaves_no_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build_of(_url: str, _model: str) -> str:
        return "b1"

    monkeypatch.setattr("bench.accuracy.run.build_of", build_of)
    monkeypatch.setattr("toolspeak.runtime.replica_client._FIRST_PAUSE", 0.0)
    with server() as url:
        pass
    with pytest.raises(ExceptionGroup) as raised:
        ran(tmp_path, url, "--tasks", "1")
    assert raised.group_contains(ServerLost)
    assert not (tmp_path / "lines.jsonl").exists()


def test_a_server_that_changes_its_model_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Handler, "names", ["one", "one", "another", "another", "another"])
    monkeypatch.setattr("toolspeak.runtime.replica_client._FIRST_PAUSE", 0.0)
    with server() as url, pytest.raises(ExceptionGroup) as raised:
        ran(tmp_path, url, "--tasks", "3")
    assert raised.group_contains(ServerLost, match="it was 'one' who answered, and is 'another' now")


def test_a_server_of_another_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Handler, "path_of_model", "/models/smollm2-135m.gguf")
    with server() as url, pytest.raises(SystemExit, match="serves smollm2-135m"):
        ran(tmp_path, url, "--tasks", "1", "--model", "qwen2.5-coder-0.5b")


def test_a_report_judges_old_lines_by_the_rules_of_today(tmp_path: Path) -> None:
    with server() as url:
        ran(tmp_path, url, "--tasks", "1")
    for line in kept.read(tmp_path / "lines.jsonl"):
        assert rescored(line) == line

"""Development tasks and held-out tasks never mix."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.accuracy import data, report
from bench.accuracy.data import Task, task_of
from bench.accuracy.forms import forms
from bench.accuracy.kept import Conditions, Line, append
from bench.accuracy.run import MULTI_TURN, jobs, options_of
from bench.accuracy.split import Split, looked_at, split_of
from bench.accuracy.talks import TALKS
from testkit.llama_models import DEFAULT

FUNCTION: Any = {"name": "f", "description": "", "parameters": {"type": "dict", "properties": {}}}


def tasks(name: str) -> list[Task]:
    question = [[{"role": "user", "content": "Now."}]]
    rows = ({"id": f"{name}_{number}", "question": question, "function": [FUNCTION]} for number in range(200))
    return [task_of(name, row, [{"f": {}}]) for row in rows]


def tasks_by_id(name: str) -> dict[str, Task]:
    return {task.id: task for task in tasks(name)}


def test_a_task_never_changes_its_split() -> None:
    """These ids were drawn when the split was made: another hash or another share would move one of them."""
    held_out = {"multiple_0", "multiple_2", "parallel_2", "irrelevance_0", "live_simple_0-0-0"}
    development = {"multiple_1", "parallel_0", "irrelevance_1", "simple_python_0", "simple_python_399"}
    assert {split_of(task) for task in held_out} == {Split.HELD_OUT}
    assert {split_of(task) for task in development} == {Split.DEVELOPMENT}


def test_the_hash_alone_takes_three_in_ten_for_development() -> None:
    drawn = [split_of(f"a set of later days_{number}") for number in range(10_000)]
    assert 2_800 < drawn.count(Split.DEVELOPMENT) < 3_200


def test_what_was_looked_at_is_for_development_whatever_its_hash() -> None:
    assert len(looked_at()) == 4 * 28 + len(TALKS) + 3
    assert {split_of(task) for task in looked_at()} == {Split.DEVELOPMENT}
    assert {talk.id for talk in TALKS} <= looked_at()


def test_a_sample_has_tasks_of_its_split_only_and_begins_with_the_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "load", tasks)
    for split in Split:
        drawn = [task.id for task in data.sample("multiple", 200, 6, split)]
        assert {split_of(task) for task in drawn} == {split}
        assert drawn[:10] == [task.id for task in data.sample("multiple", 10, 6, split)]


def test_the_runner_asks_held_out_tasks_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "load", tasks)
    for arguments, split, talks in (([], Split.HELD_OUT, 12), (["--split", "development"], Split.DEVELOPMENT, 20)):
        options = options_of(arguments)
        work = list(jobs(forms(["native"]), ("multiple", MULTI_TURN), 200, 6, options.split))
        assert {split_of(job.task.id) for job in work} == {split}
        assert sum(job.set == MULTI_TURN for job in work) == talks


def test_the_report_shows_one_split_and_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(data, "load", tasks)
    monkeypatch.setattr(report, "_tasks", tasks_by_id)
    conditions = Conditions(6, 256, "b1")
    for name in data.SETS:
        for task in (f"{name}_{number}" for number in range(100)):
            line = Line(DEFAULT, "native", "1", name, task, conditions, False, True, False, 1, 1, 1, 1.0, [])
            append(line, tmp_path / "lines.jsonl")
    told: dict[str, dict[str, object]] = {}
    for split in Split:
        arguments = ["report", "--split", split, "--lines", str(tmp_path / "lines.jsonl"), "--to", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit):
            report.main()
        told[split] = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert sum(int(str(one["lines"])) for one in told.values()) == 400
    assert "held-out tasks of the four sets" in (tmp_path / "accuracy.md").read_text()
    assert "development tasks of the four sets" in (tmp_path / "accuracy-development.md").read_text()
    assert json.loads((tmp_path / "accuracy-development.json").read_text())["split"] == "development"

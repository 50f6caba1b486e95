"""The sets of our own: every language and shape is well formed, its right calls score right and wrong ones wrong."""

import json
import re
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from bench.accuracy import data, languages, report, shapes
from bench.accuracy.by_set import table, tallies
from bench.accuracy.data import Task, Wanted, load, sample
from bench.accuracy.kept import Conditions, Line, append
from bench.accuracy.languages import ENGLISH, IN_ENGLISH, IN_LANGUAGE, LANGUAGES, rows, translation
from bench.accuracy.run import ALL_SETS, options_of
from bench.accuracy.score import OPTIONAL, Delivered, score
from bench.accuracy.split import Split, split_of
from testkit.llama_models import DEFAULT
from toolspeak.engine.guardrails.guardrail import GuardedConversation
from toolspeak.engine.guardrails.missing_calls import left_over
from toolspeak.engine.guardrails.unrelated_calls import DROP_UNRELATED_CALLS
from toolspeak.engine.guardrails.values import has_made_up_arguments
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call, Text
from toolspeak.ir.request import Request
from toolspeak.text.schema import compile_schema
from toolspeak.toolset.toolset import compile_tools

OWN = (*languages.SETS, shapes.NESTED, shapes.AGENTS)
SCRIPTS = {"ru": "CYRILLIC", "zh": "CJK", "ja": "HIRAGANA", "ko": "HANGUL", "ar": "ARABIC"}


def example(accepted: Json) -> Json:
    """Return a value that is right where this is accepted: the first one, at every depth."""
    if isinstance(accepted, dict):
        return {key: example(each[0] if isinstance(each, list) else each) for key, each in accepted.items()}
    return [example(each) for each in accepted] if isinstance(accepted, list) else accepted


def right_call(want: Wanted) -> Delivered:
    chosen: JsonObject = {
        key: example(next(one for one in accepted if one != OPTIONAL))
        for key, accepted in want.accepted.items()
        if OPTIONAL not in accepted
    }
    return Delivered(want.name, json.dumps(chosen))


def wrong_calls(call: Delivered) -> list[Delivered]:
    """Return the call with another name, without its first argument, with one too many, and with wrong values."""
    arguments: JsonObject = json.loads(call.arguments)
    first = next(iter(arguments))
    changed: tuple[JsonObject, ...] = (
        {key: value for key, value in arguments.items() if key != first},
        {**arguments, "surplus": 1},
        {**arguments, first: "Timbuktu"},
        dict.fromkeys(arguments, 77),
    )
    return [Delivered("no_such_tool", call.arguments), *(Delivered(call.name, json.dumps(one)) for one in changed)]


def sentence(task: Task) -> str:
    return "".join(part.text for part in task.messages[-1].parts if isinstance(part, Text))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_twenty_tasks(language: str) -> None:
    tasks, reference = load(f"language_{language}"), load("language_en")
    assert len(tasks) == 20
    assert sum(bool(task.wanted) for task in tasks) == 12
    assert sum(len(task.wanted) == 2 for task in tasks) == 3
    for task, english in zip(tasks, reference, strict=True):
        assert task.id == english.id.replace("@en", f"@{language}")
        assert [tool.name for tool in task.tools] == [tool.name for tool in english.tools]
        assert [want.name for want in task.wanted] == [want.name for want in english.wanted]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_is_complete_and_in_its_language(language: str) -> None:
    words, reference = translation(language), translation(ENGLISH)
    assert list(words.sentences) == list(reference.sentences)
    assert set(words.sentences) == {*IN_ENGLISH, *IN_LANGUAGE}
    for own, english in (
        (words.values, reference.values),
        (words.tools, reference.tools),
        (words.parameters, reference.parameters),
    ):
        assert list(own) == list(english)
        assert all(own.values())
    texts = [*words.sentences.values(), *words.tools.values()]
    if language != ENGLISH:
        assert not set(texts) & {*reference.sentences.values(), *reference.tools.values()}
    script = SCRIPTS.get(language, "LATIN")
    assert all(any(unicodedata.name(each, "").startswith(script) for each in text) for text in texts if text)


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != ENGLISH])
def test_half_of_the_tasks_describe_their_tools_in_the_language(language: str) -> None:
    english = {tool.description for task in load("language_en") for tool in task.tools}
    described = [{tool.description for tool in task.tools} for task in load(f"language_{language}")]
    assert sum(each <= english for each in described) == 10
    assert sum(not each & english for each in described) == 10


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_values_of_a_right_call_are_in_its_sentence(language: str) -> None:
    """Numbers, addresses and names must be in the request, else more than one answer would be right."""
    for task in load(f"language_{language}"):
        digits = {int(found) for found in re.findall(r"\d+", sentence(task))}
        for want in task.wanted:
            for key, accepted in want.accepted.items():
                if key in ("minutes", "degrees", "percent", "amount", "euros"):
                    assert accepted[0] in digits, (task.id, key)
                if key in ("tracking_number", "to", "subject", "restaurant"):
                    assert str(accepted[0]) in sentence(task), (task.id, key)


@pytest.mark.parametrize("name", OWN)
def test_right_calls_score_right_and_wrong_ones_wrong(name: str) -> None:
    for task in load(name):
        right = [right_call(want) for want in task.wanted]
        assert score(task, right).right, task.id
        assert score(task, right).valid, task.id
        assert score(task, right[::-1]).right
        assert score(task, [*right, Delivered(task.tools[0].name, "{}")]).right is False
        if right:
            assert score(task, []).right is False
            assert score(task, right[1:]).right is False
        for index, call in enumerate(right):
            for wrong in wrong_calls(call):
                assert score(task, [*right[:index], wrong, *right[index + 1 :]]).right is False, (task.id, wrong)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_city_may_be_written_as_in_the_request_or_as_in_english(language: str) -> None:
    weather = next(task for task in load(f"language_{language}") if "weather" in task.id)
    for city in ("Lisbon", translation(language).values["lisbon"][0]):
        assert score(weather, [Delivered("get_weather", json.dumps({"city": city}))]).right
    assert not score(weather, [Delivered("get_weather", '{"city": "Porto"}')]).right
    assert not score(weather, [Delivered("get_weather", '{"city": "Lisbon", "days": 7}')]).right


@pytest.mark.parametrize("name", OWN)
def test_the_schemas_are_schemas_and_ids_are_unique(name: str) -> None:
    tasks = load(name)
    assert len({task.id for task in tasks}) == len(tasks)
    for tool in (tool for task in tasks for tool in task.tools):
        assert not compile_schema(tool.parameters).accepts([])
        assert "scrubbed" not in json.dumps([tool.description, tool.parameters])


def test_a_task_is_in_the_same_split_in_every_language() -> None:
    splits = [[split_of(row["id"]) for row, _ in rows(name)] for name in languages.SETS]
    assert all(each == splits[0] for each in splits)
    assert set(splits[0]) == set(Split)
    assert split_of("multiple_1@forty_tools") is split_of("multiple_1") is Split.DEVELOPMENT


def test_a_sample_of_a_language_has_tasks_of_its_split() -> None:
    drawn = sample("language_ja", 100)
    assert {split_of(task.id) for task in drawn} == {Split.HELD_OUT}
    assert 10 <= len(drawn) <= 16


def test_the_sets_may_be_chosen_and_are_not_asked_by_default() -> None:
    assert options_of(["--set", "language_de", "forty_tools"]).set == ["language_de", "forty_tools"]
    assert set(data.MORE_SETS) >= {*languages.SETS, *shapes.SETS}
    assert not set(options_of([]).set) & {*languages.SETS, *shapes.SETS}
    assert options_of([]).set == list(ALL_SETS)


def named(name: str) -> dict[str, Any]:
    return {"name": name, "description": "", "parameters": {"type": "dict", "properties": {}}}


def test_forty_tools_are_the_same_every_time_and_none_may_do_the_task_too() -> None:
    question = [[{"role": "user", "content": "How large is a triangle?"}]]
    row = {"id": "multiple_1", "question": question, "function": [named("triangle.area"), named("circle.area")]}
    letters = "abcdefghijklmnopqrstuvwxyz"
    others = [{"function": [named(f"tool_{one}{two}{two}{two}")]} for one in "abcd" for two in letters]
    rivals = [{"function": [named("calc_triangle_area")]}]
    answers: dict[str, Any] = {"multiple_1": [{"triangle.area": {}}]}
    (made, right), (again, _) = (shapes.forty_tools([row], answers, [*others, *rivals])[0] for _ in range(2))
    names = [function["name"] for function in made["function"]]
    assert made == again
    assert made["id"] == "multiple_1@forty_tools"
    assert len(set(names)) == 40
    assert {"triangle.area", "circle.area"} < set(names)
    assert "calc_triangle_area" not in names
    assert right == answers["multiple_1"]


def test_agents_have_their_whole_tool_sets() -> None:
    counts = {task.id.rpartition("_")[0]: len(task.tools) for task in load(shapes.AGENTS)}
    assert counts == {
        "agents_claude_code": 12,
        "agents_opencode": 10,
        "agents_qwen_code": 14,
        "agents_continue": 12,
        "agents_pi": 4,
    }


# ---------------------------------------------------------------- guardrails


@pytest.mark.parametrize("name", [name for name in languages.SETS if name != "language_en"])
def test_no_guardrail_drops_a_right_call_of_a_development_task(name: str) -> None:
    """Held-out tasks are not used here: guardrails may be shaped on the others only.

    In English they do drop one, "How warm is it in Oslo": its words are not those of `get_temperature`.
    """
    tasks = [task for task in load(name) if split_of(task.id) is Split.DEVELOPMENT and task.wanted]
    assert len(tasks) == 4
    for task in tasks:
        request = Request("m", task.messages, task.tools)
        said = GuardedConversation(request, compile_tools(task.tools), task.tools)
        calls = [Call("c", one.name, one.arguments) for one in map(right_call, task.wanted)]
        for call in calls:
            assert DROP_UNRELATED_CALLS.judge(call, said) is None, task.id
            assert not has_made_up_arguments(call, said), task.id
        assert left_over(sentence(task), calls, task.tools) == (), task.id


# ---------------------------------------------------------------- the report


def line(form: str, name: str, task: str, *, right: bool) -> Line:
    """Return a line whose calls are the task's right ones, or one that no tool has."""
    wanted = next(each for each in load(name) if each.id == task).wanted
    calls = [(one.name, one.arguments) for one in map(right_call, wanted)] if right else [("no_such_tool", "{}")]
    return Line(DEFAULT, form, "1", name, task, Conditions(6, 256, "b1"), right, True, bool(calls), 1, 1, 1, 1.0, calls)


def test_the_report_has_a_row_for_each_language_with_and_without_guardrails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    held_out = [task.id.partition("@")[0] for task in sample("language_en", 100)]
    for language in ("de", "ar"):
        for number, task in enumerate(held_out):
            name, id = f"language_{language}", f"{task}@{language}"
            append(line("hermes", name, id, right=number < 5), tmp_path / "lines.jsonl")
            append(line("hermes guardrails", name, id, right=number < 7), tmp_path / "lines.jsonl")
    monkeypatch.setattr(sys, "argv", ["report", "--lines", str(tmp_path / "lines.jsonl"), "--to", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        report.main()
    assert not ended.value.code
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["lines"] == 4 * len(held_out)
    page = (tmp_path / "accuracy.md").read_text()
    assert "| set | tasks | hermes | hermes guardrails | difference |" in page
    found = re.search(r"\| language_de \| 12 \| 5 \((\d)/8, (\d)/4\) \| 7 \((\d)/8, (\d)/4\) \| \+2 \|", page)
    assert found is not None
    assert int(found[1]) + int(found[2]) == 5
    assert "| **sum of 2** | 24 | 10 (" in page
    figures = json.loads((tmp_path / "accuracy.json").read_text())["models"][DEFAULT]
    assert figures["languages_and_shapes"]["language_ar"]["hermes guardrails"]["right"] == 7
    assert figures["rows"] == []


def test_forms_of_a_row_are_compared_on_the_tasks_that_both_have_done() -> None:
    first, second, third = (task.id for task in load("language_fr")[:3])
    made = {
        "hermes": [line("hermes", "language_fr", one, right=True) for one in (first, second, third)],
        "native": [line("native", "language_fr", one, right=False) for one in (first, second)],
    }
    lines = {form: {(each.set, each.task): each for each in done} for form, done in made.items()}
    counted = tallies(lines, {"language_fr": frozenset((first, second, third))})
    assert list(table(counted))[2:] == ["| language_fr | 2 | 2 (2/2, 0/0) | 0 (0/2, 0/0) |"]

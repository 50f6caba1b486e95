"""Which answers are right: cases made by hand, each next to one that differs in one detail."""

import json
from typing import Any

import pytest

from bench.accuracy.data import Task, legal_names, sample, schema_of, task_of
from bench.accuracy.score import Delivered, Score, score

AREA = {
    "name": "math.area",
    "description": "Area of a rectangle.",
    "parameters": {
        "type": "dict",
        "properties": {
            "width": {"type": "float"},
            "height": {"type": "integer"},
            "unit": {"type": "string"},
            "corners": {"type": "array", "items": {"type": "tuple", "items": {"type": "float"}}},
            "style": {"type": "dict", "properties": {"colour": {"type": "string"}, "thick": {"type": "boolean"}}},
            "label": {"type": "any"},
        },
        "required": ["width", "height"],
    },
}
ACCEPTED = {
    "width": [2.5, 3.0],
    "height": [4],
    "unit": ["square m.", ""],
    "corners": [[[0.0, 1.0]], ""],
    "style": [{"colour": ["Dark-Red", "red"], "thick": [True, ""]}, ""],
    "label": ["", 7],
}


def task(*answers: dict[str, Any], kind: str = "simple_python") -> Task:
    row = {"id": "t", "question": [[{"role": "user", "content": "?"}]], "function": [AREA]}
    return task_of(kind, row, [{"math.area": answer} for answer in answers])


def scored(*arguments: object, of: Task | None = None, name: str = "math_area") -> Score:
    calls = [Delivered(name, each if isinstance(each, str) else json.dumps(each)) for each in arguments]
    return score(of or task(ACCEPTED), calls)


@pytest.mark.parametrize(
    "arguments",
    [
        {"width": 2.5, "height": 4},
        {"width": 3, "height": 4},  # an integer for a float
        {"width": 2.5, "height": 4, "unit": "Square M"},
        {"width": 2.5, "height": 4, "corners": [[0, 1]]},
        {"width": 2.5, "height": 4, "style": {"colour": "dark red"}},
        {"width": 2.5, "height": 4, "style": {"colour": "RED", "thick": True}},
        {"width": 2.5, "height": 4, "label": 7},  # the data's own example of what "any" may be
    ],
)
def test_what_is_accepted_is_right(arguments: dict[str, Any]) -> None:
    assert scored(arguments) == Score(right=True, valid=True, called=True)


@pytest.mark.parametrize(
    "arguments",
    [
        {"width": 2.5},  # one is missing, which the schema sees
        {"width": 2.6, "height": 4},
        {"width": 2.5, "height": 4.5},
        {"width": "2.5", "height": 4},
        {"width": 2.5, "height": 4, "unit": "square km"},
        {"width": 2.5, "height": 4, "depth": 1},
        {"width": 2.5, "height": 4, "corners": [[0, 1], [0, 1]]},
        {"width": 2.5, "height": 4, "corners": [[1, 0]]},
        {"width": 2.5, "height": 4, "style": {"colour": "blue"}},
        {"width": 2.5, "height": 4, "style": {"thick": True}},
        {"width": 2.5, "height": 4, "style": {"colour": "red", "thick": 1}},
        {"width": 2.5, "height": True},
        {"width": 2.5, "height": 4, "label": 8},
        "{",
        "[]",
    ],
)
def test_what_is_not_accepted_is_wrong(arguments: object) -> None:
    assert not scored(arguments).right


def test_an_integer_that_is_written_as_a_float_is_wrong_but_valid() -> None:
    told = scored({"width": 2.5, "height": 4.0})
    assert told.wrong_but_valid


@pytest.mark.parametrize(
    ("arguments", "valid"),
    [
        ({"width": 1.0, "height": 4}, True),
        ({"width": 1.0, "height": 4, "depth": 1}, True),  # the schema does not forbid it
        ({"width": "1", "height": 4}, False),
        ({"height": 4}, False),
        ("{", False),
    ],
)
def test_validity_is_the_schema_s_word(arguments: object, valid: bool) -> None:
    assert scored(arguments).valid is valid


def test_a_call_of_an_unknown_tool_is_neither_right_nor_valid() -> None:
    told = scored({"width": 2.5, "height": 4}, name="math.area")
    assert not told.right
    assert not told.valid


def test_parallel_calls_may_come_in_any_order_but_all_must_come() -> None:
    first, second = {"width": [1.0], "height": [1]}, {"width": [2.0], "height": [1, 2]}
    both = task(first, second, kind="parallel")
    one, two = {"width": 1, "height": 1}, {"width": 2, "height": 1}
    assert scored(two, one, of=both).right
    assert not scored(one, of=both).right
    assert not scored(one, one, of=both).right
    assert not scored(one, two, two, of=both).right


def test_a_call_that_fits_two_wishes_is_given_to_the_one_that_needs_it() -> None:
    loose, strict = {"width": [1.0, 2.0], "height": [1]}, {"width": [1.0], "height": [1]}
    both = task(loose, strict, kind="parallel")
    assert scored({"width": 1, "height": 1}, {"width": 2, "height": 1}, of=both).right


def test_where_no_call_is_wanted_any_call_is_wrong() -> None:
    idle = task(kind="irrelevance")
    assert score(idle, []).right
    assert not scored({"width": 1, "height": 1}, of=idle).right


def test_python_s_types_become_those_of_json_schema() -> None:
    assert schema_of(AREA["parameters"])["properties"] == {  # pyright: ignore[reportArgumentType]
        "width": {"type": "number"},
        "height": {"type": "integer"},
        "unit": {"type": "string"},
        "corners": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
        "style": {"type": "object", "properties": {"colour": {"type": "string"}, "thick": {"type": "boolean"}}},
        "label": {},
    }


def test_names_become_legal_and_stay_different() -> None:
    names = legal_names(["a.b", "a_b", "x" * 80])
    assert names == {"a.b": "a_b", "a_b": "a_b_2", "x" * 80: "x" * 64}
    assert task(ACCEPTED).names == {"math_area": "math.area"}


def test_a_larger_sample_begins_with_the_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [task(ACCEPTED) for _ in range(50)]

    def load(_name: str) -> list[Task]:
        return tasks

    monkeypatch.setattr("bench.accuracy.data.load", load)
    small, large = sample("any", 10, seed=1), sample("any", 30, seed=1)
    assert [*map(id, small)] == [*map(id, large[:10])]
    assert [*map(id, sample("any", 10, seed=2))] != [*map(id, small)]

"""Arguments of calls: objects, text and free text, each into the other, with nothing lost."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject
from toolspeak.wires.shared.calls import (
    FREE_FORM,
    arguments_json,
    custom_arguments,
    custom_input,
    object_text,
    take_arguments,
)
from toolspeak.wires.shared.json_body import Fields

objects: st.SearchStrategy[JsonObject] = st.dictionaries(st.text(), st.none() | st.integers() | st.text(), max_size=4)


@pytest.mark.parametrize("text", ['{"x": 1}', " {} ", '{"a":{"b":[1,2]}}', '{"é":"\\u00e9"}'])
def test_an_object_stays_as_it_was_written(text: str) -> None:
    assert object_text(text) == text


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_no_arguments_are_an_empty_object(text: str) -> None:
    assert object_text(text) == "{}"


@pytest.mark.parametrize(
    ("text", "value"), [("[1, 2]", [1, 2]), ('"x"', "x"), ("5", 5), ("null", None), ("true", True)]
)
def test_a_value_that_is_no_object_goes_under_a_key_of_its_own(text: str, value: Json) -> None:
    assert json.loads(object_text(text)) == {"arguments": value}


@pytest.mark.parametrize(
    "text", ['{"x": ', "<x>1</x>", "{'x': 1}", '{"x": 1}{"x": 2}', '{"x": 1, "x": 2}', '{"x": "\\ud83d"}']
)
def test_what_is_no_json_goes_under_a_key_of_its_own_to_the_byte_p1(text: str) -> None:
    assert json.loads(object_text(text)) == {"arguments": text}


@given(st.text())
def test_any_text_becomes_an_object(text: str) -> None:
    assert isinstance(json.loads(object_text(text)), dict)


@given(objects)
def test_arguments_that_came_as_an_object_are_written_as_text(value: JsonObject) -> None:
    assert json.loads(arguments_json(value)) == value
    assert arguments_json(arguments_json(value)) == arguments_json(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "{}"),
        ("", "{}"),
        ({}, "{}"),
        (" ", " "),
        ('{"x": 1', '{"x": 1'),
        ([1], "[1]"),
        (5, "5"),
        (False, "false"),
    ],
)
def test_arguments_of_any_kind_are_told_as_text(value: Json, text: str) -> None:
    assert arguments_json(value) == text


@pytest.mark.parametrize(
    ("body", "text"),
    [({}, "{}"), ({"arguments": " "}, "{}"), ({"arguments": "{"}, "{"), ({"arguments": {"a": 1}}, '{"a":1}')],
)
def test_arguments_of_a_history_are_taken_as_text(body: JsonObject, text: str) -> None:
    fields = Fields(body)
    assert (take_arguments(fields), fields.left) == (text, {})


@pytest.mark.parametrize("value", [5, True, [1]])
def test_arguments_of_a_history_must_be_text_or_an_object(value: Json) -> None:
    with pytest.raises(BadField, match=r"^input: expected an object, got"):
        take_arguments(Fields({"input": value}), "input", "an object")


# Free text


@given(st.text())
def test_free_text_comes_back_to_the_byte_p1(text: str) -> None:
    assert custom_input(custom_arguments(text)) == text


def test_free_text_is_the_one_parameter() -> None:
    assert json.loads(custom_arguments("*** Begin Patch\n")) == {FREE_FORM: "*** Begin Patch\n"}


@pytest.mark.parametrize("text", ["", "plain", '{"input": ', "[1]", '{"input": 5}', '{"other": "x"}', '"x"'])
def test_arguments_without_the_parameter_are_free_text_themselves(text: str) -> None:
    assert custom_input(text) == text

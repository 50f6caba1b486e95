"""Schemas made ready for servers that know only a part of JSON Schema (CHK-8)."""

import json
from typing import Any

import pytest

from tests.live.schemas import ODD
from toolspeak.engine.constraint import prepare
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Tool
from toolspeak.text.schema import compile_schema
from toolspeak.toolset.toolset import ToolSet

FORMS = [form for form in ConstraintForm if form is not ConstraintForm.NONE]
CLOSED = (ConstraintForm.STRICT, ConstraintForm.ANTHROPIC)


def nodes(value: Json) -> list[dict[str, Any]]:
    """List all objects in a value."""
    below: list[Json] = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return [*([value] if isinstance(value, dict) else ()), *(node for one in below for node in nodes(one))]


def prepared(schema: JsonObject, form: ConstraintForm) -> JsonObject:
    return prepare(compile_schema(schema).schema, form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ODD)
def test_nothing_refers_to_anything_and_all_is_json_chk8(name: str, form: ConstraintForm) -> None:
    text = json.dumps(prepared(ODD[name], form))
    assert "$ref" not in text
    assert "$defs" not in text
    assert len(text) < 20_000


@pytest.mark.parametrize("form", FORMS)
def test_the_original_is_left_as_it_was(form: ConstraintForm) -> None:
    before = json.dumps(ODD)
    for schema in ODD.values():
        prepare(schema, form)
    assert json.dumps(ODD) == before


@pytest.mark.parametrize("form", CLOSED)
@pytest.mark.parametrize("name", ODD)
def test_closed_forms_close_every_object_chk8(name: str, form: ConstraintForm) -> None:
    objects = [node for node in nodes(prepared(ODD[name], form)) if node.get("type") == "object"]
    assert all(node.get("additionalProperties") is False for node in objects)
    if form is ConstraintForm.STRICT:
        assert all([*node.get("properties", {})] == node.get("required", []) for node in objects)


def test_what_was_optional_may_be_null_and_comes_out_as_left_out_chk8() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    }
    strict = prepare(schema, ConstraintForm.STRICT)
    value: JsonObject = {"city": "Oslo", "days": None}
    assert compile_schema(strict).accepts(value)
    fitted = ToolSet.of([Tool("f", parameters=schema)]).fit("f", value)
    assert (fitted.arguments, fitted.problems) == ({"city": "Oslo"}, ())


def test_a_map_that_strict_servers_do_not_know_is_written_as_text_chk8() -> None:
    schema: JsonObject = {"type": "object", "properties": {"env": {"type": "object"}}, "required": ["env"]}
    value: JsonObject = {"env": '{"A": "1"}'}
    assert compile_schema(prepare(schema, ConstraintForm.STRICT)).accepts(value)
    fitted = ToolSet.of([Tool("f", parameters=schema)]).fit("f", value)
    assert (fitted.arguments, fitted.problems) == ({"env": {"A": "1"}}, ())


@pytest.mark.parametrize(
    ("form", "gone"),
    [
        (ConstraintForm.VLLM, ("multipleOf", "uniqueItems", "format", "pattern")),
        (ConstraintForm.LLAMACPP, ("multipleOf", "uniqueItems", "format", "pattern", "maxLength")),
        (ConstraintForm.ANTHROPIC, ("minimum", "maxLength", "minItems")),
        (ConstraintForm.GEMINI, ("maxLength", "exclusiveMinimum")),
    ],
)
def test_what_a_server_does_not_know_is_left_out_chk8(form: ConstraintForm, gone: tuple[str, ...]) -> None:
    numbers: JsonObject = {"multipleOf": 2, "minimum": 1, "exclusiveMinimum": 0}
    texts: JsonObject = {"format": "date", "pattern": "^a", "maxLength": 100_000}
    value: JsonObject = {"type": ["string", "integer", "array"], "uniqueItems": True, "minItems": 2, **numbers, **texts}
    text = json.dumps(prepare({"type": "object", "properties": {"a": value}}, form))
    assert not [word for word in gone if f'"{word}"' in text]


def test_what_applies_together_becomes_one_chk8() -> None:
    inner = next(
        node for node in nodes(prepared(ODD["all of"], ConstraintForm.OLLAMA)) if "b" in node.get("required", ())
    )
    assert (set(inner["properties"]), inner["required"]) == ({"b", "c"}, ["b", "c"])


def test_a_schema_that_refers_to_itself_ends_somewhere_p7() -> None:
    assert len(nodes(prepared(ODD["circle"], ConstraintForm.OLLAMA))) < 100


@pytest.mark.parametrize("word", ["minItems", "maxItems", "minLength", "maxLength"])
def test_a_count_is_sent_up_to_a_thousand_chk8(word: str) -> None:
    def is_sent(count: int) -> bool:
        return word in prepare({"type": ["string", "array"], word: count}, ConstraintForm.VLLM)

    assert [is_sent(999), is_sent(1000), is_sent(1001)] == [True, True, False], "a grammar writes each of them out"


def test_a_schema_is_copied_16_levels_deep_p7() -> None:
    schema: JsonObject = {"type": "string"}
    for _ in range(30):
        schema = {"type": "array", "items": schema}
    levels, inner = 0, prepare(schema, ConstraintForm.VLLM)
    while isinstance(below := inner.get("items"), dict):
        levels, inner = levels + 1, below
    assert (levels, inner) == (17, {}), "deeper down any value is accepted"


def test_an_object_without_properties_stays_an_object_if_it_says_so_chk8() -> None:
    empty: JsonObject = {"type": "object", "properties": {}}
    closed: JsonObject = {**empty, "additionalProperties": False}
    assert [prepare(empty, form) for form in CLOSED] == [closed, closed]
    assert [prepare({"type": "object"}, form)["type"] for form in CLOSED] == ["string", "string"]


def test_properties_that_are_no_object_do_no_harm() -> None:
    odd: JsonObject = {"type": "object", "properties": ["a"]}
    assert all(prepare(odd, form)["additionalProperties"] is False for form in CLOSED)


def test_one_of_becomes_any_of_chk8() -> None:
    schema: JsonObject = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
    assert prepare(schema, ConstraintForm.VLLM) == {"anyOf": [{"type": "string"}, {"type": "integer"}]}


def test_what_is_beside_a_reference_applies_too_chk8() -> None:
    schema: JsonObject = {
        "$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
        "$ref": "#/$defs/place",
        "properties": {"unit": {"type": "string"}},
        "required": ["unit"],
    }
    (both, *_) = nodes(prepare(schema, ConstraintForm.VLLM))
    assert both["properties"] == {"city": {"type": "string"}, "unit": {"type": "string"}}
    assert set(both["required"]) == {"city", "unit"}

"""Shorter tool definitions for models with little context: the same names and types, fewer words (INL-1, INL-8)."""

import json
from dataclasses import replace

import pytest

from tests.unit.engine.scene import FORCE, OSLO, TOOLS, ask, run, words, written
from toolspeak.engine.prompt import CHARACTERS_PER_TOKEN, SHARE, compacted
from toolspeak.engine.settings import Settings
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Tool

WORDY: JsonObject = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Arguments",
    "type": "object",
    "properties": {
        "title": {"type": "string", "title": "Title", "description": "What it is called. " * 30},
        "description": {"type": "string", "default": "none", "examples": ["x"]},
        "unit": {"type": "string", "enum": ["C", "F"], "description": "Which unit to use."},
        "deep": {
            "type": "object",
            "properties": {"items": {"type": "array", "items": {"type": "integer", "title": "N"}}},
            "required": ["items"],
        },
        "either": {"anyOf": [{"type": "string", "description": "A word. " * 20}, {"type": "null"}]},
    },
    "required": ["title", "unit"],
    "additionalProperties": False,
}
LONG = Tool("long", "Does a lot of things. " * 60, WORDY)
KEPT = {"type", "properties", "required", "enum", "items", "anyOf", "additionalProperties"}
MANY = tuple(replace(LONG, name=f"long_{number}") for number in range(8))


def size(tools: tuple[Tool, ...]) -> int:
    return sum(len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters)) for tool in tools)


def bones(schema: Json) -> Json:
    """Keep of a schema what decides whether a value fits."""
    if isinstance(schema, list):
        return [bones(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: inside(key, value) for key, value in schema.items() if key in KEPT}


def inside(key: str, value: Json) -> Json:
    if key == "properties" and isinstance(value, dict):
        return {name: bones(inner) for name, inner in value.items()}
    return bones(value)


def test_where_there_is_room_nothing_changes_inl1() -> None:
    assert compacted(MANY, None) == MANY
    assert compacted(TOOLS, 100_000) == TOOLS
    assert compacted((), 10) == ()


@pytest.mark.parametrize("tokens", [1, 500, 2000, 4000, 8000])
def test_names_types_and_what_fits_stay_at_every_step_inl1(tokens: int) -> None:
    shorter = compacted(MANY, tokens)
    assert [tool.name for tool in shorter] == [tool.name for tool in MANY]
    assert {json.dumps(bones(tool.parameters)) for tool in shorter} == {json.dumps(bones(WORDY))}


def test_less_room_never_makes_longer_tools_inl1() -> None:
    sizes = [size(compacted(MANY, tokens)) for tokens in (100_000, 8000, 6000, 4000, 2000, 500, 1)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 3 * sizes[-1]


def test_parameters_that_are_named_like_words_of_the_schema_stay_inl1() -> None:
    (tool,) = compacted((LONG,), 1)
    properties = tool.parameters["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == ["title", "description", "unit", "deep", "either"]


def test_the_last_step_has_no_descriptions_inl1() -> None:
    (tool,) = compacted((LONG,), 1)
    assert tool.description == ""
    assert "Which unit" not in json.dumps(tool.parameters)
    assert '"enum": ["C", "F"]' in json.dumps(tool.parameters)


def test_a_description_is_cut_between_words_and_says_so_inl1() -> None:
    room = next(
        tokens for tokens in range(100_000, 0, -50) if compacted((LONG,), tokens)[0].description != LONG.description
    )
    (tool,) = compacted((LONG,), room)
    assert tool.description.endswith(" …")
    assert LONG.description.startswith(tool.description.removesuffix(" …"))
    assert len(tool.description) <= 402


def test_the_tools_take_their_share_of_the_context_and_no_more_inl1() -> None:
    tokens = 6000
    assert size(compacted(MANY, tokens)) <= tokens * CHARACTERS_PER_TOKEN * SHARE


def test_the_same_tools_are_shortened_the_same_way_inl8() -> None:
    assert compacted(MANY, 2000) == compacted(MANY, 2000)


def test_the_original_is_not_touched_inl8() -> None:
    before = json.dumps(WORDY)
    compacted(MANY, 1)
    assert json.dumps(WORDY) == before


def test_a_model_with_little_context_is_taught_the_short_form_and_checked_by_the_long_one_chk3() -> None:
    facts = ModelFacts(Support.NONE, context_tokens=64)
    ran = run(Settings(), written(OSLO), facts=facts, request=ask(tools=(*TOOLS, LONG)))
    assert "Does a lot of things." not in words(ran.sent[0])
    assert ran.calls == [("get_weather", {"city": "Oslo"})]
    full = run(FORCE, written(OSLO), request=ask(tools=(*TOOLS, LONG)))
    assert "Does a lot of things." in words(full.sent[0])

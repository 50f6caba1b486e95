"""Validators: what is accepted, how it is said (CHK-3), limits (P7), and hostile schemas (P8)."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.timing import BAR, growth
from toolspeak.errors import BadSchema
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text.schema import LIMITS, SchemaLimits, SchemaProblem, Validator, compile_schema

FILES: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "mode": {"enum": ["r", "w"]},
        "lines": {"type": "array", "items": {"type": "integer"}, "maxItems": 3, "uniqueItems": True},
        "when": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "code": {"type": "string", "pattern": "^[a-z]+$"},
        "step": {"type": "number", "multipleOf": 0.5},
    },
    "required": ["path"],
    "additionalProperties": False,
}
NODE: JsonObject = {"type": "object", "properties": {"child": {"$ref": "#/$defs/N"}}}
TREE: JsonObject = {"$ref": "#/$defs/N", "$defs": {"N": NODE}}


def message(schema: JsonObject, value: Json) -> str:
    (problem,) = compile_schema(schema).problems(value)
    return problem.message


def many(item: Json, count: int) -> Json:
    return [item] * count


def nested(depth: int, inner: Json = None) -> Json:
    value: Json = {} if inner is None else inner
    for _ in range(depth - 1):
        value = {"child": value}
    return value


# What is accepted, and the words for what is not


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, "/path is missing, but must be string"),
        ({"path": 3}, "/path is 3, but must be string"),
        ({"path": ""}, '/path is "", but must be at least 1 characters'),
        ({"path": "a", "limit": 0}, "/limit is 0, but must be at least 1"),
        ({"path": "a", "limit": 101}, "/limit is 101, but must be at most 100"),
        ({"path": "a", "limit": 2.5}, "/limit is 2.5, but must be integer"),
        ({"path": "a", "limit": True}, "/limit is true, but must be integer"),
        ({"path": "a", "mode": "x"}, '/mode is "x", but must be one of "r", "w"'),
        ({"path": "a", "lines": [1, "b"]}, '/lines/1 is "b", but must be integer'),
        ({"path": "a", "lines": [1, 2, 3, 4]}, "/lines is an array of 4, but must be at most 3 items"),
        ({"path": "a", "lines": [1, 1]}, "/lines is an array of 2, but must be an array without repeated items"),
        ({"path": "a", "when": 3}, "/when is 3, but must be string or null"),
        ({"path": "a", "code": "A"}, '/code is "A", but must be text that matches "^[a-z]+$"'),
        ({"path": "a", "step": 0.7}, "/step is 0.7, but must be a multiple of 0.5"),
        ([], "the value is an array of 0, but must be object"),
        ({"path": "a", "a/b~": 1}, "/a~1b~0 is not a known field, but must be one of the known fields"),
    ],
)
def test_a_problem_names_the_field_the_value_and_what_is_accepted_chk_3(value: Json, expected: str) -> None:
    assert message(FILES, value).startswith(expected)


def test_a_good_value_has_no_problems() -> None:
    value: Json = {"path": "a", "limit": 100, "mode": "r", "lines": [], "when": None, "code": "a", "step": 1.5}
    assert compile_schema(FILES).problems(value) == ()


def test_a_whole_float_is_an_integer() -> None:
    assert compile_schema(FILES).accepts({"path": "a", "limit": 3.0})
    assert [one.path for one in compile_schema(FILES).problems({"path": 1, "limit": 3.0})] == ["/path"]


def test_an_integer_beyond_64_bits_is_an_integer() -> None:
    assert compile_schema({"type": "integer"}).accepts(12345678901234567890)


def test_at_most_8_problems_are_told_p7() -> None:
    problems = compile_schema({"items": {"type": "integer"}}).problems(many("x", 1000))
    assert [one.path for one in problems] == [f"/{index}" for index in range(8)]


def test_a_long_value_is_shortened_in_the_message_p7() -> None:
    assert len(message({"type": "integer"}, "x" * 100_000)) < 200
    assert len(message({"type": "integer"}, {f"k{index}" * 50: 1 for index in range(1000)})) < 2000
    assert len(message({"enum": [f"option {index}" for index in range(5000)]}, "x")) < 2000


def test_of_several_alternatives_the_almost_right_one_is_explained() -> None:
    circle: Json = {"properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["radius"]}
    square: Json = {"properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["side"]}
    schema: JsonObject = {"properties": {"shape": {"oneOf": [circle, square]}}}
    assert message(schema, {"shape": {"kind": "square", "side": "x"}}) == '/shape/side is "x", but must be number'


def test_what_cannot_be_explained_is_still_refused() -> None:
    assert message({"not": {"type": "string"}}, "x").startswith('the value is "x"')
    assert message({"oneOf": [{"type": "integer"}, {"type": "number"}]}, 3).startswith("the value is 3")


def test_a_recursive_schema_checks_every_level() -> None:
    validator = compile_schema(TREE)
    assert validator.notes == ()
    assert validator.accepts(nested(20))
    (problem,) = validator.problems(nested(5, "leaf"))
    assert problem.path == "/child/child/child/child"


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"$ref": "#/definitions/a%20b", "definitions": {"a b": {"type": "string"}}}, "x", 1),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"$ref": "#/$defs/c"}, "c": {"type": "string"}}}, "x", 1),
        ({"allOf": [{"$ref": "#/components/x"}], "components": {"x": {"type": "string"}}}, "x", 1),
        ({"properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}}}, {"b": "x"}, {"b": 1}),
        ({"prefixItems": [{"type": "string"}, {"$ref": "#/prefixItems/0"}]}, [1, "x"][1:], ["x", 1]),
        ({"type": "string", "nullable": True}, None, 1),
        ({"enum": ["a"], "nullable": True}, None, "b"),
        ({"items": [{"type": "string"}], "additionalItems": False}, ["x"], ["x", 1]),
        ({"type": "STRING"}, "x", 1),
        ({"type": ["int", "null"]}, 1, "x"),
        ({"type": "dict", "properties": {"a": {"type": "float"}}}, {"a": 1.5}, {"a": "x"}),
        ({"required": ["a", "a"]}, {"a": 1}, {}),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 2}, {"a": 1}),
        ({"enum": [f"o{index}" for index in range(100)] + [None, 1]}, None, "o100"),
        ({"enum": [f"o{index}" for index in range(100)] + [None, 1]}, "o99", 2),
    ],
)
def test_the_ways_in_which_people_write_schemas_are_understood(schema: JsonObject, good: Json, bad: Json) -> None:
    validator = compile_schema(schema)
    assert validator.notes == ()
    assert validator.accepts(good)
    assert not validator.accepts(bad)


# What cannot be used


@pytest.mark.parametrize(
    ("schema", "value", "word"),
    [
        ({"type": "string", "pattern": "(?=a)b"}, "x", "pattern"),
        ({"type": "string", "pattern": "(a{1000}){1000}"}, "x", "pattern"),
        ({"type": "string", "pattern": "("}, "x", "pattern"),
        ({"pattern": 3}, "x", "pattern"),
        ({"patternProperties": {"(?!a)": False}, "additionalProperties": False}, {"x": 1}, "patternProperties"),
        ({"$ref": "http://192.0.2.1/schema.json"}, 1, "$ref"),
        ({"$ref": "file:///etc/passwd"}, 1, "$ref"),
        ({"$ref": "other.json#/a"}, 1, "$ref"),
        ({"$ref": "#anchor"}, 1, "$ref"),
        ({"$ref": "#/not/there"}, 1, "$ref"),
        ({"$ref": 3}, 1, "$ref"),
        ({"type": "strin"}, 1, "type"),
        ({"type": 3}, 1, "type"),
        ({"type": []}, 1, "type"),
        ({"type": {"a": 1}}, 1, "type"),
        ({"properties": []}, {}, "properties"),
        ({"properties": {"a": 3}}, {"a": 1}, "3 is no schema"),
        ({"required": True}, {}, "required"),
        ({"required": [1]}, {}, "required"),
        ({"enum": []}, 1, "enum"),
        ({"enum": "a"}, 1, "enum"),
        ({"enum": [index + 0.5 for index in range(40)]}, 1, "enum"),
        ({"minimum": "3"}, 1, "minimum"),
        ({"exclusiveMinimum": True, "minimum": 0}, 0, "exclusiveMinimum"),
        ({"multipleOf": 0}, 1, "multipleOf"),
        ({"maxLength": -1}, "x", "maxLength"),
        ({"anyOf": []}, 1, "anyOf"),
        ({"not": {"pattern": "(?=a)"}}, "x", "pattern"),
        ({"if": {"$ref": "urn:x"}, "then": False}, 1, "$ref"),
        ({"oneOf": [{"pattern": "(?=a)"}, {"pattern": "(?=b)"}]}, "x", "pattern"),
        ({"allOf": [{"$ref": "urn:x"}], "unevaluatedProperties": False}, {"a": 1}, "$ref"),
    ],
)
def test_an_unusable_keyword_is_left_out_with_a_note(schema: JsonObject, value: Json, word: str) -> None:
    validator = compile_schema(schema)
    assert validator.accepts(value)
    assert any(word in note for note in validator.notes)


@pytest.mark.parametrize("schema", [{"$schema": "http://x"}, {"$id": "::"}, {"$anchor": "3"}, {"format": "zzz"}])
def test_what_only_describes_is_ignored_without_a_note(schema: JsonObject) -> None:
    validator = compile_schema(schema)
    assert validator.accepts(1)
    assert validator.notes == ()


def test_the_rest_of_a_schema_with_an_unusable_keyword_still_holds() -> None:
    unusable: JsonObject = {"a": {"type": "string", "pattern": "(?<=x)y"}, "b": {"$ref": "http://x/y"}}
    validator = compile_schema({"properties": unusable})
    assert not validator.accepts({"a": 1})
    assert len(validator.notes) == 2


def test_patterns_over_the_limit_are_left_out_p7() -> None:
    def noted(count: int) -> int:
        return len(compile_schema({"allOf": [{"pattern": f"^{index}"} for index in range(count)]}).notes)

    assert [noted(LIMITS.patterns - 1), noted(LIMITS.patterns), noted(LIMITS.patterns + 1)] == [0, 0, 1]


def test_a_boolean_schema_inside_is_understood() -> None:
    validator = compile_schema({"properties": {"a": True, "b": False}})
    assert validator.accepts({"a": 1})
    assert message({"properties": {"a": True, "b": False}}, {"b": 1}) == "/b is 1, but must be left out"


@pytest.mark.parametrize("schema", [True, False, None, [], "x", 3])
def test_what_is_no_object_is_refused(schema: Json) -> None:
    with pytest.raises(BadSchema, match="an object is accepted"):
        compile_schema(schema)


@pytest.mark.parametrize("schema", [{"const": "\ud800"}, {"\ud800": 1}, {"const": float("nan")}])
def test_what_is_no_json_is_refused(schema: JsonObject) -> None:
    with pytest.raises(BadSchema):
        compile_schema(schema)


def test_a_value_that_is_no_json_is_not_accepted() -> None:
    assert compile_schema({}).problems("\ud800")
    assert compile_schema({"type": "string"}).problems({"a": ["\ud800"]})


# Limits


def sized(size: int) -> JsonObject:
    return {"title": "x" * (size - len('{"title":""}'))}


def deep(depth: int) -> JsonObject:
    schema: JsonObject = {}
    for _ in range(depth - 1):
        schema = {"not": schema}
    return schema


def wide(nodes: int) -> JsonObject:
    return {"prefixItems": list[Json]([True] * (nodes - 1))}


def wide_by_references(nodes: int) -> JsonObject:
    """One for the root, one for each reference, ten for what each refers to."""
    times, rest = divmod(nodes - 1, 11)
    tuples: list[Json] = [{"$ref": "#/$defs/ten"} for _ in range(times)]
    return {"$defs": {"ten": {"prefixItems": list[Json]([True] * 9)}}, "prefixItems": tuples + [True] * rest}


@pytest.mark.parametrize(
    ("make", "limit"),
    [(sized, LIMITS.size), (deep, LIMITS.depth), (wide, LIMITS.nodes), (wide_by_references, LIMITS.nodes)],
)
def test_a_schema_is_accepted_up_to_each_limit_and_refused_above_it_p7(
    make: Callable[[int], JsonObject], limit: int
) -> None:
    compile_schema(make(limit - 1))
    compile_schema(make(limit))
    with pytest.raises(BadSchema, match=str(limit)):
        compile_schema(make(limit + 1))


def test_a_small_schema_that_its_references_make_large_is_refused_at_once_p7() -> None:
    bottom: JsonObject = {"type": "object", "properties": {"a": {"properties": {"b": {"properties": {"c": {}}}}}}}
    definitions: JsonObject = {
        f"D{level}": {"anyOf": [{"$ref": f"#/$defs/D{level + 1}"}, {"$ref": f"#/$defs/D{level + 1}"}]}
        for level in range(20)
    }
    with pytest.raises(BadSchema, match="once they are expanded"):
        compile_schema({"$ref": "#/$defs/D0", "$defs": {**definitions, "D20": bottom}})


def test_references_lead_to_references_up_to_64_times_p7() -> None:
    def chain(length: int) -> JsonObject:
        definitions: JsonObject = {f"D{level}": {"$ref": f"#/$defs/D{level + 1}"} for level in range(1, length)}
        return {"$ref": "#/$defs/D1", "$defs": {**definitions, f"D{length}": {"type": "object"}}}

    for length in (62, 63):
        assert compile_schema(chain(length)).accepts({})
    with pytest.raises(BadSchema, match="64 deep"):
        compile_schema(chain(64))


def test_limits_can_be_set() -> None:
    with pytest.raises(BadSchema, match="at most 10 are accepted"):
        compile_schema(sized(30), SchemaLimits(size=10))


def test_a_value_is_accepted_up_to_64_levels_p7() -> None:
    validator = compile_schema(TREE)
    assert validator.accepts(nested(63))
    assert validator.accepts(nested(64))
    assert validator.problems(nested(66))[0].found == "is nested too deep"
    assert validator.problems(nested(100_000)) == (SchemaProblem("", "is nested too deep", "at most 64 levels deep"),)


# Hostile schemas


def doubling(levels: int) -> JsonObject:
    names = [f"D{level}" for level in range(levels)]
    definitions: JsonObject = {
        name: {"anyOf": many({"$ref": f"#/$defs/{below}"}, 2)} for name, below in pairwise(names)
    }
    return {"$ref": "#/$defs/D0", "$defs": {**definitions, names[-1]: {"type": "string"}}}


def all_to_all(count: int, keyword: str) -> JsonObject:
    """Every definition leads to every other: as many ways as there are orders."""
    ways: list[Json] = [{"properties": {"child": {"$ref": f"#/$defs/{index}"}}} for index in range(count)]
    definitions: JsonObject = {str(index): {"type": "object", keyword: ways} for index in range(count)}
    return {"$ref": "#/$defs/0", "$defs": definitions}


def chain(length: int) -> JsonObject:
    definitions: JsonObject = {str(index): {"$ref": f"#/$defs/{index + 1}"} for index in range(length)}
    return {"$ref": "#/$defs/0", "$defs": {**definitions, str(length): {"type": "string"}}}


BRANCHING: JsonObject = {
    "anyOf": [
        {"type": "object", "properties": {"child": {"$ref": "#"}}, "required": ["b"]},
        {"type": "object", "properties": {"child": {"$ref": "#"}}, "required": ["c"]},
    ]
}
LONG = "ab" * 50_000
FAILING: list[Json] = [{"type": "integer", "minimum": index} for index in range(2000)]
HOSTILE: dict[str, tuple[JsonObject, Json]] = {
    "refers to itself": ({"$ref": "#"}, 1),
    "alternates with itself": ({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, 1),
    "refers in a circle": ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, 1),
    "all of itself": ({"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "integer"}]}, "x"),
    "doubles 30 times": (doubling(30), 3),
    "doubles 10 times": (doubling(10), 3),
    "branches on every level": (BRANCHING, nested(60)),
    "all to all, any": (all_to_all(16, "anyOf"), nested(60, 1)),
    "all to all, one": (all_to_all(16, "oneOf"), nested(60)),
    "all to all, all": (all_to_all(16, "allOf"), nested(60)),
    "a long chain": (chain(5000), 1),
    "a huge enum": ({"items": {"enum": [f"{index}" for index in range(25_000)]}}, many("x", 20_000)),
    "a huge enum of floats": ({"items": {"enum": [index + 0.5 for index in range(25_000)]}}, many(9999.5, 20_000)),
    "a huge mixed enum": ({"items": {"enum": [*map(str, range(9999)), *range(9999), None]}}, many("9998", 20_000)),
    "a backtracking pattern": ({"pattern": "^(a+)+$"}, "a" * 50_000 + "b"),
    "a pattern that explodes": ({"pattern": "[ab]*a[ab]{400}[^ab][ab]*a[ab]{200}x?"}, LONG),
    "many slow patterns": ({"allOf": [{"pattern": "(?i)\\p{L}{20}" + str(index)} for index in range(3000)]}, "x"),
    "many unknown types": ({"properties": {str(index): {"type": "x"} for index in range(9000)}}, {"1": 1}),
    "many failing alternatives": ({"items": {"anyOf": FAILING}}, many("x", 500)),
    "many that refer to themselves": (
        {"properties": {k: {"$ref": f"#/properties/{k}"} for k in map(str, range(3000))}},
        {},
    ),
    "unique items": ({"uniqueItems": True}, [[index] for index in range(20_000)]),
    "a loop of remote references": ({"allOf": many({"$ref": "https://x/"}, 1000)}, 1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_ends_soon_and_only_in_our_errors_p8(name: str) -> None:
    schema, value = HOSTILE[name]
    start = time.process_time()
    with suppress(BadSchema):
        compile_schema(schema).problems(value)
    assert time.process_time() - start < 3


def test_a_schema_with_a_loop_in_memory_is_refused() -> None:
    schema: JsonObject = {}
    schema |= {"a": schema, "b": schema}
    with pytest.raises(BadSchema):
        compile_schema(schema)


def test_too_many_circles_are_cut_with_a_note_instead_of_refused() -> None:
    validator = compile_schema(all_to_all(12, "oneOf"))
    assert any("circles" in note for note in validator.notes)
    assert validator.accepts(nested(3))
    assert not validator.accepts([])


KEYWORDS = (
    *("type", "enum", "const", "required", "properties", "items", "prefixItems", "anyOf", "oneOf", "allOf", "not"),
    *("if", "then", "else", "contains", "$ref", "$defs", "pattern", "patternProperties", "additionalProperties"),
    *("unevaluatedProperties", "minimum", "multipleOf", "maxLength", "uniqueItems", "dependentRequired", "nullable"),
    *("dependentSchemas", "propertyNames", "$id", "$anchor", "$schema", "$dynamicRef", "definitions", "a", "b"),
)
WORDS = ("#", "#/a", "#/properties/a", "string", "integer", "a", "(", "\ud800")
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4),
    max_leaves=12,
)


@given(JUNK, JUNK)
def test_any_json_as_a_schema_gives_a_verdict_or_our_error(schema: Json, value: Json) -> None:
    try:
        validator = compile_schema(schema)
    except BadSchema:
        return
    assert (validator.problems(value) == ()) == validator.accepts(value)
    assert len(validator.problems(value)) <= 8
    assert len(validator.notes) <= 32


@given(JUNK)
def test_what_was_cleaned_once_is_clean(schema: Json) -> None:
    try:
        cleaned = Validator(schema).schema
    except BadSchema:
        return
    assert compile_schema(json.loads(json.dumps(cleaned))).schema.keys() == cleaned.keys()


def test_checking_is_linear_in_the_value_p8() -> None:
    validator = compile_schema({"items": {"type": "object", "properties": {"n": {"type": "integer"}}}})
    validator.accepts([])

    def values(count: int) -> list[Json]:
        return [*({"n": index, "text": "some words"} for index in range(count)), {"n": "x"}]

    assert len(validator.problems(values(3000))) == 1
    assert growth(validator.problems, values(3000), values(6000)) < BAR  # about 100 KB and 200 KB

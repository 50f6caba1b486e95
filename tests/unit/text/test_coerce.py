"""Coercion: only where the schema demands it and without loss (CHK-3), nothing invented (P2), linear (P8)."""

from collections.abc import Iterator

import jsonschema_rs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from testkit.timing import BAR, growth
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Fix
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text._explain import Explainer
from toolspeak.text._places import Places, StepBudget
from toolspeak.text.coerce import Coerced, coerce, coerce_arguments, typed
from toolspeak.text.schema import Validator, compile_schema
from toolspeak.text.strict import dump, parse

STRING: JsonObject = {"type": "string"}
INTEGER: JsonObject = {"type": "integer"}
NUMBER: JsonObject = {"type": "number"}
BOOLEAN: JsonObject = {"type": "boolean"}
INTEGERS: JsonObject = {"type": "array", "items": INTEGER}
CITY: JsonObject = {
    "type": "object",
    "properties": {"city": STRING, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}, "days": INTEGER},
    "required": ["city"],
}


def same(one: Json, other: Json) -> bool:
    """Tell values apart that Python takes for equal: 1, 1.0 and True."""
    return dump(one) == dump(other)


# One value


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ("4", INTEGER, 4),
        ("-4", INTEGER, -4),
        ("0", INTEGER, 0),
        ("3.0", INTEGER, 3),
        (3.0, INTEGER, 3),
        ("12345678901234567890", INTEGER, 12345678901234567890),
        ("4", NUMBER, 4),
        ("0.5", NUMBER, 0.5),
        ("1e3", NUMBER, 1000.0),
        ("true", BOOLEAN, True),
        ("False", BOOLEAN, False),
        ("null", {"type": ["integer", "null"]}, None),
        ("None", {"type": ["integer", "null"]}, None),
        ("4", {"type": ["integer", "null"]}, 4),
        ("4", {"type": "integer", "nullable": True}, 4),
        ("4", {"anyOf": [INTEGER, {"type": "null"}]}, 4),
        (3.0, {"anyOf": [INTEGER, {"type": "null"}]}, 3),
        ("null", {"anyOf": [INTEGER, {"type": "null"}]}, None),
        ("4", {"oneOf": [INTEGER, BOOLEAN]}, 4),
        ("4", {"oneOf": [INTEGER, NUMBER]}, 4),
        ("4", {"allOf": [{"minimum": 1}, INTEGER]}, 4),
        ("4", {"$ref": "#/$defs/n", "$defs": {"n": INTEGER}}, 4),
        ("2", {"enum": [1, 2]}, 2),
        ("2", {"const": 2}, 2),
        ("2", {"enum": ["auto", 1, 2]}, 2),
        ("Celsius", {"enum": ["celsius", "fahrenheit"]}, "celsius"),
        ("ON", {"const": "on"}, "on"),
        ("ON", {"anyOf": [{"const": "on"}, {"const": "off"}, {"type": "null"}]}, "on"),
        ('["test"]', {"type": "array", "items": STRING}, ["test"]),
        (' {"a": 1}\n', {"type": "object"}, {"a": 1}),
        ('["1", 2]', INTEGERS, [1, 2]),
        ('{"a": "[1]"}', {"type": "object", "properties": {"a": INTEGERS}}, {"a": [1]}),
        (["1", 2.0], INTEGERS, [1, 2]),
        (["1", "1"], {"prefixItems": [INTEGER], "items": STRING}, [1, "1"]),
        (["1", "1"], {"items": [STRING, INTEGER]}, ["1", 1]),
        ({"x": "1"}, {"additionalProperties": INTEGER}, {"x": 1}),
        ([{"n": "1"}], {"items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"properties": {"n": INTEGER}}}}, [{"n": 1}]),
        ({"n": "1"}, {"anyOf": [{"type": "object", "properties": {"n": INTEGER}}, {"type": "null"}]}, {"n": 1}),
    ],
)
def test_a_value_becomes_what_the_schema_demands_chk_3(value: Json, schema: JsonObject, expected: Json) -> None:
    coerced = coerce(value, schema)
    assert same(coerced.value, expected)
    assert coerced.fixes


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("3abc", INTEGER),
        ("007", INTEGER),
        ("+4", INTEGER),
        (" 4 ", INTEGER),
        ("3.5", INTEGER),
        ("1e3", INTEGER),
        ("٣", INTEGER),
        ("9" * 5000, INTEGER),
        ("", INTEGER),
        (3.5, INTEGER),
        (1e300, INTEGER),
        (True, INTEGER),
        ("1e999", NUMBER),
        ("NaN", NUMBER),
        ("Infinity", NUMBER),
        ("0x10", NUMBER),
        ("yes", BOOLEAN),
        ("1", BOOLEAN),
        (1, BOOLEAN),
        (4, STRING),
        (None, STRING),
        (True, STRING),
        ("light", {"type": "array", "items": STRING}),
        ("[1", INTEGERS),
        ("[1] and more", INTEGERS),
        ("{'a': 1}", {"type": "object"}),
        ("[1]", {"type": "object"}),
        ("kelvin", {"enum": ["celsius", "fahrenheit"]}),
        ("a", {"enum": ["A", "Á"]} | {"enum": ["Ab", "aB"]}),
        ("AB", {"enum": ["Ab", "aB"]}),
        ("[]", {"anyOf": [{"const": [1]}, BOOLEAN]}),
        ("x", False),
        ("x", {"type": "nonsense"}),
        ("4", {"type": [["integer"]]}),
        ("4", {"$ref": "http://192.0.2.1/"}),
        ("4", {"$ref": "#/nowhere"}),
        ({"x": "1"}, {"additionalProperties": INTEGER, "patternProperties": {"x": STRING}}),
    ],
)
def test_a_value_stays_where_there_is_no_way_without_loss(value: Json, schema: Json) -> None:
    coerced = coerce(value, schema)
    assert coerced.value is value
    assert coerced.fixes == ()


@pytest.mark.parametrize(
    "schema",
    [
        STRING,
        {},
        True,
        {"description": "no type"},
        {"type": ["string", "array"]},
        {"anyOf": [STRING, INTEGERS]},
        {"anyOf": [INTEGERS, STRING]},
        {"oneOf": [{"type": "object"}, STRING, INTEGER, BOOLEAN, {"type": "null"}]},
        {"$ref": "#/$defs/s", "$defs": {"s": STRING}},
    ],
)
@pytest.mark.parametrize(
    "text", ['[review]: {"ok": true}\nInitiator: [~id:7]', "[1, 2]", "00120", "4", "true", "null", "{}"]
)
def test_a_text_that_may_be_text_is_never_read_chk_3(text: str, schema: Json) -> None:
    assert coerce(text, schema) == Coerced(text)
    assert coerce_arguments({"v": text}, {"type": "object", "properties": {"v": schema}}).value == {"v": text}


def test_two_readings_are_none() -> None:
    schema: JsonObject = {"anyOf": [{"const": 1}, {"type": "array", "items": INTEGER}]}
    assert coerce("1", schema).value == 1
    one: Json = {"type": "object", "properties": {"a": INTEGER, "b": {"const": True}}, "required": ["a", "b"]}
    two: Json = {"type": "object", "properties": {"a": BOOLEAN, "b": {"const": "True"}}, "required": ["a", "b"]}
    assert coerce({"a": "1", "b": "true"}, {"anyOf": [one, two]}).value == {"a": 1, "b": True}
    fold_a: Json = {"enum": ["Ab"]}
    fold_b: Json = {"enum": ["aB"]}
    assert coerce("AB", {"anyOf": [fold_a, fold_b]}) == Coerced("AB")


def test_each_fix_says_what_and_where() -> None:
    schema: JsonObject = {"properties": {"a/b": {"items": {"properties": {"~": INTEGER}}}, "c": {"enum": ["X"]}}}
    coerced = coerce({"a/b": [{}, {"~": "1"}], "c": "x"}, schema)
    assert coerced.fixes == (Fix("string to integer", "/a~1b/1/~0"), Fix("enum case", "/c"))


def test_what_is_given_is_not_changed_in_place() -> None:
    value: JsonObject = {"city": "Oslo", "days": "3", "unit": None}
    assert coerce(value, CITY).value == {"city": "Oslo", "days": 3}
    assert value == {"city": "Oslo", "days": "3", "unit": None}


def test_a_scalar_becomes_an_array_only_if_asked() -> None:
    schema: JsonObject = {"type": "array", "items": INTEGER}
    assert coerce("7", schema) == Coerced("7")
    assert coerce("7", schema, wrap_scalars=True).value == [7]
    assert coerce("[7]", schema, wrap_scalars=True).value == [7]
    assert coerce(None, schema, wrap_scalars=True).value is None


# Nulls


def test_null_for_an_optional_property_means_that_it_is_not_given() -> None:
    assert coerce({"city": "Oslo", "unit": None}, CITY) == Coerced({"city": "Oslo"}, (Fix("null dropped", "/unit"),))


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": STRING}, "required": ["a"]},
        {"properties": {"a": {"type": ["string", "null"]}}},
        {"properties": {"a": {"type": "string", "nullable": True}}},
        {"properties": {"a": {"anyOf": [STRING, {"type": "null"}]}}},
        {"properties": {"a": {"enum": ["x", None]}}},
        {"properties": {"a": {}}},
        {"properties": {"b": STRING}},
        {"additionalProperties": STRING},
    ],
)
def test_any_other_null_stays(schema: JsonObject) -> None:
    assert coerce({"a": None}, schema) == Coerced({"a": None})


# The whole arguments


@pytest.mark.parametrize("nothing", [None, "", " \n", "null"])
def test_no_arguments_are_an_empty_object(nothing: Json) -> None:
    assert coerce_arguments(nothing, CITY) == Coerced({}, (Fix("no arguments"),))


def test_arguments_in_a_string_are_decoded_one_level() -> None:
    once = dump({"city": "Oslo", "days": "3"})
    assert coerce_arguments(once, CITY).value == {"city": "Oslo", "days": 3}
    assert coerce_arguments(dump(once), CITY) == Coerced(dump(once))


@pytest.mark.parametrize("key", ["input", "arguments", "properties", "parameters", "args"])
def test_arguments_wrapped_one_level_are_unwrapped(key: str) -> None:
    assert coerce_arguments({key: {"city": "Oslo"}}, CITY) == Coerced({"city": "Oslo"}, (Fix(f"unwrapped from {key}"),))
    assert coerce_arguments({key: '{"city": "Oslo", "days": "2"}'}, CITY).value == {"city": "Oslo", "days": 2}


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (
            {"input": {"city": "Oslo"}},
            {"properties": {"city": STRING, "input": {"type": "object"}}, "required": ["city"]},
        ),
        ({"input": {"town": "Oslo"}}, CITY),
        ({"input": {"city": "Oslo"}, "more": 1}, CITY),
        ({"inner": {"city": "Oslo"}}, CITY),
        ({"input": ["Oslo"]}, CITY),
        ({"input": "Oslo"}, CITY),
        ({"input": {"city": "Oslo"}}, {"properties": {"city": STRING}}),
        ([], CITY),
        ("Oslo", CITY),
        ("[1]", CITY),
        (3, CITY),
    ],
)
def test_other_arguments_are_not_unwrapped(value: Json, schema: JsonObject) -> None:
    assert coerce_arguments(value, schema) == Coerced(value)


# Plain text


@pytest.mark.parametrize(
    ("raw", "schema", "expected"),
    [
        ("00120", STRING, "00120"),
        (" keep \n", STRING, " keep \n"),
        ("null", STRING, "null"),
        ("5", {"type": ["string", "integer"]}, "5"),
        ("[1]", {"anyOf": [STRING, INTEGERS]}, "[1]"),
        ("null", {"type": ["string", "null"]}, None),
        ("null", {"anyOf": [STRING, {"type": "null"}]}, None),
        ("null", {"type": "string", "nullable": True}, None),
        ("None", {"type": ["string", "null"]}, "None"),
        ("nil", {"type": ["string", "null"]}, "nil"),
        (" null", {"type": ["string", "null"]}, " null"),
        ("null", {"enum": ["null", "x", None]}, "null"),
        ("null", {"enum": ["x", None]}, None),
        ("x", {"enum": ["x", "y"]}, "x"),
        (" X\n", {"enum": ["x", "y"]}, "x"),
        (" z\n", {"enum": ["x", "y"]}, " z\n"),
        ("1", {"enum": ["auto", 1]}, 1),
        ("30", INTEGER, 30),
        ("\n30 ", INTEGER, 30),
        ("3.0", INTEGER, 3),
        ("3abc", INTEGER, "3abc"),
        ("007", INTEGER, "007"),
        (" what? ", INTEGER, " what? "),
        ("10", NUMBER, 10),
        ("1.5", NUMBER, 1.5),
        ("True", BOOLEAN, True),
        ("FALSE", BOOLEAN, False),
        ("1", BOOLEAN, "1"),
        ("None", {"type": ["integer", "null"]}, None),
        ("[]", {"type": "array", "items": STRING}, []),
        ('["a", 1]', INTEGERS, ["a", 1]),
        ('["2", 1]', INTEGERS, [2, 1]),
        ("['a', True, None]", {"type": "array"}, ["a", True, None]),
        ("{'a': 1}", {"type": "object"}, {"a": 1}),
        ('{"a": 1,}', {"properties": {"a": INTEGER}}, {"a": 1}),
        ("{'a': 1}", {"type": "array"}, "{'a': 1}"),
        ("light", {"type": "array"}, "light"),
        ("__import__('os')", {"type": "array"}, "__import__('os')"),
        ("4", {"$ref": "#/$defs/n", "$defs": {"n": INTEGER}}, 4),
        ("4", {"allOf": [NUMBER, INTEGER]}, 4),
    ],
)
def test_plain_text_is_typed_by_the_schema(raw: str, schema: JsonObject, expected: Json) -> None:
    assert same(typed(raw, schema).value, expected)


@pytest.mark.parametrize(
    "schema", [{}, True, {"description": "?"}, {"$ref": "http://192.0.2.1/"}, {"anyOf": [STRING, {}]}]
)
@pytest.mark.parametrize(
    ("raw", "expected"),
    [("5", 5), (" true\n", True), ("null", None), ("[1]", [1]), ('{"a": 1}', {"a": 1}), ("1.50", 1.5)],
)
def test_without_a_type_plain_text_is_read_as_json(raw: str, expected: Json, schema: Json) -> None:
    assert same(typed(raw, schema).value, expected)


@pytest.mark.parametrize("raw", ["00120", '"quoted"', "True", "[1", "a: b", "", "  ", "1 2", "NaN", "1e999", " text "])
def test_without_a_type_plain_text_that_is_no_json_stays(raw: str) -> None:
    assert typed(raw, {}) == Coerced(raw)


# Properties

Strategy = st.SearchStrategy[Json]
PLAIN = ("4", "3.0", "007", "true", "True", "null", "x", "X", "Ab", "")
ENCODED = ("[1]", '["4"]', '{"a": "4"}', '{"a": null}', "{}", "[[]]")
TEXTS = st.sampled_from(PLAIN + ENCODED)
SCALARS: Strategy = st.none() | st.booleans() | st.integers(-2, 5) | st.sampled_from([3.0, 0.5]) | TEXTS
KEYS = st.sampled_from("abc")


def larger_values(inner: Strategy) -> Strategy:
    return st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)


VALUES: Strategy = st.recursive(SCALARS, larger_values, max_leaves=8)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=3)


def a_list(items: Strategy, *, fewest: int = 1, most: int = 3, unique: bool = False) -> Strategy:
    return st.lists(items, min_size=fewest, max_size=most, unique=unique)


def an_object(**keywords: Strategy) -> Strategy:
    return st.fixed_dictionaries(keywords)


TYPES: Strategy = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
LEAVES: Strategy = st.one_of(
    an_object(),
    an_object(type=TYPES),
    an_object(type=a_list(TYPES, unique=True)),
    an_object(enum=a_list(SCALARS)),
    an_object(const=SCALARS),
    st.sampled_from([{"$ref": "#"}, {"$ref": "#/$defs/d"}, True, False]),
)


def larger_schemas(inner: Strategy) -> Strategy:
    some = a_list(inner)
    fields: Strategy = st.dictionaries(KEYS, inner, max_size=3)
    names = a_list(KEYS, fewest=0, unique=True)
    return st.one_of(
        *(an_object(**{keyword: some}) for keyword in ("anyOf", "oneOf", "allOf")),
        an_object(type=st.just("array"), items=inner),
        an_object(prefixItems=some, items=inner),
        an_object(type=st.just("object"), properties=fields, required=names),
        an_object(properties=fields, additionalProperties=inner),
        an_object(**{"not": inner, "type": TYPES, "anyOf": some}),
    )


def with_definition(schema: Json, definition: Json) -> JsonObject:
    return {**(schema if isinstance(schema, dict) else {}), "$defs": {"d": definition}}


SCHEMAS = st.builds(
    with_definition,
    st.recursive(LEAVES, larger_schemas, max_leaves=6),
    st.recursive(LEAVES, larger_schemas, max_leaves=3),
)


def without_whole_floats(value: Json) -> Json:
    """Write 3.0 as 3: to JSON Schema they are one number, and this one change is made."""
    if isinstance(value, dict):
        return {key: without_whole_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_whole_floats(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@given(SCHEMAS, VALUES)
def test_a_value_that_is_accepted_is_never_changed_chk_3(schema: JsonObject, value: Json) -> None:
    assume(compile_schema(schema).accepts(value))
    assert same(without_whole_floats(coerce(value, schema).value), without_whole_floats(value))


@given(SCHEMAS, OBJECTS)
def test_arguments_that_are_accepted_are_never_changed_chk_3(schema: JsonObject, value: JsonObject) -> None:
    assume(compile_schema(schema).accepts(value))
    assert same(without_whole_floats(coerce_arguments(value, schema).value), without_whole_floats(value))


@given(SCHEMAS, VALUES)
def test_the_second_coercion_has_nothing_to_do(schema: JsonObject, value: Json) -> None:
    once = coerce(value, schema).value
    assert coerce(once, schema) == Coerced(once)


@given(SCHEMAS, VALUES)
def test_arguments_are_coerced_once(schema: JsonObject, value: Json) -> None:
    once = coerce_arguments(value, schema).value
    assert coerce_arguments(once, schema).value == once


@given(SCHEMAS, VALUES)
def test_a_change_is_always_recorded_and_only_a_change(schema: JsonObject, value: Json) -> None:
    coerced = coerce(value, schema)
    assert same(coerced.value, value) == (coerced.fixes == ())


@given(SCHEMAS, VALUES)
def test_every_string_was_in_the_input_p2(schema: JsonObject, value: Json) -> None:
    """But for the case of an enum's values: those are the caller's own words."""
    given_strings = {text.casefold() for text in strings(value)}
    assert {text.casefold() for text in strings(coerce_arguments(value, schema).value)} <= given_strings


def strings(value: Json) -> Iterator[str]:
    """List all strings and keys, also those in JSON inside a string."""
    if isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, str):
        yield value
        try:
            inside = parse(value)
        except BadJson:
            return
        yield from strings(inside) if isinstance(inside, dict | list) else ()


@given(SCHEMAS, TEXTS | st.text(max_size=20))
def test_typed_text_is_the_text_or_what_it_says_p2(schema: JsonObject, raw: str) -> None:
    value = typed(raw, schema).value
    if isinstance(value, str):
        assert raw.strip().casefold() in {value.casefold(), value.strip().casefold()}


@given(SCHEMAS, VALUES)
def test_our_own_walk_never_refuses_what_the_validator_accepts(schema: JsonObject, value: Json) -> None:
    validator = compile_schema(schema)
    assert validator.notes or validator.accepts(value) == jsonschema_rs.is_valid(schema, value)
    explainer = Explainer(Places(schema), StepBudget(100_000))
    cleaned = Explainer(validator.places, StepBudget(100_000))
    if validator.accepts(value):
        assert explainer.fits(value, schema)
        assert cleaned.fits(value, validator.schema)


# Cost


def nested_text(depth: int) -> str:
    text = "1"
    for _ in range(depth):
        text = dump([text])
    return text


def test_a_recursive_schema_ends_p8() -> None:
    node: Json = {"type": "object", "properties": {"child": {"$ref": "#/$defs/N"}, "n": INTEGER}}
    tree: JsonObject = {"type": "object", "properties": {"root": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}}
    value: Json = {"n": "1"}
    for _ in range(50):
        value = {"child": value, "n": "1"}
    coerced = coerce({"root": value}, tree)
    assert len(coerced.fixes) == 51
    assert Validator(tree).accepts(coerced.value)


CHILD: JsonObject = {"child": {"$ref": "#"}}
LOOPS: list[JsonObject] = [
    {"$ref": "#"},
    {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
    {"anyOf": [{"type": "object", "properties": CHILD, "required": [name]} for name in "abcdefgh"]},
    {"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "array", "items": {"$ref": "#"}}, INTEGER]},
    {"type": "array", "items": {"$ref": "#"}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
]


@pytest.mark.parametrize("schema", LOOPS)
def test_no_circle_of_references_hangs_coercion_p8(schema: JsonObject) -> None:
    def read(values: list[Json]) -> None:
        for value in values:
            coerce_arguments(value, schema)
            typed(value if isinstance(value, str) else dump(value), schema)

    small: list[Json] = [nested(30), nested_text(11), "x", [["1"]], "[" * 500]
    large: list[Json] = [nested(60), nested_text(12), "x", [["1"]], "[" * 1000]  # each level of text doubles it
    assert growth(read, small, large) < BAR


def nested(levels: int) -> Json:
    value: Json = "x"
    for _ in range(levels):
        value = {"child": value}
    return value


def test_nesting_is_followed_to_64_levels_p7() -> None:
    schema: JsonObject = {"type": ["array", "integer"], "items": {"$ref": "#"}}

    def innermost(depth: int) -> Json:
        value: Json = "1"
        for _ in range(depth):
            value = [value]
        value = coerce(value, schema).value
        while isinstance(value, list):
            value = value[0]
        return value

    assert [innermost(63), innermost(64), innermost(65)] == [1, 1, "1"]


def test_alternatives_are_followed_to_64_levels_p7() -> None:
    def coerced(depth: int) -> Json:
        schema: JsonObject = INTEGER
        for _ in range(depth):
            schema = {"anyOf": [schema, BOOLEAN]}
        return coerce("1", schema).value

    assert [coerced(63), coerced(64), coerced(65)] == [1, 1, "1"]


@pytest.mark.parametrize(
    ("schema", "item"),
    [
        (INTEGERS, "4"),
        ({"items": {"properties": {"n": INTEGER}}}, {"n": "4", "text": "words and words"}),
        ({"items": {"anyOf": [{"type": "object", "properties": {"n": INTEGER}}, BOOLEAN]}}, {"n": "4"}),
        ({"items": {"enum": [f"option {index}" for index in range(5000)]}}, "OPTION 4999"),
        ({"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, ["some words and more"]),
    ],
)
@pytest.mark.parametrize("as_text", [False, True])
def test_coercion_is_linear_p8(schema: JsonObject, item: Json, as_text: bool) -> None:
    def value(size: int) -> Json:
        values: Json = [item] * (size // len(dump(item)))
        return dump(values) if as_text else values

    assert growth(lambda value: coerce(value, {"type": "array", **schema}), value(100_000), value(200_000)) < BAR


@pytest.mark.parametrize("character", ["9", "[", "{", '"', "\\", " ", "-", "a", "[1,"])
def test_long_texts_are_read_in_linear_time_p8(character: str) -> None:
    schema: JsonObject = {"type": ["integer", "number", "boolean", "null", "array", "object"]}

    def read(text: str) -> None:
        for _ in range(5):
            coerce(text, schema)
            typed(text, schema)

    small, large = (character * (size // len(character)) for size in (100_000, 200_000))
    assert growth(read, small, large) < BAR

"""Grammars: what they let pass, and what they do not (CHK-8)."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.live.schemas import ODD
from tests.unit.text.gbnf_matcher import Matcher
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text.gbnf import MOST_RULES, Rules, SchemaGrammar, first_text, free_text, literal, other_than
from toolspeak.text.schema import compile_schema

MARK = "<call>"
KEPT_BY_ODD = [name for name in ODD if name not in ("pattern", "long string", "false", "not", "tuple")]
"""Those that a grammar can say to the letter."""


def of_schema(schema: JsonObject) -> Matcher:
    rules = Rules()
    rules.define("root", SchemaGrammar(rules, compile_schema(schema).schema).arguments())
    return Matcher(rules.text)


def of_text(*, ends: bool = True, on_line: bool = False) -> Matcher:
    rules = Rules()
    rules.define("root", free_text(rules, MARK, literal("!"), ends=ends, on_line=on_line))
    return Matcher(rules.text)


# ---------------------------------------------------------------- notation


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_a_literal_is_itself_and_nothing_else(text: str) -> None:
    grammar = Matcher(f"root ::= {literal(text)}")
    assert grammar.accepts(text)
    assert not grammar.accepts(text + "x")


@pytest.mark.parametrize("chars", ["a", "^", "]", "-", "\\", '"', "\n", "a-z", "ø", "🙂", "<t"])
def test_other_characters_are_all_but_these(chars: str) -> None:
    grammar = Matcher(f"root ::= {other_than(chars)}")
    assert not any(grammar.accepts(char) for char in chars)
    assert all(grammar.accepts(char) for char in "bQ7 \t([{é" if char not in chars)


def test_equal_rules_are_one() -> None:
    rules = Rules()
    assert rules.add('"a" "b"') == rules.add('"a" "b"') != rules.add('"a"')


# ---------------------------------------------------------------- free text


@pytest.mark.parametrize("text", ["", "x", "a < b", "<cal", "<<call", "<call x", "<ca<cal", "<call>!", "x <<call>!"])
def test_text_is_free_but_for_the_mark(text: str) -> None:
    assert of_text().accepts(text)


@pytest.mark.parametrize("text", ["<call>", "<call>x", "a <call> b", "<<call>?", "<call>!x", "<ca<call>"])
def test_the_mark_can_only_go_on_as_it_must(text: str) -> None:
    assert not of_text().accepts(text)


@given(st.text("<cal>! \n", max_size=30))
def test_free_text_is_exactly_what_has_no_mark(text: str) -> None:
    assert of_text().accepts(text) is (
        MARK not in text or (text.find(MARK) == len(text) - len(MARK + "!") and text.endswith(MARK + "!"))
    )


def test_text_that_must_have_the_mark() -> None:
    assert of_text(ends=False).accepts("x <call>!")
    assert not of_text(ends=False).accepts("x")


def test_a_mark_may_count_at_the_beginning_of_a_line_only() -> None:
    grammar = of_text(on_line=True)
    assert all(map(grammar.accepts, ("<call>!", "a\n<call>!", "a <call> b", "a\n\n<call>!")))
    assert not any(map(grammar.accepts, ("<call>", "a\n<call> b")))


def test_a_mark_may_count_at_the_beginning_only() -> None:
    rules = Rules()
    rules.define("root", first_text(rules, MARK, literal("!")))
    grammar = Matcher(rules.text)
    assert all(map(grammar.accepts, ("", "<call>!", "x <call> y", "<cal", "<calm", "\n<call>")))
    assert not any(map(grammar.accepts, ("<call>", "<call> b", "<call>!!")))


# ---------------------------------------------------------------- parameters in tags of their own


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"enum": ["a", 3, None]}, ("a", "3", "null"), ('"a"', "b", "")),
        ({"type": "string", "enum": ["a b"]}, ("a b",), ("a", "ab")),
        ({"anyOf": [{"enum": ["a"]}, {"type": "integer"}]}, ("7",), ()),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, ("7", "free text"), ("</p>",)),
        ({"type": "integer"}, ("7",), ("seven",)),
        ({"type": "string"}, ("", "free text", "7"), ("</p>",)),
    ],
)
def test_a_parameter_is_plain_text_or_one_of_its_values_chk8(
    schema: JsonObject, good: tuple[str, ...], bad: tuple[str, ...]
) -> None:
    rules = Rules()
    whole: JsonObject = {"type": "object", "properties": {"p": schema}, "required": ["p"]}
    rules.define("root", SchemaGrammar(rules, compile_schema(whole).schema).parameters(("<", ">"), "</p>"))
    grammar = Matcher(rules.text)
    assert [text for text in good if not grammar.accepts(f"<p>{text}</p>")] == []
    assert [text for text in bad if grammar.accepts(f"<p>{text}</p>")] == []


# ---------------------------------------------------------------- schemas


def _as_json(values: list[bool]) -> Json:
    return [*values]


KEYS = st.text('abc"\\é', min_size=1, max_size=3)
SCALARS: list[tuple[JsonObject, st.SearchStrategy[Json]]] = [
    ({"type": "string"}, st.text(max_size=5)),
    (
        {"type": "string", "minLength": 1, "maxLength": 3},
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3),
    ),
    ({"type": "integer"}, st.integers(-(10**19), 10**19)),
    ({"type": "integer", "minimum": 1, "maximum": 9}, st.integers(1, 9)),
    ({"type": "integer", "minimum": 1}, st.integers(1, 10**9)),
    (
        {"type": "number"},
        st.floats(-1e30, 1e30, allow_nan=False, allow_subnormal=False).map(lambda x: round(x, 9)) | st.integers(-9, 9),
    ),
    ({"type": "boolean"}, st.booleans()),
    ({"type": "null"}, st.none()),
    ({"enum": ["a", 'b"', 3, None]}, st.sampled_from(["a", 'b"', 3, None])),
    ({"const": [1, {"x": "y"}]}, st.just([1, {"x": "y"}])),
    ({"type": ["string", "null"]}, st.none() | st.text(max_size=3)),
    ({}, st.none() | st.text(max_size=2)),
    ({}, st.lists(st.booleans(), max_size=2).map(_as_json)),
]


@st.composite
def written(draw: st.DrawFn, depth: int = 2) -> tuple[JsonObject, Json]:
    """Draw a schema and a value that fits it, with its properties in the grammar's order."""
    kind = draw(st.integers(0, 3 if depth else 0))
    if kind == 0:
        schema, values = draw(st.sampled_from(SCALARS))
        return schema, draw(values)
    if kind == 1:
        first, value = draw(written(depth - 1))
        second, _ = draw(written(depth - 1))
        return {draw(st.sampled_from(["anyOf", "oneOf"])): draw(st.permutations([first, second]))}, value
    if kind == 2:
        items, value = draw(written(depth - 1))
        least = draw(st.integers(0, 2))
        return {"type": "array", "items": items, "minItems": least}, [value] * draw(st.integers(least, 3))
    return draw(objects(depth))


@st.composite
def objects(draw: st.DrawFn, depth: int = 2) -> tuple[JsonObject, Json]:
    members = draw(st.dictionaries(KEYS, st.tuples(written(depth - 1), st.booleans(), st.booleans()), max_size=5))
    required: list[Json] = [key for key, (_, needed, _) in members.items() if needed]
    optional = [key for key, (_, needed, given_) in members.items() if given_ and not needed]
    schema: JsonObject = {
        "type": "object",
        "properties": {key: one[0][0] for key, one in members.items()},
        "required": required,
    }
    return schema, {str(key): members[str(key)][0][1] for key in (*required, *optional)}


@given(objects(), st.sampled_from([(", ", ": "), (",", ":")]))
def test_a_value_that_fits_and_is_in_order_passes_chk8(
    drawn: tuple[JsonObject, Json], spacing: tuple[str, str]
) -> None:
    """Never narrower than the schema, but for order and unnamed properties."""
    schema, value = drawn
    text = json.dumps(value, separators=spacing, ensure_ascii=False).replace("\x7f", "\\u007f")
    assert of_schema(schema).accepts(text)


@given(objects(), st.integers(0, 1000))
def test_whatever_passes_is_json_that_fits_chk8(drawn: tuple[JsonObject, Json], seed: int) -> None:
    """A constrained call needs no second try."""
    schema, _ = drawn
    schema = json.loads(json.dumps(schema).replace("oneOf", "anyOf"))  # two branches may both take a value
    text = of_schema(schema).example(Random(seed))
    assert compile_schema(schema).accepts(json.loads(text)), text


@pytest.mark.parametrize("name", KEPT_BY_ODD)
def test_odd_schemas_let_only_fitting_values_pass(name: str) -> None:
    grammar, judge = of_schema(ODD[name]), compile_schema({**ODD[name], "type": "object"})
    for seed in range(20):
        text = grammar.example(Random(seed))
        assert judge.accepts(json.loads(text)), text


@pytest.mark.parametrize("name", ODD)
def test_a_grammar_is_the_same_each_time_and_needs_nothing_that_it_does_not_have(name: str) -> None:
    grammar, again = of_schema(ODD[name]), of_schema(ODD[name])
    assert grammar.text == again.text
    assert grammar.example(Random(1)).startswith("{")


WRONG: list[tuple[str, str]] = [
    ("string", "{}"),
    ("string", '{"a": 1}'),
    ("string", '{"a": "x", "b": "y"}'),
    ("string", '{"a": "x"'),
    ("string", '{"a": "\n"}'),
    ("string", r'{"a": "\ud800"}'),
    ("integer", '{"a": 1.5}'),
    ("integer", '{"a": 01}'),
    ("range", '{"a": 13}'),
    ("open range", '{"a": 0}'),
    ("enum", '{"a": "y"}'),
    ("short string", '{"a": "x"}'),
    ("bounded array", '{"a": [1]}'),
    ("bounded array", '{"a": [1, 2, 3, 4, 5]}'),
    ("any of required", "{}"),
    ("nested", '{"a": {"b": {"c": {}}}}'),
    ("reference", '{"a": {"next": null}}'),
    ("no properties", '{"a": 1}'),
]


@pytest.mark.parametrize(("name", "text"), WRONG)
def test_what_does_not_fit_does_not_pass(name: str, text: str) -> None:
    assert not of_schema(ODD[name]).accepts(text)


def test_a_list_may_be_as_deep_as_it_refers_to_itself() -> None:
    grammar = of_schema(ODD["circle"])
    assert grammar.accepts('{"value": 1, "next": {"value": 2, "next": {"value": 3, "next": null}}}')
    assert not grammar.accepts('{"value": 1, "next": {"next": null}}')


def test_options_cost_a_rule_each_and_not_one_for_each_set_of_them() -> None:
    sizes = [len(of_schema({"type": "object", "properties": {f"o{i}": {} for i in range(n)}}).text) for n in (30, 60)]
    assert sizes[1] < 2.5 * sizes[0]


def test_a_schema_that_is_too_large_becomes_any_json() -> None:
    """P7."""
    rules = Rules()
    for number in range(MOST_RULES + 1):
        rules.add(literal(f"filler {number}"))
    rules.define("root", SchemaGrammar(rules, ODD["nested"]).arguments())
    assert Matcher(rules.text).accepts('{"a": [1, {"b": null}]}')


def test_the_time_for_a_grammar_grows_with_its_schema_only() -> None:
    """References that run in circles, each from two places, are written once each."""
    defs: JsonObject = {
        f"d{i}": {
            "type": "object",
            "properties": {"l": {"$ref": f"#/$defs/d{(i + 1) % 20}"}, "r": {"$ref": f"#/$defs/d{(i + 7) % 20}"}},
        }
        for i in range(20)
    }
    rules = Rules()
    SchemaGrammar(rules, {"$ref": "#/$defs/d0", "$defs": defs}).value()
    assert rules.text.count("::=") < 100

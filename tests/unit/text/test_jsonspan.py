"""Where a JSON value ends, told while it comes in: strings, depth, blanks, the first break, limits (P7)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.splits import pieces_at
from toolspeak.ir.json import Json
from toolspeak.text.jsonspan import MAX_BLANKS, MAX_DEPTH, JsonSpan, SpanStatus

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
CONTAINERS = st.lists(VALUES) | st.dictionaries(st.text(), VALUES)
SOUP = st.text("{}[]\"':,\\ \n1a-é", max_size=24)


def end_of(*pieces: str) -> tuple[int, SpanStatus]:
    """Feed the pieces; return where the value ends in all of them, and what became of it."""
    span, end = JsonSpan(), 0
    for piece in pieces:
        consumed = span.feed(piece)
        end += consumed
        if consumed < len(piece):
            break
    return end, span.status


@pytest.mark.parametrize("value", ["{}", "[]", '{"a": 1}', '[1, "x", null, {"b": []}]', '{"a": "}"}', '["\\"]"]'])
def test_the_end_of_a_value_is_told(value: str) -> None:
    assert end_of(value + " and more }") == (len(value), SpanStatus.DONE)


def test_a_marker_inside_a_string_is_data() -> None:
    value = '{"text": "use </tool_call> and ]} to close"}'
    assert end_of(value + "</tool_call>") == (len(value), SpanStatus.DONE)


@pytest.mark.parametrize("size", [*range(60, 70), *range(1080, 1094), 2112, 5000])
def test_a_long_string_ends_where_its_quote_is(size: int) -> None:
    value = json.dumps(["x" * size + '"\\' + "é" * size, "y"], ensure_ascii=False)
    assert end_of(value + '"') == (len(value), SpanStatus.DONE)
    assert end_of(value[:size], value[size:] + '"') == (len(value), SpanStatus.DONE)
    assert end_of(value[: size + 5]) == (size + 5, SpanStatus.OPEN)


def test_a_value_that_goes_on_is_open() -> None:
    for text in ("{", '{"a', '{"a": 1', "[1, ", '["\\'):
        assert end_of(text) == (len(text), SpanStatus.OPEN)


@pytest.mark.parametrize("value", ["{'a': 'x'}", "{a: 1}", "[1,]", '{"a": 1,}', "{'a': \"it's\"}", "[True, None]"])
def test_what_can_be_repaired_in_place_does_not_break_it(value: str) -> None:
    assert end_of(value + "x") == (len(value), SpanStatus.DONE)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1]', 7),
        ("[1}", 2),
        ('{"a"}', 4),
        ('{"a": }', 6),
        ("[1 2]", 3),
        ('{"a" "b"}', 5),
        ("[,]", 1),
        ('["x" y]', 5),
        ("[<]", 1),
        ('{"a": "b" c "d"}', 10),
    ],
)
def test_the_first_break_is_told_at_once(text: str, place: int) -> None:
    assert end_of(text) == (place, SpanStatus.BROKEN)
    assert end_of(text[: place + 1]) == (place, SpanStatus.BROKEN)


def test_the_members_of_the_outermost_object_are_known_by_their_offsets() -> None:
    text = '{"name": "f", "arguments": {"a": [1, {"b": 2}]}, "n": 12}'
    span = JsonSpan()
    for char in text:
        span.feed(char)
    found = [(text[slice(*member.key)], text[slice(*member.value)]) for member in span.members]
    assert found == [('"name"', '"f"'), ('"arguments"', '{"a": [1, {"b": 2}]}'), ('"n"', "12")]


def test_offsets_count_from_the_value_not_from_the_text_before_it() -> None:
    text = 'junk {"a": 1}'
    span = JsonSpan()
    assert span.feed(text, 5) == len(text)
    assert [text[5:][slice(*member.value)] for member in span.members] == ["1"]


@pytest.mark.parametrize("before", ["{", "[{", '[1, [], {"x'])
def test_the_first_key_of_any_object_is_known_before_its_value(before: str) -> None:
    text = (before + '"name').replace('x"name', "x")
    span = JsonSpan()
    span.feed(text)
    assert span.first_key is None
    span.feed('"')
    assert (text + '"')[slice(*(span.first_key or (0, 0)))] in ('"name"', '"x"')


def test_an_array_has_no_members() -> None:
    span = JsonSpan()
    span.feed('[{"a": 1}]')
    assert span.members == []


# The limits: P7


@pytest.mark.parametrize(("depth", "status"), [(-1, SpanStatus.DONE), (0, SpanStatus.DONE), (1, SpanStatus.BROKEN)])
@pytest.mark.parametrize(("opener", "closer"), [("[", "]"), ('{"a":', "}")])
def test_the_depth_has_a_limit_p7(depth: int, status: SpanStatus, opener: str, closer: str) -> None:
    levels = MAX_DEPTH + depth
    text = opener * (levels - 1) + "[]" + closer * (levels - 1)
    assert end_of(text)[1] is end_of(*text)[1] is status


@pytest.mark.parametrize(("more", "status"), [(-1, SpanStatus.DONE), (0, SpanStatus.DONE), (1, SpanStatus.RUNAWAY)])
@pytest.mark.parametrize("around", [("[", "]"), ("[1", "]"), ('{"a"', ": 1}"), ('{"a":', "1}"), ("[1,", "]")])
def test_blanks_in_a_row_have_a_limit_p7(more: int, status: SpanStatus, around: tuple[str, str]) -> None:
    text = around[0] + " " * (MAX_BLANKS + more) + around[1]
    assert end_of(text) == end_of(*text)
    assert end_of(text)[1] is status


def test_blanks_are_counted_anew_behind_each_token() -> None:
    blanks = "\n" * MAX_BLANKS
    text = f"[{blanks}1{blanks},{blanks}2{blanks}]"
    assert end_of(text) == end_of(*text) == (len(text), SpanStatus.DONE)


def test_blanks_in_a_string_are_text() -> None:
    text = '["' + " " * (3 * MAX_BLANKS) + '"]'
    assert end_of(text) == (len(text), SpanStatus.DONE)


# Chunking is invisible


@given(CONTAINERS, st.booleans(), st.text(max_size=8), st.lists(st.integers(0, 400), max_size=6))
def test_any_json_ends_where_it_ends(value: Json, ascii_only: bool, after: str, cuts: list[int]) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=1)
    pieces = pieces_at(text + after, sorted(min(cut, len(text + after)) for cut in cuts))
    assert end_of(*pieces) == (len(text), SpanStatus.DONE)


@given(SOUP, st.lists(st.integers(0, 24), max_size=4))
def test_no_cut_changes_anything(text: str, cuts: list[int]) -> None:
    pieces = pieces_at(text, sorted(min(cut, len(text)) for cut in cuts))
    assert end_of(*pieces) == end_of(text) == end_of(*text)

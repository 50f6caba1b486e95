r"""JSON bodies: halves of surrogate pairs, what is refused, one line, the same value back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject
from toolspeak.wires.shared.json_body import (
    dump_body,
    dump_text,
    kind_of,
    one_line,
    parse_body,
    parse_object,
    parse_request,
    quote,
)

BOM = b"\xef\xbb\xbf"
LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""Everything at which `str.splitlines` cuts."""

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8") | st.sampled_from(LINE_ENDS))


def _nested(inside: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.lists(inside, max_size=4) | st.dictionaries(texts, inside, max_size=4)


values: st.SearchStrategy[Json] = st.recursive(scalars | texts, _nested, max_leaves=12)
objects: st.SearchStrategy[JsonObject] = st.dictionaries(texts, values, max_size=3)


def deep(levels: int) -> Json:
    """Return an array in an array in an array."""
    value: Json = []
    for _ in range(levels - 1):
        value = [value]
    return value


# Halves of surrogate pairs


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (rb'"\ud83d"', "\ufffd"),
        (rb'"\uDE00"', "\ufffd"),
        (rb'"a\ud83d b\udbffc"', "a\ufffd b\ufffdc"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (rb'"\ude00\ud83d"', "\ufffd\ufffd"),
        (rb'"\ud83d\u0041"', "\ufffdA"),
        (rb'"\ud83d\n"', "\ufffd\n"),
        (rb'{"\ud83d": [1, "\ude00"]}', {"\ufffd": [1, "\ufffd"]}),
    ],
)
def test_half_of_a_pair_becomes_a_replacement_character(body: bytes, value: Json) -> None:
    assert parse_body(body) == value


@pytest.mark.parametrize("body", [rb'"\ud83d\ude00"', rb'"\uD83D\uDE00"', '"😀"'.encode()])
def test_a_pair_stays(body: bytes) -> None:
    assert parse_body(body) == "😀"


def test_a_pair_stays_beside_a_half() -> None:
    assert parse_body(rb'"\ud83d\ude00 \ud83d"') == "😀 \ufffd"


def test_an_escaped_backslash_is_not_mistaken_for_an_escape() -> None:
    assert parse_body(rb'"\\ud83d"') == r"\ud83d"
    assert parse_body(rb'"\\ud83d \ud83d"') == "\\ud83d \ufffd"
    assert parse_body(rb'"\\\ud83d"') == "\\\ufffd"
    assert parse_body(rb'"\\\\ud83d\"\ude00"') == '\\\\ud83d"\ufffd'


@given(st.lists(st.sampled_from(["\\", "u", "d83d", "\ud83d", "\ude00", '"', "a", "\n", "é"])).map("".join))
def test_every_text_is_read_with_its_pairs_joined_and_its_halves_replaced(text: str) -> None:
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert parse_body(json.dumps(text).encode()) == joined


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("\ud83d", '"\ufffd"'),
        (["a", "\ude00"], '["a","\ufffd"]'),
        ({"\ud83d": {"b": ["\ud83d", 1, None]}}, '{"\ufffd":{"b":["\ufffd",1,null]}}'),
        ({"a": "\ud83d😀\u2028"}, '{"a":"\ufffd😀\\u2028"}'),
    ],
)
def test_halves_are_written_as_replacement_characters(value: Json, written: str) -> None:
    assert dump_body(value).decode() == written


def test_a_half_in_a_quoted_text_is_replaced() -> None:
    assert quote("é\ud83d") == '"é\ufffd"'.encode()


# What is no JSON


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1,]", b'{"a": nul}', b'"a\nb"', b'{"a": 01}', b"1 2", b"\xff", b"1e999"]
)
def test_what_is_no_json_is_refused_and_no_field_is_to_blame(body: bytes) -> None:
    with pytest.raises(BadField, match=r"^the body is not JSON: ") as refused:
        parse_body(body)
    assert refused.value.field == ""


def test_what_is_no_json_is_refused_with_a_half_in_it_too() -> None:
    with pytest.raises(BadField, match=r"^the body is not JSON: "):
        parse_body(rb'{"a": "\ud83d", "b": nul}')


def test_the_place_is_told() -> None:
    with pytest.raises(BadField, match="byte 10"):
        parse_body(b'{"a": nul}')


def test_a_byte_order_mark_is_skipped_once() -> None:
    assert parse_body(BOM + b'{"a": 1}') == {"a": 1}
    with pytest.raises(BadField, match="not JSON"):
        parse_body(BOM + BOM + b"{}")


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'"a\xffb"', "a\ufffdb"),
        (b'"\xe2\x82"', "\ufffd"),
        (b'{"k\xff": "\xf0\x9f\x98"}', {"k\ufffd": "\ufffd"}),
        (b'"\xff\\ud83d\\ude00\\ud83d\\\\ud83d"', "\ufffd😀\ufffd\\ud83d"),
        (b'"\xed\xa0\xbd"', "\ufffd\ufffd\ufffd"),
    ],
)
def test_bytes_that_are_not_utf_8_become_replacement_characters(body: bytes, value: Json) -> None:
    assert parse_body(body) == value


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000]
)
def test_a_body_that_is_nested_too_deeply_is_refused_p7(body: bytes) -> None:
    with pytest.raises(BadField, match=r"^the body is nested too deeply$"):
        parse_body(body)
    with pytest.raises(BadField, match=r"nested too deeply|must be a JSON object"):
        parse_request(body)
    with pytest.raises(BadField, match=r"^the body is nested too deeply$"):
        parse_request(b'{"model": "m", "messages": ' + body + b"}")


def test_a_value_that_is_nested_too_deeply_is_not_written_p7() -> None:
    with pytest.raises(BadField, match=r"^the body is nested too deeply$"):
        dump_body(deep(100_000))


def test_a_hundred_levels_are_fine() -> None:
    assert parse_body(dump_body(deep(100))) == deep(100)


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"null", "null"), (b"true", "a boolean"), (b"5", "a number"), (b'"a"', "a string"), (b"[]", "an array")],
)
def test_a_body_must_be_an_object(body: bytes, kind: str) -> None:
    with pytest.raises(BadField, match=f"^the body must be a JSON object, not {kind}$"):
        parse_object(body)
    with pytest.raises(BadField, match=f"^the body must be a JSON object, not {kind}$"):
        parse_request(body)


# Requests


@given(objects, values)
def test_a_request_is_the_same_body_with_its_tools_apart(rest: JsonObject, tools: Json) -> None:
    rest.pop("tools", None)
    assert parse_request(dump_body({**rest, "tools": tools})) == (rest, dump_body(tools))
    assert parse_request(dump_body(rest)) == (rest, b"null")


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1}',
        b'{"tools": [1], "a": {"tools": 2}}',
        BOM + b'{"a": 1, "tools": [{"name": "f"}]}',
        rb'{"a": "\ud83d", "tools": ["\ud83d"]}',
        rb'{"tools": ["\\ud83d", "\ud83d\ude00"]}',
        b'{"a\xff": 1, "tools": []}',
        b'{"a": "\xff", "tools": ["b"]}',
        b'{"tools": null}',
        b'{"a": 1, "a": 2, "tools": 1, "tools": 2}',
        b' \n{ "a" :\t[ ] , "tools" : [ 1 , 2 ] }\n',
    ],
)
def test_a_request_is_read_as_any_body_is(body: bytes) -> None:
    whole = parse_object(body)
    value, raw = parse_request(body)
    assert parse_body(raw) == whole.pop("tools", None)
    assert value == whole


def test_the_bytes_of_the_tools_are_those_of_the_client() -> None:
    assert parse_request(b'{"tools": [ {"name":\t"f"} ], "a": 1}') == ({"a": 1}, b'[ {"name":\t"f"} ]')


@pytest.mark.parametrize(
    "body", [b"", b'{"a": nul}', b'{"a": 1} x', b'{"tools": [}', b'{"a": 1e999}', b'{"a": %s}' % (b"1" * 5000)]
)
def test_a_request_that_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(BadField, match=r"^the body is not JSON: "):
        parse_request(body)


# Writing


@given(values)
def test_what_is_written_is_read_back(value: Json) -> None:
    assert parse_body(dump_body(value)) == value
    assert parse_body(dump_text(value).encode()) == value


@pytest.mark.parametrize("number", [0, -1, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**400, 5.0, -0.5, 1e-320, 1e308])
def test_numbers_keep_their_digits(number: float) -> None:
    assert parse_body(dump_body(number)) == number


@given(values)
def test_json_in_one_line_means_the_same(value: Json) -> None:
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    assert parse_body(one_line(plain)) == value
    assert len(one_line(plain).decode().splitlines()) == 1
    assert len(dump_body(value).decode().splitlines()) == 1


@given(texts)
def test_a_quoted_text_is_one_line_and_reads_back(text: str) -> None:
    assert parse_body(quote(text)) == text
    assert len(quote(text).decode().splitlines()) == 1


def test_only_line_ends_are_escaped() -> None:
    assert one_line("\u0084\u0085\u0086\u2027\u2028\u2029\u202a…".encode()) == (
        "\u0084\\u0085\u0086\u2027\\u2028\\u2029\u202a…".encode()
    )


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (True, "a boolean"),
        (0, "a number"),
        (0.5, "a number"),
        ("", "a string"),
        ([], "an array"),
        ({}, "an object"),
    ],
)
def test_a_kind_is_named_as_json_names_it(value: Json, kind: str) -> None:
    assert kind_of(value) == kind


def test_deep_values_with_half_characters_are_refused_p7() -> None:
    deep: Json = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(BadField, match="nested too deeply"):
        dump_body(["\ud83d", deep])

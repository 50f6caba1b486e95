"""Strict JSON: what is refused, where it says so, the limits (P7), and what is written."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolspeak.errors import BadJson
from toolspeak.ir.json import Json
from toolspeak.text.strict import LIMITS, JsonLimits, dump, parse

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)


def position_of(text: str) -> int:
    with pytest.raises(BadJson) as caught:
        parse(text)
    return caught.value.position


# What is read


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_valid_json_reads_as_the_standard_library_reads_it(value: Json, ascii_only: bool, indent: int | None) -> None:
    assert parse(json.dumps(value, ensure_ascii=ascii_only, indent=indent)) == value


def test_big_integers_stay_exact() -> None:
    assert parse('{"id": 12345678901234567890}') == {"id": 12345678901234567890}


def test_valid_escapes_decode_even_in_what_looks_like_a_path() -> None:
    assert parse(r'{"path":"C:\new\table.txt"}') == {"path": "C:\new\table.txt"}


def test_a_pair_of_surrogate_escapes_is_one_character() -> None:
    assert parse(r'"\ud83d\ude00 ok"') == "😀 ok"


# What is refused


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "tru",
            "nul",
            "1 2",
            "{}{}",
            '{"a":1}x',
            '"a',
            "[1",
            '{"a"',
            '{"a":',
            '{"a":1,',
            "\ufeff{}",
            "\xa01",
        ),
        *("[1,]", '{"a":1,}', "{'a':1}", "{a:1}", "[1 2]", '{"a" 1}', "[,]", "//x\n1", "1 //x"),
        *("NaN", "Infinity", "-Infinity", "[NaN]", "1e999", "-1e999", '{"a":[1,{"b":1e400}]}', "9" * 400 + ".5"),
        *("01", "-01", "+1", ".5", "1.", "1e", "--1", "0x10", "1_000", "60*60", "True", "None"),
        *('"\n"', '"\t"', '"\0"', r'"\x41"', r'"\u12"', r'"\*"', r'"\'"'),
        *(r'"\ud83d"', r'"\ud83d end"', r'"\ude00"', r'"\ud83d\u0041"', '"\ud83d"', '{"\udfff":1}'),
        *('{"a":1,"a":2}', '{"b":{"a":1,"\\u0061":2}}'),
    ],
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(BadJson):
        parse(text)


@given(st.text(alphabet='{}[],:"\\u dD8e1-+.tn\n\ud83d'))
def test_nothing_but_bad_json_is_raised(text: str) -> None:
    try:
        value, position = parse(text), 0
    except BadJson as error:
        position = error.position
    else:
        assert json.loads(text) == value
    assert 0 <= position <= len(text)


@pytest.mark.parametrize(
    ("text", "position"),
    [('{"a":x}', 5), ('{"é":x}', 5), ('{"a":1,\n "é😀": x}', 15), ('{"a":1}\n\nx', 9), ('["\ud83d"]', 2)],
)
def test_the_position_counts_characters(text: str, position: int) -> None:
    assert position_of(text) == position


def test_a_long_duplicate_key_does_not_fill_the_message() -> None:
    key = "k" * 100_000
    with pytest.raises(BadJson, match="duplicate") as caught:
        parse(f'{{"{key}":1,"{key}":2}}')
    assert len(str(caught.value)) < 300


# The limits: P7


@pytest.mark.parametrize(("opener", "inside", "closer"), [("[", "", "]"), ("[", "1.5", "]"), ('{"a":', "{}", "}")])
def test_the_depth_limit(opener: str, inside: str, closer: str) -> None:
    levels = LIMITS.depth - (inside == "{}")
    for depth in (levels - 1, levels):
        parse(opener * depth + inside + closer * depth)
    for depth in (levels + 1, 100_000):
        with pytest.raises(BadJson):
            parse(opener * depth + inside + closer * depth)


def test_openers_in_strings_are_no_depth() -> None:
    assert parse('["' + "[{" * 100 + '"]') == ["[{" * 100]


def test_infinity_is_found_at_the_last_level() -> None:
    with pytest.raises(BadJson, match="large"):
        parse("[" * LIMITS.depth + "1e999" + "]" * LIMITS.depth)


def test_the_size_limit() -> None:
    for size in (LIMITS.size - 1, LIMITS.size):
        parse('"' + "a" * (size - 2) + '"')
    with pytest.raises(BadJson, match="characters"):
        parse('"' + "a" * (LIMITS.size - 1) + '"')
    with pytest.raises(BadJson, match="characters"):
        parse("[1]", JsonLimits(size=2))


def test_the_limit_of_digits() -> None:
    for digits in (LIMITS.digits - 1, LIMITS.digits):
        assert parse("-" + "7" * digits) == -int("7" * digits)
    with pytest.raises(BadJson):
        parse("7" * (LIMITS.digits + 1))


# What is written


@given(VALUES)
def test_what_is_written_reads_back(value: Json) -> None:
    text = dump(value)
    text.encode()
    assert parse(text) == value


def test_writing_is_compact_and_keeps_characters() -> None:
    assert dump({"a": [1, True, None], "é": "😀\n"}) == '{"a":[1,true,null],"é":"😀\\n"}'


def test_lone_surrogates_are_written_as_the_replacement_character() -> None:
    assert dump({"a\ud83d": "\udfff"}) == '{"a\ufffd":"\ufffd"}'


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, [math.nan]])
def test_what_json_cannot_say_is_not_written(value: Json) -> None:
    with pytest.raises(BadJson):
        dump(value)


def test_endless_nesting_is_not_written() -> None:
    value: list[Json] = []
    value.append(value)
    with pytest.raises(BadJson):
        dump(value)
    for _ in range(100_000):
        value = [value]
    with pytest.raises(BadJson):
        dump(value)


def test_the_depth_limit_of_writing_is_that_of_reading() -> None:
    def nested(depth: int) -> Json:
        value: Json = []
        for _ in range(depth - 1):
            value = [value]
        return value

    for depth in (LIMITS.depth - 1, LIMITS.depth):
        assert parse(dump(nested(depth))) == nested(depth)
    with pytest.raises(BadJson):
        dump(nested(LIMITS.depth + 1))

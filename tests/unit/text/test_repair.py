"""Repair: the corpus' bodies, nothing invented (P2), nothing completed (P3), limits (P7), linear time (P8)."""

import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.timing import BAR, growth
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Fix
from toolspeak.ir.json import Json
from toolspeak.text.repair import Lenient, Repaired, repair
from toolspeak.text.strict import LIMITS, JsonLimits, dump, parse

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)
OBJECTS = st.dictionaries(st.text(), VALUES, min_size=1, max_size=4)
LAYOUTS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t: ")])


def kinds(repaired: Repaired) -> list[str]:
    return [fix.what for fix in repaired.fixes]


def strings_in(value: Json) -> list[str]:
    """List every string of a value, keys included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in strings_in(item)]
    if isinstance(value, dict):
        return [*value, *(text for item in value.values() for text in strings_in(item))]
    return []


# The corpus' bodies


@pytest.mark.parametrize(
    ("text", "value", "fixes"),
    [
        (
            '{"name": "f", "arguments": {"city": "Oslo"}}}\n',
            {"name": "f", "arguments": {"city": "Oslo"}},
            ["surplus closer"],
        ),
        ('{"command": "mkdir -p out/{alpha,beta"}', {"command": "mkdir -p out/{alpha,beta"}, []),
        (
            '{"name": "f", "arguments": {"city": "Oslo"}\n',
            {"name": "f", "arguments": {"city": "Oslo"}},
            ["missing closer"],
        ),
        ("{'city': \"L'Aquila\"}", {"city": "L'Aquila"}, ["single quotes"]),
        ('{"on": True, "label": None}', {"on": True, "label": None}, ["python literal", "python literal"]),
        (
            '{"tool":"set_timer","arguments":{"seconds":300},}',
            {"tool": "set_timer", "arguments": {"seconds": 300}},
            ["trailing comma"],
        ),
        (
            '{"text":"keep this ,} and this ,] please",}',
            {"text": "keep this ,} and this ,] please"},
            ["trailing comma"],
        ),
        (r'{"text":"use \*bold\* here"}', {"text": r"use \*bold\* here"}, ["invalid escape"]),
        (r'{"arguments":"{\"city\": \"Oslo\"}"}', {"arguments": '{"city": "Oslo"}'}, []),
        ('{"id": 12345678901234567890}', {"id": 12345678901234567890}, []),
        (
            r'{"comment":"[review]: {\"ok\": true}\nBy: [~id:7]"}',
            {"comment": '[review]: {"ok": true}\nBy: [~id:7]'},
            [],
        ),
        (r'{"command":"dir C:\Dev"}', {"command": r"dir C:\Dev"}, ["invalid escape"]),
        (r'{"path":"C:\bin\app.exe"}', {"path": r"C:\bin\app.exe"}, ["invalid escape"]),
        (r'{"path":"C:\new\table.txt"}', {"path": "C:\new\table.txt"}, []),
        ('{"content":"#!/bin/sh\necho hi\n"}', {"content": "#!/bin/sh\necho hi\n"}, ["control character"]),
        ('{"command":"make \\\n  all"}', {"command": "make \\\n  all"}, ["control character", "invalid escape"]),
        (r'{"text":"\ud83d\ude00 ok"}', {"text": "😀 ok"}, []),
        (r'{"c":"print(re.match(' + r"'\d+', s))\n" + '"}', {"c": "print(re.match('\\d+', s))\n"}, ["invalid escape"]),
        (r'{"command":"type C:\new\Dev.txt\nexit"}', {"command": r"type C:\new\Dev.txt\nexit"}, ["invalid escape"]),
        (r'{"path": "a.txt", "text": "x < y\n"q""}', {"path": "a.txt", "text": 'x < y\n"q"'}, ["unescaped quote"]),
    ],
)
def test_a_body_of_the_corpus_is_read(text: str, value: Json, fixes: list[str]) -> None:
    repaired = repair(text, closed=True)
    assert repaired.value == value
    assert kinds(repaired) == fixes


@pytest.mark.parametrize(
    "text",
    [
        *('{"seconds":60*60*12}', '{"text":"Told the "captain", still waiting."}', '{"edits":[{"a":"x","b":"y"]}'),
        *(
            r'{"files": E:\Work\report.md, "note": "x"}',
            '{"path":"notes.txt","content":}',
            '{"db": NaN}',
            '{"db": 1e999}',
        ),
        *('{"path":"/tmp/a.log","path":"/etc/hosts"}', '{"v":' + "[" * 20_000 + "1" + "]" * 20_000 + "}"),
        *('{"id": ' + "7" * 5_000 + "}", "-" * 100_000 + "1", "Z" * 131_072, '{"a": 1}{"b": 2}', '{"a": 1} and more'),
        *('{"content": "# Title\\n\\n| 1 ', '{"content":"import os\\nprint(\\"hel', '{"command":"rm -rf /srv/app/t'),
    ],
)
def test_a_body_of_the_corpus_is_refused(text: str) -> None:
    for closed in (False, True):
        with pytest.raises(BadJson):
            repair(text, closed=closed)


def test_a_value_that_only_the_text_end_closes_is_refused() -> None:
    """Corpus tr-003: closing it would write a file without its content."""
    with pytest.raises(BadJson, match="ends early"):
        repair('{"name":"write_file","arguments":{"path":"src/Main.pas"', closed=False)


def test_a_number_is_complete_when_a_blank_follows_it() -> None:
    assert repair('{"limit": 2\n', closed=True) == Repaired({"limit": 2}, (Fix("missing closer"),))
    with pytest.raises(BadJson, match="cut"):
        repair('{"limit": 2', closed=True)


# What stands around the value


@pytest.mark.parametrize(
    ("text", "fixes"),
    [
        ('\ufeff{"a": 1}', ["byte order mark"]),
        ('\n \ufeff\n{"a": 1,}', ["byte order mark", "trailing comma"]),
        ('\xa0{"a": 1}', ["blanks"]),
        ('{"a": 1}\u2028', ["blanks"]),
        ("{a: 1}\xa0\n", ["blanks", "bare key"]),
        ('```json\n{"a": 1}\n```', ["markdown fence"]),
        ('\n``` JSON \r\n{"a": 1}\r\n  ``` \n', ["markdown fence"]),
        ("```\n{'a': 1}\n}\n```", ["markdown fence", "single quotes", "surplus closer"]),
        ('{"a": 1} ] }\n}', ["surplus closer"]),
        ('{{"a": 1}}', ["doubled braces"]),
        ('{{"a": 1,}}\n', ["doubled braces", "trailing comma"]),
        ('```json\n{{"a": 1}}\n```', ["markdown fence", "doubled braces"]),
        (' \n{"a": 1}\t', []),
    ],
)
def test_what_stands_around_the_value_is_peeled(text: str, fixes: list[str]) -> None:
    repaired = repair(text, closed=False)
    assert repaired.value == {"a": 1}
    assert kinds(repaired) == fixes


def test_doubled_braces_are_those_of_a_whole_object_only() -> None:
    """Qwen2.5-Coder's own chat template shows its model a call in doubled braces."""
    assert repair('{{"a": {"b": {}}}}', closed=True).value == {"a": {"b": {}}}
    for text in ("{{}}", '{{"a": 1}', '{{"a": 1', '{{{"a": 1}}}', "{{ a }}", '{{"a": 1}, {"b": 2}}'):
        with pytest.raises(BadJson):
            repair(text, closed=True)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "```json\n[1]",
            "[1]\n```",
            "``` [1] ```",
            "```json\n```",
            "```json\n[1]\n```\nmore",
            "```json [1]\n[2]\n```",
        ),
        *("[1] x", "[1],", "[1] // done", "[1] [", "x [1]", "[1]]]x", "", " \n", "\ufeff", "```", "```\n\n```"),
    ],
)
def test_what_is_no_frame_is_refused(text: str) -> None:
    with pytest.raises(BadJson):
        repair(text, closed=True)


def test_a_position_counts_from_the_text_with_its_frame() -> None:
    with pytest.raises(BadJson) as caught:
        repair("\ufeff```\n{a: b}\n```", closed=True)
    assert caught.value.position == 9


def test_a_fence_in_a_string_is_data() -> None:
    text = '```json\n{"a": "x\n```\ny"}\n```'
    assert repair(text, closed=True).value == {"a": "x\n```\ny"}


# Properties


@given(VALUES, st.booleans(), LAYOUTS)
def test_valid_json_is_left_alone(value: Json, ascii_only: bool, layout: tuple[str, str]) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, separators=layout)
    assert repair(text, closed=False) == Repaired(value, ())


@given(VALUES, st.booleans(), LAYOUTS)
def test_the_tolerant_reader_agrees_on_valid_json(value: Json, ascii_only: bool, layout: tuple[str, str]) -> None:
    reader = Lenient(json.dumps(value, ensure_ascii=ascii_only, separators=layout))
    assert reader.value() == value
    assert reader.fixes == []


@given(st.dictionaries(st.text("abc '\"{}[],:😀"), st.lists(st.text("abc '\"{}[],:😀") | st.booleans() | st.none())))
def test_a_python_dict_is_read(value: dict[str, Json]) -> None:
    assert repair(repr(value), closed=False).value == value


def closers_of(text: str) -> str:
    """Say what closes the containers that valid JSON, cut off outside a string, leaves open."""
    stack, quoted, escaped = list[str](), False, False
    for char in text:
        if quoted:
            quoted, escaped = (escaped or char != '"'), (char == "\\" and not escaped)
        elif char == '"':
            quoted = True
        elif char in "{[":
            stack.append("}" if char == "{" else "]")
        elif char in "}]":
            stack.pop()
    return "".join(reversed(stack))


@given(OBJECTS, LAYOUTS, st.data())
def test_a_cut_object_is_never_completed(value: Json, layout: tuple[str, str], data: st.DataObject) -> None:
    """P3: only closers may be missing, and only where the end was explicit."""
    text = json.dumps(value, separators=layout)
    cut = data.draw(st.integers(0, len(text) - 1))
    head, tail = text[:cut], text[cut:].lstrip()
    with pytest.raises(BadJson):
        repair(head, closed=False)
    complete = not tail.strip("]} \t\n") and head.rstrip()[-1:] not in "[{" and not head[-1:].isdigit()
    try:
        repaired = repair(head, closed=True)
    except BadJson:
        assert not complete
        return
    assert set(kinds(repaired)) == {"missing closer"}
    assert tail[0] in ",]}"
    assert repaired.value == json.loads(head + closers_of(head))
    if not tail.strip("]} \t\n"):
        assert repaired.value == value


SEEDS = [
    '{"name": "f", "arguments": {"city": "Oslo", "n": [1, -2.5e3, true, null]}}',
    "{'a': 'it\\'s', b: True, /* c */ \"d\": \"x\",}",
    r'{"p": "C:\bin\app.exe \ud83d\ude00 \"q\" \d", "t": "a "b" c"}',
    '```json\n{"a": "line\nline", // x\n "b": “c”}\n}\n```',
]
PIECES = [
    *"{}[]:,\"'\\/#*“”\n\t 0-1.eE+",
    "//",
    "/*",
    "*/",
    "```",
    "\\u",
    "\\ud83d",
    "True",
    "null",
    "NaN",
    "\ufeff",
    "\ud83d",
]
EDITS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 5), st.sampled_from(["", *PIECES])), max_size=6)


@given(st.sampled_from(SEEDS), EDITS, st.booleans())
def test_mutated_text_gives_json_or_bad_json(seed: str, edits: list[tuple[int, int, str]], closed: bool) -> None:
    """P2: whatever comes out can be written, and its strings stand in the text."""
    text = seed
    for at, drop, piece in edits:
        text = text[:at] + piece + text[at + drop :]
    value: Json = None
    position = 0
    try:
        value = repair(text, closed=closed).value
    except BadJson as error:
        position = error.position
    assert 0 <= position <= len(text)
    assert parse(dump(value)) == value
    if "\\" not in text:
        whole = text.replace("\ud83d", "\ufffd")
        assert all(string in whole for string in strings_in(value))


# The limits: P7


def test_the_limits_hold_for_repaired_text() -> None:
    for depth, fits in ((LIMITS.depth, True), (LIMITS.depth + 1, False)):
        text = "[" * depth + "1,]" + "]" * (depth - 1)
        if fits:
            repair(text, closed=False)
        else:
            with pytest.raises(BadJson, match="deeper"):
                repair(text, closed=False)
    for text, fits in (("[1,2,]", True), ("[1,2, ]", False)):
        if fits:
            assert repair(text, closed=False, limits=JsonLimits(size=6)).value == [1, 2]
        else:
            with pytest.raises(BadJson, match="characters"):
                repair(text, closed=False, limits=JsonLimits(size=6))


def test_the_path_of_a_fix_is_a_json_pointer() -> None:
    repaired = repair('{"a/b": [0, {"~": \'x\'}]}', closed=False)
    assert repaired.fixes == (Fix("single quotes", "/a~1b/1/~0"),)


# Linear time: P8


def fill(before: str, piece: str, after: str = "") -> Callable[[int], str]:
    """Make texts of about a given length."""
    return lambda size: before + piece * ((size - len(before) - len(after)) // len(piece)) + after


STORMS: dict[str, Callable[[int], str]] = {
    "deep arrays": fill("", "["),
    "deep objects": fill("", '{"a":'),
    "blanks and depth": fill("", "[ "),
    "quotes": fill('{"a": ', '"'),
    "quotes and commas": fill('{"a": ', '",'),
    "quotes and blanks": fill('{"a": "', '" "'),
    "quotes in words": fill('{"a": "c', '"b'),
    "pairs of quotes": fill('{"a": "c', '"d" b', '"}'),
    "quotes before blanks": fill('{"a": "c"d', '"' + " " * 50 + "e"),
    "single quotes": fill("['", "'"),
    "apostrophes": fill("['", "a'b", "']"),
    "smart quotes": fill("[", "“a”,", "]"),
    "triple quotes": fill("[", "'''a''',", "]"),
    "quotes in triple quotes": fill('["""', "\"'", '"""]'),
    "backslashes": fill('["', "\\", '"]'),
    "invalid escapes": fill('["', "\\d", '"]'),
    "valid escapes": fill('["\\d', "\\n", '"]'),
    "surrogates": fill('["', "\\ud83d", '"]'),
    "raw surrogates": fill('["', "\ud83d", '"]'),
    "drives": fill('["\\d ', "C:\\d ", '"]'),
    "one drive path": fill('["\\d C:', "\\a", '"]'),
    "doubled backslashes": fill('["\\d C:', "\\\\", '"]'),
    "words beside an escape": fill('["\\d ', "a ", '"]'),
    "control characters": fill('["', "\n\t", '"]'),
    "commas": fill("[1", ","),
    "numbers": fill("[", "1,", "]"),
    "strings": fill("[", '"a",', "]"),
    "empty arrays": fill("[", "[],", "]"),
    "objects": fill("[", "{a:1},", "]"),
    "literals": fill("[", "True,", "]"),
    "a long key above many fixes": lambda size: fill('{"' + "k" * (size // 2) + '": [', "{a:1,},", "]}")(size),
    "line comments": fill("[", "//\n", "1]"),
    "hash comments": fill("[", "#\n", "1]"),
    "block comments": fill("[", "/**/", "1]"),
    "open comments": fill("[", "/*", "1]"),
    "comments in the depth": fill("[" * 60, "#\n", "1" + "]" * 60),
    "long numbers": fill("[", "7" * 5_000 + ","),
    "long allowed numbers": fill("[", "7" * 4_300 + ",", "]"),
    "one long number": fill("[", "7"),
    "signs": fill("[", "-"),
    "blanks": fill("[1", " ", "}"),
    "blanks behind a quote": fill('["a"', " ", 'b"]'),
    "newlines": fill('["a"', "\n", '"'),
    "one character": fill("", "Z"),
    "one character in a string": fill('["', "Z"),
    "a long bare key": fill("{", "a", ":1}"),
    "closers": fill("{a:1}", "}"),
    "marks": fill("", "\ufeff ", "{}"),
    "fences": fill("", "```\n"),
}
READERS: dict[str, Callable[[str], object]] = {
    "repair": lambda text: repair(text, closed=True),
    "python": lambda text: Lenient(text, python=True).value(),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("storm", STORMS)
def test_twice_the_text_costs_twice_the_time_p8(storm: str, reader: str) -> None:
    def read(text: str) -> None:
        with suppress(BadJson):
            READERS[reader](text)

    assert growth(read, STORMS[storm](100_000), STORMS[storm](200_000)) < BAR

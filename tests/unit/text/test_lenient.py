"""The tolerant reader: what it tolerates and records, what it refuses, Python literals, limits (P7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Fix
from toolspeak.ir.json import Json
from toolspeak.text.repair import Lenient
from toolspeak.text.strict import LIMITS, JsonLimits

SOUP = "{}[]():,\"'\\/ *#\n“”tu0123d8xU-+.eE TrueNoefalsC\ud83d"


def read(text: str, *, python: bool = False, closed: bool = False) -> tuple[Json, list[Fix]]:
    """Read one value that must be the whole text."""
    reader = Lenient(text, python=python, closed=closed)
    value = reader.value()
    assert reader.pos == len(text)
    return value, reader.fixes


def refuse(text: str, *, python: bool = False, closed: bool = False) -> BadJson:
    """Read one value that must be refused, or must leave something unread."""
    reader = Lenient(text, python=python, closed=closed)
    refusal = BadJson("left unread", len(text))
    try:
        reader.value()
    except BadJson as error:
        refusal = error
    else:
        assert reader.pos < len(text)
    assert 0 <= refusal.position <= len(text)
    return refusal


# What is tolerated


@pytest.mark.parametrize(
    ("text", "value", "fixes"),
    [
        (
            '{"a": [1, -2.5e3, true, false, null, "x"], "b": {}}',
            {"a": [1, -2500.0, True, False, None, "x"], "b": {}},
            [],
        ),
        ("{'a': 1}", {"a": 1}, [Fix("single quotes")]),
        ("{'a': 'b'}", {"a": "b"}, [Fix("single quotes"), Fix("single quotes", "/a")]),
        ("['L\"x', \"L'Aquila\"]", ['L"x', "L'Aquila"], [Fix("single quotes", "/0")]),
        ('“a ‘b’ "c"”', 'a ‘b’ "c"', [Fix("smart quotes")]),
        ("{“a”: “b”}", {"a": "b"}, [Fix("smart quotes"), Fix("smart quotes", "/a")]),
        ("[True, False, None]", [True, False, None], [Fix("python literal", f"/{at}") for at in range(3)]),
        ("{a: 1, $b_2: 2, größe: 3}", {"a": 1, "$b_2": 2, "größe": 3}, [Fix("bare key")]),
        ("[1, 2 , ]", [1, 2], [Fix("trailing comma")]),
        ('{"a": {"b": [1,],},}', {"a": {"b": [1]}}, [Fix("trailing comma", path) for path in ("/a/b", "/a", "")]),
        ('{"a": 1, // one\n "b": "x" # two\n}', {"a": 1, "b": "x"}, [Fix("comment")]),
        ('/* a ** / */ {/**/"a"/*,*/:/*:*/"x"/*}*/}', {"a": "x"}, [Fix("comment"), Fix("comment", "/a")]),
        ('["http://x # y /* z"]', ["http://x # y /* z"], []),
        ('"a\nb\tc\0d"', "a\nb\tc\0d", [Fix("control character")]),
        (r'"use \*bold\* and \d+"', r"use \*bold\* and \d+", [Fix("invalid escape")]),
        (r'"\u12 \u \q"', r"\u12 \u \q", [Fix("invalid escape")]),
        (r'"it\'s"', "it's", [Fix("escaped apostrophe")]),
        (r"'it\'s'", "it's", [Fix("single quotes"), Fix("escaped apostrophe")]),
        (r'"\ud83d\ude00\q"', "😀\\q", [Fix("invalid escape")]),
        (r'{"a~/b": [{"c": "\q"}]}', {"a~/b": [{"c": r"\q"}]}, [Fix("invalid escape", "/a~0~1b/0/c")]),
    ],
)
def test_a_tolerance_is_recorded(text: str, value: Json, fixes: list[Fix]) -> None:
    assert read(text) == (value, fixes)


def test_a_backslash_before_a_real_newline_is_kept_with_it() -> None:
    """Corpus un-005: a shell command goes on in the next line."""
    value, _ = read('{"command":"make \\\n  all"}')
    assert value == {"command": "make \\\n  all"}


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (r"dir C:\Dev", r"dir C:\Dev"),  # un-001
        (r"C:\bin\app.exe", r"C:\bin\app.exe"),  # un-002
        (r"import re\nprint(re.match('\d+', s))\n", "import re\nprint(re.match('\\d+', s))\n"),  # un-014
        (r"type C:\new\Dev.txt\nexit", r"type C:\new\Dev.txt\nexit"),  # un-015
        (r"C:\new\table.txt", "C:\new\table.txt"),  # un-003: valid JSON stays strict
        (r"copy C:\new\a D:\Dev\nb\tc", r"copy C:\new\a D:\Dev\nb\tc"),
        (r"first:\nC:\Dev\bin then\nlast \q", "first:\nC:\\Dev\\bin then\nlast \\q"),
        (r"note:\n- \d", "note:\n- \\d"),
        (r"for x in y:\n\tre.match('\d')", "for x in y:\n\tre.match('\\d')"),
        (r"if y:\n    \d", "if y:\n    \\d"),
        (r"\* C:\\temp\\new", r"\* C:\temp\new"),
        (r"run \"C:\Dev\new\" \q", r'run "C:\Dev\new" \q'),
        (r"run 'C:\Dev\t.txt'\n", "run 'C:\\Dev\\t.txt'\n"),
        (r"C:\users\new", r"C:\users\new"),
    ],
)
def test_in_a_string_with_an_invalid_escape_a_path_on_a_drive_is_kept(raw: str, value: str) -> None:
    assert read(f'{{"a": "{raw}"}}')[0] == {"a": value}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'{"path": "a.txt", "text": "x < y\n"q""}', {"path": "a.txt", "text": 'x < y\n"q"'}),
        ('{"a": ""hello""}', {"a": '"hello"'}),
        ('{"a": "say "hi" now", "b": 1}', {"a": 'say "hi" now', "b": 1}),
        ('["b", "say "a" + "b" ok"]', ["b", 'say "a" + "b" ok']),
        ("['it's', 'rock'n'roll', 1]", ["it's", "rock'n'roll", 1]),
        ("{'a': 'say 'hi' now'}", {"a": "say 'hi' now"}),
    ],
)
def test_a_quote_that_nothing_can_follow_is_text(text: str, value: Json) -> None:
    got, fixes = read(text)
    assert got == value
    assert any(fix.what == "unescaped quote" for fix in fixes)


@pytest.mark.parametrize(
    "text",
    [
        '{"text":"Told the "captain", still waiting."}',  # mj-011
        *('{"k": "use "a", "b": "c" here"}', '["say "a", "b" ok"]', '["say "hi" and "," ok"]', '{"k": "x {"a"}}'),
        *('["a" "b"]', '["a""b"]', '["a" + "b"]', '{"a": "x"+"y"}', '["a" * 3, "b"]', '["a".join(x), "b"]'),
        *('["a" % b, "c"]', '["a"[0], "b"]', '["a" if b else "c"]', '{"size": "5" disk"}', '["""a"""]', '["a" = "b"]'),
        *('{"a: "x": 1}', '{"selected: ["a"]}', '{"a": "x, "b": "y"}', '["x, "y", "z"]', '{"a "b" c": 1}'),
        *(
            '["say "hi"" // c\n, "b"]',
            '{"a": "b" // c", "d": 1}',
            '{"k": "{"a": "b"}"}',
            "“a “b” c”",
            r"['a\n'b']",
            "[“a, “b”]",
        ),
    ],
)
def test_quotes_that_can_be_read_in_two_ways_are_refused(text: str) -> None:
    refuse(text, closed=True)


# What is refused


@pytest.mark.parametrize("python", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        *("", "  ", "{", "[", "{,}", "[,]", "[1,,2]", "[1,,]", "}", "]", ":", ",", "\0", "@", "`a`"),
        *("60*60*12", "[60 * 60]", "1+1", "[1 + 1]", "2-1", "[7/2]", "2**3", "+1", "--1", "-", "- 1", "-x", "~1"),
        *("01", "-01", "0x10", "0b1", "0o7", "1_000", "1.", ".5", "1e", "1e+", "1.5.2", "12abc", "1j", "٣"),
        *("NaN", "Infinity", "-Infinity", "[NaN]", "inf", "1e999", "[-1e999]", "9" * 400 + ".5", "undefined", "nil"),
        *("TRUE", "tru", "Truee", "true1", "hello", "[a, b]", "{a: b}", r"{a: E:\Work\report.md, b: 1}", "/srv/x"),
        *('{"a":}', '{"a"}', '{"a": , "b": 1}', '{"a": 1 "b": 2}', '{"a" 1}', '{"a", "b"}', '{"a": 1; "b": 2}'),
        *('{"a": [1}', '{"a": 1]', '{"e":[{"o":"x","n":"y"]}', "[1, 2}", "[(1, 2}", "[1, 2)", "{1: 2}", "{null: 1}"),
        *('{"a":1,"a":2}', "{'a':1,a:2}", r'{"a":1,"\u0061":2}', '{"a": {"b": 1, "b": 2}}', "{True: 1}", "{-a: 1}"),
        *("f(1)", "dict(a=1)", "[x for x in y]", "{1, 2}", 'f"{x}"', "r'a'", "b'a'", "u'a'", "lambda: 1", "not 1"),
        *(
            '"abc',
            "'abc",
            "“abc",
            "“abc“",
            '"abc\\',
            '"abc\\"',
            "'a\"",
            "/* open",
            "[1 // open",
            "[1 # open",
            "[1 / 2]",
        ),
    ],
)
def test_what_would_be_a_guess_is_refused(text: str, python: bool) -> None:
    refuse(text, python=python)


@given(st.text(alphabet=SOUP), st.booleans(), st.booleans())
def test_nothing_but_bad_json_is_raised(text: str, python: bool, closed: bool) -> None:
    reader = Lenient(text, python=python, closed=closed)
    position = 0
    try:
        reader.value()
    except BadJson as error:
        position = error.position
    else:
        assert 0 < reader.pos <= len(text)
    assert 0 <= position <= len(text)


def test_an_early_end_is_told_by_the_position() -> None:
    for text in ('{"a": "b', '{"a": [1', '{"a": 12', '{"a":', '{"a"', '{"a": 1,', "{", '{"a": 1 // b'):
        error = refuse(text)
        assert error.position == len(text)
        assert "ends early" in str(error)


# The end of the text


LEFT_OPEN: list[tuple[str, Json]] = [
    ('{"a": {"b": "c"}', {"a": {"b": "c"}}),
    ('{"a": "c"', {"a": "c"}),
    ('{"a": [1, {"b": true', {"a": [1, {"b": True}]}),
    ('{"a": [[]', {"a": [[]]}),
    ('{"a": 2\n', {"a": 2}),
]


@pytest.mark.parametrize(("text", "value"), LEFT_OPEN)
def test_missing_closers_are_added_only_at_an_explicit_end(text: str, value: Json) -> None:
    got, fixes = read(text, closed=True)
    assert got == value
    assert {fix.what for fix in fixes} == {"missing closer"}
    refuse(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            '{"a": "c',
            '{"a": 2',
            '{"a": 2.5',
            '{"a": tru',
            '{"a":',
            '{"a"',
            '{"a',
            '{"a": 1,',
            '{"a": 1, "b"',
            "{",
            '{"a": {',
        ),
        *("[", "[1,", "[[", "[1, [", '{"a": 1 // , "b": 2}', '{"a": 1 /* b', '{"a": "say "hi"', '{"a": "b\\'),
    ],
)
def test_nothing_else_is_added_at_an_explicit_end(text: str) -> None:
    refuse(text, closed=True)


@pytest.mark.parametrize(
    "text",
    [
        r'"bad \ud83d end"',
        r'"bad \udE00"',
        r'"\ud83d\ud83d\ude00\q"',
        r'{"a": "\ud800"}',
        r'{"\ud800": 1}',
        "'raw \ud83d'",
        '{"raw": "\ud83d"}',
        '"raw \ud83d and \\q"',
    ],
)
@pytest.mark.parametrize("python", [True, False])
def test_half_of_a_surrogate_pair_is_refused_and_not_replaced_p2(text: str, python: bool) -> None:
    with pytest.raises(BadJson, match="half of a surrogate pair") as refused:
        read(text, python=python)
    assert refused.value.position < len(text)  # it is not for want of more text


def test_a_tuple_is_not_closed_by_the_end() -> None:
    with pytest.raises(BadJson):
        read("(1, 'a'", python=True, closed=True)


@pytest.mark.parametrize("text", ["60*60", "1+1", "1_000", "01", "0x10", "12abc", "1.5.2", "5-3"])
def test_a_number_is_not_cut_out_of_an_expression(text: str) -> None:
    with pytest.raises(BadJson):
        Lenient(text).value()


def test_what_follows_the_value_is_left_to_the_caller() -> None:
    reader = Lenient('x = {"a": 1}{"a": 2}}', 4)
    assert reader.value() == {"a": 1}
    assert reader.pos == 12
    assert reader.value() == {"a": 2}
    assert reader.pos == 20


# Python literals


PYTHON_VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\"'\\\n\x07\xa0")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(PYTHON_VALUES)
def test_what_python_writes_is_read_without_a_fix(value: Json) -> None:
    assert read(repr(value), python=True) == (value, [])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("()", []), ("(1,)", [1]), ("(1, 'a')", [1, "a"]), ("[(1, 2,), {'a': (3, 4)}]", [[1, 2], {"a": [3, 4]}])),
        *(("'''a'b\n\"c\"'''", 'a\'b\n"c"'), ('"""it\'s "x" \\n"""', 'it\'s "x" \n'), ("''", ""), ('""', "")),
        *((r"'\x41\u00e9\U0001F600\101\0'", "Aé😀A\0"), (r"'\'\"\\'", "'\"\\"), ("[1, # one\n2]", [1, 2])),
        *(("'a, \"b\": c'", 'a, "b": c'), ("[1,]", [1]), ("{'a': 1,}", {"a": 1})),
    ],
)
def test_python_forms_are_no_fix(text: str, value: Json) -> None:
    assert read(text, python=True) == (value, [])


@pytest.mark.parametrize(
    ("text", "value", "fixes"),
    [
        ("[true, null]", [True, None], [Fix("json literal", "/0"), Fix("json literal", "/1")]),
        (r"'\d\xZZ\U00110000\N{DASH}'", r"\d\xZZ\U00110000\N{DASH}", [Fix("invalid escape")]),
        (r"'C:\bin\app.exe'", r"C:\bin\app.exe", [Fix("invalid escape")]),
        ("'a\nb'", "a\nb", [Fix("control character")]),
        ("{a: 1}", {"a": 1}, [Fix("bare key")]),
        ("“a”", "a", [Fix("smart quotes")]),
    ],
)
def test_what_python_does_not_allow_is_a_fix(text: str, value: Json, fixes: list[Fix]) -> None:
    assert read(text, python=True) == (value, fixes)


@pytest.mark.parametrize(
    "text",
    [
        *("(1)", "('a')", "(", "(1, 2", "(1,,)", "'a' 'b'", "['a' 'b']", '["a""b"]', "['a' + 'b']", "[7 // 2\n]"),
        *("['it's']", "'''abc''", "/* a */ 1", "{'a': 'b' 'c'}", "f(x=1)", "1 if x else 2"),
    ],
)
def test_python_expressions_are_refused(text: str) -> None:
    refuse(text, python=True, closed=True)


def test_python_forms_are_refused_or_kept_in_json() -> None:
    refuse("(1, 2)")
    refuse("'''a'''")
    assert read(r'"\x41\101\U0001F600"')[0] == r"\x41\101\U0001F600"


def test_a_call_grammar_moves_the_position_between_values() -> None:
    text = "f(a='x', b=[1, 2])"
    reader = Lenient(text, 4, python=True)
    assert reader.value() == "x"
    assert text[reader.pos] == ","
    reader.pos += len(", b=")
    assert reader.value() == [1, 2]
    assert text[reader.pos] == ")"


# The limits: P7


@pytest.mark.parametrize(("opener", "closer"), [("[", "]"), ("{a:", "}"), ("(", ",)")])
def test_the_depth_limit(opener: str, closer: str) -> None:
    for depth in (LIMITS.depth - 1, LIMITS.depth):
        read(opener * depth + "1" + closer * depth, python=True)
    for depth in (LIMITS.depth + 1, 100_000):
        assert "deeper" in str(refuse(opener * depth + "1" + closer * depth, python=True))


def test_the_limit_of_digits() -> None:
    for digits in (LIMITS.digits - 1, LIMITS.digits):
        assert read("[" + "7" * digits + ",]")[0] == [int("7" * digits)]
        assert read("[-0." + "7" * (digits - 1) + "]")[0] == [-7 / 9]
    for number in ("7" * (LIMITS.digits + 1), "0." + "7" * LIMITS.digits, "7" * 100_000):
        assert "digits" in str(refuse(f"[{number},]"))


def test_the_size_limit() -> None:
    limits = JsonLimits(size=10)
    for size in (9, 10):
        assert Lenient("x" * 5 + "'" * 1 + "a" * (size - 2) + "'", 5, limits).value() == "a" * (size - 2)
    with pytest.raises(BadJson, match="characters"):
        Lenient("'" + "a" * 9 + "'", 0, limits)


def test_a_storm_of_repairs_is_no_storm_of_fixes() -> None:
    reader = Lenient("{'" + "k" * 100_000 + "': [" + "[True,], // x\n" * 5_000 + "], last: 1}")
    reader.value()
    assert len(reader.fixes) < 100
    assert {fix.what for fix in reader.fixes} >= {"single quotes", "python literal", "comment", "bare key"}
    assert max(len(fix.path) for fix in reader.fixes) < 200

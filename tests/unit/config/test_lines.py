"""Every field of a TOML file has its line. In the texts made here each number is the line on which it stands."""

import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolspeak.config.problems import Toml, TomlPath, find_lines, line_of

KEYS = ["a", "b-c", "_1", '"a.b"', "'x]'", '"#"', '"="', '"é \\" \\u00e9"', "'\"'", '"[["']
DECOYS = [
    '"[x] # = }"',
    "'[[y]]'",
    '"a\\"]"',
    '"""\n[no]\nz = 1\n"""',
    "'''\n# no\n'''''",
    '"""a\\""""',
    '"""[a]"""""',
    "2020-01-02 03:04:05",
]
BREAKS = ["", " ", "\n", " # ] }\n", "\n\n  "]


class Writer:
    """Writes a TOML text, and knows on which line it is."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.text = ""
        self.count = 0

    @property
    def line(self) -> str:
        return str(self.text.count("\n") + 1)

    def key(self) -> str:
        """Return a key that was not there before."""
        self.count += 1
        key = self.draw(st.sampled_from(KEYS))
        return f"{key[:-1]}{self.count}{key[-1]}" if key[0] in "\"'" else f"{key}{self.count}"

    def value(self, depth: int = 0) -> None:
        kind = self.draw(st.sampled_from(["number", "decoy"] + ["array", "inline"] * (depth < 3)))
        if kind == "number":
            self.text += self.line
        elif kind == "decoy":
            self.text += self.draw(st.sampled_from(DECOYS))
        elif kind == "array":
            self.array(depth)
        else:
            self.inline(depth)

    def array(self, depth: int) -> None:
        self.text += "["
        for _ in range(self.draw(st.integers(0, 3))):
            self.text += self.draw(st.sampled_from(BREAKS))
            self.value(depth + 1)
            self.text += self.draw(st.sampled_from(BREAKS)) + ","
        self.text += self.draw(st.sampled_from(BREAKS)) + "]"

    def inline(self, depth: int) -> None:
        self.text += "{ "
        for index in range(self.draw(st.integers(0, 3))):
            self.text += ", " if index else ""
            self.text += f"{self.dotted()} = "
            self.value(depth + 1)
        self.text += " }"

    def dotted(self) -> str:
        return self.draw(st.sampled_from([".", " . "])).join(self.key() for _ in range(self.draw(st.integers(1, 3))))


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Write tables, arrays of tables and fields."""
    writer = Writer(draw)
    arrays: list[str] = []
    tables: list[str] = []
    for _ in range(draw(st.integers(0, 6))):
        for _ in range(draw(st.integers(0, 3))):
            writer.text += draw(st.sampled_from(["", "  ", "# [no]\n", "\n"])) + f"{writer.dotted()} = "
            writer.value()
            writer.text += draw(st.sampled_from(["\n", " # = \n", "\r\n"]))
        kind = draw(st.sampled_from(["table", "array", "again"]))
        if kind == "again" and arrays:
            writer.text += f"[[{draw(st.sampled_from(arrays))}]]\n"
            continue
        parents = draw(st.sampled_from(["", *(f"{name} . " for name in (*tables, *arrays))]))
        name = parents + writer.key()
        (arrays if kind == "array" else tables).append(name)
        writer.text += f"[[ {name} ]]\n" if kind == "array" else f"[{name}] # x\n"
    return writer.text


def paths(value: Toml, path: TomlPath = ()) -> Iterator[tuple[TomlPath, Toml]]:
    """Return everything that a document has, with its path."""
    inner: list[tuple[str | int, Toml]] = []
    if isinstance(value, dict):
        inner = [*value.items()]
    elif isinstance(value, list):
        inner = [*enumerate(value)]
    for key, each in inner:
        yield (*path, key), each
        yield from paths(each, (*path, key))


@given(documents())
def test_every_path_has_its_line(text: str) -> None:
    expected = dict(paths(tomllib.loads(text)))
    found = find_lines(text)
    assert set(found) == set(expected)
    wrong = {path: (found[path], value) for path, value in expected.items() if isinstance(value, int)}
    assert all(line == value for line, value in wrong.values()), wrong


PIECES = [
    "a = 1\n",
    "b.a = [\n1, {d = 2, e.f = [3]}, ]\n",
    'c = { "x.y" = """\n""" }\n',
    "[t]\n",
    "[b]\n",
    "[t.u]\n",
    "[[e]]\n",
    "[e.f]\n",
    "[[e.g]]\n",
    "[e.g.h]\n",
    "# ]\n",
]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_the_paths_of_what_tomllib_reads_are_found(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(condition=False)
        return
    assert set(find_lines(text)) == {path for path, _ in paths(document)}


SAMPLE = """\
default = "a"

[upstreams.groq]
headers = [1,
  2]
[upstreams]
[upstreams.groq.tools]
[[keys]]
tenant = "a"
[[keys.more]]
[[keys]]
models = ["x",
  # none
  "y"]
[[keys.more]]
[keys.last]
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("default",), 1),
        (("upstreams", "groq"), 3),
        (("upstreams", "groq", "url"), 3),
        (("upstreams",), 6),
        (("upstreams", "groq", "tools"), 7),
        (("keys",), 8),
        (("keys", 0), 8),
        (("keys", 0, "tenant"), 9),
        (("keys", 0, "more", 0), 10),
        (("keys", 1), 11),
        (("keys", 1, "tenant"), 11),
        (("keys", 1, "models", 1), 14),
        (("keys", 1, "more", 0), 15),
        (("keys", 1, "last"), 16),
        (("nobody", "knows"), 1),
    ],
)
def test_what_is_not_there_has_the_line_of_its_table(path: TomlPath, line: int) -> None:
    assert tomllib.loads(SAMPLE)
    assert line_of(find_lines(SAMPLE), path) == line

"""Collects all problems of a configuration before any is reported.

    toolspeak.toml:7: upstreams.groq.wire: 'opnai_chat' is not one of anthropic, …; did you mean 'openai_chat'?

A message never shows a key. If a value could be one, the message does not show it at all.

`find_lines` finds the line of each field, which tomllib does not report. It relies on tomllib having accepted the
text, and does not check the syntax again.

    [server]                ("server",)             1
    port = 80               ("server", "port")      2
    [[keys]]                ("keys", 0)             3
    models = [              ("keys", 0, "models")   4
      "a"]                  ("keys", 0, "models", 0) 5
"""

import re
import tomllib
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from difflib import get_close_matches
from typing import Final, TypeAlias

from toolspeak.errors import BadConfig

TomlPath: TypeAlias = tuple[str | int, ...]

# Possessive quantifiers (`*+`): a comment of a megabyte must not make the pattern backtrack.
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*+)*+")
_PART = re.compile(r"""[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)[ \t]*""")
_STRING = re.compile(r'''"""(?:[^\\]|\\[\s\S])*?"{3,5}|\'\'\'[\s\S]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*\'''')
_BARE = re.compile(r"[^,\]}#\n]*")


def find_lines(text: str) -> dict[TomlPath, int]:
    """Return the line of every table, field and array element, by path."""
    scanner = _Scanner(text)
    scanner.scan()
    return scanner.lines


def line_of(lines: Mapping[TomlPath, int], path: TomlPath) -> int:
    """Return the line of a path; for a missing field, that of the nearest table around it, else 1."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


class _Scanner:
    """Scans the text once, from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text: Final = text
        self._ends: Final = [found.start() for found in re.finditer("\n", text)]
        self._at = 0
        self._rows: Final[dict[TomlPath, int]] = {}
        """The index of the last element of each array of tables so far."""
        self.lines: Final[dict[TomlPath, int]] = {}

    def scan(self) -> None:
        """Fill `lines`."""
        table: TomlPath = ()
        while self._next():
            table = self._header() if self._next() == "[" else self._entry(table)

    # ---------------------------------------------------------------- tables and fields

    def _header(self) -> TomlPath:
        """Read `[a.b]` or `[[a.b]]`, and return the path of the table that it opens."""
        line = self._line()
        brackets = 2 if self._text.startswith("[[", self._at) else 1
        self._at += brackets
        *parents, last = self._keys()
        self._at += brackets
        path: TomlPath = ()
        for key in parents:
            path = self._newest((*path, key), line)
        path = (*path, last)
        if brackets == 1:
            path = self._newest(path, line)
        else:
            self.lines.setdefault(path, line)
            self._rows[path] = self._rows.get(path, -1) + 1
            path = (*path, self._rows[path])
        self.lines[path] = line
        return path

    def _newest(self, path: TomlPath, line: int) -> TomlPath:
        """Return the path of a table; for an array of tables, that of its last element, as TOML defines."""
        self.lines.setdefault(path, line)
        return (*path, self._rows[path]) if path in self._rows else path

    def _entry(self, table: TomlPath) -> TomlPath:
        """Read `key = value`, and return the table that it is in."""
        line = self._line()
        path = table
        for key in self._keys():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self._at += 1
        self._value(path)
        return table

    def _keys(self) -> list[str]:
        """Read a dotted key and return its parts; the position is then right after it."""
        keys: list[str] = []
        while found := _PART.match(self._text, self._at):
            self._at = found.end()
            keys.append(_unquoted(found[1]))
            if not self._text.startswith(".", self._at):
                break
            self._at += 1
        return keys

    # ---------------------------------------------------------------- values

    def _value(self, path: TomlPath) -> None:
        match self._next():
            case "[":
                self._array(path)
            case "{":
                self._inline(path)
            case _:
                found = _STRING.match(self._text, self._at) or _BARE.match(self._text, self._at)
                self._at = max(found.end() if found else 0, self._at + 1)  # always advances, so no text can loop

    def _array(self, path: TomlPath) -> None:
        self._at += 1
        index = 0
        while self._next() not in ("]", ""):
            self.lines[*path, index] = self._line()
            self._value((*path, index))
            self._comma()
            index += 1
        self._at += 1

    def _inline(self, path: TomlPath) -> None:
        self._at += 1
        while self._next() not in ("}", ""):
            self._entry(path)
            self._comma()
        self._at += 1

    def _comma(self) -> None:
        if self._next() == ",":
            self._at += 1

    # ---------------------------------------------------------------- places

    def _next(self) -> str:
        """Skip blanks and comments, and return the next character; empty at the end."""
        found = _BLANK.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def _line(self) -> int:
        return bisect(self._ends, self._at) + 1


def _unquoted(key: str) -> str:
    if key[0] not in "\"'":
        return key
    value: str = tomllib.loads(f"key = {key}")["key"]
    return value


Toml: TypeAlias = str | int | float | bool | datetime | date | time | list["Toml"] | dict[str, "Toml"]
LONGEST_QUOTE = 60
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Problems:
    """The problems of one file."""

    def __init__(self, file: str, lines: Mapping[TomlPath, int]) -> None:
        """Take the file's name, and the lines of its fields."""
        self._file: Final = file
        self._lines: Final = lines
        self._found: Final[list[tuple[int, str]]] = []
        self.secrets = 0
        """The number of keys that are written in the file itself; with any, its permissions are checked."""

    def add(self, path: TomlPath, problem: str) -> None:
        """Add a problem of the field at a path."""
        line = line_of(self._lines, path)
        self._found.append((line, f"{self._file}:{line}: {written(path)}: {problem}"))

    def has_field(self, path: TomlPath) -> bool:
        """Return whether the file has a field, be its value wrong."""
        return path in self._lines

    def end(self) -> None:
        """Raise `BadConfig` with all problems in the order of the file; do nothing if there are none."""
        if self._found:
            raise BadConfig(*(text for _, text in sorted(self._found, key=lambda found: found[0])))


def written(path: TomlPath) -> str:
    """Return a path in TOML's notation: `models."gpt 4".upstream`, `keys[0].tenant`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += ("." if text else "") + (key if _BARE_KEY.fullmatch(key) else f'"{key}"')
    return text


def shown(value: Toml) -> str:
    """Return a value for a message, shortened. Never use it for a value that may be a key."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return repr(value if len(value) <= LONGEST_QUOTE else value[:LONGEST_QUOTE] + "…")
        case list():
            return "an array"
        case dict():
            return "a table"
        case _:
            return str(value)


_ASKS: Final = "; whether a run asks before it acts is its approval mode: toolspeak run --approval ask"
_SUCCESSORS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "approve": (("ask", "auto"), _ASKS),
    "chat": ((), "; for no tools at all set TOOLSPEAK_MODE=chat, or chat = true under [tools]"),
    "manual": (("ask", "auto"), _ASKS),
    "smart_approve": (("ask", "auto"), _ASKS),
    "toolcallingadvanced": (("advanced",), ""),
    "toolcallingnone": (("none",), ""),
    "toolcallingopenai": (("openai",), ""),
    "toolsemulationfallback": (("fallback",), ""),
    "toolsemulationforce": (("force",), ""),
    "toolsemulationoff": (("off",), ""),
}
"""Values that uniai, goose and others have: what each is called here, the first that the setting knows, and a hint.

The hint is left out where the first word fits, because it is about other settings.
"""


def not_one_of(value: str, known: Sequence[str]) -> str:
    """Return the message for an unknown name, with its successor or the nearest known one."""
    words, hint = _SUCCESSORS.get(value.lower(), ((), ""))
    found = next((word for word in words if word in known), "")
    if hint and "force" not in known:  # it is about the mode
        hint = ""
    advice = (f"; here it is {found!r}" if found else "") + hint or did_you_mean(value, known)
    return f"{shown(value)} is not one of {', '.join(known)}{advice}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the most similar known name; empty if none is similar."""
    known = list(known)
    near = get_close_matches(name.lower(), [each.lower() for each in known], n=1)
    meant = next((each for each in known if near and each.lower() == near[0]), None)
    return f"; did you mean {meant!r}?" if meant else ""

"""Collects all problems of a configuration before any is reported.

    toolspeak.toml:7: upstreams.groq.wire: 'opnai_chat' is not one of anthropic, …; did you mean 'openai_chat'?

A message never shows a key. If a value could be one, the message does not show it at all.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from difflib import get_close_matches
from typing import Final, TypeAlias

from toolspeak.config.lines import TomlPath, line_of
from toolspeak.errors import BadConfig

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


def not_one_of(value: str, known: Sequence[str]) -> str:
    """Return the message for an unknown name, with the nearest known one."""
    return f"{shown(value)} is not one of {', '.join(known)}{did_you_mean(value, known)}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the most similar known name; empty if none is similar."""
    known = list(known)
    near = get_close_matches(name.lower(), [each.lower() for each in known], n=1)
    meant = next((each for each in known if near and each.lower() == near[0]), None)
    return f"; did you mean {meant!r}?" if meant else ""

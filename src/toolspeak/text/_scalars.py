"""Reading a text as what it looks like: null, true, 12, 0.5, `[…]`, `{…}`. Only whole texts, and without loss."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Final

from toolspeak.errors import BadJson
from toolspeak.ir.json import Json
from toolspeak.text.strict import parse

_WORDS: Final[Mapping[str, Json]] = {"true": True, "false": False, "null": None, "none": None, "nil": None}
_LONGEST_WORD: Final = 5
_LONGEST_NUMBER: Final = 1000
# No two ways through any of these, so nothing backtracks. A leading zero is part of a code, not of a number.
_WHOLE: Final = re.compile(r"(-?(?:0|[1-9][0-9]*+))(?:\.0++)?+")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+")


def readings(text: str, types: frozenset[str]) -> Iterator[tuple[str, Json]]:
    """Read the text as one of the types other than string: what type it becomes, and the value; at most one."""
    if len(text) <= _LONGEST_WORD and text.lower() in _WORDS:
        value = _WORDS[text.lower()]
        kind = "null" if value is None else "boolean"
        if kind in types:
            yield kind, value
    elif "integer" in types or "number" in types:
        yield from _numbers(text, types)
    if types & {"array", "object"}:
        yield from _containers(text, types)


def _numbers(text: str, types: frozenset[str]) -> Iterator[tuple[str, Json]]:
    if len(text) > _LONGEST_NUMBER:
        return
    whole = _WHOLE.fullmatch(text)
    if whole and ("integer" in types and ("number" not in types or whole[1] == text)):
        yield "integer", int(whole[1])
    elif "number" in types and _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        yield "number", float(text)


def _containers(text: str, types: frozenset[str]) -> Iterator[tuple[str, Json]]:
    first = text.lstrip()[:1]
    kind = {"[": "array", "{": "object"}.get(first)
    if kind is None or kind not in types:
        return
    try:
        yield kind, parse(text)
    except BadJson:
        return

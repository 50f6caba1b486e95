r"""Reads and writes strict JSON. A text that is refused here may still be repaired, and the repair is recorded.

jiter reads the text. One walk over the value then refuses what jiter accepts and we do not: deep nesting and infinity.
Python's own `json` is no alternative: it raises RecursionError for deep nesting, a plain ValueError for an integer of
5,000 digits, and accepts NaN and 1e999, which it writes as invalid JSON. A lone surrogate escape (`"\ud83d"`) is an
error for jiter, and for repair as well.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Final

import jiter

from toolspeak.errors import BadJson
from toolspeak.ir.json import Json, JsonObject


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """Limits of one JSON text: levels of nesting, characters, digits in one number."""

    depth: int = 64
    size: int = 8 * 1024 * 1024
    digits: int = 4300
    """For repaired text. In strict text jiter's own cap, 4300 digits of an integer, holds."""


LIMITS: Final = JsonLimits()

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_PLACE = re.compile(r"(.*) at line (\d+) column (\d+)$", re.DOTALL)
_WALKED = frozenset((dict, list, float))
_LONGEST_MESSAGE = 200  # jiter quotes a duplicate key in full


def parse(text: str, limits: JsonLimits = LIMITS) -> Json:
    """Return the JSON value that is the whole text; raises BadJson for anything else, duplicate keys included."""
    if len(text) > limits.size:
        raise BadJson(f"the text has {len(text)} characters, at most {limits.size} are read", limits.size)
    try:
        value: Json = jiter.from_json(text.encode(), allow_inf_nan=False, cache_mode="keys", catch_duplicate_keys=True)
    except UnicodeEncodeError as error:
        raise BadJson("a lone surrogate is no character", error.start) from None
    except ValueError as error:
        raise _placed(str(error), text) from None
    _check(value, limits.depth)
    return value


def parse_object(text: str) -> JsonObject:
    """Return the object that is the whole text, and an empty one for anything else."""
    try:
        value = parse(text)
    except BadJson:
        return {}
    return value if isinstance(value, dict) else {}


def dump(value: Json) -> str:
    """Return compact JSON that `parse` reads. Lone surrogates become U+FFFD; NaN and deep nesting raise BadJson."""
    try:
        text = _ENCODER.encode(value)
    except (ValueError, RecursionError) as error:
        _check(value, LIMITS.depth)  # its error says more, if it has one
        raise BadJson(f"not a JSON value: {error}") from None
    # The encoder refuses infinity itself, and a value is no deeper than its text has brackets: most need no walk.
    if brackets(text) > LIMITS.depth:
        _check(value, LIMITS.depth)
    return without_surrogates(text)


def brackets(json: str) -> int:
    """Return how many brackets and braces a JSON text opens, those in strings too: its value is no deeper than that."""
    return json.count("{") + json.count("[")


def without_surrogates(text: str) -> str:
    """Replace each surrogate by one U+FFFD, so that the text can be encoded and positions in it stay valid."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def without_halves(text: str) -> str:
    r"""Replace lone surrogates in a JSON text by U+FFFD, both raw ones and escapes (`\ud83d`)."""
    text = without_surrogates(text)
    return _ESCAPES.sub(lambda found: "\\ufffd" if found[1] else found[0], text) if "\\u" in text else text


def _check(value: Json, depth: int) -> None:
    """Raise BadJson for deep nesting and infinity. It works level by level, so nesting costs no stack."""
    level = _below([[value]])
    for _ in range(depth):
        if not level:
            return
        level = _below(level)
    if any(not isinstance(item, float) for item in level):
        raise BadJson(f"nested deeper than {depth} levels")
    _below(level)


def _below(level: list[Json]) -> list[Json]:
    """Return the values one level deeper that must be checked; raise BadJson for an infinity on this level."""
    below: list[Json] = []
    for item in level:
        if isinstance(item, dict):
            below += item.values()
        elif isinstance(item, list):
            below += item
        elif isinstance(item, float) and math.isinf(item):
            raise BadJson("a number is too large for a float")
    return [item for item in below if type(item) in _WALKED]


def _placed(message: str, text: str) -> BadJson:
    """Return the error with a character index instead of jiter's line and column, which count bytes from one."""
    found = _PLACE.match(message)
    if found is None:
        return BadJson(message[:_LONGEST_MESSAGE])
    line, column = int(found[2]), int(found[3])
    lines = text.split("\n", line)[:line]
    before = sum(len(one) + 1 for one in lines[:-1])
    within = lines[-1].encode()[: max(column - 1, 0)].decode(errors="ignore")
    return BadJson(found[1][:_LONGEST_MESSAGE], before + len(within))

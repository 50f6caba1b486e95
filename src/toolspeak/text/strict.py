r"""JSON to the letter: what is refused here may still be repaired, but is then recorded as repaired.

jiter reads the text; what it lets pass and we do not (depth, infinity) is found by one walk over the value.
A lone surrogate escape (`"\ud83d"`) is an error to jiter, and to repair as well.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Final

import jiter

from toolspeak.errors import BadJson
from toolspeak.ir.json import Json


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """How much JSON one text may hold: levels of nesting, characters, digits in one number."""

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
    """Read one JSON value that is the whole text; anything else is BadJson."""
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


def dump(value: Json) -> str:
    """Write compact JSON that `parse` reads; lone surrogates become U+FFFD, NaN and too deep nesting are BadJson."""
    _check(value, LIMITS.depth)
    try:
        text = _ENCODER.encode(value)
    except (ValueError, RecursionError) as error:
        raise BadJson(f"not a JSON value: {error}") from None
    return without_surrogates(text)


def without_surrogates(text: str) -> str:
    """Replace each surrogate by U+FFFD, one for one, so that positions stay and the text can be encoded."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def without_halves(text: str) -> str:
    r"""Replace lone surrogates by U+FFFD in a JSON text, written as such or as an escape (`\ud83d`)."""
    text = without_surrogates(text)
    return _ESCAPES.sub(lambda found: "\\ufffd" if found[1] else found[0], text) if "\\u" in text else text


def _check(value: Json, depth: int) -> None:
    """Refuse what jiter lets pass. Level by level, so that no depth of nesting costs us a stack."""
    level = _below([[value]])
    for _ in range(depth):
        if not level:
            return
        level = _below(level)
    if any(not isinstance(item, float) for item in level):
        raise BadJson(f"nested deeper than {depth} levels")
    _below(level)


def _below(level: list[Json]) -> list[Json]:
    """List what stands one level deeper and is worth a look; refuse infinity on this one."""
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
    """Turn jiter's line and column (in bytes, from one) into a character index."""
    found = _PLACE.match(message)
    if found is None:
        return BadJson(message[:_LONGEST_MESSAGE])
    line, column = int(found[2]), int(found[3])
    lines = text.split("\n", line)[:line]
    before = sum(len(one) + 1 for one in lines[:-1])
    within = lines[-1].encode()[: max(column - 1, 0)].decode(errors="ignore")
    return BadJson(found[1][:_LONGEST_MESSAGE], before + len(within))

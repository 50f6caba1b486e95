"""Reads JSON that a model wrote: strictly first, then with repair, and never by guessing.

A fenced `{"city": "Oslo",}}` gives `{"city": "Oslo"}` and three fixes: markdown fence, trailing comma, surplus closer.
"""

import re
from contextlib import suppress
from dataclasses import dataclass

from toolspeak.errors import BadJson
from toolspeak.ir.fix import Fix
from toolspeak.ir.json import Json
from toolspeak.text.lenient import Lenient
from toolspeak.text.strict import LIMITS, JsonLimits, parse

_FENCE = re.compile(r"```[ \t]*+[\w+-]*+[ \t]*+\r?\n")
_SURPLUS = re.compile(r"[\s}\]]*+")
_LEADING = re.compile(r"[\s\ufeff]*+")
_BLANKS = " \t\r\n"
_MARK = "\ufeff"
_DOUBLED = "{{}}"


@dataclass(frozen=True, slots=True)
class Repaired:
    """A value, and the fixes that were needed to read it; none if the text was JSON."""

    value: Json
    fixes: tuple[Fix, ...] = ()


def repair(text: str, *, closed: bool, limits: JsonLimits = LIMITS) -> Repaired:
    """Read one JSON value; raises BadJson if that would need a guess.

    `closed` says that something outside of the value, such as a closing tag, marks the text's end. Only then may
    closing brackets be missing: without an explicit end the text may be truncated, and a truncated call must not run
    (P3).
    """
    with suppress(BadJson):
        return Repaired(parse(text, limits))
    start, end, fixes = _peel(text)
    if fixes:
        with suppress(BadJson):
            return Repaired(parse(text[start:end], limits), fixes)
    return _mend(text[:end], start, fixes, closed=closed, limits=limits)


def _mend(text: str, start: int, fixes: tuple[Fix, ...], *, closed: bool, limits: JsonLimits) -> Repaired:
    reader = Lenient(text, start, limits, closed=closed)
    value = reader.value()
    rest = _SURPLUS.match(text, reader.pos)
    if rest is None or rest.end() < len(text):
        raise BadJson("text after the value", rest.end() if rest else reader.pos)
    surplus = (Fix("surplus closer"),) if rest[0].strip() else ()
    return Repaired(value, (*fixes, *reader.fixes, *surplus))


def _peel(text: str) -> tuple[int, int, tuple[Fix, ...]]:
    """Return the value's span without a byte order mark, blanks that JSON does not know, a fence, doubled braces."""
    found = _LEADING.match(text)
    start = found.end() if found else 0
    end = max(start, len(text.rstrip()))
    around = text[:start] + text[end:]
    fixes = [Fix("byte order mark")] if _MARK in around else []
    if around.strip(_BLANKS + _MARK):
        fixes.append(Fix("blanks"))
    else:
        end = len(text)  # keep a blank at the end: it shows that the number before it is complete
    if inside := _inside_fence(text, start):
        (start, end), fixes = inside, [*fixes, Fix("markdown fence")]
    if inside := _inside_doubled(text, start, end):
        (start, end), fixes = inside, [*fixes, Fix("doubled braces")]
    return start, end, tuple(fixes)


def _inside_fence(text: str, start: int) -> tuple[int, int] | None:
    """Return the span between the two lines of a fence; None if there is no complete fence."""
    fence = _FENCE.match(text, start)
    if fence is None:
        return None
    last_line = text.rfind("\n", 0, len(text.rstrip())) + 1
    closes = last_line >= fence.end() and text[last_line:].strip() == "```"
    return (fence.end(), last_line) if closes else None


def _inside_doubled(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the span of an object in doubled braces; None if there is none.

    The chat template of Qwen2.5-Coder shows a call as `{{"name": …}}`, and the 1.5B model writes it so. No JSON value
    begins with two braces, so this is not a guess.
    """
    last = len(text[:end].rstrip())
    doubled = last - start > len(_DOUBLED) and text.startswith("{{", start) and text.endswith("}}", start, last)
    return (start + 1, last - 1) if doubled else None

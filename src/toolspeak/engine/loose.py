"""Calls that no dialect takes for calls: JSON objects that name a tool, with a tail that was cut, or words beside.

    {"name": "find_bus", "arguments": {"stop": "Moss"}}
    {"name": "find_bus", "arguments": {"stop": "Hort            cut by the limit, so the reader calls all of it text

Where nothing else was asked for, such objects are calls. In an answer that was free to be text they are calls only
where nothing else stands beside them; with words around, the model may be quoting, and is asked.
"""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final

from toolspeak.engine.decision import call_of
from toolspeak.errors import BadJson
from toolspeak.ir.message import Call
from toolspeak.text.jsonspan import JsonSpan, Status
from toolspeak.text.repair import repair

LONGEST: Final = 64 * 1024
MOST: Final = 32
_BEGIN = re.compile(r'\{\s*"(?:name|tool|function|tool_name)"\s*:\s*"([^"\\]{1,128})"')
_BESIDE = re.compile(r"```\w*|</?tool_calls?>|[\s,;\[\]]|\bdone\b\.?")


@dataclass(frozen=True, slots=True)
class Loose:
    """What was found."""

    calls: tuple[Call, ...] = ()
    alone: bool = True
    """Nothing stands beside them, unless it was cut."""


def loose_calls(text: str, names: Container[str], ids: Iterator[str]) -> Loose:
    """Find the objects that name one of these tools, each written once."""
    text, end = text[:LONGEST], 0
    found: dict[str, Call] = {}
    beside: list[str] = []
    for begin in _BEGIN.finditer(text):
        if begin.start() < end or begin[1] not in names or len(found) >= MOST:
            continue
        beside.append(text[end : begin.start()])
        end, whole = _object(text, begin.start())
        if whole and (call := _call(whole, ids)):
            found.setdefault(whole, call)
    return Loose(tuple(found.values()), not _BESIDE.sub("", "".join((*beside, text[end:]))))


def _object(text: str, start: int) -> tuple[int, str]:
    """Return where the object ends, and its text; the rest of the text belongs to one that was cut."""
    span = JsonSpan()
    end = span.feed(text, start)
    return (end, text[start:end]) if span.status is Status.DONE else (len(text), "")


def _call(written: str, ids: Iterator[str]) -> Call | None:
    try:
        value = repair(written, closed=True).value
    except BadJson:
        return None
    return call_of(value, next(ids)) if isinstance(value, dict) else None

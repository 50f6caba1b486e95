"""Finds calls in text that no dialect's reader took for calls.

In doubt, a reader decides that something which looks like a call is text: the model may be quoting. Two situations
remove the doubt.

    decisions     `{"tools": […]}` with words or a fence around it, in an answer that was asked for nothing else (DEC-3)
    loose calls   JSON objects that name a tool, cut at the end or with `done` after them (CHK-12)

Nothing found here is checked; `AnswerReader` checks it like a native call.
"""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final

from toolspeak.errors import BadJson
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.text.jsonspan import JsonSpan, SpanStatus
from toolspeak.text.repair import repair
from toolspeak.text.strict import dump

_BEGIN = re.compile(r'\{\s*"tools"\s*:')
_LONGEST = 1024 * 1024  # characters that are searched for a decision (P7)
_NAMES = ("name", "tool", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters", "args")


def decision_in(text: str) -> str:
    """Return the text of the first decision; empty if there is none, or if it is truncated (P3)."""
    begin = _BEGIN.search(text[:_LONGEST])
    if begin is None:
        return ""
    return object_at(text[:_LONGEST], begin.start())[1]


def decided_calls(decision: str, ids: Iterator[str]) -> list[Call]:
    """Return the calls of a decision as the model wrote them, unchecked; none if the JSON cannot be repaired."""
    try:
        value = repair(decision, closed=True).value
    except BadJson:
        return []
    tools = value.get("tools") if isinstance(value, dict) else None
    entries = tools if isinstance(tools, list) else []
    return [call_of(entry, next(ids)) for entry in entries if isinstance(entry, dict)]


def call_of(entry: JsonObject, id: str) -> Call:
    """Return an object as a call, unchecked. It accepts the names that models use for the keys of a call."""
    inner = entry.get("function")
    body = inner if isinstance(inner, dict) else entry
    name = next((body[key] for key in _NAMES if key in body), None)
    arguments = next((body[key] for key in _ARGUMENTS if key in body), None)
    return Call(id, name if isinstance(name, str) else "", _text(arguments))


def _text(arguments: Json) -> str:
    if arguments is None:
        return "{}"
    return arguments if isinstance(arguments, str) else dump(arguments)


LONGEST: Final = 64 * 1024
"""Characters that are searched for loose calls."""
MOST: Final = 32
"""Loose calls that are taken from one text."""
_LOOSE_BEGIN = re.compile(r'\{\s*"(?:name|tool|function|tool_name)"\s*:\s*"([^"\\]{1,128})"')
_BESIDE = re.compile(r"```\w*|</?tool_calls?>|[\s,;\[\]]|\bdone\b\.?")


@dataclass(frozen=True, slots=True)
class LooseCalls:
    """The calls in a text in which the dialect's reader found none."""

    calls: tuple[Call, ...] = ()
    alone: bool = True
    """Whether only fences, separators, the word "done" and a truncated call are beside them."""


def loose_calls(text: str, names: Container[str], ids: Iterator[str]) -> LooseCalls:
    """Find the JSON objects that name one of these tools. Equal objects count once: small models repeat themselves."""
    text, end = text[:LONGEST], 0
    found: dict[str, Call] = {}
    beside: list[str] = []
    # Objects inside of an object that was already read are arguments, not calls: hence `begin.start() < end`.
    for begin in _LOOSE_BEGIN.finditer(text):
        if begin.start() < end or begin[1] not in names or len(found) >= MOST:
            continue
        beside.append(text[end : begin.start()])
        end, whole = object_at(text, begin.start())
        if whole and (call := _loose_call(whole, ids)):
            found.setdefault(whole, call)
    return LooseCalls(tuple(found.values()), not _BESIDE.sub("", "".join((*beside, text[end:]))))


def object_at(text: str, start: int) -> tuple[int, str]:
    """Return where the object ends, and its text. A truncated object ends with the text, and its text is empty."""
    span = JsonSpan()
    end = span.feed(text, start)
    return (end, text[start:end]) if span.status is SpanStatus.DONE else (len(text), "")


def _loose_call(written: str, ids: Iterator[str]) -> Call | None:
    try:
        value = repair(written, closed=True).value
    except BadJson:
        return None
    return call_of(value, next(ids)) if isinstance(value, dict) else None

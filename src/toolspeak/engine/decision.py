"""A decision that the reader of its dialect was not sure of: `{"tools": […]}` with words or a fence around (DEC-3).

In an answer that was asked for nothing else there is nothing to quote, so that what looks like a decision is one.
"""

import re
from collections.abc import Iterator

from toolspeak.errors import BadJson
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.text.jsonspan import JsonSpan, Status
from toolspeak.text.repair import repair
from toolspeak.text.strict import dump

_BEGIN = re.compile(r'\{\s*"tools"\s*:')
_LONGEST = 1024 * 1024
_NAMES = ("name", "tool", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters", "args")


def decision_in(text: str) -> str:
    """Return the text of the first decision; empty if there is none that is whole (P3)."""
    begin = _BEGIN.search(text[:_LONGEST])
    if begin is None:
        return ""
    span = JsonSpan()
    end = span.feed(text[:_LONGEST], begin.start())
    return text[begin.start() : end] if span.status is Status.DONE else ""


def calls_in(decision: str, ids: Iterator[str]) -> list[Call]:
    """Return the calls of a decision, as the model wrote them; nothing in them is checked."""
    try:
        value = repair(decision, closed=True).value
    except BadJson:
        return []
    tools = value.get("tools") if isinstance(value, dict) else None
    entries = tools if isinstance(tools, list) else []
    return [call_of(entry, next(ids)) for entry in entries if isinstance(entry, dict)]


def call_of(entry: JsonObject, id: str) -> Call:
    """Return the call that an object stands for, whatever its keys are called; nothing in it is checked."""
    inner = entry.get("function")
    body = inner if isinstance(inner, dict) else entry
    name = next((body[key] for key in _NAMES if key in body), None)
    arguments = next((body[key] for key in _ARGUMENTS if key in body), None)
    return Call(id, name if isinstance(name, str) else "", _text(arguments))


def _text(arguments: Json) -> str:
    if arguments is None:
        return "{}"
    return arguments if isinstance(arguments, str) else dump(arguments)

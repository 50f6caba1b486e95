"""Calls that a request asks for and the model has not made: small models make the first one and stop.

    Play Taylor Swift for 20 minutes and Maroon 5 for 15.
    play(artist="Taylor Swift", minutes=20)              left over: Maroon, 5, 15

Where numbers, names or neighbours in a list are left over, the model is asked on, and told what is left. A further call
counts only if it uses some of it: who must find more to do invents it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from toolspeak.errors import BadJson
from toolspeak.ir.json import Json
from toolspeak.ir.message import Call, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.text.mentions import LONGEST, beside, is_told, mentions
from toolspeak.text.strict import parse

MOST: Final = 8
"""Times that a turn is asked on."""
_SEVERAL = re.compile(r"(?is)\b(?:and|then|both|each|also|respectively|as well|another)\b|[;&]|\?[^?]*\?")
_STEPS = re.compile(r"(?is)(?:\A|[.!?]\s)first\b.*\bthen\b|\bafter that\b")
"""Another tool may wait for the first one's result; the same again hardly does."""
_CHAINED = re.compile(r"(?i)\b(?:with|to|by|from|of|on|using) (?:that|the|this) (?:result|answer|output)\b")
"""One call waits for another's result: nothing is missing."""
_BETWEEN = re.compile(r"[,;.?!]\s+(?:(?:and|then|also)\s)?|\s(?:and|then|also)\s")


def left_over(asked: str, calls: Sequence[Call], tools: Iterable[Tool]) -> tuple[str, ...]:
    """Return what a request for several things mentions and no call has used."""
    if len(asked) > LONGEST or not calls or not _SEVERAL.search(asked) or _CHAINED.search(asked):
        return ()
    values = [value for call in calls for value in _values(call)]
    told = "\n".join((*values, *(f"{tool.name} {tool.description}" for tool in tools)))
    neighbours = (word for value in values for word in beside(asked, value))
    return tuple(dict.fromkeys(word for word in (*mentions(asked), *neighbours) if not is_told(word, told)))


def asked_last(request: Request) -> str:
    """Return the user's latest words; none if they have been answered with results since."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role is not Role.USER:
        return ""
    return "\n".join(part.text for part in last.parts if isinstance(part, Text))


def fitting(asked: str, made: Sequence[Call], more: Iterable[Call], tools: Sequence[Tool]) -> list[Call]:
    """Return those of more calls that use what those before them left over; in steps, of the same tools only."""
    fresh: list[Call] = []
    known = {call.name for call in made} if _STEPS.search(asked) else {tool.name for tool in tools}
    for call in more:
        if call.name in known and uses(call, left_over(asked, (*made, *fresh), tools)):
            fresh.append(call)
    return fresh


def uses(call: Call, left: Iterable[str]) -> bool:
    """Return whether a call uses some of what was left over."""
    told = "\n".join(_values(call))
    return any(is_told(word, told) for word in left)


def question(asked: str, left: Sequence[str]) -> str:
    """Ask on, in the request's own words: a small model does not find the beans by their five liters."""
    rest = list(_clauses(asked, left)) or left
    return f"Noted. Write the further calls that the request needs, for: {'; '.join(rest)}. If none, write: done"


def _clauses(asked: str, left: Sequence[str]) -> Iterator[str]:
    """Yield the parts of a request that have something left over; neighbours stay together as they were written."""
    start = end = 0
    for begin, stop in _spans(asked):
        if any(word in asked[begin:stop] for word in left):
            start, end = (start if end else begin), stop
        elif end:
            yield asked[start:end].strip(" .?!")
            end = 0
    if end:
        yield asked[start:end].strip(" .?!")


def _spans(asked: str) -> Iterator[tuple[int, int]]:
    begin = 0
    for between in _BETWEEN.finditer(asked):
        yield begin, between.start()
        begin = between.end()
    yield begin, len(asked)


def _values(call: Call) -> list[str]:
    try:
        return list(_leaves(parse(call.arguments)))
    except BadJson:
        return [call.arguments]


def _leaves(value: Json) -> Iterator[str]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)

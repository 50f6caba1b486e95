"""`accept_untaught_calls`: small models write calls in a form that no prompt taught and no dialect reads (CHK-13).

    {"name": "find_bus", "arguments": {"stop": "Moss"}}
    {"name": "find_bus", "arguments": {"stop": "Hort            cut by the limit, so the reader calls all of it text

In an answer that was free to be text, such objects are calls only if nothing else is beside them. With words around
them the model may be quoting, so it is asked to write the call again. In an answer to a question for calls they are
calls in any case.
"""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from toolspeak.engine.decision import call_of
from toolspeak.engine.guardrails.guardrail import NOTHING_RECOVERED, GuardedConversation, Guardrail, Recovered
from toolspeak.engine.guardrails.unmentioned_arguments import has_made_up_arguments
from toolspeak.engine.trouble import AROUND
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import CallRejected
from toolspeak.ir.message import Call
from toolspeak.text.jsonspan import JsonSpan, Status
from toolspeak.text.repair import repair

MADE_UP: Final = "the conversation does not mention the values that it needs"
LONGEST: Final = 64 * 1024
MOST: Final = 32
_BEGIN = re.compile(r'\{\s*"(?:name|tool|function|tool_name)"\s*:\s*"([^"\\]{1,128})"')
_BESIDE = re.compile(r"```\w*|</?tool_calls?>|[\s,;\[\]]|\bdone\b\.?")


@dataclass(frozen=True, slots=True)
class LooseCalls:
    """The calls in a text that a dialect's reader took for words."""

    calls: tuple[Call, ...] = ()
    alone: bool = True
    """Nothing is beside them but fences, separators, the word "done", and a call that was cut off."""


def _accept(text: str, conversation: GuardedConversation) -> Recovered:
    return _recovered(loose_calls_in(text, conversation), ())


def _accept_mentioned(text: str, conversation: GuardedConversation) -> Recovered:
    """Drop calls whose required arguments are made up, unless a call must come."""
    found = loose_calls_in(text, conversation)
    judged = () if conversation.must_call else found.calls
    return _recovered(found, [call for call in judged if has_made_up_arguments(call, conversation)])


def _recovered(found: LooseCalls, made_up: Sequence[Call]) -> Recovered:
    """Return the objects as calls; with words around them, complaints without their text, which is shown."""
    if not found.calls:
        return NOTHING_RECOVERED
    calls = tuple(call for call in found.calls if call not in made_up)
    if found.alone:
        dropped = tuple(Complaint(Problem.UNRELATED, call.name, MADE_UP) for call in made_up)
        return Recovered(calls, dropped, replaces_text=True)
    around = (Complaint(Problem.PARSE_ERROR, call.name, AROUND) for call in calls)
    return Recovered(rejected=tuple(map(CallRejected, around)))


ACCEPT_UNTAUGHT_CALLS: Final = Guardrail("accept_untaught_calls", recover=_accept, buffers=True)
ACCEPT_MENTIONED_CALLS: Final = replace(ACCEPT_UNTAUGHT_CALLS, recover=_accept_mentioned)
"""The same beside both `drop_` guardrails: a model that makes values up calls for the sake of calling."""


def loose_calls_in(text: str, conversation: GuardedConversation) -> LooseCalls:
    """Find calls of the offered tools in a text. A text that only repeats untrusted text has none (SAFE-3)."""
    found = loose_calls(text, {tool.name for tool in conversation.offered}, conversation.ids)
    return LooseCalls() if found.calls and conversation.echo.is_echo(text.strip()) else found


def loose_calls(text: str, names: Container[str], ids: Iterator[str]) -> LooseCalls:
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
    return LooseCalls(tuple(found.values()), not _BESIDE.sub("", "".join((*beside, text[end:]))))


def _object(text: str, start: int) -> tuple[int, str]:
    """Return where the object ends, and its text; an object that was cut off takes the rest, and has no text."""
    span = JsonSpan()
    end = span.feed(text, start)
    return (end, text[start:end]) if span.status is Status.DONE else (len(text), "")


def _call(written: str, ids: Iterator[str]) -> Call | None:
    try:
        value = repair(written, closed=True).value
    except BadJson:
        return None
    return call_of(value, next(ids)) if isinstance(value, dict) else None

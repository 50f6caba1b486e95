"""Which result answers which call, where clients leave out ids.

Most send none at all. litellm keeps them on results and loses them on calls: there the place in the history tells
which call it was, and the call gets its id back.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from toolspeak.ir.message import Call, Message, Part, Result
from toolspeak.wires._history import linked
from toolspeak.wires._ids import calls_in


def answered(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Give each call an id of its own, and each result the id of its call."""
    known = {call.id for call in calls_in(messages)}
    if "" not in known:
        return linked(messages)
    history = linked(_each(message, lambda part: _without_strange_id(part, known)) for message in messages)
    lost = _lost_ids(messages, history, known)
    return tuple(_each(message, lambda part: _with_lost_id(part, lost)) for message in history)


def _lost_ids(before: Sequence[Message], after: Sequence[Message], known: set[str]) -> dict[str, str]:
    """Return the ids that only results have, by those that their calls were given; no id may come twice."""
    taken = {call.id for call in calls_in(after)}
    lost: dict[str, str] = {}
    for came, answers in zip(_results(before), _results(after), strict=True):
        given = answers.call_id in taken and answers.call_id not in known
        if given and came.call_id and came.call_id not in taken:
            lost[answers.call_id] = came.call_id
            taken.add(came.call_id)
    return lost


def _each(message: Message, change: Callable[[Part], Part]) -> Message:
    return replace(message, parts=tuple(map(change, message.parts)))


def _results(messages: Sequence[Message]) -> Iterator[Result]:
    return (part for message in messages for part in message.parts if isinstance(part, Result))


def _without_strange_id(part: Part, known: set[str]) -> Part:
    return replace(part, call_id="") if isinstance(part, Result) and part.call_id not in known else part


def _with_lost_id(part: Part, lost: dict[str, str]) -> Part:
    if isinstance(part, Call):
        return replace(part, id=lost.get(part.id, part.id))
    return replace(part, call_id=lost.get(part.call_id, part.call_id)) if isinstance(part, Result) else part

"""Histories put in order, as strict upstreams demand: each call answered, right behind it, once, in the calls' order.

    assistant: call a, call b               assistant: "Running it now.", call a, call b
    assistant: "Running it now."      ->    tool:      result of a (an error that says there is none), result of b
    tool:      result of b                  user:      "Go on."
    user:      "Go on."

Clients cut histories, lose ids, or give the same id twice. A result is paired by its id, or, where one of the two has
none, by the tool's name, or by position. One that answers nothing becomes text of the user: nothing is dropped.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from toolspeak.ir.message import Call, Message, Part, Result, Role, Text, part_text

NO_RESULT = "No result: this call was not executed."


def paired(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Link a history and put it in order; one that is in order comes back as it was."""
    known = linked(messages)
    called = {part.id for part in _parts(known) if isinstance(part, Call)}
    answers: dict[str, Result] = {}
    for part in _parts(known):
        if isinstance(part, Result) and part.call_id in called:
            answers.setdefault(part.call_id, part)
    ordered: list[Message] = []
    for assistant, group in groupby(known, lambda message: message.role is Role.ASSISTANT):
        if assistant:
            ordered += _with_results(list(group), answers)
        else:
            ordered += _without_results(group, answers)
    return tuple(ordered)


def linked(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Give each call an id of its own, and each result the id and name of its call; leave the rest as it is."""
    linking = _Linking()
    return tuple(linking.message(message) for message in messages)


class _Linking:
    """Walks through a history and remembers which calls still wait for their result."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._answered: set[str] = set()
        self._by_id: dict[str, deque[Call]] = {}
        self._this_round: dict[tuple[bool, str], deque[Call]] = {}
        """The calls without an id (True) or all calls (False), by name, and in order under no name."""
        self._answering = False

    def message(self, message: Message) -> Message:
        """Link the parts of one message."""
        parts = tuple(self._part(part) for part in message.parts)
        return message if parts == message.parts else replace(message, parts=parts)

    def _part(self, part: Part) -> Part:
        if isinstance(part, Call):
            return self._call(part)
        return self._result(part) if isinstance(part, Result) else part

    def _call(self, call: Call) -> Call:
        if self._answering:  # a new round: what is still open can only be answered by its id
            self._this_round, self._answering = {}, False
        named = replace(call, id=self._unique(call.id)) if not call.id or call.id in self._ids else call
        self._ids.add(named.id)
        if call.id:
            self._by_id.setdefault(call.id, deque()).append(named)
        for bare in (False,) if call.id else (False, True):
            for name in ("", call.name):
                self._this_round.setdefault((bare, name), deque()).append(named)
        return named

    def _result(self, result: Result) -> Result:
        self._answering = True
        call = self._find(result)
        if call is None:
            return result
        self._answered.add(call.id)
        known = result.call_id == call.id and result.name == call.name
        return result if known else replace(result, call_id=call.id, name=call.name)

    def _find(self, result: Result) -> Call | None:
        """Find the call by its id; where one of the two has none, by name, else by position."""
        bare = bool(result.call_id)
        by_id = self._first(self._by_id.get(result.call_id)) if bare else None
        by_name = self._first(self._this_round.get((bare, result.name)))
        return by_id or by_name or self._first(self._this_round.get((bare, "")))

    def _first(self, calls: deque[Call] | None) -> Call | None:
        while calls:
            if calls[0].id not in self._answered:
                return calls[0]
            calls.popleft()
        return None

    def _unique(self, id: str) -> str:
        number = len(self._ids)
        while (name := f"{id or 'call'}_{number}") in self._ids:
            number += 1
        return name


def _parts(messages: Iterable[Message]) -> Iterator[Part]:
    for message in messages:
        yield from message.parts


def _with_results(run: list[Message], answers: dict[str, Result]) -> list[Message]:
    """Write the assistant's messages that stand behind each other, and the results of all their calls."""
    calls = [part for part in _parts(run) if isinstance(part, Call)]
    if not calls:
        return run
    results = tuple(answers.get(call.id) or _missing(call) for call in calls)
    return [_melted(run), Message(Role.TOOL, results)]


def _melted(run: list[Message]) -> Message:
    """Make one message; what was said after a call, in a message of its own, comes before it."""
    if len(run) == 1:
        return run[0]
    said: list[Part] = []
    called: list[Part] = []
    for message in run:
        calls = any(isinstance(part, Call) for part in message.parts)
        (called if calls else said).extend(message.parts)
    return replace(run[0], parts=(*said, *called))


def _missing(call: Call) -> Result:
    return Result(call.id, (Text(NO_RESULT),), call.name, is_error=True)


def _without_results(messages: Iterable[Message], answers: dict[str, Result]) -> Iterator[Message]:
    """Write what others said; results stand behind their calls already, and those of no call become text."""
    for message in messages:
        parts = tuple(
            _as_text(part) if isinstance(part, Result) else part
            for part in message.parts
            if not (isinstance(part, Result) and answers.get(part.call_id) is part)
        )
        if parts == message.parts:
            yield message
        elif parts:
            yield replace(message, role=Role.USER if message.role is Role.TOOL else message.role, parts=parts)


def _as_text(result: Result) -> Text:
    return Text(f"[result of {result.name or 'a call'} {result.call_id}]\n" + "\n".join(map(part_text, result.content)))

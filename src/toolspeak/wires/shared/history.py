"""Histories in the order that strict upstreams require: each call has one result, right after it, in the calls' order.

    assistant: call a, call b               assistant: "Running it now.", call a, call b
    assistant: "Running it now."      ->    tool:      result of a (an error that says there is none), result of b
    tool:      result of b                  user:      "Go on."
    user:      "Go on."

Clients cut histories, lose ids, or use an id twice. A result is paired by its id or, if either side has none, by the
tool's name, or by position. A result that answers no call becomes text of the user: nothing is dropped.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from toolspeak.ir.message import Call, Image, Message, Part, Result, Role, Text, part_text

NO_RESULT = "No result: this call was not executed."


def pair_history(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Link a history and put it in order; a history in order is returned unchanged."""
    known = link_history(messages)
    if not _calls_anything(known):
        return known
    answers = _answers(known)
    ordered: list[Message] = []
    run: list[Message] = []
    called: set[str] = set()
    for message in known:
        if message.role is Role.ASSISTANT:
            run.append(message)
            called |= {part.id for part in message.parts if isinstance(part, Call)}
            continue
        rest = _without_results(message, answers)
        if rest or any(isinstance(part, Result) and part.call_id in called for part in message.parts):
            ordered += (*_with_results(run, answers), *rest)
            run, called = [], set()
    return (*ordered, *_with_results(run, answers))


def instructions_first(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Put system messages that follow a user's words before those words.

    Claude Code sends its environment as a system message after the task. Chat templates of open models write it where
    it is, and small models then go on with it: Qwen2.5-Coder 1.5B repeated the environment in 4 of 4 answers, and made
    the right call in 4 of 4 with the task at the end.
    """
    ordered: list[Message] = []
    words: list[Message] = []
    for message in messages:
        if message.role is Role.USER:
            words.append(message)
        elif message.role is Role.SYSTEM:
            ordered.append(message)
        else:
            ordered += (*words, message)
            words.clear()
    return (*ordered, *words)


def add_result(messages: list[Message], result: Result) -> None:
    """Append a result, to the last message if that has results already."""
    if messages and messages[-1].role is Role.TOOL:
        messages[-1] = Message(Role.TOOL, (*messages[-1].parts, result))
    else:
        messages.append(Message(Role.TOOL, (result,)))


def _answers(messages: Iterable[Message]) -> dict[str, Result]:
    """Find the result of each call: the first one after it."""
    waiting: set[str] = set()
    answers: dict[str, Result] = {}
    for part in _parts(messages):
        if isinstance(part, Call):
            waiting.add(part.id)
        elif isinstance(part, Result) and part.call_id in waiting:
            waiting.remove(part.call_id)
            answers[part.call_id] = part
    return answers


def link_history(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Give each call a unique id, and each result the id and name of its call; the order is unchanged."""
    said = tuple(messages)
    if not _calls_anything(said):
        return said
    linking = _Linking({part.call_id for part in _parts(said) if isinstance(part, Result)})
    return tuple(linking.message(message) for message in said)


class _Linking:
    """Walks through a history, and tracks which calls still wait for their result."""

    def __init__(self, taken: set[str]) -> None:
        """Exclude the ids that results have: a call that lost its id must not get one of them."""
        self._taken = taken
        self._ids: set[str] = set()
        self._answered: set[str] = set()
        self._by_id: dict[str, deque[Call]] = {}
        self._round: dict[tuple[bool, str], deque[Call]] = {}
        """Calls of this round by (has no id, name); the empty name has all of them in order."""
        self._last: Role | None = None
        self._number = 0

    def message(self, message: Message) -> Message:
        """Link the parts of one message."""
        if message.role is Role.ASSISTANT and self._last is not Role.ASSISTANT:
            self._round = {}  # a new round: older calls can be answered only by their id
        self._last = message.role
        parts = tuple(self._part(part) for part in message.parts)
        return message if parts == message.parts else replace(message, parts=parts)

    def _part(self, part: Part) -> Part:
        if isinstance(part, Call):
            return self._call(part)
        return self._result(part) if isinstance(part, Result) else part

    def _call(self, call: Call) -> Call:
        named = replace(call, id=self._unique(call.id)) if not call.id or call.id in self._ids else call
        self._ids.add(named.id)
        if call.id:
            self._wait_by_id(call.id, named)
        for bare in (False,) if call.id else (False, True):
            for name in ("", call.name):
                self._round.setdefault((bare, name), deque()).append(named)
        return named

    def _wait_by_id(self, id: str, call: Call) -> None:
        """Wait for a result; a call of an earlier round with the same id gets none."""
        waiting = self._by_id.get(id)
        if waiting is None or not self._round.get((False, "")):
            waiting = self._by_id[id] = deque()
        waiting.append(call)

    def _result(self, result: Result) -> Result:
        call = self._find(result)
        if call is None:
            return result
        self._answered.add(call.id)
        known = result.call_id == call.id and result.name == call.name
        return result if known else replace(result, call_id=call.id, name=call.name)

    def _find(self, result: Result) -> Call | None:
        """Find the call by its id; if either side has none, by name, else by position."""
        keys = [(True, result.name), (False, result.name), (True, ""), (False, "")]
        if result.call_id:
            keys = [(True, result.name), (True, "")]
            if (call := self._first(self._by_id.get(result.call_id))) is not None:
                return call
        return next(filter(None, (self._first(self._round.get(key)) for key in keys)), None)

    def _first(self, calls: deque[Call] | None) -> Call | None:
        while calls:
            if calls[0].id not in self._answered:
                return calls[0]
            calls.popleft()
        return None

    def _unique(self, id: str) -> str:
        while (name := f"{id or 'call'}_{self._number}") in self._ids or name in self._taken:
            self._number += 1
        return name


def _calls_anything(messages: Iterable[Message]) -> bool:
    """Return whether there is a call or a result: only those have something to link and to order."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, Call | Result):
                return True
    return False


def _parts(messages: Iterable[Message]) -> Iterator[Part]:
    for message in messages:
        yield from message.parts


def _with_results(run: list[Message], answers: dict[str, Result]) -> list[Message]:
    """Return adjacent assistant messages as one, followed by the results of all their calls."""
    calls = [part for part in _parts(run) if isinstance(part, Call)]
    if not calls:
        return run
    results = tuple(answers.get(call.id) or _missing(call) for call in calls)
    return [_melted(run), Message(Role.TOOL, results)]


def _melted(run: list[Message]) -> Message:
    """Merge messages into one; text from a separate message after the calls goes before them."""
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


def _without_results(message: Message, answers: dict[str, Result]) -> list[Message]:
    """Remove the results, which are written after their calls; a result of no call becomes user text."""
    parts = tuple(piece for part in message.parts for piece in _unless_used(part, answers))
    if parts == message.parts:
        return [message]
    role = Role.USER if message.role is Role.TOOL else message.role
    return [replace(message, role=role, parts=parts)] if parts else []


def _unless_used(part: Part, answers: dict[str, Result]) -> tuple[Part, ...]:
    if not isinstance(part, Result):
        return (part,)
    if answers.get(part.call_id) is part:
        return ()
    images = [piece for piece in part.content if isinstance(piece, Image)]
    said = "\n".join(part_text(piece) for piece in part.content if not isinstance(piece, Image))
    return (Text(f"[result of {part.name or 'a call'} {part.call_id}]\n{said}"), *images)

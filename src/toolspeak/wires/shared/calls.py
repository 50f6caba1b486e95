"""Tool calls, as all wires need them: their arguments, their ids, and one at a time."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256

from toolspeak.errors import BadJson
from toolspeak.ir.event import ArgsDelta, CallEnded, CallStarted, Event, Failed, Finished
from toolspeak.ir.json import Json
from toolspeak.ir.message import Call, Message, Part, Result
from toolspeak.ir.quirks import IdForm
from toolspeak.ir.request import Request
from toolspeak.text.strict import parse
from toolspeak.wires.shared.json_body import Fields, dump_text

# ---------------------------------------------------------------- arguments
#
# JSON text in the ir; an object, a string or free text on the wires.

FREE_FORM = "input"
"""The one parameter of a custom tool."""


def object_text(arguments: str) -> str:
    """Return the arguments as text of a JSON object.

    Anything but an object is put under the key `arguments`: the client's own check rejects it, and nothing is lost.
    """
    if not arguments.strip():
        return "{}"
    try:
        value = parse(arguments)
    except BadJson:
        return dump_text({"arguments": arguments})
    return arguments if isinstance(value, dict) else dump_text({"arguments": value})


def is_json(text: str) -> bool:
    """Whether arguments are complete JSON."""
    try:
        parse(text)
    except BadJson:
        return False
    return True


def arguments_json(value: Json) -> str:
    """Return arguments as JSON text; they come as an object or as text."""
    if value is None:
        return "{}"
    return value or "{}" if isinstance(value, str) else dump_text(value)


def take_arguments(fields: Fields, key: str = "arguments", accepted: str = "a string of JSON") -> str:
    """Take the arguments of a call in the history; missing or blank ones are an empty object."""
    value = fields.take(key)
    if not isinstance(value, str | dict | None):
        raise fields.bad(key, accepted, value)
    text = arguments_json(value)
    return text if text.strip() else "{}"


def custom_input(arguments: str) -> str:
    """Return the free text of a custom tool's call."""
    try:
        value = parse(arguments)
    except BadJson:
        return arguments
    inner = value.get(FREE_FORM) if isinstance(value, dict) else None
    return inner if isinstance(inner, str) else arguments


def custom_arguments(text: str) -> str:
    """Return the arguments of a custom tool's call."""
    return dump_text({FREE_FORM: text})


# ---------------------------------------------------------------- ids
#
# Clients and upstreams accept different ids (WIRE-6). Every map depends on the conversation alone: the same history
# gives the same ids, so that the upstream's prompt cache still hits.

USABLE = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Ids that every client accepts; kimi-code truncates longer ones to 64 characters."""
_NINE = re.compile(r"[A-Za-z0-9]{9}")
_LONGEST = 40  # OpenAI refuses longer ids in a history


class FreshIds:
    """Gives each call of a response the upstream's id if it is usable, else a fresh one."""

    def __init__(self, request: Request, fresh: Iterator[str]) -> None:
        """Exclude the ids of the conversation; `fresh` yields new ones."""
        self._taken = {id for message in request.messages for part in message.parts for id in _ids_of(part)}
        self._fresh = fresh

    def take(self, wanted: str) -> str:
        """Return an id that no other call of the conversation has."""
        # opencode, cline, goose and Continue fail on a call without an id.
        while not USABLE.fullmatch(wanted) or wanted in self._taken:
            wanted = next(self._fresh)
        self._taken.add(wanted)
        return wanted


def history_calls(messages: Iterable[Message]) -> Iterator[Call]:
    """Yield all calls of a history."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, Call):
                yield part


def with_ids(messages: tuple[Message, ...], form: IdForm) -> tuple[Message, ...]:
    """Rename the ids of calls and results of a paired history to the form that an upstream requires."""
    renamed = id_map(history_calls(messages), form)
    if all(old == new for old, new in renamed.items()):
        return messages
    return tuple(Message(m.role, tuple(_renamed(part, renamed) for part in m.parts), m.vendor) for m in messages)


def id_map(calls: Iterable[Call], form: IdForm) -> dict[str, str]:
    """Map the ids of these calls one to one, in their order."""
    taken: set[str] = set()
    renamed: dict[str, str] = {}
    for number, call in enumerate(calls):
        new = f"functions.{call.name}:{number}" if form is IdForm.KIMI else _hashed(call.id, form, taken)
        taken.add(new)
        renamed[call.id] = new
    return renamed


def _hashed(id: str, form: IdForm, taken: set[str]) -> str:
    legal = _NINE if form is IdForm.MISTRAL else USABLE
    new, tries = id, 0
    while not legal.fullmatch(new) or len(new) > _LONGEST or new in taken:
        digest = sha256(f"{tries}:{id}".encode("utf-8", "replace")).hexdigest()
        new = digest[:9] if form is IdForm.MISTRAL else f"call_{digest[:24]}"
        tries += 1
    return new


def _ids_of(part: Part) -> tuple[str, ...]:
    if isinstance(part, Call):
        return (part.id,)
    return (part.call_id,) if isinstance(part, Result) else ()


def _renamed(part: Part, renamed: dict[str, str]) -> Part:
    if isinstance(part, Call):
        return replace(part, id=renamed[part.id])
    if isinstance(part, Result):
        return replace(part, call_id=renamed.get(part.call_id, part.call_id))
    return part


# ---------------------------------------------------------------- sequence


class CallSequencer:
    """Orders the events of one turn, for protocols and clients that allow only one open block.

        start a, args a, start b, args b, args a, end a, end b
            ->  start a, args a, args a, end a, start b, args b, end b

    The first open call streams on; the events of the others wait until it has ended.
    """

    def __init__(self) -> None:
        """Start without an open call."""
        self._open = ""
        self._waiting: deque[list[Event]] = deque()
        self._of_call: dict[str, list[Event]] = {}

    def feed(self, event: Event) -> list[Event]:
        """Return the events that may leave now."""
        if not self._open and not isinstance(event, CallStarted):
            return [event]
        if isinstance(event, Finished | Failed):
            return [*self._all(), event]
        if isinstance(event, CallStarted):
            return self._started(event)
        if isinstance(event, ArgsDelta | CallEnded) and event.id == self._open:
            return [event, *self._next()] if isinstance(event, CallEnded) else [event]
        self._wait(event)
        return []

    def rest(self) -> list[Event]:
        """Drop the open call, and return the waiting events, without calls that have not ended (P3)."""
        waiting, self._waiting = self._waiting, deque()
        self._open, self._of_call = "", {}
        return [event for some in waiting if not _is_unfinished(some) for event in some]

    def _started(self, event: CallStarted) -> list[Event]:
        if not self._open:
            self._open = event.id
            return [event]
        self._of_call[event.id] = [event]
        self._waiting.append(self._of_call[event.id])
        return []

    def _wait(self, event: Event) -> None:
        if isinstance(event, ArgsDelta | CallEnded):
            if event.id in self._of_call:
                self._of_call[event.id].append(event)
        else:
            self._waiting.append([event])

    def _next(self) -> list[Event]:
        """Return the waiting events, up to and including those of the next call that is still open."""
        self._open = ""
        out: list[Event] = []
        while self._waiting and not self._open:
            some = self._waiting.popleft()
            out += some
            first = some[0]
            if isinstance(first, CallStarted):
                del self._of_call[first.id]
                self._open = first.id if _is_unfinished(some) else ""
        return out

    def _all(self) -> list[Event]:
        out: list[Event] = []
        while self._open:
            out += self._next()
        return out


def _is_unfinished(some: list[Event]) -> bool:
    """Whether these are the events of a call that has not ended."""
    return isinstance(some[0], CallStarted) and not isinstance(some[-1], CallEnded)

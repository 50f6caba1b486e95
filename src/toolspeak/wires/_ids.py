"""Ids of calls: those that a client or an upstream accepts, and maps to them (WIRE-6).

Every map depends on the conversation alone: the same history gives the same ids, so that a prompt cache still hits.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256

from toolspeak.ir.message import Call, Message, Part, Result
from toolspeak.ir.quirks import IdForm
from toolspeak.ir.request import Request

USABLE = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every client takes; kimi-code cuts ids at 64 characters."""
_NINE = re.compile(r"[A-Za-z0-9]{9}")
_LONGEST = 40  # OpenAI refuses longer ids in a history


class FreshIds:
    """Gives each call of a response the upstream's id where it can be used, and else a fresh one."""

    def __init__(self, request: Request, fresh: Iterator[str]) -> None:
        """Take the ids that are in use already, and a source of new ones."""
        self._taken = {id for message in request.messages for part in message.parts for id in _ids_of(part)}
        self._fresh = fresh

    def take(self, wanted: str) -> str:
        """Return an id that no other call of the conversation has."""
        while not USABLE.fullmatch(wanted) or wanted in self._taken:
            wanted = next(self._fresh)
        self._taken.add(wanted)
        return wanted


def calls_in(messages: Iterable[Message]) -> Iterator[Call]:
    """Yield all calls of a history."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, Call):
                yield part


def with_ids(messages: tuple[Message, ...], form: IdForm) -> tuple[Message, ...]:
    """Give the calls and results of a paired history the ids that an upstream wants."""
    renamed = id_map(calls_in(messages), form)
    if all(old == new for old, new in renamed.items()):
        return messages
    return tuple(Message(m.role, tuple(_renamed(part, renamed) for part in m.parts), m.vendor) for m in messages)


def id_map(calls: Iterable[Call], form: IdForm) -> dict[str, str]:
    """Map the ids of these calls, one to one, in their order."""
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

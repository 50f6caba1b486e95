"""The calls that were answered just now, at the end of a history.

A small model that gets a result often writes the same call again, for ever. It is asked once whether it meant to.
"""

from dataclasses import dataclass
from itertools import takewhile

from toolspeak.errors import BadJson
from toolspeak.ir.json import Json
from toolspeak.ir.message import Call, Message, Result, Role
from toolspeak.text.strict import parse


@dataclass(frozen=True, slots=True)
class Answered:
    """Calls that have a result; a call that failed may well be tried again."""

    calls: tuple[Call, ...] = ()

    def has(self, name: str, arguments: str) -> bool:
        """Return whether this call is one of them, however its JSON is written."""
        return any(call.name == name and _value(call.arguments) == _value(arguments) for call in self.calls)


NOTHING_ANSWERED = Answered()


def answered_calls(messages: tuple[Message, ...]) -> Answered:
    """Return the calls whose results end a history."""
    behind = list(takewhile(lambda message: message.role is Role.TOOL, reversed(messages)))
    before = messages[: len(messages) - len(behind)]
    if not behind or not before or before[-1].role is not Role.ASSISTANT:
        return NOTHING_ANSWERED
    results = [part for message in behind for part in message.parts if isinstance(part, Result)]
    fine = {result.call_id for result in results if not result.is_error}
    return Answered(tuple(part for part in before[-1].parts if isinstance(part, Call) and part.id in fine))


def _value(arguments: str) -> Json:
    try:
        return parse(arguments)
    except BadJson:
        return arguments

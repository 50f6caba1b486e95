"""What a turn of a run called, or tried to call.

    Turn(Text, Call(id "1"), CallRejected)   ->   (Call(id "1"), None), (Call(id "rejected_0"), its error)

Each call of a run has an id of its own, by which people allow it and results are paired; ids that servers give twice
are made different. What may not run is a call too, whose result says why: so the model learns of it. A call that would
end the run, beside others whose results the model has not seen, is a guess: it has to come again.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from toolspeak.engine.trouble import error_result
from toolspeak.errors import BadJson
from toolspeak.ir.event import CallRejected
from toolspeak.ir.message import Call, Message, Result, Text
from toolspeak.ir.turn import Turn
from toolspeak.text.strict import parse

Called: TypeAlias = tuple[Call, Result | None]
"""A call, and its error if it may not run."""
_NAMELESS = "unknown"
_TOO_EARLY = "Not yet: look at the results of the other calls first, then call it again."


class Calls:
    """Reads the calls of one run's turns."""

    def __init__(self, messages: Iterable[Message], ending: Container[str] = ()) -> None:
        """Take what was said before the run: its ids are taken; and the tools whose call ends it."""
        self._ending: Final = ending
        parts = (part for message in messages for part in message.parts)
        self._taken: Final = {part.id for part in parts if isinstance(part, Call)}

    def of(self, turn: Turn) -> tuple[Called, ...]:
        """Return the calls of a turn, in its order."""
        called = tuple(self._called(turn))
        if all(call.name in self._ending for call, _ in called):
            return called
        return tuple(
            self._early(call) if call.name in self._ending and not error else (call, error) for call, error in called
        )

    def _early(self, call: Call) -> Called:
        return call, Result(call.id, (Text(_TOO_EARLY),), call.name, is_error=True)

    def _called(self, turn: Turn) -> Iterator[Called]:
        for part in turn.parts:
            if isinstance(part, Call):
                id = self._fresh(part.id)
                yield (part if id == part.id else replace(part, id=id)), None
            elif isinstance(part, CallRejected):
                yield self._rejected(part)

    def _rejected(self, part: CallRejected) -> Called:
        arguments = part.raw if _is_object(part.raw) else "{}"
        call = Call(self._fresh("rejected"), part.complaint.name or _NAMELESS, arguments, raw=part.raw)
        return call, replace(error_result(part.complaint, call.id), name=call.name)

    def _fresh(self, wanted: str) -> str:
        """Return the id, if no other call has it, or one like it."""
        id, number = wanted, 0
        while not id or id in self._taken:
            id, number = f"{wanted or 'call'}_{number}", number + 1
        self._taken.add(id)
        return id


def _is_object(text: str) -> bool:
    try:
        return isinstance(parse(text), dict)
    except BadJson:
        return False

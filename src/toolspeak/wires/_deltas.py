"""Fragments of native tool calls, merged as real servers send them.

Names come repeated in full, or in pieces; indices are missing, or all zero; arguments are sent again at the end, or two
calls share one index. Neither `=` nor `+=` is right for all of them: what is already complete decides.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from toolspeak.ir.json import Json, JsonObject
from toolspeak.text.jsonspan import JsonSpan, Status


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A call as the server sent it; nothing in it is checked."""

    name: str
    arguments: str
    native_id: str = ""


@dataclass(slots=True)
class _Growing:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])


class CallDeltas:
    """Takes the fragments of one response."""

    def __init__(self, names: Container[str]) -> None:
        """`names` are the tools' names: a name that is one of them is complete."""
        self._names = names
        self._calls: list[_Growing] = []
        self._at_index: dict[int, _Growing] = {}

    def feed(self, fragments: Iterable[Json]) -> None:
        """Take the `tool_calls` of one delta."""
        for fragment in fragments:
            if isinstance(fragment, dict):
                self._merge(fragment)

    def calls(self) -> list[NativeCall]:
        """Return the calls so far, those that shared an index told apart."""
        return [
            NativeCall(call.name, arguments, call.id if number == 0 else "")
            for call in self._calls
            for number, arguments in enumerate(distinct_values("".join(call.pieces)))
        ]

    def _merge(self, fragment: JsonObject) -> None:
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        name = function.get("name")
        call = self._call_of(fragment, named=bool(name))
        if isinstance(name, str):
            self._name(call, name)
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.pieces.append(arguments)

    def _call_of(self, fragment: JsonObject, *, named: bool) -> _Growing:
        index, id = fragment.get("index"), fragment.get("id")
        id = id if isinstance(id, str) else ""
        known = next((call for call in self._calls if id and call.id == id), None)
        if known is not None:
            return known
        last = self._calls[-1] if self._calls else None
        if isinstance(index, int) and index in self._at_index and not (id and self._at_index[index].id):
            return self._at_index[index]
        if last is not None and not id and not named and (index is None or not last.pieces or last.pieces == [""]):
            return last  # a nameless entry right behind one that has only a name is its continuation
        return self._new(id, index)

    def _new(self, id: str, index: Json) -> _Growing:
        call = _Growing(id)
        self._calls.append(call)
        if isinstance(index, int):
            self._at_index[index] = call
        return call

    def _name(self, call: _Growing, piece: str) -> None:
        if piece != call.name and call.name not in self._names:
            call.name += piece


def distinct_values(text: str) -> list[str]:
    """Split JSON values that stand one behind the other; one that is sent again counts once.

    A text that is not just whole values is left as it is: its complaint comes later.
    """
    values: list[str] = []
    pos = 0
    text = text.strip()
    while pos < len(text):
        span = JsonSpan()
        end = span.feed(text, pos)
        if span.status is not Status.DONE:
            return [text]
        value = text[pos:end].strip()
        if not values or values[-1] != value:
            values.append(value)
        pos = end
    return values or [text]

"""The output items of one answer, as they grow.

Servers leave events out: some send only whole items, some only the response at the end, some no `added`. So each item
is told from whatever comes first, and what comes again is only used for what was missing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from toolspeak.errors import BadFrame
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import ArgsDelta, CallEnded, CallRejected, CallStarted, Event, ReasoningDelta, TextDelta
from toolspeak.ir.json import Json
from toolspeak.text.jsonspan import JsonSpan, Status
from toolspeak.wires._arguments import FREE_FORM
from toolspeak.wires._body import quoted
from toolspeak.wires._deltas import MAX_SIZE
from toolspeak.wires._ids import FreshIds
from toolspeak.wires._loose import listed, mapped, string
from toolspeak.wires.openai_responses.names import UpstreamNames
from toolspeak.wires.openai_responses.words import CUSTOM_CALL, FUNCTION_CALL, MESSAGE, REASONING, SEARCH_CALL

_ITEM_SIZE = 1024  # what an item counts for, whatever is in it: a bound for their number
_STRING = msgspec.json.Decoder(str).decode
_FREE_HEAD = f'{{"{FREE_FORM}":"'
_FREE_TAIL = '"}'
_BLANK_LINE = "\n\n"
_CALLS: Final = (FUNCTION_CALL, CUSTOM_CALL, SEARCH_CALL)


class ItemBody(msgspec.Struct, gc=False):
    """An item as the upstream writes it. Servers put anything anywhere: types are looked at later."""

    type: Any = None
    id: Any = None
    call_id: Any = None
    name: Any = None
    namespace: Any = None
    arguments: msgspec.Raw = msgspec.Raw()
    """Text, or for a search an object: its text is kept to the byte."""
    input: Any = None
    content: Any = None
    summary: Any = None
    encrypted_content: Any = None
    status: Any = None
    execution: Any = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event belongs: the item's id and its index, of which either may be missing or wrong."""

    id: Json = None
    index: Json = None


@dataclass(slots=True, eq=False)
class _Item:
    kind: str
    said: bool = False
    done: bool = False
    """Its own end has come."""
    told: bool = False
    """Its arguments were told as a whole."""
    cut: bool = False
    native_id: str = ""
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    ended: bool = False

    @property
    def is_whole(self) -> bool:
        """Return whether the arguments are complete; free text has no end of its own."""
        text = "".join(self.pieces)
        if self.kind == CUSTOM_CALL or not text.strip():
            return self.done or self.told
        span = JsonSpan()
        span.feed(text)
        return span.status is Status.DONE


class GrowingItems:
    """Takes what is said about the items of one response, and tells the events that follow from it."""

    def __init__(self, names: UpstreamNames, ids: FreshIds) -> None:
        """Take the names of the tools, and the ids of the conversation."""
        self._names = names
        self._ids = ids
        self._events: list[Event] = []
        self._items: list[_Item] = []
        self._by_id: dict[str, _Item] = {}
        self._by_call: dict[str, _Item] = {}
        self._at: dict[int, _Item] = {}
        self._thought: tuple[int, str, Json] | None = None
        self._size = 0

    @property
    def any(self) -> bool:
        """Return whether a call was delivered."""
        return any(item.ended and item.id for item in self._items if item.kind in _CALLS)

    def told(self) -> list[Event]:
        """Return what follows from all that was said since the last time."""
        events, self._events = self._events, []
        return events

    # ---------------------------------------------------------------- what is said

    def added(self, body: ItemBody, place: Place) -> None:
        """Begin an item."""
        again = self._by_id.get(string(body.id))
        if not isinstance(body.type, str) or (again is not None and again.kind == body.type):
            return
        item = self._new(body.type, Place(body.id, place.index), body.call_id)
        if item.kind in (FUNCTION_CALL, CUSTOM_CALL):
            self._start(item, body)

    def text(self, place: Place, text: str) -> None:
        """Go on with visible text."""
        item = self._item(MESSAGE, place)
        item.said = True
        self._thought = None
        self._events.append(TextDelta(text))

    def thought(self, place: Place, text: str, part: str, index: Json) -> None:
        """Go on with reasoning, in one part of its item."""
        item = self._item(REASONING, place)
        item.said = True
        self._think(item, text, part, index)

    def arguments(self, kind: str, place: Place, text: str) -> None:
        """Go on with the arguments of a call."""
        item = self._item(kind, place)
        if not item.done and not item.ended:
            self._grow(item, text)

    def arguments_done(self, kind: str, place: Place, text: str) -> None:
        """Take the arguments of a call as a whole, most of them again."""
        item = self._find(place) or self._new(kind, place)
        if item.kind == kind and not (item.done or item.told or item.ended):
            item.told = True
            self._complete(item, text)

    def done(self, body: ItemBody, place: Place) -> None:
        """Take an item that is complete."""
        if not isinstance(body.type, str):
            return
        place = Place(body.id, place.index)
        item = self._match(body, place)
        if item is None or (item.done and not self._is_same(item, body)):
            item = self._new(body.type, place, body.call_id)
        if not item.done:
            item.done = True
            self._told(item, body)

    def all_done(self, bodies: Iterable[ItemBody]) -> None:
        """Take the items of the whole response, and tell those that were never told."""
        before = set(self._items)
        seen = {item.kind for item in before}
        for index, body in enumerate(bodies):
            place = Place(body.id, index)
            known = self._match(body, place)
            unseen = isinstance(body.type, str) and (body.type not in seen or bool(string(body.call_id)))
            if unseen if known is None else not (known.done and known in before):
                self.done(body, place)

    def finish(self, problem: Problem | None) -> list[Event]:
        """End the calls that are still open; after a `problem`, reject those that it may have cut (P3)."""
        for item in self._items:
            if item.kind not in _CALLS or item.ended or not (item.id or item.pieces):
                continue
            sound = not item.cut and item.id and (item.is_whole or (item.done and problem is None))
            if sound and problem is not Problem.DISCONNECTED:
                self._end(item)
            else:
                item.ended, item.id = True, ""
                self._events.append(
                    CallRejected(Complaint(problem or Problem.TRUNCATED, item.name or None), "".join(item.pieces))
                )
        return self.told()

    # ---------------------------------------------------------------- which item

    def _item(self, kind: str, place: Place) -> _Item:
        found = self._find(place)
        if found is None or found.kind != kind or (found.done and string(place.id) not in self._by_id):
            return self._new(kind, place)
        return found

    def _find(self, place: Place) -> _Item | None:
        if isinstance(place.id, str) and (found := self._by_id.get(place.id)) is not None:
            return found
        if isinstance(place.index, int):
            return self._at.get(place.index)
        return self._items[-1] if self._items and place.id is None else None

    def _match(self, body: ItemBody, place: Place) -> _Item | None:
        """Find the item that a whole one is about; ids change on some servers, that of a call never."""
        call_id, same = string(body.call_id), self._by_id.get(string(body.id))
        if same is not None and same.kind == body.type:
            return same
        if call_id in self._by_call:
            return self._by_call[call_id]
        found = self._find(place)
        other = found is None or found.kind != body.type or (call_id and found.native_id)
        return None if other else found

    def _is_same(self, item: _Item, body: ItemBody) -> bool:
        """Tell an item that comes again from another one at the same index, or of the same call id."""
        id = string(body.id)
        return self._by_id.get(id) is item if id else item.native_id == string(body.call_id) != ""

    def _new(self, kind: str, place: Place, call_id: Json = None) -> _Item:
        self._count(_ITEM_SIZE)
        item = _Item(kind)
        self._items.append(item)
        if isinstance(place.id, str):
            self._by_id[place.id] = item
        if isinstance(place.index, int):
            self._at[place.index] = item
        self._identify(item, call_id)
        return item

    def _identify(self, item: _Item, call_id: Json) -> None:
        if item.kind in _CALLS and not item.native_id and (native_id := string(call_id)):
            item.native_id = native_id
            self._by_call.setdefault(native_id, item)

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > MAX_SIZE:
            raise BadFrame(f"the calls of one response have {self._size} characters, at most {MAX_SIZE} are read")

    # ---------------------------------------------------------------- whole items

    def _told(self, item: _Item, body: ItemBody) -> None:
        if item.kind == MESSAGE and not item.said:
            self._events += [TextDelta(text) for text in _texts(body.content, "text", "refusal")]
            self._thought = None
        elif item.kind == REASONING:
            self._reasoned(item, body)
        elif item.kind in (FUNCTION_CALL, CUSTOM_CALL):
            self._called(item, body)
        elif item.kind == SEARCH_CALL and body.execution != "server":
            self._searched(item, body)

    def _reasoned(self, item: _Item, body: ItemBody) -> None:
        for part in ("summary", "content") if not item.said else ():
            for index, text in enumerate(_texts(getattr(body, part), "text")):
                self._think(item, text, part, index)
        if isinstance(body.encrypted_content, str) and body.encrypted_content:
            self._thought = None
            self._events.append(ReasoningDelta("", body.encrypted_content))

    def _think(self, item: _Item, text: str, part: str, index: Json) -> None:
        """Tell reasoning; between two parts of it stands a blank line."""
        place = (id(item), part, index if isinstance(index, int) else 0)
        gap = _BLANK_LINE if self._thought not in (None, place) else ""
        self._thought = place
        self._events.append(ReasoningDelta(gap + text))

    def _called(self, item: _Item, body: ItemBody) -> None:
        self._start(item, body)
        self._complete(item, string(body.input) if item.kind == CUSTOM_CALL else _arguments(body.arguments))
        item.cut = body.status == "incomplete"
        if not item.cut and item.id and item.is_whole:
            self._end(item)

    def _searched(self, item: _Item, body: ItemBody) -> None:
        """Tell a search, which always comes whole."""
        self._identify(item, body.call_id)
        item.cut = body.status == "incomplete"
        self._open(item, self._names.search)
        self._grow(item, _arguments(body.arguments))
        if not item.cut:
            self._end(item)

    # ---------------------------------------------------------------- calls

    def _start(self, item: _Item, body: ItemBody) -> None:
        self._identify(item, body.call_id)
        name = string(body.name)
        if name and not item.id:
            self._open(item, self._names.back(string(body.namespace), name))

    def _open(self, item: _Item, name: str) -> None:
        self._thought = None
        item.name, item.id = name, self._ids.take(item.native_id)
        self._events.append(CallStarted(item.id, name, item.native_id))
        if item.pieces:  # they came before the name
            self._say(item, "".join(item.pieces), first=True)

    def _grow(self, item: _Item, text: str) -> None:
        if text:
            self._count(len(text))
            first = not item.pieces
            item.pieces.append(text)
            if item.id:
                self._say(item, text, first=first)

    def _say(self, item: _Item, text: str, *, first: bool) -> None:
        if item.kind == CUSTOM_CALL:
            text = (_FREE_HEAD if first else "") + quoted(text)[1:-1].decode()
        self._events.append(ArgsDelta(item.id, text))

    def _complete(self, item: _Item, whole: str) -> None:
        """Add what the pieces left out; where they say something else, they hold: they are told already."""
        said = "".join(item.pieces)
        if whole.startswith(said):
            self._grow(item, whole[len(said) :])

    def _end(self, item: _Item) -> None:
        if item.kind == CUSTOM_CALL:
            self._events.append(ArgsDelta(item.id, _FREE_TAIL if item.pieces else _FREE_HEAD + _FREE_TAIL))
        elif not "".join(item.pieces).strip():
            self._events.append(ArgsDelta(item.id, "{}"))
        item.ended = True
        self._events.append(CallEnded(item.id))


def _texts(parts: Json, *keys: str) -> Iterator[str]:
    """Yield the texts of the parts of an item."""
    for part in listed(parts):
        body = mapped(part)
        text = next((string(body[key]) for key in keys if body.get(key)), "")
        if text:
            yield text


def _arguments(raw: msgspec.Raw) -> str:
    text = bytes(raw)
    if text.startswith(b'"'):
        return _STRING(text)
    return "" if text in (b"", b"null") else text.decode()

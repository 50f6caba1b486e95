"""Reads a Responses answer, streamed or whole, as events.

A whole answer is read like the response of the last event, in a stream that had no other events.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec

from toolspeak.errors import BadFrame
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
)
from toolspeak.ir.json import Json, as_list, as_object, as_string
from toolspeak.ir.request import Request
from toolspeak.text.jsonspan import JsonSpan, SpanStatus
from toolspeak.text.sse import SseDecoder, SseFrame
from toolspeak.wires.openai_responses.items import CUSTOM_CALL, FUNCTION_CALL, MESSAGE, REASONING, SEARCH_CALL
from toolspeak.wires.openai_responses.tools import UpstreamNames
from toolspeak.wires.shared.answer_decoder import AnswerDecoder, AnswerState, read_counts
from toolspeak.wires.shared.call_deltas import MAX_SIZE
from toolspeak.wires.shared.calls import FREE_FORM, FreshIds
from toolspeak.wires.shared.failures import CUT_OFF, read_failure
from toolspeak.wires.shared.json_body import quote

# ---------------------------------------------------------------- output items
#
# Servers leave events out: some send only whole items, some only the response at the end, some no `added`. So each item
# is read from whatever comes first, and a repetition only fills in what was missing.

_ITEM_SIZE = 1024  # added for each item, so that the limit on size also limits the number of items
_STRING = msgspec.json.Decoder(str).decode
_FREE_HEAD = f'{{"{FREE_FORM}":"'
_FREE_TAIL = '"}'
_BLANK_LINE = "\n\n"
_CALLS: Final = (FUNCTION_CALL, CUSTOM_CALL, SEARCH_CALL)


class ItemBody(msgspec.Struct, gc=False):
    """An item as the upstream writes it. Fields have any type; types are checked on use."""

    type: Any = None
    id: Any = None
    call_id: Any = None
    name: Any = None
    namespace: Any = None
    arguments: msgspec.Raw = msgspec.Raw()
    """A string, or for a search an object, whose JSON is kept byte for byte."""
    input: Any = None
    content: Any = None
    summary: Any = None
    encrypted_content: Any = None
    status: Any = None
    execution: Any = None


@dataclass(frozen=True, slots=True)
class ItemPosition:
    """The item of an event: its id and its index. Servers leave either out, or send a wrong one."""

    id: Json = None
    index: Json = None


@dataclass(slots=True, eq=False)
class _Item:
    kind: str
    said: bool = False
    done: bool = False
    """Its `output_item.done` has arrived."""
    told: bool = False
    """Its arguments have arrived as a whole."""
    cut: bool = False
    native_id: str = ""
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    ended: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are complete; free text has no end marker, so it needs the item's end."""
        text = "".join(self.pieces)
        if self.kind == CUSTOM_CALL or not text.strip():
            return self.done or self.told
        span = JsonSpan()
        span.feed(text)
        return span.status is SpanStatus.DONE


class OutputItems:
    """Turns the events about the items of one response into ours."""

    def __init__(self, names: UpstreamNames, ids: FreshIds) -> None:
        """Map names back with `names`, and ids with `ids`."""
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
        """Whether a call was delivered."""
        return any(item.ended and item.id for item in self._items if item.kind in _CALLS)

    def told(self) -> list[Event]:
        """Return the events since the last call."""
        events, self._events = self._events, []
        return events

    # ---------------------------------------------------------------- events of the upstream

    def added(self, body: ItemBody, place: ItemPosition) -> None:
        """Start an item."""
        again = self._by_id.get(as_string(body.id))
        if not isinstance(body.type, str) or (again is not None and again.kind == body.type):
            return
        item = self._new(body.type, ItemPosition(body.id, place.index), body.call_id)
        if item.kind in (FUNCTION_CALL, CUSTOM_CALL):
            self._start(item, body)

    def text(self, place: ItemPosition, text: str) -> None:
        """Add visible text."""
        item = self._item(MESSAGE, place)
        item.said = True
        self._thought = None
        self._events.append(TextDelta(text))

    def thought(self, place: ItemPosition, text: str, part: str, index: Json) -> None:
        """Add reasoning, in one part of its item."""
        item = self._item(REASONING, place)
        item.said = True
        self._think(item, text, part, index)

    def arguments(self, kind: str, place: ItemPosition, text: str) -> None:
        """Add to the arguments of a call."""
        item = self._item(kind, place)
        if not item.done and not item.ended:
            self._grow(item, text)

    def arguments_done(self, kind: str, place: ItemPosition, text: str) -> None:
        """Take the complete arguments of a call, which repeat the pieces."""
        item = self._find(place) or self._new(kind, place)
        if item.kind == kind and not (item.done or item.told or item.ended):
            item.told = True
            self._complete(item, text)

    def done(self, body: ItemBody, place: ItemPosition) -> None:
        """Take a complete item."""
        if not isinstance(body.type, str):
            return
        place = ItemPosition(body.id, place.index)
        item = self._match(body, place)
        if item is None or (item.done and not self._is_same(item, body)):
            item = self._new(body.type, place, body.call_id)
        if not item.done:
            item.done = True
            self._told(item, body)

    def all_done(self, bodies: Iterable[ItemBody]) -> None:
        """Take the items of the final response, and emit those that no event has reported."""
        before = set(self._items)
        seen = {item.kind for item in before}
        for index, body in enumerate(bodies):
            place = ItemPosition(body.id, index)
            known = self._match(body, place)
            unseen = isinstance(body.type, str) and (body.type not in seen or bool(as_string(body.call_id)))
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

    # ---------------------------------------------------------------- matching items

    def _item(self, kind: str, place: ItemPosition) -> _Item:
        found = self._find(place)
        if found is None or found.kind != kind or (found.done and as_string(place.id) not in self._by_id):
            return self._new(kind, place)
        return found

    def _find(self, place: ItemPosition) -> _Item | None:
        if isinstance(place.id, str) and (found := self._by_id.get(place.id)) is not None:
            return found
        if isinstance(place.index, int):
            return self._at.get(place.index)
        return self._items[-1] if self._items and place.id is None else None

    def _match(self, body: ItemBody, place: ItemPosition) -> _Item | None:
        """Find the known item for a complete one. Item ids change on some servers; call ids never do."""
        call_id, same = as_string(body.call_id), self._by_id.get(as_string(body.id))
        if same is not None and same.kind == body.type:
            return same
        if call_id in self._by_call:
            return self._by_call[call_id]
        found = self._find(place)
        other = found is None or found.kind != body.type or (call_id and found.native_id)
        return None if other else found

    def _is_same(self, item: _Item, body: ItemBody) -> bool:
        """Whether a body is the same item again, not another one at the same index or with the same call id."""
        id = as_string(body.id)
        return self._by_id.get(id) is item if id else item.native_id == as_string(body.call_id) != ""

    def _new(self, kind: str, place: ItemPosition, call_id: Json = None) -> _Item:
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
        if item.kind in _CALLS and not item.native_id and (native_id := as_string(call_id)):
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
        """Emit reasoning, with a blank line between two parts of it."""
        place = (id(item), part, index if isinstance(index, int) else 0)
        gap = _BLANK_LINE if self._thought not in (None, place) else ""
        self._thought = place
        self._events.append(ReasoningDelta(gap + text))

    def _called(self, item: _Item, body: ItemBody) -> None:
        self._start(item, body)
        self._complete(item, as_string(body.input) if item.kind == CUSTOM_CALL else _arguments(body.arguments))
        item.cut = body.status == "incomplete"
        if not item.cut and item.id and item.is_whole:
            self._end(item)

    def _searched(self, item: _Item, body: ItemBody) -> None:
        """Emit a search, which always comes whole."""
        self._identify(item, body.call_id)
        item.cut = body.status == "incomplete"
        self._open(item, self._names.search)
        self._grow(item, _arguments(body.arguments))
        if not item.cut:
            self._end(item)

    # ---------------------------------------------------------------- calls

    def _start(self, item: _Item, body: ItemBody) -> None:
        self._identify(item, body.call_id)
        name = as_string(body.name)
        if name and not item.id:
            self._open(item, self._names.back(as_string(body.namespace), name))

    def _open(self, item: _Item, name: str) -> None:
        self._thought = None
        item.name, item.id = name, self._ids.take(item.native_id)
        self._events.append(CallStarted(item.id, name, item.native_id))
        if item.pieces:  # arguments that came before the name
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
            text = (_FREE_HEAD if first else "") + quote(text)[1:-1].decode()
        self._events.append(ArgsDelta(item.id, text))

    def _complete(self, item: _Item, whole: str) -> None:
        """Emit the arguments that the pieces left out. Pieces that differ are kept: they were emitted already."""
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
    for part in as_list(parts):
        body = as_object(part)
        text = next((as_string(body[key]) for key in keys if body.get(key)), "")
        if text:
            yield text


def _arguments(raw: msgspec.Raw) -> str:
    text = bytes(raw)
    if text.startswith(b'"'):
        return _STRING(text)
    return "" if text in (b"", b"null") else text.decode()


class _TextEvent(msgspec.Struct, gc=False):
    """The fields of text deltas, which are most of a stream: no other field is parsed."""

    type: Any = None
    delta: Any = None
    item_id: Any = None
    output_index: Any = None


class _Event(msgspec.Struct, gc=False):
    type: Any = None
    delta: Any = None
    item_id: Any = None
    output_index: Any = None
    content_index: Any = None
    summary_index: Any = None
    item: msgspec.Raw = msgspec.Raw()
    response: msgspec.Raw = msgspec.Raw()
    arguments: Any = None
    input: Any = None
    error: Any = None


class _Response(msgspec.Struct, gc=False):
    status: Any = None
    output: list[ItemBody] | None = None
    usage: Any = None
    incomplete_details: Any = None
    error: Any = None


_TEXT_EVENT = msgspec.json.Decoder(_TextEvent).decode
_EVENT = msgspec.json.Decoder(_Event).decode
_ITEM = msgspec.json.Decoder(ItemBody).decode
_RESPONSE = msgspec.json.Decoder(_Response).decode
_TEXT: Final = "response.output_text.delta"
_FAILED: Final = ("failed", "cancelled")
_ENDS: Final = {
    "response.completed": "completed",
    "response.done": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
_UNFINISHED: Final = ("in_progress", "queued")


class _Reader:
    """Reads one answer."""

    def __init__(self, request: Request, ids: Iterator[str]) -> None:
        self._items = items = OutputItems(UpstreamNames(request), FreshIds(request, ids))
        self.answer = AnswerState(items, usage_of)
        self._goes_on: str | None = None
        """The type of the last event, if it was a text delta."""
        self._place = ItemPosition()
        """The item of the last text delta."""
        self._on: dict[str, Callable[[_Event], None]] = {
            _TEXT: self._text,
            "response.refusal.delta": self._text,
            "response.reasoning_summary_text.delta": self._summary,
            "response.reasoning_text.delta": self._thought,
            "response.output_item.added": partial(self._item, items.added),
            "response.output_item.done": partial(self._item, items.done),
            "response.function_call_arguments.delta": partial(self._piece, FUNCTION_CALL),
            "response.function_call_arguments.done": self._arguments_done,
            "response.custom_tool_call_input.delta": partial(self._piece, CUSTOM_CALL),
            "response.custom_tool_call_input.done": self._input_done,
        }

    def whole(self, body: bytes, events: list[Event]) -> None:
        """Read a whole answer."""
        self._ended("", _RESPONSE(body), body, events)

    def frame(self, frame: SseFrame, events: list[Event]) -> None:
        """Read one event; a text delta for the same item as the last one is the hot path."""
        if frame.event == self._goes_on:
            event = _TEXT_EVENT(frame.data)
            text, place = event.delta, self._place
            there = event.item_id == place.id and event.output_index == place.index
            if there and type(text) is str and text and event.type == _TEXT:
                events.append(TextDelta(text))
                return
        self._other(frame, events)

    def _other(self, frame: SseFrame, events: list[Event]) -> None:
        data = frame.data
        if data in ("", "[DONE]"):
            return
        self._goes_on = None
        event = _EVENT(data)
        kind = event.type if isinstance(event.type, str) else frame.event
        if (on := self._on.get(kind)) is not None:
            on(event)
            events += self._items.told()
        elif kind in _ENDS:
            told = bytes(event.response)
            self._ended(_ENDS[kind], _RESPONSE(told) if told else _Response(), data.encode(), events)
        elif kind == "error" or (event.error is not None and not kind.startswith("response.")):
            self.answer.fail(read_failure(200, data.encode()), events)

    # ---------------------------------------------------------------- events

    def _text(self, event: _Event) -> None:
        if event.delta and isinstance(event.delta, str):
            self._goes_on, self._place = _TEXT, _place(event)
            self._items.text(self._place, event.delta)

    def _summary(self, event: _Event) -> None:
        if event.delta and isinstance(event.delta, str):
            self._items.thought(_place(event), event.delta, "summary", event.summary_index)

    def _thought(self, event: _Event) -> None:
        if event.delta and isinstance(event.delta, str):
            self._items.thought(_place(event), event.delta, "content", event.content_index)

    def _item(self, take: Callable[[ItemBody, ItemPosition], None], event: _Event) -> None:
        told = bytes(event.item)
        if told.startswith(b"{"):
            take(_ITEM(told), _place(event))

    def _piece(self, kind: str, event: _Event) -> None:
        if event.delta and isinstance(event.delta, str):
            self._items.arguments(kind, _place(event), event.delta)

    def _arguments_done(self, event: _Event) -> None:
        if isinstance(event.arguments, str):
            self._items.arguments_done(FUNCTION_CALL, _place(event), event.arguments)

    def _input_done(self, event: _Event) -> None:
        if isinstance(event.input, str):
            self._items.arguments_done(CUSTOM_CALL, _place(event), event.input)

    # ---------------------------------------------------------------- the end

    def _ended(self, said: str, response: _Response, data: bytes, events: list[Event]) -> None:
        """Take the final response; its status counts, not the name of the event."""
        own = as_string(response.status)
        status = own if own in (*_FAILED, "incomplete") or not said else said
        self.answer.usage = response.usage
        if status in _FAILED or (response.output is None and not said):
            self.answer.fail(read_failure(200, data), events)
        elif status in _UNFINISHED:
            self.answer.fail(CUT_OFF, events)
        else:
            self._items.all_done(response.output or [])
            self.answer.stop = _stop(status, response.incomplete_details)
            self.answer.end(events)


def new_decoder(request: Request, ids: Iterator[str]) -> AnswerDecoder[SseFrame]:
    """Return a decoder for the answer to `request`; `ids` are for calls that come without a usable one."""
    return AnswerDecoder(SseDecoder(), _Reader(request, ids))


def decode_turn(request: Request, ids: Iterator[str], body: bytes) -> list[Event]:
    """Read a whole answer."""
    return new_decoder(request, ids).whole(body)


def _place(event: _Event) -> ItemPosition:
    return ItemPosition(event.item_id, event.output_index)


def _stop(status: str, details: Json) -> StopReason:
    if status != "incomplete":
        return StopReason.END
    return StopReason.FILTER if as_object(details).get("reason") == "content_filter" else StopReason.LENGTH


def usage_of(value: Json) -> Usage:
    """Read token counts; anything that is not a number counts as 0."""
    return read_counts(value, "input", "output")

"""An upstream's answer becomes events, whole or streamed: one path.

An answer that came whole is the response of the last event of a stream that said nothing before.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import msgspec

from toolspeak.ir.event import Event, StopReason, TextDelta
from toolspeak.ir.json import Json
from toolspeak.ir.request import Request
from toolspeak.text.sse import SseDecoder, SseFrame
from toolspeak.wires._answer import Answer, AnswerDecoder
from toolspeak.wires._breaks import CUT_OFF
from toolspeak.wires._failures import read_failure
from toolspeak.wires._ids import FreshIds
from toolspeak.wires._loose import mapped, string
from toolspeak.wires.openai_responses.growing import GrowingItems, ItemBody, Place
from toolspeak.wires.openai_responses.names import UpstreamNames
from toolspeak.wires.openai_responses.words import CUSTOM_CALL, FUNCTION_CALL, usage_of


class _TextEvent(msgspec.Struct, gc=False):
    """What most events are: only what is needed of them is read."""

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
        self._items = items = GrowingItems(UpstreamNames(request), FreshIds(request, ids))
        self.answer = Answer(items, usage_of)
        self._goes_on: str | None = None
        """The type of the last event, if that was text, and"""
        self._place = Place()
        """its place."""
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
        """Read an answer that came in one piece."""
        self._ended("", _RESPONSE(body), body, events)

    def frame(self, frame: SseFrame, events: list[Event]) -> None:
        """Read one event; text that goes on where the last one was is the hot path."""
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

    def _item(self, take: Callable[[ItemBody, Place], None], event: _Event) -> None:
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
        """Take the final response; its own status counts more than the name of the event."""
        own = string(response.status)
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
    """Take the request as it was sent, and ids for calls that come without a usable one."""
    return AnswerDecoder(SseDecoder(), _Reader(request, ids))


def decode_turn(request: Request, ids: Iterator[str], body: bytes) -> list[Event]:
    """Read an answer that came in one piece."""
    return new_decoder(request, ids).whole(body)


def _place(event: _Event) -> Place:
    return Place(event.item_id, event.output_index)


def _stop(status: str, details: Json) -> StopReason:
    if status != "incomplete":
        return StopReason.END
    return StopReason.FILTER if mapped(details).get("reason") == "content_filter" else StopReason.LENGTH

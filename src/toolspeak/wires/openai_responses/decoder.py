"""An upstream's answer becomes events, whole or streamed: one path.

An answer that came whole is the response of the last event of a stream that said nothing before.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec

from toolspeak.errors import BadFrame
from toolspeak.ir.complaint import Problem
from toolspeak.ir.event import Event, Failed, Finished, StopReason, TextDelta
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import Json
from toolspeak.ir.request import Request
from toolspeak.text.sse import SseDecoder, SseFrame
from toolspeak.wires._breaks import CUT_OFF, unreadable
from toolspeak.wires._failures import read_failure
from toolspeak.wires._ids import FreshIds
from toolspeak.wires.openai_responses.growing import GrowingItems, ItemBody, Place
from toolspeak.wires.openai_responses.names import UpstreamNames
from toolspeak.wires.openai_responses.words import CUSTOM_CALL, FUNCTION_CALL, usage_of


class _TextEvent(msgspec.Struct):
    """What most events are: only what is needed of them is read."""

    type: Any = None
    delta: Any = None
    item_id: Any = None
    output_index: Any = None


class _Event(msgspec.Struct):
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


class _Response(msgspec.Struct):
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
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, BadFrame)
_FAILED: Final = ("failed", "cancelled")
_ENDS: Final = {
    "response.completed": "completed",
    "response.done": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
_UNFINISHED: Final = ("in_progress", "queued")


class ResponsesDecoder:
    """Reads one streamed answer."""

    def __init__(self, request: Request, ids: Iterator[str]) -> None:
        """Take the request as it was sent, and ids for calls that come without a usable one."""
        self._frames = SseDecoder()
        self._items = items = GrowingItems(UpstreamNames(request), FreshIds(request, ids))
        self._over = False
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

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that this chunk completes."""
        try:
            for frame in self._frames.feed(chunk):
                if frame.event != self._goes_on or not self._more_text(frame.data):
                    self._frame(frame)
        except _UNREADABLE as error:
            self._fail(unreadable(error))
        return self._told()

    def finish(self) -> list[Event]:
        """Return what the end of the bytes means: without a final event it is a broken connection (P3, P6)."""
        with suppress(*_UNREADABLE):  # an event that was cut off
            for frame in self._frames.finish():
                self._frame(frame)
        self._fail(CUT_OFF)
        return self._told()

    def whole(self, body: bytes) -> list[Event]:
        """Read an answer that came in one piece."""
        try:
            self._ended("", _RESPONSE(body), body)
        except _UNREADABLE as error:
            self._fail(unreadable(error))
        return self._told()

    def _told(self) -> list[Event]:
        events, self._items.events = self._items.events, []
        return events

    def _more_text(self, data: str) -> bool:
        """Read text that goes on where the last event was: the hot path."""
        event = _TEXT_EVENT(data)
        text = event.delta
        if type(text) is not str or not text or event.type != _TEXT or event.item_id != self._place.id:
            return False
        if event.output_index != self._place.index:
            return False
        self._items.events.append(TextDelta(text))
        return True

    def _frame(self, frame: SseFrame) -> None:
        data = frame.data
        if self._over or data in ("", "[DONE]"):
            return
        self._goes_on = None
        event = _EVENT(data)
        kind = event.type if isinstance(event.type, str) else frame.event
        if (on := self._on.get(kind)) is not None:
            on(event)
        elif kind in _ENDS:
            told = bytes(event.response)
            self._ended(_ENDS[kind], _RESPONSE(told) if told else _Response(), data.encode())
        elif kind == "error" or (event.error is not None and not kind.startswith("response.")):
            self._fail(read_failure(200, data.encode()))

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

    def _ended(self, said: str, response: _Response, data: bytes) -> None:
        """Take the final response; its own status counts more than the name of the event."""
        own = response.status if isinstance(response.status, str) else ""
        status = own if own in (*_FAILED, "incomplete") or not said else said
        if status in _FAILED or (response.output is None and not said):
            self._fail(read_failure(200, data), response.usage)
        elif status in _UNFINISHED:
            self._fail(CUT_OFF, response.usage)
        else:
            self._items.all_done(response.output or [])
            self._finish(_stop(status, response.incomplete_details), response.usage)

    def _finish(self, stop: StopReason, usage: Json) -> None:
        self._over, self._goes_on = True, None
        self._items.finish(None if stop is StopReason.END else Problem.TRUNCATED)
        if stop is StopReason.END and self._items.called:
            stop = StopReason.CALLS
        self._items.events.append(Finished(stop, usage_of(usage)))

    def _fail(self, failure: Failure, usage: Json = None) -> None:
        if not self._over:
            self._over, self._goes_on = True, None
            self._items.finish(Problem.DISCONNECTED)
            self._items.events.append(Failed(failure, usage_of(usage)))


def decode_turn(request: Request, ids: Iterator[str], body: bytes) -> list[Event]:
    """Read an answer that came in one piece."""
    return ResponsesDecoder(request, ids).whole(body)


def _place(event: _Event) -> Place:
    return Place(event.item_id, event.output_index)


def _stop(status: str, details: Json) -> StopReason:
    if status != "incomplete":
        return StopReason.END
    reason = details.get("reason") if isinstance(details, dict) else None
    return StopReason.FILTER if reason == "content_filter" else StopReason.LENGTH

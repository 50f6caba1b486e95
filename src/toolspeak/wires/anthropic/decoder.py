"""An upstream's answer becomes events, whole or streamed: one path.

Events are known by the `type` in their data; servers that imitate this vendor leave out the `event:` line, the last
`message_stop`, or the deltas of a call. Blocks and deltas that are not known here are passed over.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from toolspeak.errors import BadFrame
from toolspeak.ir.event import Event, ReasoningDelta, StopReason, TextDelta
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import Json
from toolspeak.ir.request import Request
from toolspeak.text.sse import SseDecoder, SseFrame
from toolspeak.wires._answer import Answer, AnswerDecoder
from toolspeak.wires._breaks import CUT_OFF, UNREADABLE
from toolspeak.wires._failures import read_failure
from toolspeak.wires._ids import FreshIds
from toolspeak.wires._loose import mapped, string
from toolspeak.wires.anthropic.builtins import member_name
from toolspeak.wires.anthropic.call_blocks import CallBlocks
from toolspeak.wires.anthropic.outgoing import names_of
from toolspeak.wires.anthropic.words import REDACTED, STOPS, merged_counts, sealed, usage_of


class _Delta(msgspec.Struct, gc=False):
    """Servers put anything anywhere: types are looked at later."""

    type: Any = None
    text: Any = None
    thinking: Any = None
    signature: Any = None
    partial_json: Any = None
    stop_reason: Any = None
    stop_sequence: Any = None


class _Block(msgspec.Struct, gc=False):
    type: Any = None
    text: Any = None
    thinking: Any = None
    signature: Any = None
    data: Any = None
    id: Any = None
    name: Any = None
    toolset_name: Any = None
    input: msgspec.Raw = msgspec.Raw()


class _Event(msgspec.Struct, gc=False):
    type: Any = None
    index: Any = None
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: Any = None
    usage: Any = None
    error: Any = None


class _Whole(msgspec.Struct, gc=False):
    content: list[_Block] | None = None
    stop_reason: Any = None
    stop_sequence: Any = None
    usage: Any = None
    error: Any = None


class _Type(msgspec.Struct, gc=False):
    type: Any = None
    error: Any = None


_EVENT = msgspec.json.Decoder(_Event).decode
_WHOLE = msgspec.json.Decoder(_Whole).decode
_TYPE = msgspec.json.Decoder(_Type).decode
_TEXT = msgspec.json.Decoder(str).decode
_NAMED = frozenset({"content_block_start", "content_block_delta", "message_delta"})
"""The events that must have the shape that we know."""


class _Reader:
    """Reads one answer."""

    def __init__(self, request: Request, ids: Iterator[str]) -> None:
        self._calls = CallBlocks(names_of(request), FreshIds(request, ids))
        self._began = False
        self.answer = Answer(self._calls, usage_of)

    def whole(self, body: bytes, events: list[Event]) -> None:
        """Read an answer that came in one piece."""
        answer = _WHOLE(body)
        if answer.content is None or answer.error is not None:
            self.answer.fail(read_failure(200, body), events)
            return
        for index, block in enumerate(answer.content):
            self._block_start(index, block, events)
            events += self._calls.stop(index)
        self._stopped(answer.stop_reason, answer.stop_sequence)
        self._count(answer.usage)
        self.answer.end(events)

    def frame(self, frame: SseFrame, events: list[Event]) -> None:
        """Read one event."""
        if frame.data == "[DONE]":
            self._message_stop(events)
            return
        try:
            event = _EVENT(frame.data)
        except UNREADABLE as error:
            self._odd(frame, error, events)
            return
        delta = event.delta
        if delta is not None and delta.type == "text_delta" and isinstance(delta.text, str):
            if delta.text:
                events.append(TextDelta(delta.text))
        else:
            self._event(event, frame, events)

    def _odd(self, frame: SseFrame, error: Exception, events: list[Event]) -> None:
        """Take a frame whose shape is not known: an error, or an event that may be passed over."""
        try:
            known = _TYPE(frame.data)
        except UNREADABLE:
            raise error from None
        kind = known.type if isinstance(known.type, str) else frame.event
        if kind == "error" or known.error is not None:
            self.answer.fail(_failure(frame), events)
        elif kind in _NAMED:
            raise BadFrame(str(error)) from None

    def _event(self, event: _Event, frame: SseFrame, events: list[Event]) -> None:
        kind = event.type if isinstance(event.type, str) else frame.event
        if kind == "error" or event.error is not None:
            self.answer.fail(_failure(frame), events)
        elif kind == "content_block_delta" and event.delta is not None:
            self._delta(_index(event.index), event.delta, events)
        elif kind == "content_block_start" and event.content_block is not None:
            self._block_start(_index(event.index), event.content_block, events)
        elif kind == "content_block_stop":
            events += self._calls.stop(_index(event.index))
        elif kind == "message_start":
            self._count(mapped(event.message).get("usage"))
        elif kind == "message_delta":
            if event.delta is not None:
                self._stopped(event.delta.stop_reason, event.delta.stop_sequence)
            self._count(event.usage)
        elif kind == "message_stop":
            self._message_stop(events)

    def _block_start(self, index: int | None, block: _Block, events: list[Event]) -> None:
        """Take the start of a block, which in a whole answer is all of it."""
        self._began = True
        if block.type == "tool_use" and isinstance(block.name, str) and block.name:
            events += self._calls.start(index, _name(block), string(block.id), _arguments(block))
            return
        events += self._calls.pause()
        if block.type == "text" and string(block.text):
            events.append(TextDelta(block.text))
        elif block.type == "thinking":
            self._thought(string(block.thinking), string(block.signature), events)
        elif block.type == REDACTED and string(block.data):
            self._thought("", sealed(block.data), events)

    def _delta(self, index: int | None, delta: _Delta, events: list[Event]) -> None:
        if delta.type == "input_json_delta":
            events += self._calls.grow(index, string(delta.partial_json))
        elif delta.type == "thinking_delta":
            self._thought(string(delta.thinking), "", events)
        elif delta.type == "signature_delta":
            self._thought("", string(delta.signature), events)

    def _thought(self, text: str, signature: str, events: list[Event]) -> None:
        if text or signature:
            events.append(ReasoningDelta(text, signature))

    def _stopped(self, reason: object, stop_sequence: object) -> None:
        if isinstance(reason, str) and reason:
            self.answer.stop = STOPS.get(reason, StopReason.END)
            self.answer.stop_sequence = string(stop_sequence) if reason == "stop_sequence" else ""

    def _count(self, usage: Json) -> None:
        self.answer.usage = merged_counts(self.answer.usage, usage)

    def _message_stop(self, events: list[Event]) -> None:
        if self.answer.stop is None and not self._began:
            self.answer.fail(CUT_OFF, events)
        self.answer.end(events)


def new_decoder(request: Request, ids: Iterator[str]) -> AnswerDecoder[SseFrame]:
    """Take the request as it was sent, and ids for calls that come without a usable one."""
    return AnswerDecoder(SseDecoder(), _Reader(request, ids))


def decode_turn(request: Request, ids: Iterator[str], body: bytes) -> list[Event]:
    """Read an answer that came in one piece."""
    return new_decoder(request, ids).whole(body)


def _failure(frame: SseFrame) -> Failure:
    return read_failure(200, frame.data.encode())


def _index(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _name(block: _Block) -> str:
    family = string(block.toolset_name)
    return member_name(family, block.name) if family else str(block.name)


def _arguments(block: _Block) -> str:
    """Return the arguments of a whole block to the byte; some servers have them as text already."""
    raw = bytes(block.input)
    return _TEXT(raw) if raw.startswith(b'"') else raw.decode()

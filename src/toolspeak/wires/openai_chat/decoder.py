"""An upstream's answer becomes events, whole or streamed: one path.

Written for what servers really send: two finish reasons, more text after one, an error in the middle, no `[DONE]`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from toolspeak.errors import BadFrame
from toolspeak.ir.complaint import Problem
from toolspeak.ir.event import Event, Failed, Finished, ReasoningDelta, StopReason, TextDelta
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import Json
from toolspeak.ir.request import Request
from toolspeak.text.sse import SseDecoder
from toolspeak.wires._breaks import CUT_OFF, unreadable
from toolspeak.wires._deltas import CallDeltas
from toolspeak.wires._failures import read_failure
from toolspeak.wires._ids import FreshIds
from toolspeak.wires.openai_chat.outgoing import names_of
from toolspeak.wires.openai_chat.words import STOPS, usage_of


class _Delta(msgspec.Struct):
    """Of a chunk or, as `message`, of a whole answer. Servers put anything anywhere: types are looked at later."""

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    refusal: Any = None
    tool_calls: Any = None
    function_call: Any = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: Any = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None


_CHUNK = msgspec.json.Decoder(_Chunk).decode
_NO_DELTA = _Delta()


class ChatDecoder:
    """Reads one streamed answer."""

    def __init__(self, request: Request, ids: Iterator[str]) -> None:
        """Take the request as it was sent, and ids for calls that come without a usable one."""
        self._frames = SseDecoder()
        self._calls = CallDeltas(names_of(request), FreshIds(request, ids))
        self._called = False
        self._stop: StopReason | None = None
        self._usage: Json = None
        self._closed = self._over = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that this chunk completes."""
        events: list[Event] = []
        try:
            for frame in self._frames.feed(chunk):
                self._frame(frame.data, events)
        except BadFrame as error:
            self._fail(unreadable(error), events)
        return events

    def finish(self) -> list[Event]:
        """Return what the end of the bytes means: without a finish reason it is a broken connection (P3, P6)."""
        events: list[Event] = []
        self._closed = True
        try:
            for frame in self._frames.finish():
                self._frame(frame.data, events)
        except BadFrame as error:
            self._fail(unreadable(error), events)
        if self._stop is None:
            self._fail(CUT_OFF, events)
        self._end(events)
        return events

    def whole(self, body: bytes) -> list[Event]:
        """Read an answer that came in one piece."""
        events: list[Event] = []
        try:
            self._frame(body, events)
        except BadFrame as error:
            self._fail(unreadable(error), events)
        self._end(events)
        return events

    def _frame(self, data: str | bytes, events: list[Event]) -> None:
        if self._over:
            return
        if data == "[DONE]":
            self._end(events)
            return
        try:
            chunk = _CHUNK(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._fail(CUT_OFF if self._closed else unreadable(error), events)
            return
        if chunk.choices:
            self._choice(chunk.choices[0], events)
        elif chunk.error is not None or chunk.choices is None:
            self._fail(_failure(data), events)
        if chunk.usage is not None:
            self._usage = chunk.usage

    def _choice(self, choice: _Choice, events: list[Event]) -> None:
        delta = choice.delta or choice.message or _NO_DELTA
        thought = delta.reasoning_content or delta.reasoning
        if thought and isinstance(thought, str):
            events += self._calls.pause()
            events.append(ReasoningDelta(thought))
        content = delta.content
        if type(content) is str and content and not self._called:
            events.append(TextDelta(content))
        elif content:
            self._content(content, events)
        if delta.refusal and isinstance(delta.refusal, str):
            self._content(delta.refusal, events)
        if delta.tool_calls:
            self._called = True
            events += self._calls.feed(delta.tool_calls)
        elif delta.function_call:
            self._called = True
            events += self._calls.feed([{"index": 0, "function": delta.function_call}])
        if choice.finish_reason and isinstance(choice.finish_reason, str):
            self._finished(choice.finish_reason)

    def _content(self, content: Json, events: list[Event]) -> None:
        events += self._calls.pause()
        if isinstance(content, str):
            events.append(TextDelta(content))
        elif isinstance(content, list):
            events += filter(None, map(_part, content))

    def _finished(self, reason: str) -> None:
        stop = STOPS.get(reason, StopReason.END)
        if self._stop is not StopReason.CALLS:  # of two reasons the calls win
            self._stop = stop

    def _end(self, events: list[Event]) -> None:
        if self._over:
            return
        self._over = True
        stop = self._stop or StopReason.END
        events += self._calls.finish(Problem.TRUNCATED if stop is StopReason.LENGTH else None)
        if stop is StopReason.END and self._calls.any:
            stop = StopReason.CALLS
        events.append(Finished(stop, usage_of(self._usage)))

    def _fail(self, failure: Failure, events: list[Event]) -> None:
        if not self._over:
            self._over = True
            events += self._calls.finish(Problem.DISCONNECTED)
            events.append(Failed(failure, usage_of(self._usage)))


def decode_turn(request: Request, ids: Iterator[str], body: bytes) -> list[Event]:
    """Read an answer that came in one piece."""
    return ChatDecoder(request, ids).whole(body)


def _failure(data: str | bytes) -> Failure:
    return read_failure(200, data.encode() if isinstance(data, str) else data)


def _part(part: Json) -> Event | None:
    """Read a part of a content that is a list: Mistral's servers send such ones."""
    if not isinstance(part, dict):
        return None
    text, thinking = part.get("text"), part.get("thinking")
    if isinstance(text, str) and text:
        return TextDelta(text)
    if isinstance(thinking, list):
        thinking = "".join(str(piece.get("text", "")) for piece in thinking if isinstance(piece, dict))
    return ReasoningDelta(thinking) if isinstance(thinking, str) and thinking else None

"""Reads a Chat Completions answer, streamed or whole, as events.

Written for what servers really send: two finish reasons, more text after one, an error in the middle, no `[DONE]`.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from toolspeak.ir.event import Event, ReasoningDelta, StopReason, TextDelta, Usage
from toolspeak.ir.json import Json, as_object
from toolspeak.ir.request import Request
from toolspeak.text.sse import SseDecoder, SseFrame
from toolspeak.wires.openai_chat.request_writer import names_of
from toolspeak.wires.shared.answer_decoder import AnswerDecoder, AnswerState, read_counts, read_first_token
from toolspeak.wires.shared.call_deltas import CallDeltas
from toolspeak.wires.shared.calls import FreshIds
from toolspeak.wires.shared.failures import read_failure
from toolspeak.wires.shared.text_template import TemplateDecoder

STOPS: Final = {
    "stop": StopReason.END,
    "tool_calls": StopReason.CALLS,
    "function_call": StopReason.CALLS,
    "length": StopReason.LENGTH,
    "content_filter": StopReason.FILTER,
}


class _Delta(msgspec.Struct, gc=False):
    """Of a chunk or, as `message`, of a whole answer. Fields have any type; types are checked on use."""

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    refusal: Any = None
    tool_calls: Any = None
    function_call: Any = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: Any = None
    logprobs: Any = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None


_CHUNK = msgspec.json.Decoder(_Chunk).decode
_NO_DELTA = _Delta()


class _Reader:
    """Reads one answer."""

    def __init__(self, request: Request, ids: Iterator[str]) -> None:
        self._calls = CallDeltas(names_of(request), FreshIds(request, ids))
        self._called = False
        self._wants_first_token = request.top_tokens > 0
        self.answer = AnswerState(self._calls, usage_of)

    @property
    def has_only_text(self) -> bool:
        """Whether no frame had a call, whose pieces are sometimes kept without an event."""
        return not self._called

    def frame(self, frame: SseFrame | bytes, events: list[Event]) -> None:
        """Read one chunk or, from bytes, a whole answer."""
        data = frame.data if isinstance(frame, SseFrame) else frame
        if data == "[DONE]":
            self.answer.end(events)
            return
        chunk = _CHUNK(data)
        if chunk.choices:
            self._choice(chunk.choices[0], events)
        elif chunk.error is not None or chunk.choices is None:
            self.answer.fail(read_failure(200, data.encode() if isinstance(data, str) else data), events)
        if chunk.usage is not None:
            self.answer.usage = chunk.usage

    def whole(self, body: bytes, events: list[Event]) -> None:
        """Read a whole answer."""
        self.frame(body, events)
        self.answer.end(events)

    def _choice(self, choice: _Choice, events: list[Event]) -> None:
        delta = choice.delta or choice.message or _NO_DELTA
        if self._wants_first_token and choice.logprobs is not None and not self.answer.first_token:
            self.answer.first_token = read_first_token(as_object(choice.logprobs).get("content"))
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
        if self.answer.stop is not StopReason.CALLS:  # some servers send `stop` after `tool_calls`: the calls win
            self.answer.stop = STOPS.get(reason, StopReason.END)


def new_decoder(request: Request, ids: Iterator[str]) -> AnswerDecoder[SseFrame]:
    """Return a decoder for the answer to `request`; `ids` are for calls that come without a usable one."""
    return TemplateDecoder(SseDecoder(), _Reader(request, ids))


def decode_turn(request: Request, ids: Iterator[str], body: bytes) -> list[Event]:
    """Read a whole answer."""
    return new_decoder(request, ids).whole(body)


def _part(part: Json) -> Event | None:
    """Read a part of content that is a list, which Mistral's servers send."""
    if not isinstance(part, dict):
        return None
    text, thinking = part.get("text"), part.get("thinking")
    if isinstance(text, str) and text:
        return TextDelta(text)
    if isinstance(thinking, list):
        thinking = "".join(str(piece.get("text", "")) for piece in thinking if isinstance(piece, dict))
    return ReasoningDelta(thinking) if isinstance(thinking, str) and thinking else None


def usage_of(value: Json) -> Usage:
    """Read token counts; anything that is not a number counts as 0."""
    return read_counts(value, "prompt", "completion")

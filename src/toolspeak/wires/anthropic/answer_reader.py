"""Reads an Anthropic upstream's answer, streamed or whole, as events.

Events are recognized by the `type` in their data: servers that imitate Anthropic leave out the `event:` line, the last
`message_stop`, or the deltas of a call. Unknown blocks and deltas are ignored.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
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
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import Json, JsonObject, as_object, as_string, object_at
from toolspeak.ir.request import Request
from toolspeak.text.jsonspan import JsonSpan, SpanStatus
from toolspeak.text.sse import SseDecoder, SseFrame
from toolspeak.wires.anthropic.builtins import member_name
from toolspeak.wires.anthropic.request_reader import REDACTED, redacted_signature
from toolspeak.wires.anthropic.request_writer import names_of
from toolspeak.wires.shared.answer_decoder import UNREADABLE, AnswerDecoder, AnswerState, count
from toolspeak.wires.shared.call_deltas import MAX_SIZE
from toolspeak.wires.shared.calls import FreshIds, is_json
from toolspeak.wires.shared.failures import CUT_OFF, read_failure
from toolspeak.wires.shared.tools import ToolNames

# ---------------------------------------------------------------- calls
#
# A `tool_use` block stops even where the token limit cut it. So a call ends with its block only if its arguments are
# complete; where that cannot be seen (none came, or all came at once), it ends when something else follows (P3).

_CALL_SIZE = 1024  # added for each call, so that the limit on size also limits the number of calls
_NO_ARGUMENTS = frozenset({"", "{}", "null"})


@dataclass(slots=True, eq=False)
class _CallState:
    id: str
    name: str
    preset: str = ""
    """The arguments in the block's start event; most servers send an empty object there."""
    said: list[str] = field(default_factory=list[str])


class CallBlocks:
    """Turns the `tool_use` blocks of one answer into call events."""

    def __init__(self, names: ToolNames, ids: FreshIds) -> None:
        """Map names back with `names`, and ids with `ids`."""
        self._names = names
        self._ids = ids
        self._open: dict[int | None, _CallState] = {}
        self._stopped: _CallState | None = None
        """A call whose block has stopped, but which the token limit may have cut."""
        self._size = 0
        self.any = False
        """Whether a call was delivered."""

    def start(self, index: int | None, name: str, native_id: str, preset: str) -> Iterable[Event]:
        """Start a call."""
        self._count(_CALL_SIZE + len(preset))
        yield from self.stop(index)
        yield from self.pause()
        call = _CallState(self._ids.take(native_id), self._names.back(name), "" if preset in _NO_ARGUMENTS else preset)
        self._open[index] = call
        yield CallStarted(call.id, call.name, native_id)

    def grow(self, index: int | None, piece: str) -> Iterable[Event]:
        """Add to the arguments; pieces for a block that is not a client's call are ignored."""
        call = self._open.get(index)
        if call is not None and piece:
            self._count(len(piece))
            call.said.append(piece)
            yield ArgsDelta(call.id, piece)

    def stop(self, index: int | None) -> Iterable[Event]:
        """End a block."""
        # A second stop of the same block finds nothing open. In LiteLLM it counted as another end, and the client ran
        # the tool twice (issue 37273).
        call = self._open.pop(index, None)
        if call is None:
            return
        yield from self.pause()
        if call.said and is_json("".join(call.said)):
            yield from self._end(call)
        else:
            self._stopped = call

    def pause(self) -> Iterable[Event]:
        """Settle the stopped call: something follows it, so the end of the answer did not cut it."""
        call, self._stopped = self._stopped, None
        if call is not None:
            yield from self._settle(call, None)

    def finish(self, problem: Problem | None) -> Iterable[Event]:
        """End or reject the remaining calls; a `problem` may have cut them."""
        left = [*self._open.values(), *([self._stopped] if self._stopped else [])]
        self._open, self._stopped = {}, None
        for call in left:
            yield from self._settle(call, problem)

    def _settle(self, call: _CallState, problem: Problem | None) -> Iterable[Event]:
        said = "".join(call.said)
        whole = bool(said.strip()) and is_json(said)
        if problem is Problem.DISCONNECTED or (problem is not None and not whole):
            yield self._rejected(call, problem)
        elif not said.strip() or whole or not _is_cut(said):
            yield from self._end(call)
        else:
            yield self._rejected(call, Problem.TRUNCATED)

    def _end(self, call: _CallState) -> Iterable[Event]:
        self.any = True
        if not "".join(call.said).strip():
            yield ArgsDelta(call.id, call.preset or "{}")
        yield CallEnded(call.id)

    def _rejected(self, call: _CallState, problem: Problem) -> CallRejected:
        return CallRejected(Complaint(problem, call.name), "".join(call.said) or call.preset)

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > MAX_SIZE:
            raise BadFrame(f"the arguments of one response have {self._size} characters, at most {MAX_SIZE} are read")


def _is_cut(text: str) -> bool:
    """Whether the text is the beginning of JSON, so that more of it could have completed it."""
    span = JsonSpan()
    span.feed(text.lstrip())
    return span.status is SpanStatus.OPEN


class _Delta(msgspec.Struct, gc=False):
    """Fields have any type, because servers that imitate this wire send anything; types are checked on use."""

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
"""Events that carry the answer: one of another shape is an error, not ignored."""


class _Reader:
    """Reads one answer."""

    def __init__(self, request: Request, ids: Iterator[str]) -> None:
        self._calls = CallBlocks(names_of(request), FreshIds(request, ids))
        self._began = False
        self.answer = AnswerState(self._calls, usage_of)

    def whole(self, body: bytes, events: list[Event]) -> None:
        """Read a whole answer."""
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
        """Handle a frame of unknown shape: an error, or an event that can be ignored."""
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
            self._count(as_object(event.message).get("usage"))
        elif kind == "message_delta":
            if event.delta is not None:
                self._stopped(event.delta.stop_reason, event.delta.stop_sequence)
            self._count(event.usage)
        elif kind == "message_stop":
            self._message_stop(events)

    def _block_start(self, index: int | None, block: _Block, events: list[Event]) -> None:
        """Start a block; in a whole answer this is the whole block."""
        self._began = True
        if block.type == "tool_use" and isinstance(block.name, str) and block.name:
            events += self._calls.start(index, _name(block), as_string(block.id), _arguments(block))
            return
        events += self._calls.pause()
        if block.type == "text" and as_string(block.text):
            events.append(TextDelta(block.text))
        elif block.type == "thinking":
            self._thought(as_string(block.thinking), as_string(block.signature), events)
        elif block.type == REDACTED and as_string(block.data):
            self._thought("", redacted_signature(block.data), events)

    def _delta(self, index: int | None, delta: _Delta, events: list[Event]) -> None:
        if delta.type == "input_json_delta":
            events += self._calls.grow(index, as_string(delta.partial_json))
        elif delta.type == "thinking_delta":
            self._thought(as_string(delta.thinking), "", events)
        elif delta.type == "signature_delta":
            self._thought("", as_string(delta.signature), events)

    def _thought(self, text: str, signature: str, events: list[Event]) -> None:
        if text or signature:
            events.append(ReasoningDelta(text, signature))

    def _stopped(self, reason: object, stop_sequence: object) -> None:
        if isinstance(reason, str) and reason:
            self.answer.stop = STOPS.get(reason, StopReason.END)
            self.answer.stop_sequence = as_string(stop_sequence) if reason == "stop_sequence" else ""

    def _count(self, usage: Json) -> None:
        self.answer.usage = merge_counts(self.answer.usage, usage)

    def _message_stop(self, events: list[Event]) -> None:
        if self.answer.stop is None and not self._began:
            self.answer.fail(CUT_OFF, events)
        self.answer.end(events)


def new_decoder(request: Request, ids: Iterator[str]) -> AnswerDecoder[SseFrame]:
    """Return a decoder for the answer to `request`; `ids` are for calls that come without a usable one."""
    return AnswerDecoder(SseDecoder(), _Reader(request, ids))


def decode_turn(request: Request, ids: Iterator[str], body: bytes) -> list[Event]:
    """Read a whole answer."""
    return new_decoder(request, ids).whole(body)


def _failure(frame: SseFrame) -> Failure:
    return read_failure(200, frame.data.encode())


def _index(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _name(block: _Block) -> str:
    family = as_string(block.toolset_name)
    return member_name(family, block.name) if family else str(block.name)


def _arguments(block: _Block) -> str:
    """Return the arguments of a whole block, byte for byte; some servers send them as a string of JSON."""
    raw = bytes(block.input)
    return _TEXT(raw) if raw.startswith(b'"') else raw.decode()


STOPS: Final = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "pause_turn": StopReason.END,
    "tool_use": StopReason.CALLS,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "refusal": StopReason.FILTER,
}
_COUNTS: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def usage_of(value: Json) -> Usage:
    """Read token counts. This vendor's `input_tokens` exclude cached tokens; ours include them."""
    counts = as_object(value)
    read, written = count(counts, "cache_read_input_tokens"), count(counts, "cache_creation_input_tokens")
    thought = count(object_at(counts, "output_tokens_details"), "thinking_tokens")
    return Usage(count(counts, "input_tokens") + read + written, count(counts, "output_tokens"), read, written, thought)


def merge_counts(known: Json, value: Json) -> Json:
    """Merge the counts of a later event: they are cumulative, and missing or zero ones keep the earlier value."""
    if not isinstance(value, dict):
        return known
    told: JsonObject = {key: value[key] for key in _COUNTS if count(value, key)}
    details = object_at(value, "output_tokens_details")
    return {**as_object(known), **told, **({"output_tokens_details": details} if details else {})}

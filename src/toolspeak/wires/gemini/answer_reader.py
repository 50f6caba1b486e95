r"""Reads a Gemini upstream's answer, streamed or whole, as events.

    data: {…}\n\ndata: {…}\n\n   ->  SseFrame, SseFrame
    [{…},\r\n{…}]                ->  bytes, bytes: at the end

Calls come whole, and their finish reason is `STOP` too. The stream has no end marker: it may go on after a finish
reason, and is complete if there was one. Some servers send one array or a whole answer where a stream was requested.
"""

from collections.abc import Iterable, Iterator
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
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import Json, as_object, as_string
from toolspeak.ir.request import Request
from toolspeak.text.lines import BOM, from_utf8
from toolspeak.text.sse import SSE_LIMITS, SseDecoder, SseFrame
from toolspeak.wires.gemini.request_writer import names_of
from toolspeak.wires.shared.answer_decoder import UNREADABLE, AnswerDecoder, AnswerState, count
from toolspeak.wires.shared.calls import FreshIds
from toolspeak.wires.shared.failures import read_failure

STOPS: Final = {
    "STOP": StopReason.END,
    "OTHER": StopReason.END,
    "MAX_TOKENS": StopReason.LENGTH,
    "CONTINUATION": StopReason.LENGTH,
    "SAFETY": StopReason.FILTER,
    "RECITATION": StopReason.FILTER,
    "BLOCKLIST": StopReason.FILTER,
    "PROHIBITED_CONTENT": StopReason.FILTER,
    "SPII": StopReason.FILTER,
    "LANGUAGE": StopReason.FILTER,
    "IMAGE_SAFETY": StopReason.FILTER,
    "IMAGE_PROHIBITED_CONTENT": StopReason.FILTER,
    "IMAGE_RECITATION": StopReason.FILTER,
    "MODEL_ARMOR": StopReason.FILTER,
}

BAD_CALLS: Final = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"})

BAD_ANSWER: Final = "MALFORMED_RESPONSE"

NO_REASON: Final = "FINISH_REASON_UNSPECIFIED"

MOST_CALLS: Final = 8192
"""The limit of calls in one response."""
_QUOTES_CALL: Final = "Malformed function call: "
_DONE: Final = "[DONE]"  # not part of this wire, but servers that speak several wires send it


class _Call(msgspec.Struct, rename="camel", gc=False):
    id: Any = None
    name: Any = None
    args: msgspec.Raw = msgspec.Raw()
    partial_args: Any = None
    will_continue: Any = None


class _Part(msgspec.Struct, rename="camel", gc=False):
    text: Any = None
    thought: Any = None
    thought_signature: Any = None
    function_call: _Call | None = None


class _Content(msgspec.Struct, gc=False):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, rename="camel", gc=False):
    content: _Content | None = None
    finish_reason: Any = None
    finish_message: Any = None


class _Chunk(msgspec.Struct, rename="camel", gc=False):
    candidates: list[_Candidate] | None = None
    usage_metadata: Any = None
    prompt_feedback: Any = None
    error: Any = None


_CHUNK = msgspec.json.Decoder(_Chunk).decode
_STRING = msgspec.json.Decoder(str).decode


class _Calls:
    """The calls of one answer: each comes whole."""

    def __init__(self, request: Request, ids: Iterator[str]) -> None:
        self._names = names_of(request)
        self._ids = FreshIds(request, ids)
        self._count = 0
        self.any = False

    def take(self, call: _Call) -> Iterable[Event]:
        """Return the events of one call."""
        self._count += 1
        if self._count > MOST_CALLS:
            raise BadFrame(f"more than {MOST_CALLS} calls in one response")
        if call.partial_args or call.will_continue:
            raise BadFrame("the upstream sends a call in pieces, which was not requested")
        arguments = _arguments(bytes(call.args))
        if not isinstance(call.name, str) or not call.name:
            return (CallRejected(Complaint(Problem.PARSE_ERROR, None, "the call has no name"), arguments),)
        native = as_string(call.id)
        id = self._ids.take(native)
        self.any = True
        return CallStarted(id, self._names.back(call.name), native), ArgsDelta(id, arguments), CallEnded(id)

    def finish(self, problem: Problem | None) -> Iterable[Event]:
        """Return nothing: calls come whole, so none is open."""
        del problem
        return ()


class _Reader:
    """Reads one answer."""

    def __init__(self, request: Request, ids: Iterator[str]) -> None:
        self._calls = _Calls(request, ids)
        self.answer = AnswerState(self._calls, usage_of)

    def whole(self, body: bytes, events: list[Event]) -> None:
        """Read a whole answer, or a stream that came as one array."""
        for chunk in chunks_of(body):
            if not self.answer.over:
                self.frame(chunk, events)

    def frame(self, frame: SseFrame | bytes, events: list[Event]) -> None:
        """Read one chunk."""
        data = frame.data if isinstance(frame, SseFrame) else frame
        if data == _DONE:
            return
        chunk = _CHUNK(data)
        if chunk.usage_metadata is not None:
            self.answer.usage = chunk.usage_metadata
        if chunk.candidates:
            self._candidate(chunk.candidates[0], events)
        elif chunk.error is not None:
            self.answer.fail(read_failure(200, data.encode() if isinstance(data, str) else data), events)
        elif _blocked(chunk.prompt_feedback):
            self.answer.stop = self.answer.stop or StopReason.FILTER

    def _candidate(self, candidate: _Candidate, events: list[Event]) -> None:
        if candidate.content is not None:
            for part in candidate.content.parts or ():
                self._part(part, events)
        reason = candidate.finish_reason
        if not isinstance(reason, str) or reason in ("", NO_REASON):
            return
        if reason in BAD_CALLS or reason == BAD_ANSWER:
            self.answer.fail(_broken(reason, candidate.finish_message), events)
        elif self.answer.stop in (None, StopReason.END):
            self.answer.stop = STOPS.get(reason, StopReason.END)

    def _part(self, part: _Part, events: list[Event]) -> None:
        signature = part.thought_signature if isinstance(part.thought_signature, str) else ""
        if part.function_call is not None:
            if signature:
                events.append(ReasoningDelta("", signature))
            events += self._calls.take(part.function_call)
            return
        text = part.text if isinstance(part.text, str) else ""
        if part.thought is True:
            if text or signature:
                events.append(ReasoningDelta(text, signature))
            return
        if text:
            events.append(TextDelta(text))
        if signature:
            events.append(ReasoningDelta("", signature))


def new_decoder(request: Request, ids: Iterator[str]) -> AnswerDecoder[SseFrame | bytes]:
    """Return a decoder for the answer to `request`; `ids` are for calls that come without a usable one."""
    return AnswerDecoder(GeminiFrames(), _Reader(request, ids))


def decode_turn(request: Request, ids: Iterator[str], body: bytes) -> list[Event]:
    """Read a whole answer."""
    return new_decoder(request, ids).whole(body)


def _blocked(feedback: Json) -> bool:
    return bool(as_object(feedback).get("blockReason"))


def _broken(reason: str, message: Json) -> Failure:
    """Return the failure for an answer that the server declared broken; it may quote the model's text."""
    said = message if isinstance(message, str) and message else f"the upstream ended its answer with {reason}"
    if reason == BAD_ANSWER:
        return Failure(FailureKind.OTHER, said, 502)
    _, quotes, text = said.partition(_QUOTES_CALL)
    return Failure(FailureKind.NATIVE_PARSER_FAILED, said, 502, salvage=text if quotes else "")


def _arguments(args: bytes) -> str:
    """Return the arguments byte for byte; servers that imitate this wire send a string of JSON."""
    if args in (b"", b"null"):
        return "{}"
    if args.startswith(b'"'):
        return _STRING(from_utf8(args)) or "{}"
    return from_utf8(args)


# ---------------------------------------------------------------- frames

_CHUNKS = msgspec.json.Decoder(list[msgspec.Raw]).decode
_STARTS: Final = b"[{"
_BEFORE: Final = b" \t\r\n" + BOM


def chunks_of(body: bytes) -> list[bytes]:
    """Return the chunks of a stream that came as one array, or the whole answer."""
    body = body.lstrip(_BEFORE)
    try:
        return [*map(bytes, _CHUNKS(body))] if body.startswith(b"[") else [body]
    except UNREADABLE as error:
        raise BadFrame(str(error)) from None


class GeminiFrames:
    """Splits one answer into frames; a whole answer or an array is buffered until its end."""

    def __init__(self) -> None:
        """Start at the first byte."""
        self._events = SseDecoder()
        self._body: bytearray | None = None
        self._begun = False

    def feed(self, chunk: bytes) -> Iterable[SseFrame | bytes]:
        """Return the frames that this chunk completes."""
        if not self._begun:
            chunk = chunk.lstrip(_BEFORE)
            self._begun = bool(chunk)
            self._body = bytearray() if chunk[:1] and chunk[0] in _STARTS else None
        if self._body is None:
            return self._events.feed(chunk)
        if len(self._body) + len(chunk) > SSE_LIMITS.event_bytes:
            raise BadFrame(f"the answer is over the limit: at most {SSE_LIMITS.event_bytes} bytes are accepted")
        self._body += chunk
        return ()

    def finish(self) -> Iterable[SseFrame | bytes]:
        """Return what the end of the bytes completes."""
        return self._events.finish() if self._body is None else chunks_of(bytes(self._body))


def usage_of(value: Json) -> Usage:
    """Read token counts; anything that is not a number counts as 0."""
    counts = as_object(value)
    thoughts = count(counts, "thoughtsTokenCount")
    return Usage(
        input_tokens=count(counts, "promptTokenCount") + count(counts, "toolUsePromptTokenCount"),
        output_tokens=count(counts, "candidatesTokenCount") + thoughts,
        cache_read_tokens=count(counts, "cachedContentTokenCount"),
        reasoning_tokens=thoughts,
    )

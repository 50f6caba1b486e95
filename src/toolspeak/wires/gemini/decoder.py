"""An upstream's answer becomes events, whole or streamed: one path.

Calls come whole, and the finish reason is `STOP` for them too. The stream has no end of its own: it may go on behind a
finish reason, and is complete if there was one.
"""

from collections.abc import Iterator
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
    Failed,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
)
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import Json
from toolspeak.ir.request import Request
from toolspeak.text.lines import BOM, from_utf8
from toolspeak.text.sse import SSE_LIMITS, SseDecoder
from toolspeak.wires._breaks import CUT_OFF, unreadable
from toolspeak.wires._failures import read_failure
from toolspeak.wires._ids import FreshIds
from toolspeak.wires.gemini.outgoing import names_of
from toolspeak.wires.gemini.words import BAD_ANSWER, BAD_CALLS, NO_REASON, STOPS, usage_of

MOST_CALLS: Final = 8192
"""Calls in one response."""
_QUOTES_CALL: Final = "Malformed function call: "
_DONE: Final = "[DONE]"  # no word of this wire, but of servers that speak several
_STARTS: Final = b"[{"
_BEFORE: Final = b" \t\r\n" + BOM


class _Call(msgspec.Struct, rename="camel"):
    id: Any = None
    name: Any = None
    args: msgspec.Raw = msgspec.Raw()
    partial_args: Any = None
    will_continue: Any = None


class _Part(msgspec.Struct, rename="camel"):
    text: Any = None
    thought: Any = None
    thought_signature: Any = None
    function_call: _Call | None = None


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: Any = None
    finish_message: Any = None


class _Chunk(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: Any = None
    prompt_feedback: Any = None
    error: Any = None


_CHUNK = msgspec.json.Decoder(_Chunk).decode
_CHUNKS = msgspec.json.Decoder(list[msgspec.Raw]).decode
_STRING = msgspec.json.Decoder(str).decode
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class GeminiDecoder:
    """Reads one streamed answer; one that comes whole, or as an array, is kept and read at its end."""

    def __init__(self, request: Request, ids: Iterator[str]) -> None:
        """Take the request as it was sent, and ids for calls that come without a usable one."""
        self._frames = SseDecoder()
        self._body: bytearray | None = None
        self._begun = False
        self._names = names_of(request)
        self._ids = FreshIds(request, ids)
        self._calls = 0
        self._delivered = False
        self._stop: StopReason | None = None
        self._usage: Json = None
        self._over = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that this chunk completes."""
        events: list[Event] = []
        if not self._begun:
            chunk = chunk.lstrip(_BEFORE)
            self._begun = bool(chunk)
            self._body = bytearray() if chunk[:1] and chunk[0] in _STARTS else None
        if self._over:
            return events
        try:
            self._bytes(chunk, events)
        except BadFrame as error:
            self._fail(unreadable(error), events)
        return events

    def finish(self) -> list[Event]:
        """Return what the end of the bytes means: without a finish reason it is a broken connection (P3, P6)."""
        if self._body is not None:
            return self.whole(bytes(self._body))
        events: list[Event] = []
        try:
            for frame in self._frames.finish():
                self._frame(frame.data, events)
        except BadFrame as error:
            self._fail(unreadable(error), events)
        self._end(events)
        return events

    def whole(self, body: bytes) -> list[Event]:
        """Read an answer that came in one piece, or a stream that came as one array."""
        events: list[Event] = []
        body = body.lstrip(_BEFORE)
        try:
            chunks = _CHUNKS(body) if body.startswith(b"[") else [body]
        except _UNREADABLE as error:
            self._fail(unreadable(error), events)
            return events
        for chunk in chunks:
            self._frame(bytes(chunk), events)
        self._end(events)
        return events

    def _bytes(self, chunk: bytes, events: list[Event]) -> None:
        if self._body is None:
            for frame in self._frames.feed(chunk):
                self._frame(frame.data, events)
            return
        self._body += chunk
        if len(self._body) > SSE_LIMITS.event_bytes:
            self._body = None
            raise BadFrame(f"the answer is over the limit: at most {SSE_LIMITS.event_bytes} bytes are accepted")

    def _frame(self, data: str | bytes, events: list[Event]) -> None:
        if self._over or data == _DONE:
            return
        try:
            chunk = _CHUNK(data)
        except _UNREADABLE as error:
            self._fail(unreadable(error), events)
            return
        if chunk.usage_metadata is not None:
            self._usage = chunk.usage_metadata
        if chunk.candidates:
            self._candidate(chunk.candidates[0], events)
        elif chunk.error is not None:
            self._fail(read_failure(200, data.encode() if isinstance(data, str) else data), events)
        elif _blocked(chunk.prompt_feedback):
            self._stop = self._stop or StopReason.FILTER

    def _candidate(self, candidate: _Candidate, events: list[Event]) -> None:
        if candidate.content is not None:
            self._parts(candidate.content.parts or [], events)
        reason = candidate.finish_reason
        if not isinstance(reason, str) or reason in ("", NO_REASON):
            return
        if reason in BAD_CALLS or reason == BAD_ANSWER:
            self._fail(_broken(reason, candidate.finish_message), events)
        elif self._stop in (None, StopReason.END):
            self._stop = STOPS.get(reason, StopReason.END)

    def _parts(self, parts: list[_Part], events: list[Event]) -> None:
        for part in parts:
            if not self._over:
                self._part(part, events)

    def _part(self, part: _Part, events: list[Event]) -> None:
        signature = part.thought_signature if isinstance(part.thought_signature, str) else ""
        if part.function_call is not None:
            if signature:
                events.append(ReasoningDelta("", signature))
            self._call(part.function_call, events)
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

    def _call(self, call: _Call, events: list[Event]) -> None:
        self._calls += 1
        if self._calls > MOST_CALLS:
            self._fail(unreadable(BadFrame(f"more than {MOST_CALLS} calls in one response")), events)
            return
        if call.partial_args or call.will_continue:
            self._fail(unreadable(BadFrame("a call comes in pieces, which nobody asked for")), events)
            return
        arguments = _arguments(bytes(call.args))
        if not isinstance(call.name, str) or not call.name:
            events.append(CallRejected(Complaint(Problem.PARSE_ERROR, None, "the call has no name"), arguments))
            return
        native = call.id if isinstance(call.id, str) else ""
        id = self._ids.take(native)
        self._delivered = True
        events += (CallStarted(id, self._names.back(call.name), native), ArgsDelta(id, arguments), CallEnded(id))

    def _end(self, events: list[Event]) -> None:
        if self._over:
            return
        if self._stop is None:
            self._fail(CUT_OFF, events)
            return
        self._over = True
        stop = StopReason.CALLS if self._delivered and self._stop is StopReason.END else self._stop
        events.append(Finished(stop, usage_of(self._usage)))

    def _fail(self, failure: Failure, events: list[Event]) -> None:
        if not self._over:
            self._over = True
            events.append(Failed(failure, usage_of(self._usage)))


def decode_turn(request: Request, ids: Iterator[str], body: bytes) -> list[Event]:
    """Read an answer that came in one piece."""
    return GeminiDecoder(request, ids).whole(body)


def _blocked(feedback: Json) -> bool:
    return isinstance(feedback, dict) and bool(feedback.get("blockReason"))


def _broken(reason: str, message: Json) -> Failure:
    """Tell of an answer that the server itself took for broken; it may quote what the model wrote."""
    said = message if isinstance(message, str) and message else f"the upstream ended its answer with {reason}"
    if reason == BAD_ANSWER:
        return Failure(FailureKind.OTHER, said, 502)
    _, quotes, text = said.partition(_QUOTES_CALL)
    return Failure(FailureKind.NATIVE_PARSER_FAILED, said, 502, salvage=text if quotes else "")


def _arguments(args: bytes) -> str:
    """Return the arguments as they came; servers that imitate this wire send them as a string."""
    if args in (b"", b"null"):
        return "{}"
    if args.startswith(b'"'):
        return _STRING(from_utf8(args)) or "{}"
    return from_utf8(args)

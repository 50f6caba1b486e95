"""An upstream's answer becomes events, whole or streamed: one path.

Calls come whole, and the finish reason is `STOP` for them too. The stream has no end of its own: it may go on behind a
finish reason, and is complete if there was one.
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
)
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import Json
from toolspeak.ir.request import Request
from toolspeak.text.lines import from_utf8
from toolspeak.text.sse import SseFrame
from toolspeak.wires._answer import Answer, AnswerDecoder
from toolspeak.wires._failures import read_failure
from toolspeak.wires._ids import FreshIds
from toolspeak.wires._loose import mapped, string
from toolspeak.wires.gemini.frames import GeminiFrames, chunks_of
from toolspeak.wires.gemini.outgoing import names_of
from toolspeak.wires.gemini.words import BAD_ANSWER, BAD_CALLS, NO_REASON, STOPS, usage_of

MOST_CALLS: Final = 8192
"""Calls in one response."""
_QUOTES_CALL: Final = "Malformed function call: "
_DONE: Final = "[DONE]"  # no word of this wire, but of servers that speak several


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
        """Tell one call."""
        self._count += 1
        if self._count > MOST_CALLS:
            raise BadFrame(f"more than {MOST_CALLS} calls in one response")
        if call.partial_args or call.will_continue:
            raise BadFrame("a call comes in pieces, which nobody asked for")
        arguments = _arguments(bytes(call.args))
        if not isinstance(call.name, str) or not call.name:
            return (CallRejected(Complaint(Problem.PARSE_ERROR, None, "the call has no name"), arguments),)
        native = string(call.id)
        id = self._ids.take(native)
        self.any = True
        return CallStarted(id, self._names.back(call.name), native), ArgsDelta(id, arguments), CallEnded(id)

    def finish(self, problem: Problem | None) -> Iterable[Event]:
        """End nothing: no call is ever open."""
        del problem
        return ()


class _Reader:
    """Reads one answer."""

    def __init__(self, request: Request, ids: Iterator[str]) -> None:
        self._calls = _Calls(request, ids)
        self.answer = Answer(self._calls, usage_of)

    def whole(self, body: bytes, events: list[Event]) -> None:
        """Read an answer that came in one piece, or a stream that came as one array."""
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
    """Take the request as it was sent, and ids for calls that come without a usable one."""
    return AnswerDecoder(GeminiFrames(), _Reader(request, ids))


def decode_turn(request: Request, ids: Iterator[str], body: bytes) -> list[Event]:
    """Read an answer that came in one piece."""
    return new_decoder(request, ids).whole(body)


def _blocked(feedback: Json) -> bool:
    return bool(mapped(feedback).get("blockReason"))


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

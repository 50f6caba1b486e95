"""Writes an answer for a Gemini client, streamed or whole, and errors.

A stream is chunks with one part each, and a call is one part. Events that come while a call is open wait for its end,
so that a stream has its parts in the same order as the whole answer.
"""

from collections.abc import Iterable
from typing import Final

from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallRejected,
    CallStarted,
    Discarded,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
)
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.request import Request
from toolspeak.ir.turn import Turn, unfold
from toolspeak.wires.gemini import NAME
from toolspeak.wires.gemini.request_reader import wrap_signature
from toolspeak.wires.shared.calls import CallSequencer, object_text
from toolspeak.wires.shared.failures import ENDED_IN_ERROR, http_status
from toolspeak.wires.shared.interface import EVENT_STREAM, ErrorBody, Stamp
from toolspeak.wires.shared.json_body import dump_body, one_line, quote

FINISH_REASONS: Final = {
    StopReason.END: "STOP",
    StopReason.CALLS: "STOP",
    StopReason.LENGTH: "MAX_TOKENS",
    StopReason.FILTER: "SAFETY",
    StopReason.ERROR: "OTHER",
}

# A bare newline is the only filler that no SSE client failed on; comments break google-genai and Gemini CLI.
KEEP_ALIVE: Final = b"\n"
_OPEN: Final = b'{"candidates":[{"content":{"role":"model","parts":['
_NOTHING: Final = b'{"text":""}'  # google-genai forgets a turn that has a chunk without parts
_SPACES: Final = bytes.maketrans(b"\r\n", b"  ")


def stream_type(request: Request) -> str:
    """Return the media type: without `alt=sse` in the path, clients expect one JSON array."""
    return "application/json" if _as_array(request) else EVENT_STREAM


def _as_array(request: Request) -> bool:
    return request.extra.get(NAME, {}).get("alt") == "json"


class GeminiEncoder:
    """Writes one streamed answer.

    Text is the hot path: a chunk is one quoted string between two byte strings that are made once per answer.
    """

    def __init__(self, request: Request, stamp: Stamp) -> None:
        """Start an answer to `request`."""
        self._array = _as_array(request)
        self._lead, self._behind = (b"[", b"") if self._array else (b"data: ", b"\n\n")
        self._marks = _marks(request, stamp)
        self._tail = b']},"index":0}]' + self._marks + self._behind
        self._text = _OPEN + b'{"text":'
        self._text_tail = b"}" + self._tail
        self._parts = _Parts()

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes for these events."""
        out: list[bytes] = []
        for event in events:
            if type(event) is TextDelta and self._parts.plain:
                if event.text:
                    self._chunk((self._text, quote(event.text), self._text_tail), out)
                continue
            for part in self._parts.take(event):
                self._chunk((_OPEN, part, self._tail), out)
            if isinstance(event, Finished | Failed):
                self._end(event, out)
        return b"".join(out)

    def keep_alive(self) -> bytes:
        """Return an empty line: google-genai and Gemini CLI fail on a comment."""
        return KEEP_ALIVE

    def _chunk(self, pieces: Iterable[bytes], out: list[bytes]) -> None:
        out.append(self._lead)
        out += pieces
        if self._array:
            self._lead = b",\r\n"

    def _end(self, event: Finished | Failed, out: list[bytes]) -> None:
        match event:
            case Failed(failure):
                self._failed(failure, out)
            case Finished(StopReason.ERROR):
                self._failed(ENDED_IN_ERROR, out)
            case Finished(stop, usage):
                self._chunk((_OPEN, _NOTHING, _ending(stop, usage), self._marks, self._behind), out)
        if self._array:
            out.append(b"]")

    def _failed(self, failure: Failure, out: list[bytes]) -> None:
        self._chunk((dump_body(error_body(failure)), self._behind), out)


def encode_turn(request: Request, stamp: Stamp, turn: Turn) -> bytes:
    """Write a whole answer."""
    stop, writing = turn.stop or StopReason.END, _Parts()
    events = (*unfold(Turn(turn.parts)), Finished(stop))
    parts = b",".join(part for event in events for part in writing.take(event))
    return b"".join((_OPEN, parts or _NOTHING, _ending(stop, turn.usage), _marks(request, stamp)))


class _Parts:
    """Turns events into parts: a call waits for its end, and a signature for the call that it may belong to."""

    def __init__(self) -> None:
        self.plain = True
        """No call or signature so far, so text need not wait."""
        self._sequence = CallSequencer()
        self._calls: dict[str, _Growing] = {}
        self._signature = ""

    def take(self, event: Event) -> list[bytes]:
        """Return the parts that this event completes."""
        out: list[bytes] = []
        for one in self._sequence.feed(event):
            self._take(one, out)
        return out

    def _take(self, event: Event, out: list[bytes]) -> None:
        match event:
            case TextDelta(text):
                self._say(b'{"text":', text, b"}", out)
            case ReasoningDelta(text, signature):
                self._say(b'{"text":', text, b',"thought":true}', out)
                self._sign(signature, out)
            case CallStarted(id):
                self._calls[id] = _Growing(event, self._signature)
                self.plain, self._signature = False, ""
            case ArgsDelta(id, json):
                self._calls[id].arguments.append(json)
            case CallEnded(id):
                out.append(self._calls.pop(id).written())
            case Finished() | Failed():
                self._put_down(out)
            case CallRejected() | Discarded():
                pass

    def _say(self, head: bytes, text: str, tail: bytes, out: list[bytes]) -> None:
        if text:
            self._put_down(out)
            out.append(head + quote(text) + tail)

    def _sign(self, signature: str, out: list[bytes]) -> None:
        if signature:
            self._put_down(out)
            self.plain, self._signature = False, signature

    def _put_down(self, out: list[bytes]) -> None:
        """Write a signature that belongs to no call, with an empty text, as Google's servers do."""
        if self._signature:
            out.append(b'{"text":"","thoughtSignature":%b}' % quote(wrap_signature(self._signature)))
            self._signature = ""


class _Growing:
    """A call that has not ended."""

    __slots__ = ("_signature", "_started", "arguments")

    def __init__(self, started: CallStarted, signature: str) -> None:
        self._started = started
        self._signature = signature
        self.arguments: list[str] = []

    def written(self) -> bytes:
        """Write the whole call, in one line."""
        id, name = quote(self._started.id), quote(self._started.name)
        args = one_line(object_text("".join(self.arguments)).encode().translate(_SPACES))
        seal = b',"thoughtSignature":%b' % quote(wrap_signature(self._signature)) if self._signature else b""
        return b'{"functionCall":{"id":%b,"name":%b,"args":%b}%b}' % (id, name, args, seal)


def _ending(stop: StopReason, usage: Usage) -> bytes:
    """Write the members after the parts in the last chunk.

    opencode repeats the request forever if no chunk has a finish reason.
    """
    reason, counts = quote(FINISH_REASONS[stop]), dump_body(usage_body(usage))
    return b']},"finishReason":%b,"index":0}],"usageMetadata":%b' % (reason, counts)


def _marks(request: Request, stamp: Stamp) -> bytes:
    return b',"modelVersion":%b,"responseId":%b}' % (quote(request.model), quote(stamp.id))


def usage_body(usage: Usage) -> JsonObject:
    """Write token counts; this wire counts reasoning apart from the candidates' tokens."""
    thoughts = min(usage.reasoning_tokens, usage.output_tokens)
    body: JsonObject = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens - thoughts,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
    }
    if thoughts:
        body["thoughtsTokenCount"] = thoughts
    if usage.cache_read_tokens:
        body["cachedContentTokenCount"] = usage.cache_read_tokens
    return body


# ---------------------------------------------------------------- errors

_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_TYPES: Final = "type.googleapis.com/google.rpc."
SERVER_ERRORS: Final = 500


def encode_failure(failure: Failure, stamp: Stamp) -> ErrorBody:
    """Write an error that is sent instead of an answer."""
    del stamp
    return ErrorBody(http_status(failure), dump_body(error_body(failure)))


def error_body(failure: Failure) -> JsonObject:
    """Write the body of an error, also for an error inside a stream."""
    code = http_status(failure)
    default = "INTERNAL" if code >= SERVER_ERRORS else "INVALID_ARGUMENT"
    message = failure.message or failure.kind.value
    status = _STATUSES.get(code, default)
    return {"error": {"code": code, "message": message, "status": status, "details": _details(failure)}}


def _details(failure: Failure) -> list[Json]:
    details: list[Json] = []
    if failure.field:
        violation: JsonObject = {"field": failure.field, "description": failure.message}
        details.append({"@type": f"{_TYPES}BadRequest", "fieldViolations": [violation]})
    if failure.retry_after is not None:
        details.append({"@type": f"{_TYPES}RetryInfo", "retryDelay": f"{round(failure.retry_after, 3)}s"})
    return details

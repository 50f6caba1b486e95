"""Writes an answer for a Chat Completions client, streamed or whole, and errors."""

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
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ToolKind
from toolspeak.ir.turn import Turn
from toolspeak.wires.openai_chat import NAME
from toolspeak.wires.shared.answer_decoder import write_counts
from toolspeak.wires.shared.calls import CallSequencer, custom_input
from toolspeak.wires.shared.failures import ENDED_IN_ERROR, http_status
from toolspeak.wires.shared.interface import ErrorBody, Stamp
from toolspeak.wires.shared.json_body import dump_body, quote
from toolspeak.wires.shared.tools import ToolIndex

FINISH_REASONS: Final = {
    StopReason.END: "stop",
    StopReason.CALLS: "tool_calls",
    StopReason.LENGTH: "length",
    StopReason.FILTER: "content_filter",
    StopReason.ERROR: "stop",
}

KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"


class ChatEncoder:
    """Writes one streamed answer.

    Text is the hot path: a chunk is one quoted string between two byte strings that are made once per answer.
    """

    def __init__(self, request: Request, stamp: Stamp) -> None:
        """Start an answer to `request`."""
        self._tools = ToolIndex(request.tools)
        self._usage_asked = _usage_asked(request)
        nothing = b',"usage":null' if self._usage_asked else b""
        self._head = b"data: " + dump_body(_envelope(request, stamp, "chat.completion.chunk"))[:-1] + b',"choices":['
        self._delta = self._head + b'{"index":0,"delta":'
        self._text = self._delta + b'{"content":'
        self._tail = b',"logprobs":null,"finish_reason":null}]' + nothing + b"}\n\n"
        self._text_tail = b"}" + self._tail
        self._started = False
        self._only_text = False  # no call so far: text need not pass the sequencer
        self._sequence = CallSequencer()
        self._index: dict[str, int] = {}
        self._held: dict[str, list[str]] = {}
        """Arguments of custom tools' calls: their free text can be extracted only once they are complete."""

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes for these events."""
        out: list[bytes] = []
        for event in events:
            if type(event) is TextDelta and self._only_text:
                out += (self._text, quote(event.text), self._text_tail) if event.text else ()
                continue
            if not self._started and not isinstance(event, Failed):
                self._started = self._only_text = True
                out += (self._delta, b'{"role":"assistant","content":"","refusal":null}', self._tail)
            for one in self._sequence.feed(event):
                self._other(one, out)
        return b"".join(out)

    def keep_alive(self) -> bytes:
        """Return a comment: every client of this wire skips it. A `ping` event breaks openai-js and Vercel's SDK."""
        return KEEP_ALIVE

    def _other(self, event: Event, out: list[bytes]) -> None:
        match event:
            case TextDelta(text):
                if text:
                    out += (self._text, quote(text), self._text_tail)
            case ReasoningDelta(text):
                if text:
                    out += (self._delta, b'{"reasoning_content":', quote(text), self._text_tail)
            case CallStarted() | ArgsDelta() | CallEnded():
                self._of_call(event, out)
            case Finished() | Failed():
                self._last(event, out)
            case CallRejected() | Discarded():
                pass

    def _of_call(self, event: CallStarted | ArgsDelta | CallEnded, out: list[bytes]) -> None:
        match event:
            case CallStarted():
                self._call_started(event, out)
            case ArgsDelta(id, json):
                self._arguments(id, json, out)
            case CallEnded(id):
                self._call_ended(id, out)

    def _last(self, event: Finished | Failed, out: list[bytes]) -> None:
        match event:
            case Finished(StopReason.ERROR):
                self._failed(ENDED_IN_ERROR, out)
            case Finished(stop, usage):
                self._finished(stop, usage, out)
            case Failed(failure):
                self._failed(failure, out)

    def _call_started(self, event: CallStarted, out: list[bytes]) -> None:
        self._only_text = False
        index = self._index[event.id] = len(self._index)
        call: JsonObject = {"index": index, "id": event.id}
        if self._tools.kind(event.name) is ToolKind.CUSTOM:
            self._held[event.id] = []
            call |= {"type": "custom", "custom": {"name": event.name, "input": ""}}
        else:
            # Id, type and name are sent once: a later empty name overwrote the real one in some clients.
            call |= {"type": "function", "function": {"name": event.name, "arguments": ""}}
        out += (self._delta, dump_body({"tool_calls": [call]}), self._tail)

    def _arguments(self, id: str, json: str, out: list[bytes]) -> None:
        if id in self._held:
            self._held[id].append(json)
        elif json:
            self._piece(id, b'"function":{"arguments":', json, out)

    def _call_ended(self, id: str, out: list[bytes]) -> None:
        if id in self._held:
            self._piece(id, b'"custom":{"input":', custom_input("".join(self._held.pop(id))), out)

    def _piece(self, id: str, key: bytes, text: str, out: list[bytes]) -> None:
        index = b'{"tool_calls":[{"index":%d,' % self._index[id]
        out += (self._delta, index, key, quote(text), b"}}]}", self._tail)

    def _finished(self, stop: StopReason, usage: Usage, out: list[bytes]) -> None:
        reason = quote(finish_reason(stop, calls=bool(self._index)))
        nothing = b',"usage":null' if self._usage_asked else b""
        out += (self._delta, b'{},"logprobs":null,"finish_reason":', reason, b"}]", nothing, b"}\n\n")
        if self._usage_asked:
            out += (self._head, b'],"usage":', dump_body(usage_body(usage)), b"}\n\n")
        out.append(DONE)

    def _failed(self, failure: Failure, out: list[bytes]) -> None:
        out += (b"data: ", dump_body(error_body(failure)), b"\n\n", DONE)


def encode_turn(request: Request, stamp: Stamp, turn: Turn) -> bytes:
    """Write a whole answer."""
    tools = ToolIndex(request.tools)
    calls: list[Json] = [_call(call, tools) for call in turn.calls]
    message: JsonObject = {"role": "assistant", "content": turn.text or (None if calls else ""), "refusal": None}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if calls:
        message["tool_calls"] = calls
    choice: JsonObject = {"index": 0, "message": message, "logprobs": None}
    choice["finish_reason"] = finish_reason(turn.stop, calls=bool(calls))
    body = _envelope(request, stamp, "chat.completion")
    return dump_body({**body, "choices": [choice], "usage": usage_body(turn.usage)})


def _call(call: Call, tools: ToolIndex) -> JsonObject:
    if tools.kind(call.name) is ToolKind.CUSTOM:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": custom_input(call.arguments)}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _envelope(request: Request, stamp: Stamp, kind: str) -> JsonObject:
    return {"id": f"chatcmpl-{stamp.id}", "object": kind, "created": stamp.created, "model": request.model}


def _usage_asked(request: Request) -> bool:
    options = request.extra.get(NAME, {}).get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def finish_reason(stop: StopReason | None, *, calls: bool) -> str:
    """Return the reason for the end; with calls it is never `stop`."""
    return FINISH_REASONS[StopReason.CALLS if calls and stop in (StopReason.END, None) else stop or StopReason.END]


def usage_body(usage: Usage) -> JsonObject:
    """Write token counts."""
    return write_counts(usage, "prompt", "completion")


# ---------------------------------------------------------------- errors

_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_CODES: Final = {
    FailureKind.AUTH: "invalid_api_key",
    FailureKind.CONTEXT_LENGTH: "context_length_exceeded",
    FailureKind.NOT_FOUND: "model_not_found",
    FailureKind.RATE_LIMITED: "rate_limit_exceeded",
    FailureKind.TRANSIENT: "server_is_overloaded",
}
SERVER_ERRORS: Final = 500


def encode_failure(failure: Failure, stamp: Stamp) -> ErrorBody:
    """Write an error that is sent instead of an answer."""
    del stamp
    return ErrorBody(http_status(failure), dump_body(error_body(failure)))


def error_body(failure: Failure) -> JsonObject:
    """Write the body of an error, also for an error inside a stream."""
    status = http_status(failure)
    default = "server_error" if status >= SERVER_ERRORS else "invalid_request_error"
    return {
        "error": {
            "message": failure.message,
            "type": _TYPES.get(status, default),
            "param": failure.field or None,
            "code": failure.code or _CODES.get(failure.kind, failure.kind.value),
        }
    }

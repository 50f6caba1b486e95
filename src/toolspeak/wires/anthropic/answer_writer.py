r"""Writes an answer for an Anthropic client, streamed or whole, and errors.

    event: message_start
    event: content_block_start      {"index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}
    event: content_block_delta      {"index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}
    event: content_block_stop       {"index":0}
    event: message_delta            {"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{…}}
    event: message_stop

Only one block is open at a time. Events that come while a call is open wait for its end; so does a second call.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, cast

import msgspec

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
from toolspeak.ir.message import Call, Reasoning, Text
from toolspeak.ir.request import Request
from toolspeak.ir.turn import Turn, TurnPart
from toolspeak.wires.anthropic.builtins import TOOLSET, members_of
from toolspeak.wires.anthropic.request_reader import REDACTED, THREAD, redacted_data
from toolspeak.wires.shared.answer_decoder import CUTS
from toolspeak.wires.shared.calls import CallSequencer, is_json, object_text
from toolspeak.wires.shared.failures import ENDED_IN_ERROR, http_status
from toolspeak.wires.shared.interface import ErrorBody, Stamp
from toolspeak.wires.shared.json_body import dump_body, quote

PING: Final = b'event: ping\ndata: {"type":"ping"}\n\n'
COMMENT: Final = b": keep-alive\n\n"
MESSAGE_STOP: Final = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
TEXT: Final = "text"
THINKING: Final = "thinking"
TOOL_USE: Final = "tool_use"
STARTS: Final = {
    TEXT: b'{"type":"text","text":""}',
    THINKING: b'{"type":"thinking","thinking":"","signature":""}',
}
DELTAS: Final = {
    TEXT: b'{"type":"text_delta","text":',
    THINKING: b'{"type":"thinking_delta","thinking":',
    TOOL_USE: b'{"type":"input_json_delta","partial_json":',
    REDACTED: b"",
}
TAIL: Final = b"}}\n\n"
_START: Final = b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":%b}\n\n'
_DELTA: Final = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":%b'


def frame(event: str, body: JsonObject) -> bytes:
    """Write one event, with its `event:` line: the vendor's SDKs skip events without one."""
    return b"event: %b\ndata: %b\n\n" % (event.encode(), dump_body({"type": event, **body}))


def block_start(index: int, block: bytes) -> bytes:
    """Write the start of a block."""
    return _START % (index, block)


def delta_head(index: int, kind: str) -> bytes:
    """Return the bytes before the text of each delta of a block; `TAIL` follows the text."""
    return _DELTA % (index, DELTAS[kind])


def message_body(request: Request, stamp: Stamp) -> JsonObject:
    """Write a message without content. Its id is unique: Claude Code merges answers that share one, and loops."""
    return {
        "id": f"msg_{stamp.id}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage_body(Usage()),
    }


def tool_use(id: str, name: str, members: dict[str, tuple[str, str]], arguments: Json) -> JsonObject:
    """Write a call; a tool of a toolset gets the name that the client knows."""
    family, member = members.get(name, ("", name))
    body: JsonObject = {"type": TOOL_USE, "id": id, "name": member, "input": arguments}
    return {**body, TOOLSET: family} if family else body


BROKEN_OFF: Final = Failure(FailureKind.OTHER, "a tool call of the answer was broken off", 502)


@dataclass(slots=True, eq=False)
class _Call:
    """The open call; its block starts with the first piece of arguments."""

    id: str
    name: str
    pieces: list[str] = field(default_factory=list[str])
    is_object: bool | None = None


class MessagesEncoder:
    """Writes one streamed answer.

    Text is the hot path: a chunk is one quoted string between two byte strings that are made once per answer.
    """

    def __init__(self, request: Request, stamp: Stamp) -> None:
        """Start an answer to `request`."""
        self._request, self._stamp = request, stamp
        self._members = members_of(request.tools)
        self._started = self._over = self._called = False
        self._blocks = 0
        self._kind = ""  # of the open block
        self._delta = b""
        self._call: _Call | None = None
        self._sequence = CallSequencer()

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes for these events."""
        out: list[bytes] = []
        for event in events:
            if not self._started and not isinstance(event, Failed):
                self._started = True
                out.append(frame("message_start", {"message": message_body(self._request, self._stamp)}))
            if type(event) is TextDelta and self._kind == TEXT:
                if event.text:
                    out += (self._delta, quote(event.text), TAIL)
            else:
                self._other(event, out)
        return b"".join(out)

    def keep_alive(self) -> bytes:
        """Return a ping; before the answer has started a comment, because no event may precede `message_start`."""
        if self._over:
            return b""
        return PING if self._started else COMMENT

    def _other(self, event: Event, out: list[bytes]) -> None:
        match event:
            case Finished(StopReason.ERROR):
                self._failed(ENDED_IN_ERROR, out)
            case Finished():
                self._finished(event, out)
            case Failed(failure):
                self._failed(failure, out)
            case _:
                for one in self._sequence.feed(event):
                    self._write(one, out)

    def _write(self, event: Event, out: list[bytes]) -> None:
        match event:
            case TextDelta(text):
                self._piece(TEXT, text, out)
            case ReasoningDelta(text, signature):
                self._piece(THINKING, text, out)
                self._sign(signature, out)
            case CallStarted(id, name):
                self._close(out)
                self._call = _Call(id, name)
            case ArgsDelta(id, json):
                if json and self._call is not None and self._call.id == id:
                    self._arguments(self._call, json, out)
            case CallEnded(id):
                if self._call is not None and self._call.id == id:
                    self._end(self._call, out)
            case CallRejected() | Discarded() | Finished() | Failed():
                pass

    # ------------------------------------------------------------ text and reasoning

    def _piece(self, kind: str, text: str, out: list[bytes]) -> None:
        if not text:
            return
        if self._kind != kind:
            self._open(kind, STARTS[kind], out)
        out += (self._delta, quote(text), TAIL)

    def _sign(self, signature: str, out: list[bytes]) -> None:
        """Write the signature, which ends its block; redacted reasoning is a block of its own."""
        if not signature:
            return
        if data := redacted_data(signature):
            self._open(REDACTED, dump_body({"type": REDACTED, "data": data}), out)
            self._close(out)
            return
        if self._kind != THINKING:
            self._open(THINKING, STARTS[THINKING], out)
        delta: JsonObject = {"type": "signature_delta", "signature": signature}
        out.append(frame("content_block_delta", {"index": self._blocks - 1, "delta": delta}))
        self._close(out)

    def _open(self, kind: str, block: bytes, out: list[bytes]) -> None:
        self._close(out)
        out.append(block_start(self._blocks, block))
        self._delta = delta_head(self._blocks, kind)
        self._kind = kind
        self._blocks += 1

    def _close(self, out: list[bytes]) -> None:
        if self._kind:
            self._kind = ""
            out.append(frame("content_block_stop", {"index": self._blocks - 1}))

    # ------------------------------------------------------------ calls

    def _arguments(self, call: _Call, json: str, out: list[bytes]) -> None:
        """Write more of the arguments. If they are not an object, they are written once they are complete."""
        call.pieces.append(json)
        if call.is_object is None and (text := json.lstrip()):
            call.is_object = text.startswith("{")
            if call.is_object:
                self._open(TOOL_USE, dump_body(self._start(call)), out)
                json = "".join(call.pieces)
        if call.is_object:
            out += (self._delta, quote(json), TAIL)

    def _end(self, call: _Call, out: list[bytes]) -> None:
        if not call.is_object:
            self._open(TOOL_USE, dump_body(self._start(call)), out)
            out += (self._delta, quote(object_text("".join(call.pieces))), TAIL)
        self._close(out)
        self._called, self._call = True, None

    def _start(self, call: _Call) -> JsonObject:
        return tool_use(call.id, call.name, self._members, {})

    # ------------------------------------------------------------ the end

    def _finished(self, event: Finished, out: list[bytes]) -> None:
        if not self._give_up(event.stop, out):
            return
        self._close(out)
        delta = stop_body(event.stop, event.stop_sequence, calls=self._called)
        out += (frame("message_delta", {"delta": delta, "usage": usage_body(event.usage)}), MESSAGE_STOP)
        self._over = True

    def _give_up(self, stop: StopReason, out: list[bytes]) -> bool:
        """Close calls that never ended, and write the waiting events.

        Returns False after an error, which is sent if the client could take a broken call for a complete one (P3).
        """
        call, self._call = self._call, None
        if call is not None and self._kind == TOOL_USE and (stop not in CUTS or is_json("".join(call.pieces))):
            self._failed(BROKEN_OFF, out)
            return False
        self._close(out)
        for event in self._sequence.rest():
            self._write(event, out)
        return True

    def _failed(self, failure: Failure, out: list[bytes]) -> None:
        self._over = True
        out += (b"event: error\ndata: ", dump_body(error_body(failure, self._stamp)), b"\n\n")


def encode_turn(request: Request, stamp: Stamp, turn: Turn) -> bytes:
    """Write a whole answer."""
    members = members_of(request.tools)
    content: list[Json] = [block for part in turn.parts if (block := _block(part, members)) is not None]
    end = stop_body(turn.stop, turn.stop_sequence, calls=bool(turn.calls))
    return dump_body({**message_body(request, stamp), "content": content, **end, "usage": usage_body(turn.usage)})


def _block(part: TurnPart, members: dict[str, tuple[str, str]]) -> JsonObject | None:
    match part:
        case Text(text):
            return {"type": TEXT, "text": text}
        case Reasoning("", signature) if data := redacted_data(signature):
            return {"type": REDACTED, "data": data}
        case Reasoning(text, signature):
            return {"type": THINKING, "thinking": text, "signature": signature}
        case Call(id, name, arguments):
            raw = msgspec.Raw(object_text(arguments).encode())
            return tool_use(id, name, members, cast("Json", raw))
        case CallRejected() | Discarded():
            return None


def stop_body(stop: StopReason | None, stop_sequence: str, *, calls: bool) -> JsonObject:
    """Write the stop reason: `tool_use` exactly if there are calls, unless the answer was cut."""
    if stop in CUTS:
        return {"stop_reason": "max_tokens" if stop is StopReason.LENGTH else "refusal", "stop_sequence": None}
    if calls:
        return {"stop_reason": "tool_use", "stop_sequence": None}
    if stop_sequence:
        return {"stop_reason": "stop_sequence", "stop_sequence": stop_sequence}
    return {"stop_reason": "end_turn", "stop_sequence": None}


def usage_body(usage: Usage) -> JsonObject:
    """Write token counts. They are also in the last event: langchain-anthropic reads the input tokens there."""
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    body: JsonObject = {
        "input_tokens": max(usage.input_tokens - cached, 0),
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    }
    if usage.reasoning_tokens:
        body["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return body


_TYPES: Final = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_SERVER_ERRORS: Final = 500
_UNAVAILABLE: Final = 503
_OVERLOADED: Final = 529


def encode_failure(failure: Failure, stamp: Stamp) -> ErrorBody:
    """Write an error that is sent instead of an answer."""
    return ErrorBody(_status(failure), dump_body(error_body(failure, stamp)))


def error_body(failure: Failure, stamp: Stamp) -> JsonObject:
    """Write the body of an error, also for an error inside a stream."""
    status = _status(failure)
    default = "api_error" if status >= _SERVER_ERRORS else "invalid_request_error"
    error: JsonObject = {"type": _TYPES.get(status, default), "message": failure.message or failure.kind.value}
    if failure.field == THREAD and status < _SERVER_ERRORS:
        # With this code, the vendor's SDKs send the whole conversation again, without `thread`.
        error["details"] = {"error_code": "thread_unsupported_request", "unsupported": []}
    return {"type": "error", "error": error, "request_id": f"req_{stamp.id}"}


def _status(failure: Failure) -> int:
    """Return the HTTP status; this vendor uses 529 for an overloaded server."""
    status = http_status(failure)
    return _OVERLOADED if status == _UNAVAILABLE and failure.kind is FailureKind.TRANSIENT else status

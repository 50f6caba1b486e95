r"""Events become what clients of this wire read, streamed or whole.

    event: message_start
    event: content_block_start      {"index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}
    event: content_block_delta      {"index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}
    event: content_block_stop       {"index":0}
    event: message_delta            {"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{…}}
    event: message_stop

Only one block is open at a time. What comes while a call is open, waits for its end; so does a second call.
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
)
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call, Reasoning, Text
from toolspeak.ir.request import Request
from toolspeak.ir.turn import Turn, TurnPart
from toolspeak.wires._arguments import is_json, object_text
from toolspeak.wires._body import dump, quoted
from toolspeak.wires._breaks import CUTS, ENDED_IN_ERROR
from toolspeak.wires._sequence import Sequence
from toolspeak.wires._wire import Stamp
from toolspeak.wires.anthropic.builtins import members_of
from toolspeak.wires.anthropic.errors import error_body
from toolspeak.wires.anthropic.frames import (
    COMMENT,
    MESSAGE_STOP,
    PING,
    STARTS,
    TAIL,
    TEXT,
    THINKING,
    TOOL_USE,
    block_start,
    delta_head,
    frame,
    message_body,
    tool_use,
)
from toolspeak.wires.anthropic.words import REDACTED, stop_body, unsealed, usage_body

BROKEN_OFF: Final = Failure(FailureKind.OTHER, "a tool call of the answer was broken off", 502)


@dataclass(slots=True, eq=False)
class _Call:
    """The call that is open; its block begins with the first of its arguments."""

    id: str
    name: str
    pieces: list[str] = field(default_factory=list[str])
    is_object: bool | None = None


class MessagesEncoder:
    """Writes one streamed answer. Text is the hot path: it is set between two pieces of bytes that never change."""

    def __init__(self, request: Request, stamp: Stamp) -> None:
        """Take the client's request and the marks of this answer."""
        self._request, self._stamp = request, stamp
        self._members = members_of(request.tools)
        self._started = self._over = self._called = False
        self._blocks = 0
        self._kind = ""  # of the open block
        self._delta = b""
        self._call: _Call | None = None
        self._sequence = Sequence()

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes for these events."""
        out: list[bytes] = []
        for event in events:
            if not self._started and not isinstance(event, Failed):
                self._started = True
                out.append(frame("message_start", {"message": message_body(self._request, self._stamp)}))
            if type(event) is TextDelta and self._kind == TEXT:
                if event.text:
                    out += (self._delta, quoted(event.text), TAIL)
            else:
                self._other(event, out)
        return b"".join(out)

    def keep_alive(self) -> bytes:
        """Return a ping or, while the answer has not begun, a comment: no event may come before the first."""
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
        out += (self._delta, quoted(text), TAIL)

    def _sign(self, signature: str, out: list[bytes]) -> None:
        """Write the signature, which ends its block; a sealed thought is a block of its own."""
        if not signature:
            return
        if data := unsealed(signature):
            self._open(REDACTED, dump({"type": REDACTED, "data": data}), out)
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
        """Write more of the arguments; those that are no object can only be told when they are whole."""
        call.pieces.append(json)
        if call.is_object is None and (text := json.lstrip()):
            call.is_object = text.startswith("{")
            if call.is_object:
                self._open(TOOL_USE, dump(self._start(call)), out)
                json = "".join(call.pieces)
        if call.is_object:
            out += (self._delta, quoted(json), TAIL)

    def _end(self, call: _Call, out: list[bytes]) -> None:
        if not call.is_object:
            self._open(TOOL_USE, dump(self._start(call)), out)
            out += (self._delta, quoted(object_text("".join(call.pieces))), TAIL)
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
        """Close the calls that never ended, and let out the rest; False if one could be taken for whole (P3)."""
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
        out += (b"event: error\ndata: ", dump(error_body(failure, self._stamp)), b"\n\n")


def encode_turn(request: Request, stamp: Stamp, turn: Turn) -> bytes:
    """Write a whole answer."""
    members = members_of(request.tools)
    content: list[Json] = [block for part in turn.parts if (block := _block(part, members)) is not None]
    end = stop_body(turn.stop, turn.stop_sequence, calls=bool(turn.calls))
    return dump({**message_body(request, stamp), "content": content, **end, "usage": usage_body(turn.usage)})


def _block(part: TurnPart, members: dict[str, tuple[str, str]]) -> JsonObject | None:
    match part:
        case Text(text):
            return {"type": TEXT, "text": text}
        case Reasoning("", signature) if data := unsealed(signature):
            return {"type": REDACTED, "data": data}
        case Reasoning(text, signature):
            return {"type": THINKING, "thinking": text, "signature": signature}
        case Call(id, name, arguments):
            raw = msgspec.Raw(object_text(arguments).encode())
            return tool_use(id, name, members, cast("Json", raw))
        case CallRejected() | Discarded():
            return None

"""Events become what clients of this wire read, streamed or whole."""

from collections.abc import Iterable

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
from toolspeak.ir.message import Call
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ToolKind
from toolspeak.ir.turn import Turn
from toolspeak.wires._arguments import free_text
from toolspeak.wires._body import dump, quoted
from toolspeak.wires._breaks import ENDED_IN_ERROR
from toolspeak.wires._sequence import Sequence
from toolspeak.wires._tools import Toolbox
from toolspeak.wires._wire import Stamp
from toolspeak.wires.openai_chat.errors import error_body
from toolspeak.wires.openai_chat.words import NAME, finish_reason, usage_body

KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"


class ChatEncoder:
    """Writes one streamed answer. Text is the hot path: it is set between two pieces of bytes that never change."""

    def __init__(self, request: Request, stamp: Stamp) -> None:
        """Take the client's request and the marks of this answer."""
        self._tools = Toolbox(request.tools)
        self._usage_asked = _usage_asked(request)
        nothing = b',"usage":null' if self._usage_asked else b""
        self._head = b"data: " + dump(_envelope(request, stamp, "chat.completion.chunk"))[:-1] + b',"choices":['
        self._delta = self._head + b'{"index":0,"delta":'
        self._text = self._delta + b'{"content":'
        self._tail = b',"logprobs":null,"finish_reason":null}]' + nothing + b"}\n\n"
        self._text_tail = b"}" + self._tail
        self._started = False
        self._only_text = False  # so far, so that text need not be put in sequence
        self._sequence = Sequence()
        self._index: dict[str, int] = {}
        self._held: dict[str, list[str]] = {}
        """The arguments of custom tools' calls: free text cannot be taken out of them before they are whole."""

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes for these events."""
        out: list[bytes] = []
        for event in events:
            if type(event) is TextDelta and self._only_text:
                out += (self._text, quoted(event.text), self._text_tail) if event.text else ()
                continue
            if not self._started and not isinstance(event, Failed):
                self._started = self._only_text = True
                out += (self._delta, b'{"role":"assistant","content":"","refusal":null}', self._tail)
            for one in self._sequence.feed(event):
                self._other(one, out)
        return b"".join(out)

    def keep_alive(self) -> bytes:
        """Return a comment: every client of this wire skips it."""
        return KEEP_ALIVE

    def _other(self, event: Event, out: list[bytes]) -> None:
        match event:
            case TextDelta(text):
                if text:
                    out += (self._text, quoted(text), self._text_tail)
            case ReasoningDelta(text):
                if text:
                    out += (self._delta, b'{"reasoning_content":', quoted(text), self._text_tail)
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
            call |= {"type": "function", "function": {"name": event.name, "arguments": ""}}
        out += (self._delta, dump({"tool_calls": [call]}), self._tail)

    def _arguments(self, id: str, json: str, out: list[bytes]) -> None:
        if id in self._held:
            self._held[id].append(json)
        elif json:
            self._piece(id, b'"function":{"arguments":', json, out)

    def _call_ended(self, id: str, out: list[bytes]) -> None:
        if id in self._held:
            self._piece(id, b'"custom":{"input":', free_text("".join(self._held.pop(id))), out)

    def _piece(self, id: str, key: bytes, text: str, out: list[bytes]) -> None:
        index = b'{"tool_calls":[{"index":%d,' % self._index[id]
        out += (self._delta, index, key, quoted(text), b"}}]}", self._tail)

    def _finished(self, stop: StopReason, usage: Usage, out: list[bytes]) -> None:
        reason = quoted(finish_reason(stop, calls=bool(self._index)))
        nothing = b',"usage":null' if self._usage_asked else b""
        out += (self._delta, b'{},"logprobs":null,"finish_reason":', reason, b"}]", nothing, b"}\n\n")
        if self._usage_asked:
            out += (self._head, b'],"usage":', dump(usage_body(usage)), b"}\n\n")
        out.append(DONE)

    def _failed(self, failure: Failure, out: list[bytes]) -> None:
        out += (b"data: ", dump(error_body(failure)), b"\n\n", DONE)


def encode_turn(request: Request, stamp: Stamp, turn: Turn) -> bytes:
    """Write a whole answer."""
    tools = Toolbox(request.tools)
    calls: list[Json] = [_call(call, tools) for call in turn.calls]
    message: JsonObject = {"role": "assistant", "content": turn.text or (None if calls else ""), "refusal": None}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if calls:
        message["tool_calls"] = calls
    choice: JsonObject = {"index": 0, "message": message, "logprobs": None}
    choice["finish_reason"] = finish_reason(turn.stop, calls=bool(calls))
    body = _envelope(request, stamp, "chat.completion")
    return dump({**body, "choices": [choice], "usage": usage_body(turn.usage)})


def _call(call: Call, tools: Toolbox) -> JsonObject:
    if tools.kind(call.name) is ToolKind.CUSTOM:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": free_text(call.arguments)}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _envelope(request: Request, stamp: Stamp, kind: str) -> JsonObject:
    return {"id": f"chatcmpl-{stamp.id}", "object": kind, "created": stamp.created, "model": request.model}


def _usage_asked(request: Request) -> bool:
    options = request.extra.get(NAME, {}).get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True

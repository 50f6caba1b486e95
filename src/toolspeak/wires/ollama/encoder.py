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
from toolspeak.ir.request import Request
from toolspeak.ir.turn import Turn
from toolspeak.wires._body import dump, quoted
from toolspeak.wires._breaks import ENDED_IN_ERROR
from toolspeak.wires._sequence import Sequence
from toolspeak.wires._wire import Stamp
from toolspeak.wires.ollama.arguments import object_bytes
from toolspeak.wires.ollama.dates import rfc3339
from toolspeak.wires.ollama.errors import error_body
from toolspeak.wires.ollama.words import done_reason, usage_body

_GOES_ON = b'},"done":false}\n'


def stream_type(request: Request) -> str:
    """Return the media type."""
    del request
    return "application/x-ndjson"


class OllamaEncoder:
    """Writes one streamed answer. Text is the hot path: it is set between two pieces of bytes that never change."""

    def __init__(self, request: Request, stamp: Stamp) -> None:
        """Take the client's request and the marks of this answer."""
        self._text = _head(request, stamp)
        self._empty = self._text + b'""'
        self._thought = self._empty + b',"thinking":'
        self._called = self._empty + b',"tool_calls":['
        self._sequence = Sequence()
        self._only_text = True  # so far, so that text need not be put in sequence
        self._name = ""
        self._arguments: list[str] = []
        """Of the one call that is open: calls are sent whole."""
        self._sent = 0

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes for these events."""
        out: list[bytes] = []
        for event in events:
            if type(event) is TextDelta and self._only_text:
                out += (self._text, quoted(event.text), _GOES_ON) if event.text else ()
                continue
            for one in self._sequence.feed(event):
                self._other(one, out)
        return b"".join(out)

    def keep_alive(self) -> bytes:
        """Return a line that says nothing: a blank one would break clients."""
        return self._empty + _GOES_ON

    def _other(self, event: Event, out: list[bytes]) -> None:
        match event:
            case TextDelta(text):
                out += (self._text, quoted(text), _GOES_ON) if text else ()
            case ReasoningDelta(text):
                out += (self._thought, quoted(text), _GOES_ON) if text else ()
            case CallStarted(_, name):
                self._only_text = False
                self._name, self._arguments = name, []
            case ArgsDelta(_, json):
                self._arguments.append(json)
            case CallEnded(id):
                self._call_ended(id, out)
            case Finished(StopReason.ERROR):
                self._failed(ENDED_IN_ERROR, out)
            case Finished(stop, usage):
                out += (self._empty, _end(stop, usage), b"\n")
            case Failed(failure):
                self._failed(failure, out)
            case CallRejected() | Discarded():
                pass

    def _call_ended(self, id: str, out: list[bytes]) -> None:
        call = _call(self._sent, id, self._name, "".join(self._arguments))
        out += (self._called, call, b"]", _GOES_ON)
        self._sent += 1

    def _failed(self, failure: Failure, out: list[bytes]) -> None:
        out += (dump(error_body(failure)), b"\n")


def encode_turn(request: Request, stamp: Stamp, turn: Turn) -> bytes:
    """Write a whole answer."""
    out = [_head(request, stamp), quoted(turn.text)]
    if turn.reasoning:
        out += (b',"thinking":', quoted(turn.reasoning))
    if turn.calls:
        calls = (_call(index, call.id, call.name, call.arguments) for index, call in enumerate(turn.calls))
        out += (b',"tool_calls":[', b",".join(calls), b"]")
    return b"".join((*out, _end(turn.stop, turn.usage)))


def _head(request: Request, stamp: Stamp) -> bytes:
    marks = dump({"model": request.model, "created_at": rfc3339(stamp.created)})
    return marks[:-1] + b',"message":{"role":"assistant","content":'


def _call(index: int, id: str, name: str, arguments: str) -> bytes:
    function = b'{"index":%d,"name":%b,"arguments":%b}' % (index, quoted(name), object_bytes(arguments))
    return b'{"id":%b,"function":%b}' % (quoted(id), function)


def _end(stop: StopReason | None, usage: Usage) -> bytes:
    return b"}," + dump({"done": True, "done_reason": done_reason(stop), **usage_body(usage)})[1:]

"""An upstream's answer becomes events, whole or streamed: one path.

Calls come whole, each in one entry of `tool_calls`. Their arguments are an object, whose text is kept; servers that
imitate Ollama send a string of JSON.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from toolspeak.errors import BadFrame
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import CallRejected, Event, Failed, Finished, ReasoningDelta, StopReason, TextDelta, Usage
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import Json
from toolspeak.ir.request import Request
from toolspeak.text.lines import BOM, from_utf8
from toolspeak.text.ndjson import NdjsonDecoder
from toolspeak.wires._breaks import CUT_OFF, unreadable
from toolspeak.wires._deltas import CallDeltas
from toolspeak.wires._failures import read_failure
from toolspeak.wires._ids import FreshIds
from toolspeak.wires.ollama.arguments import unescaped
from toolspeak.wires.ollama.outgoing import names_of
from toolspeak.wires.ollama.words import STOPS, usage_of

_NOTHING: Final = msgspec.Raw(b"null")


class _Function(msgspec.Struct):
    name: Any = None
    arguments: msgspec.Raw = _NOTHING


class _Call(msgspec.Struct):
    function: _Function
    id: Any = None


class _Message(msgspec.Struct):
    content: str | None = None
    thinking: str | None = None
    reasoning: Any = None
    tool_calls: msgspec.Raw = _NOTHING


class _Line(msgspec.Struct):
    """One line, or a whole answer."""

    message: _Message | None = None
    done: Any = None
    done_reason: Any = None
    prompt_eval_count: Any = None
    eval_count: Any = None
    error: Any = None


_LINE = msgspec.json.Decoder(_Line).decode
_CALLS = msgspec.json.Decoder(list[msgspec.Raw]).decode
_CALL = msgspec.json.Decoder(_Call).decode
_STRING = msgspec.json.Decoder(str).decode
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class OllamaDecoder:
    """Reads one streamed answer."""

    def __init__(self, request: Request, ids: Iterator[str]) -> None:
        """Take the request as it was sent, and ids for calls that come without a usable one."""
        self._lines = NdjsonDecoder()
        self._calls = CallDeltas(names_of(request), FreshIds(request, ids))
        self._named: dict[str, str] = {}
        self._over = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that this chunk completes."""
        events: list[Event] = []
        try:
            for line in self._lines.feed(chunk):
                self._line(line, events)
        except BadFrame as error:
            self._fail(unreadable(error), events)
        return events

    def finish(self) -> list[Event]:
        """Return what the end of the bytes means: without `done` it is a broken connection (P3, P6)."""
        events: list[Event] = []
        try:
            for line in self._lines.finish():
                self._line(line, events, CUT_OFF)  # what has no line end was cut, if it cannot be read
        except BadFrame as error:
            self._fail(unreadable(error), events)
        self._fail(CUT_OFF, events)
        return events

    def whole(self, body: bytes) -> list[Event]:
        """Read an answer that came in one piece."""
        events: list[Event] = []
        try:
            self._line(from_utf8(body.removeprefix(BOM)), events)
        except BadFrame as error:
            self._fail(unreadable(error), events)
        self._fail(CUT_OFF, events)
        return events

    def _line(self, text: str, events: list[Event], broken: Failure | None = None) -> None:
        if self._over:
            return
        try:
            line = _LINE(text)
        except _UNREADABLE as error:
            self._fail(broken or unreadable(error), events)
            return
        if line.error:
            self._fail(read_failure(200, text.encode()), events)
            return
        if line.message is not None:
            self._message(line.message, events)
        if line.done is True:
            self._end(line, events)

    def _message(self, message: _Message, events: list[Event]) -> None:
        thought = message.thinking or message.reasoning
        if thought and isinstance(thought, str):
            events.append(ReasoningDelta(thought))
        if message.content:
            events.append(TextDelta(message.content))
        if message.tool_calls is not _NOTHING:
            for entry in _entries(message.tool_calls):
                self._call(entry, events)

    def _call(self, entry: msgspec.Raw, events: list[Event]) -> None:
        try:
            call = _CALL(entry)
            arguments = _arguments(call.function.arguments)
        except _UNREADABLE as error:
            events.append(_rejected(entry, str(error)))
            return
        name = call.function.name
        if not name or not isinstance(name, str):
            events.append(_rejected(entry, "the call has no name"))
            return
        function: Json = {"name": name, "arguments": arguments}
        events += self._calls.feed([{"id": self._id(call.id, name), "function": function}])
        events += self._calls.pause()

    def _id(self, id: Json, name: str) -> str:
        """Return the id, unless a call of another tool has it: there are servers that give all the same."""
        if not id or not isinstance(id, str):
            return ""
        return id if self._named.setdefault(id, name) == name else ""

    def _end(self, line: _Line, events: list[Event]) -> None:
        self._over = True
        reason = line.done_reason
        stop = STOPS.get(reason, StopReason.END) if isinstance(reason, str) else StopReason.END
        events += self._calls.finish(Problem.TRUNCATED if stop is StopReason.LENGTH else None)
        if stop is StopReason.END and self._calls.any:
            stop = StopReason.CALLS
        events.append(Finished(stop, usage_of(line.prompt_eval_count, line.eval_count)))

    def _fail(self, failure: Failure, events: list[Event]) -> None:
        if not self._over:
            self._over = True
            events += self._calls.finish(Problem.DISCONNECTED)
            events.append(Failed(failure, Usage()))


def decode_turn(request: Request, ids: Iterator[str], body: bytes) -> list[Event]:
    """Read an answer that came in one piece."""
    return OllamaDecoder(request, ids).whole(body)


def _entries(calls: msgspec.Raw) -> list[msgspec.Raw]:
    """Return the entries of `tool_calls`; what is no array is the only one."""
    if bytes(calls) == b"null":
        return []
    try:
        return _CALLS(calls)
    except _UNREADABLE:
        return [calls]


def _arguments(value: msgspec.Raw) -> str:
    text = bytes(value).decode()
    text = _STRING(text) if text.startswith('"') else unescaped(text)
    return "{}" if text == "null" or not text.strip() else text


def _rejected(entry: msgspec.Raw, why: str) -> CallRejected:
    return CallRejected(Complaint(Problem.PARSE_ERROR, None, why), bytes(entry).decode())

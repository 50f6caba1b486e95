"""Reads an Ollama upstream's answer, streamed or whole, as events.

Calls come whole, each in one entry of `tool_calls`. Their arguments are an object, whose text is kept; servers that
imitate Ollama send a string of JSON.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import CallRejected, Event, ReasoningDelta, StopReason, TextDelta, Usage
from toolspeak.ir.json import Json, as_object
from toolspeak.ir.request import Request
from toolspeak.text.lines import BOM, NdjsonDecoder, from_utf8
from toolspeak.wires.ollama.request_reader import unescaped
from toolspeak.wires.ollama.request_writer import names_of
from toolspeak.wires.shared.answer_decoder import UNREADABLE, AnswerDecoder, AnswerState, count, read_first_token
from toolspeak.wires.shared.call_deltas import CallDeltas
from toolspeak.wires.shared.calls import FreshIds
from toolspeak.wires.shared.failures import read_failure

STOPS: Final = {
    "stop": StopReason.END,
    "length": StopReason.LENGTH,
    "load": StopReason.END,
    "unload": StopReason.END,
}

_NOTHING: Final = msgspec.Raw(b"null")


class _Function(msgspec.Struct, gc=False):
    name: Any = None
    arguments: msgspec.Raw = _NOTHING


class _Call(msgspec.Struct, gc=False):
    function: _Function
    id: Any = None


class _Message(msgspec.Struct, gc=False):
    content: str | None = None
    thinking: str | None = None
    reasoning: Any = None
    tool_calls: msgspec.Raw = _NOTHING


class _Line(msgspec.Struct, gc=False):
    """One line, or a whole answer."""

    message: _Message | None = None
    done: Any = None
    done_reason: Any = None
    prompt_eval_count: Any = None
    eval_count: Any = None
    logprobs: Any = None
    error: Any = None


_LINE = msgspec.json.Decoder(_Line).decode
_CALLS = msgspec.json.Decoder(list[msgspec.Raw]).decode
_CALL = msgspec.json.Decoder(_Call).decode
_STRING = msgspec.json.Decoder(str).decode


class _Reader:
    """Reads one answer."""

    def __init__(self, request: Request, ids: Iterator[str]) -> None:
        self._calls = CallDeltas(names_of(request), FreshIds(request, ids))
        self._named: dict[str, str] = {}
        self._wants_first_token = request.top_tokens > 0
        self.answer = AnswerState(self._calls, usage_of)

    def whole(self, body: bytes, events: list[Event]) -> None:
        """Read a whole answer."""
        self.frame(from_utf8(body.removeprefix(BOM)), events)

    def frame(self, text: str, events: list[Event]) -> None:
        """Read one line."""
        line = _LINE(text)
        if line.error:
            self.answer.fail(read_failure(200, text.encode()), events)
            return
        if self._wants_first_token and line.logprobs is not None and not self.answer.first_token:
            self.answer.first_token = read_first_token(line.logprobs)
        if line.message is not None:
            self._message(line.message, events)
        if line.done is True:
            self._done(line, events)

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
        except UNREADABLE as error:
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
        """Return the id, unless a call of another tool has it: some servers give all calls the same id."""
        if not id or not isinstance(id, str):
            return ""
        return id if self._named.setdefault(id, name) == name else ""

    def _done(self, line: _Line, events: list[Event]) -> None:
        reason = line.done_reason
        self.answer.stop = STOPS.get(reason, StopReason.END) if isinstance(reason, str) else StopReason.END
        self.answer.usage = {"prompt_eval_count": line.prompt_eval_count, "eval_count": line.eval_count}
        self.answer.end(events)


def new_decoder(request: Request, ids: Iterator[str]) -> AnswerDecoder[str]:
    """Return a decoder for the answer to `request`; `ids` are for calls that come without a usable one."""
    return AnswerDecoder(NdjsonDecoder(), _Reader(request, ids))


def decode_turn(request: Request, ids: Iterator[str], body: bytes) -> list[Event]:
    """Read a whole answer."""
    return new_decoder(request, ids).whole(body)


def _entries(calls: msgspec.Raw) -> list[msgspec.Raw]:
    """Return the entries of `tool_calls`; a value that is not an array counts as one entry."""
    if bytes(calls) == b"null":
        return []
    try:
        return _CALLS(calls)
    except UNREADABLE:
        return [calls]


def _arguments(value: msgspec.Raw) -> str:
    text = bytes(value).decode()
    text = _STRING(text) if text.startswith('"') else unescaped(text)
    return "{}" if text == "null" or not text.strip() else text


def _rejected(entry: msgspec.Raw, why: str) -> CallRejected:
    return CallRejected(Complaint(Problem.PARSE_ERROR, None, why), bytes(entry).decode())


def usage_of(value: Json) -> Usage:
    """Read token counts; anything that is not a number counts as 0."""
    counts = as_object(value)
    return Usage(count(counts, "prompt_eval_count"), count(counts, "eval_count"))

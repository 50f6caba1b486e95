r"""Judges the bytes of an OpenAI chat response, streamed or whole, as the vendor's documentation describes them.

It collects every problem instead of stopping at the first, and refuses only what clients refuse or lose: unknown keys
and empty fields are fine, for servers add many. The rules of a stream:

    data: {"id":"…","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{…},
           "finish_reason":null}]}

- the first delta has the role;
- the first delta of a call has its index, id, type and name; later ones have none of the last three, because clients
  join strings of equal keys;
- the pieces of `arguments` are a JSON object when joined;
- there is one finish_reason, `tool_calls` exactly if there are calls (unless the answer was cut off);
- usage comes if the request asked for it; `[DONE]` comes once, at the end.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from toolspeak.errors import BadJson
from toolspeak.ir.json import Json, JsonObject, as_list, as_object, as_string, object_at
from toolspeak.text.strict import parse

_FINISH: Final = frozenset(("stop", "length", "tool_calls", "content_filter"))
_CUT: Final = frozenset(("length", "content_filter"))
_REASONING: Final = ("reasoning_content", "reasoning")
_DONE: Final = "[DONE]"
_SHOWN: Final = 80
"""Characters of a wrong value that a problem quotes."""


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """What a client got."""

    calls: tuple[JsonObject, ...] = ()
    """Each with `name` and `arguments`; arguments that are not JSON are a string."""
    text: str = ""
    reasoning: str = ""
    finish: str = ""
    error: str = ""
    """The message of an error, if the answer is one or ends in one."""
    problems: tuple[str, ...] = ()


def judge_error(status: int, data: bytes) -> ReceivedAnswer:
    """Judge a response whose status is not 200: it must be an error object with a message."""
    try:
        error = object_at(as_object(parse(data.decode())), "error")
    except (BadJson, UnicodeDecodeError):
        error = {}
    message = as_string(error.get("message"))
    problems = () if message else (f"status {status} without an error object that has a message",)
    return ReceivedAnswer(error=message or f"status {status}", problems=problems)


def judge_whole(data: bytes) -> ReceivedAnswer:
    """Judge a response that was not streamed."""
    notes = _Notes()
    body = notes.parsed(data.decode("utf-8", "replace"), "the body")
    notes.head(body, "chat.completion")
    choice = notes.only_choice(body, "the body")
    message = object_at(choice, "message")
    notes.expect(message.get("role") == "assistant", f"message.role is {_quoted(message.get('role'))}, not 'assistant'")
    notes.texts(message)
    for place, entry in enumerate(as_list(message.get("tool_calls"))):
        notes.call_began(as_object(entry), f"tool_calls[{place}]")
    notes.expect(bool(notes.calls) or isinstance(message.get("content"), str), "no content and no calls")
    notes.finished(choice.get("finish_reason"))
    notes.expect(_is_usage(body.get("usage")), "usage is missing, or its counts are not integers")
    return notes.sealed()


def judge_stream(data: bytes) -> ReceivedAnswer:
    """Judge a streamed response whose request asked for usage."""
    machine = _StreamJudge()
    for number, frame in enumerate(_frames(data.decode("utf-8", "replace"))):
        machine.feed(frame, f"chunk {number}")
    return machine.finish()


def _frames(text: str) -> Iterator[str]:
    """Yield the data of each server-sent event; comments and other fields are skipped."""
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.startswith("data:"):
            lines.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _Notes:
    """What was seen so far, and what was wrong with it. A problem is noted once, however often it occurs."""

    problems: dict[str, None] = field(default_factory=dict[str, None])
    calls: list[_Call] = field(default_factory=list[_Call])
    written: list[str] = field(default_factory=list[str])
    thought: list[str] = field(default_factory=list[str])
    finish: str = ""
    error: str = ""

    def expect(self, holds: bool, problem: str) -> None:  # noqa: FBT001 # reads as an assertion
        if not holds:
            self.problems.setdefault(problem)

    def parsed(self, source: str, where: str) -> JsonObject:
        try:
            value = parse(source)
        except BadJson as error:
            self.expect(False, f"{where} is not JSON ({error})")  # noqa: FBT003 # as above
            return {}
        self.expect(isinstance(value, dict), f"{where} is not an object")
        return as_object(value)

    def head(self, body: JsonObject, kind: str) -> None:
        self.expect(body.get("object") == kind, f"object is {_quoted(body.get('object'))}, not {kind!r}")
        self.expect(bool(as_string(body.get("id"))), "id is missing or empty")
        created = body.get("created")  # few clients read it, and forge 0.10 leaves it out
        self.expect(created is None or _is_count(created), f"created is {_quoted(created)}, not a time in seconds")
        self.expect(bool(as_string(body.get("model"))), "model is missing or empty")

    def only_choice(self, body: JsonObject, where: str) -> JsonObject:
        choices = as_list(body.get("choices"))
        self.expect(len(choices) == 1, f"{where} has {len(choices)} choices, not one")
        choice = as_object(choices[0]) if choices else {}
        self.expect(choice.get("index") == 0, f"choices[0].index is {_quoted(choice.get('index'))}, not 0")
        return choice

    def texts(self, holder: JsonObject) -> None:
        content = holder.get("content")
        self.expect(content is None or isinstance(content, str), f"content is {_quoted(content)}, not a string")
        self.written.append(as_string(content))
        self.thought.append(next((text for key in _REASONING if (text := as_string(holder.get(key)))), ""))

    def call_began(self, entry: JsonObject, where: str) -> _Call:
        function = object_at(entry, "function")
        call = _Call(as_string(entry.get("id")), as_string(function.get("name")))
        self.expect(bool(call.id), f"{where}: the id is missing")
        self.expect(entry.get("type") == "function", f"{where}: type is {_quoted(entry.get('type'))}, not 'function'")
        self.expect(bool(call.name), f"{where}: the name is missing")
        is_new = not any(call.id == other.id for other in self.calls)
        self.expect(is_new, f"{where}: the id {call.id!r} was used before")
        self.calls.append(call)
        self.arguments(call, function, where)
        return call

    def arguments(self, call: _Call, function: JsonObject, where: str) -> None:
        piece = function.get("arguments")
        self.expect(piece is None or isinstance(piece, str), f"{where}: arguments are {_quoted(piece)}, not a string")
        call.pieces.append(as_string(piece))

    def finished(self, reason: Json) -> None:
        self.expect(reason in _FINISH, f"finish_reason is {_quoted(reason)}, not one of {', '.join(sorted(_FINISH))}")
        self.finish = as_string(reason)

    def sealed(self) -> ReceivedAnswer:
        calls = tuple(self._sealed_call(call) for call in self.calls)
        if self.finish in _FINISH - _CUT:
            agrees = bool(calls) == (self.finish == "tool_calls")
            self.expect(agrees, f"finish_reason is {self.finish!r} {'with' if calls else 'without'} calls")
        texts = "".join(self.written), "".join(self.thought)
        return ReceivedAnswer(calls, *texts, self.finish, self.error, tuple(self.problems))

    def _sealed_call(self, call: _Call) -> JsonObject:
        source = "".join(call.pieces)
        try:
            arguments: Json = parse(source)
        except BadJson:
            arguments = source
        self.expect(isinstance(arguments, dict), f"arguments of {call.name!r} are not a JSON object: {_quoted(source)}")
        return {"name": call.name, "arguments": arguments}


class _StreamJudge:
    """Reads the chunks of one stream in order."""

    def __init__(self) -> None:
        self._notes: Final = _Notes()
        self._id: Json = None
        self._began = self._done = self._has_usage = False
        self._by_index: Final[dict[int, _Call]] = {}

    def feed(self, data: str, where: str) -> None:
        notes = self._notes
        notes.expect(not self._done, "a chunk comes after [DONE]")
        if data.strip() == _DONE:
            self._done = True
            return
        chunk = notes.parsed(data, where)
        if chunk.get("error") is not None:
            message = as_string(object_at(chunk, "error").get("message"))
            notes.expect(message != "", "an error without a message")
            notes.error = message or "an error without a message"
            return
        notes.head(chunk, "chat.completion.chunk")
        notes.expect(self._id in (None, chunk.get("id")), "the id changes during the stream")
        self._id = chunk.get("id")
        self._has_usage = self._has_usage or _is_usage(chunk.get("usage"))
        if as_list(chunk.get("choices")):
            self._choice(notes.only_choice(chunk, where))
        else:
            notes.expect(chunk.get("usage") is not None, f"{where} has neither choices nor usage")

    def finish(self) -> ReceivedAnswer:
        notes = self._notes
        if not notes.error:
            notes.expect(self._done, "the stream ends without [DONE]")
            notes.expect(notes.finish != "", "the stream has no finish_reason")
            notes.expect(self._has_usage, "usage is missing, although the request asked for it")
        return notes.sealed()

    def _choice(self, choice: JsonObject) -> None:
        notes, delta = self._notes, object_at(choice, "delta")
        if not self._began:
            notes.expect(delta.get("role") == "assistant", "the first delta has no role 'assistant'")
            self._began = True
        has_content = bool(as_string(delta.get("content"))) or bool(as_list(delta.get("tool_calls")))
        notes.expect(not (notes.finish and has_content), "content comes after the finish_reason")
        notes.texts(delta)
        for entry in as_list(delta.get("tool_calls")):
            self._call_delta(as_object(entry))
        reason = choice.get("finish_reason")
        if reason is not None:
            notes.expect(notes.finish == "", "a second finish_reason")
            notes.finished(reason)

    def _call_delta(self, entry: JsonObject) -> None:
        notes, index = self._notes, entry.get("index")
        notes.expect(_is_count(index), f"the index of a call is {_quoted(index)}, not a count")
        place = index if isinstance(index, int) else max(self._by_index, default=-1) + 1
        where = f"call {place}"
        if (call := self._by_index.get(place)) is None:
            notes.expect(place == len(self._by_index), f"{where}: the index is not the next one")
            self._by_index[place] = notes.call_began(entry, where)
            return
        function = object_at(entry, "function")
        notes.expect(not entry.get("id"), f"{where}: the id comes again in a later delta")
        notes.expect(not function.get("name"), f"{where}: the name comes again in a later delta")
        notes.arguments(call, function, where)


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_usage(value: Json) -> bool:
    usage = as_object(value)
    return all(_is_count(usage.get(key)) for key in ("prompt_tokens", "completion_tokens", "total_tokens"))


def _quoted(value: Json) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"

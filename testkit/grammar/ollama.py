r"""Ollama, `/api/chat`: one JSON object per line, and no blank line (ollama-python fails on it).

    {"model":"m","created_at":"2026-01-02T03:04:05.6Z","message":{"role":"assistant","content":"Hi"},"done":false}
    {"model":"m",…,"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},…}
    {"model":"m",…,"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":1,…}

`{"error":"text"}` may be the last line.
"""

import re

from testkit.grammar.frames import body, ndjson
from testkit.grammar.seen import Notes, Seen, SeenCall
from testkit.grammar.shape import Obj, expect, fresh

_REASONS = frozenset({"stop", "length", "load", "unload"})
_RFC3339 = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-][0-2]\d:[0-5]\d)"
)
_COUNTS = ("total_duration", "prompt_eval_count", "eval_count")
_MORE_COUNTS = ("load_duration", "prompt_eval_duration", "eval_duration")


def read_stream(data: bytes) -> Seen:
    """Judge a streamed response."""
    machine = _Machine()
    for line in ndjson(data):
        machine.feed(line)
    return machine.finish()


def read_whole(data: bytes) -> Seen:
    """Judge a response that was not streamed."""
    machine, whole = _Machine(), body(data)
    expect("error" not in whole.fields, "body is an error")
    expect(whole.flag("done"), f"{whole.at('done')} is false")
    machine.message(whole)
    machine.end(whole)
    return machine.finish()


class _Machine:
    def __init__(self) -> None:
        self._notes = Notes()
        self._model = ""
        self._ids: set[str] = set()

    def feed(self, line: Obj) -> None:
        expect(not self._notes.stop and not self._notes.error, f"{line.where} comes after the end")
        if "error" in line.fields:
            line.only("error")
            self._notes.error = line.word("error")
            return
        self.message(line)
        if line.flag("done"):
            self._check_last(line.obj("message"))
            self.end(line)
        else:
            line.without("done_reason", *_COUNTS, *_MORE_COUNTS)

    def message(self, line: Obj) -> None:
        """Read all of a line but its end."""
        model, message = line.word("model"), line.obj("message")
        expect(self._model in {"", model}, f"{line.at('model')} changed to {model!r}")
        self._model = model
        expect(_RFC3339.fullmatch(line.text("created_at")) is not None, f"{line.at('created_at')} is not RFC 3339")
        message.only("role", "content", "thinking", "tool_calls")
        message.one_of("role", ("assistant",))
        if "thinking" in message.fields:
            self._notes.reasoning(message.text("thinking"))
        self._notes.text(message.text("content"))
        if "tool_calls" in message.fields:
            self._calls(message.objs("tool_calls"), message.at("tool_calls"))

    def end(self, line: Obj) -> None:
        """Read the end of a response: why, and the counts."""
        self._notes.stop = line.one_of("done_reason", _REASONS)
        for key in (*_COUNTS, *[key for key in _MORE_COUNTS if key in line.fields]):
            line.number(key)
        self._notes.usage = (line.number("prompt_eval_count"), line.number("eval_count"))

    def finish(self) -> Seen:
        expect(bool(self._notes.stop or self._notes.error), "the stream ends without done")
        return self._notes.seal()

    def _check_last(self, message: Obj) -> None:
        message.without("tool_calls")
        expect(message.text("content") == "", f"{message.at('content')} is not empty in the last line")

    def _calls(self, calls: list[Obj], where: str) -> None:
        expect(bool(calls), f"{where} is empty")
        for call in calls:
            call.only("id", "function")
            function = call.obj("function")
            function.only("index", "name", "arguments")
            if "index" in function.fields:
                expect(function.number("index") == len(self._notes.calls), f"{function.at('index')} is not the next")
            id_ = fresh(call.ident("id"), self._ids, call.at("id")) if "id" in call.fields else ""
            self._notes.call_began()
            self._notes.call(SeenCall(id_, function.word("name"), function.obj("arguments").fields))

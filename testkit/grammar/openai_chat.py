r"""OpenAI Chat Completions.

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m",
           "choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}
    … "delta":{"reasoning_content":"…"} … "delta":{"content":"…"} …
    … "delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]} …
    … "delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]} …
    … "delta":{},"logprobs":null,"finish_reason":"tool_calls" …
    … "choices":[],"usage":{…} …          (only when requested)
    data: [DONE]

Clients add up strings of equal keys, so a role, id or name that comes twice is duplicated.
"""

from testkit.grammar.frames import body, sse
from testkit.grammar.seen import GrammarError, Notes, Seen, SeenCall
from testkit.grammar.shape import Obj, expect, fresh, json_object, obj, parse, refuse

_FINISH = frozenset({"stop", "length", "tool_calls", "content_filter"})
_CUT = frozenset({"length", "content_filter"})
_REASONING = ("reasoning_content", "reasoning")
_DONE = "[DONE]"
_VALUES = {"function": "arguments", "custom": "input"}


def read_stream(data: bytes) -> Seen:
    """Judge a streamed response."""
    machine = _Machine()
    for number, frame in enumerate(sse(data)):
        where = f"chunk {number}"
        expect(frame.event == "", f"{where} has the event name {frame.event!r}")
        machine.feed(frame.data, where)
    return machine.finish()


def read_whole(data: bytes) -> Seen:
    """Judge a response that was not streamed."""
    whole, notes = body(data), Notes()
    _check_head(whole, "chat.completion")
    choice = _only_choice(whole)
    _note_message(choice.obj("message"), notes)
    notes.stop = choice.one_of("finish_reason", _FINISH)
    _check_stop(notes.stop, called=bool(notes.calls))
    notes.usage = _usage(whole.obj("usage"))
    return notes.seal()


class _Call:
    def __init__(self, kind: str, id: str, name: str) -> None:
        self.kind, self.id, self.name = kind, id, name
        self.pieces: list[str] = []

    def sealed(self) -> SeenCall:
        return _seen_call(self.kind, self.id, self.name, "".join(self.pieces))


class _Machine:
    def __init__(self) -> None:
        self._notes = Notes()
        self._head: tuple[object, ...] | None = None
        self._began = False
        self._calls: list[_Call] = []
        self._ids: set[str] = set()
        self._done = False

    def feed(self, data: str, where: str) -> None:
        expect(not self._done, f"{where} comes after [DONE]")
        if data == _DONE:
            self._done = True
            return
        expect(not self._notes.error, f"{where} comes after an error")
        chunk = obj(parse(data, where), where)
        if "error" in chunk.fields:
            self._notes.error = _error(chunk)
        else:
            self._chunk(chunk)

    def finish(self) -> Seen:
        if self._notes.error:
            self._note_whole_calls()
            return self._notes.seal()
        expect(self._done, "the stream ends without [DONE]")
        expect(self._notes.stop != "", "the stream ends without a finish_reason")
        self._notes.calls = [call.sealed() for call in self._calls]
        return self._notes.seal()

    def _chunk(self, chunk: Obj) -> None:
        head = _check_head(chunk, "chat.completion.chunk")
        expect(self._head in (None, head), f"{chunk.where}: id, created or model changed: {self._head} to {head}")
        self._head = head
        if not chunk.items("choices"):
            self._usage_chunk(chunk)
            return
        expect(not self._notes.stop, f"{chunk.where} comes after the finish_reason")
        expect(not chunk.has("usage"), f"{chunk.where}: usage belongs to a chunk without choices")
        choice = _only_choice(chunk)
        self._delta(choice.obj("delta"))
        self._finish_reason(choice)

    def _usage_chunk(self, chunk: Obj) -> None:
        expect(self._notes.stop != "", f"{chunk.where}: usage comes before the finish_reason")
        expect(self._notes.usage is None, f"{chunk.where}: usage comes twice")
        self._notes.usage = _usage(chunk.obj("usage"))

    def _delta(self, delta: Obj) -> None:
        delta.only("role", "content", "refusal", "tool_calls", *_REASONING)
        if self._began:
            delta.without("role")
        else:
            delta.one_of("role", ("assistant",))
        self._began = True
        _note_texts(delta, self._notes)
        if delta.has("tool_calls"):
            self._calls_delta(delta.objs("tool_calls"), delta.where)

    def _calls_delta(self, deltas: list[Obj], where: str) -> None:
        expect(bool(deltas), f"{where}.tool_calls is empty")
        for delta in deltas:
            index = delta.number("index")
            if index == len(self._calls):
                self._call_began(delta)
            else:
                expect(index == len(self._calls) - 1, f"{delta.where}: index {index} is neither the last nor the next")
                self._call_goes_on(delta, self._calls[index])

    def _call_began(self, delta: Obj) -> None:
        kind, id_, name, value = _call_parts(delta)
        call = _Call(kind, fresh(id_, self._ids, delta.at("id")), name)
        call.pieces.append(value)
        self._calls.append(call)
        self._notes.call_began()

    def _call_goes_on(self, delta: Obj, call: _Call) -> None:
        delta.only("index", call.kind)
        inner = delta.obj(call.kind)
        inner.only(_VALUES[call.kind])
        call.pieces.append(inner.text(_VALUES[call.kind]))

    def _finish_reason(self, choice: Obj) -> None:
        if choice.value("finish_reason") is None:
            return
        delta = choice.obj("delta")
        expect(not delta.fields, f"{delta.where} is not empty beside the finish_reason")
        self._notes.stop = choice.one_of("finish_reason", _FINISH)
        _check_stop(self._notes.stop, called=bool(self._calls))

    def _note_whole_calls(self) -> None:
        for call in self._calls:
            try:
                self._notes.call(call.sealed())
            except GrammarError:  # the error cut it
                continue


def _check_head(chunk: Obj, kind: str) -> tuple[object, ...]:
    chunk.one_of("object", (kind,))
    return chunk.ident("id", "chatcmpl-"), chunk.number("created"), chunk.word("model")


def _only_choice(chunk: Obj) -> Obj:
    choices = chunk.objs("choices")
    expect(len(choices) == 1, f"{chunk.at('choices')} has {len(choices)} entries, not one")
    choice = choices[0]
    expect(choice.number("index") == 0, f"{choice.at('index')} is not 0")
    if choice.value("logprobs") is not None:
        choice.obj("logprobs")
    return choice


def _note_message(message: Obj, notes: Notes) -> None:
    message.one_of("role", ("assistant",))
    message.null("refusal")
    message.value("content")
    _note_texts(message, notes)
    ids: set[str] = set()
    for call in message.objs("tool_calls") if "tool_calls" in message.fields else []:
        kind, id_, name, value = _call_parts(call)
        notes.call_began()
        notes.call(_seen_call(kind, fresh(id_, ids, call.at("id")), name, value))
    expect(bool(notes.calls) or "tool_calls" not in message.fields, f"{message.at('tool_calls')} is empty")
    expect(bool(notes.calls) or message.has("content"), f"{message.at('content')} is null, but there is no call")


def _note_texts(holder: Obj, notes: Notes) -> None:
    if "refusal" in holder.fields:
        holder.null("refusal")
    told = [key for key in _REASONING if holder.has(key)]
    if told:
        expect(len({holder.text(key) for key in told}) == 1, f"{holder.where} has two kinds of reasoning")
        notes.reasoning(holder.text(told[0]))
    if holder.has("content"):
        notes.text(holder.text("content"))


def _call_parts(call: Obj) -> tuple[str, str, str, str]:
    kind = call.one_of("type", _VALUES)
    call.only("index", "id", "type", kind)
    inner = call.obj(kind)
    inner.only("name", _VALUES[kind])
    return kind, call.ident("id"), inner.word("name"), inner.text(_VALUES[kind])


def _seen_call(kind: str, id_: str, name: str, value: str) -> SeenCall:
    arguments = json_object(value, f"the arguments of {id_}") if kind == "function" else value
    return SeenCall(id_, name, arguments, kind)


def _check_stop(stop: str, *, called: bool) -> None:
    if stop not in _CUT and called != (stop == "tool_calls"):
        refuse(f"the finish_reason is {stop!r} {'with' if called else 'without'} calls")


def _usage(usage: Obj) -> tuple[int, int]:
    told, wrote = usage.number("prompt_tokens"), usage.number("completion_tokens")
    expect(usage.number("total_tokens") == told + wrote, f"{usage.at('total_tokens')} is not the sum")
    for details, key in (("prompt_tokens_details", "cached_tokens"), ("completion_tokens_details", "reasoning_tokens")):
        if usage.has(details):
            usage.obj(details).number(key)
    return told, wrote


def _error(chunk: Obj) -> str:
    chunk.only("error")
    error = chunk.obj("error")
    error.word("type")
    for key in ("param", "code"):
        if error.value(key) is not None:
            error.text(key)
    return error.word("message")

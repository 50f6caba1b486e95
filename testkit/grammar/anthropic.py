r"""Anthropic Messages.

    event: message_start           {"message":{"id":"msg_1","content":[],"stop_reason":null,"usage":{…},…}}
    event: ping                    (anywhere after the start)
    event: content_block_start     {"index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}
    event: content_block_delta     {"index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}
    event: content_block_stop      {"index":0}
    event: message_delta           {"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{…}}
    event: message_stop

Each event's data has its `type`; SDKs skip a frame without an event name. `event: error` may end it at any point.
"""

from testkit.grammar.frames import Frame, body, sse
from testkit.grammar.seen import Notes, Seen, SeenCall
from testkit.grammar.shape import Obj, expect, fresh, json_object, obj, parse, refuse

_STOPS = frozenset(
    {
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
    }
)
_CUT = frozenset({"max_tokens", "refusal", "model_context_window_exceeded"})
_DELTAS = {
    "text": {"text_delta": "text"},
    "tool_use": {"input_json_delta": "partial_json"},
    "thinking": {"thinking_delta": "thinking", "signature_delta": "signature"},
    "redacted_thinking": dict[str, str](),
}
_CACHES = ("cache_creation_input_tokens", "cache_read_input_tokens")
_LONGEST_ID = 128


def read_stream(data: bytes) -> Seen:
    """Judge a streamed response."""
    machine = _Machine()
    for number, frame in enumerate(sse(data)):
        machine.feed(frame, number)
    return machine.finish()


def read_whole(data: bytes) -> Seen:
    """Judge a response that was not streamed."""
    whole, notes = body(data), Notes()
    ids: set[str] = set()
    _check_message(whole)
    for block in whole.objs("content"):
        _check_block(block, ids)
        _note_block(block, notes)
    _note_stop(whole, notes, called=bool(notes.calls))
    notes.usage = _usage(whole.obj("usage"))
    return notes.seal()


class _Block:
    """A block that has begun and not stopped."""

    def __init__(self, start: Obj) -> None:
        self.start, self.kind = start, start.text("type")
        self.pieces: list[str] = []
        self.signature = ""

    def add(self, delta: Obj) -> None:
        keys = _DELTAS[self.kind]
        kind = delta.one_of("type", keys)
        piece = delta.text(keys[kind])
        expect(not self.signature, f"{delta.where} comes after the signature")
        if kind == "signature_delta":
            self.signature = delta.word("signature")
        else:
            self.pieces.append(piece)

    def whole(self) -> Obj:
        """Return the block in the form of a whole response."""
        text = "".join(self.pieces)
        told: dict[str, dict[str, object]] = {
            "text": {"text": text},
            "thinking": {"thinking": text, "signature": self.signature},
        }
        if self.kind == "tool_use":
            told["tool_use"] = {"input": json_object(text or "{}", f"{self.start.where}.input")}
        return Obj(self.start.fields | told.get(self.kind, {}), self.start.where)


class _Machine:
    def __init__(self) -> None:
        self._notes = Notes()
        self._ids: set[str] = set()
        self._open: _Block | None = None
        self._blocks = 0
        self._called = False
        self._last = ""

    def feed(self, frame: Frame, number: int) -> None:
        event = obj(parse(frame.data, f"event {number}"), f"event {number} ({frame.event})")
        kind = event.text("type")
        expect(frame.event == kind, f"{event.where}: the type of its data is {kind!r}")
        expect(self._last not in {"message_stop", "error"}, f"{event.where} comes after the end")
        expect(self._last == "" or kind != "message_start", f"{event.where} comes twice")
        expect(self._last != "" or kind in {"message_start", "error"}, f"{event.where} comes before message_start")
        if kind == "ping":
            event.only("type")
            return
        expect(not self._notes.stop or kind in {"message_stop", "error"}, f"{event.where} comes after message_delta")
        self._last = kind
        self._event(kind, event)

    def finish(self) -> Seen:
        expect(self._last in {"message_stop", "error"}, f"the stream ends with {self._last}")
        if self._open is not None:
            self._note_cut(self._open)
        return self._notes.seal()

    def _event(self, kind: str, event: Obj) -> None:
        match kind:
            case "message_start":
                self._message_start(event.obj("message"))
            case "content_block_start":
                self._block_start(event)
            case "content_block_delta":
                self._block_of(event).add(event.obj("delta"))
            case "content_block_stop":
                self._block_stop(self._block_of(event))
            case "message_delta":
                self._message_delta(event)
            case "message_stop":
                event.only("type")
                expect(self._notes.stop != "", f"{event.where} comes before message_delta")
            case "error":
                self._notes.error = _error(event)
            case _:
                refuse(f"{event.where}: no event of ours")

    def _message_start(self, message: Obj) -> None:
        _check_message(message)
        expect(not message.items("content"), f"{message.at('content')} is not empty")
        message.null("stop_reason")
        message.null("stop_sequence")
        self._notes.usage = _usage(message.obj("usage"))

    def _block_start(self, event: Obj) -> None:
        index, block = event.number("index"), event.obj("content_block")
        expect(self._open is None, f"{event.where}: the block before has not stopped")
        expect(index == self._blocks, f"{event.at('index')} is {index}, not {self._blocks}")
        _check_block(block, self._ids)
        filled = [key for key in ("text", "thinking", "signature", "input") if block.fields.get(key)]
        expect(not filled, f"{block.where}: {filled} must be empty at the start")
        self._blocks += 1
        self._called = self._called or block.text("type") == "tool_use"
        self._open = _Block(block)

    def _block_of(self, event: Obj) -> _Block:
        if self._open is None:
            refuse(f"{event.where}: no block is open")
        index = event.number("index")
        expect(index == self._blocks - 1, f"{event.at('index')} is {index}, not {self._blocks - 1}")
        return self._open

    def _block_stop(self, block: _Block) -> None:
        _note_block(block.whole(), self._notes)
        self._open = None

    def _message_delta(self, event: Obj) -> None:
        expect(self._open is None, f"{event.where}: a block has not stopped")
        _note_stop(event.obj("delta"), self._notes, called=self._called)
        self._notes.usage = _usage(event.obj("usage"))

    def _note_cut(self, block: _Block) -> None:
        if block.kind == "tool_use":
            self._notes.call_began()
        else:
            _note_block(block.whole(), self._notes)


def _check_message(message: Obj) -> None:
    message.ident("id", "msg_")
    message.one_of("type", ("message",))
    message.one_of("role", ("assistant",))
    message.word("model")


def _check_block(block: Obj, ids: set[str]) -> None:
    kind = block.one_of("type", _DELTAS)
    if kind == "tool_use":
        fresh(block.ident("id", limit=_LONGEST_ID), ids, block.at("id"))
        block.word("name")
        block.obj("input")
    elif kind == "text":
        block.text("text")
    elif kind == "thinking":
        block.text("thinking")
        block.text("signature")
    else:
        block.word("data")


def _note_block(block: Obj, notes: Notes) -> None:
    kind = block.text("type")
    if kind == "tool_use":
        notes.call_began()
        notes.call(SeenCall(block.text("id"), block.text("name"), block.obj("input").fields))
    elif kind == "text":
        notes.text(block.text("text"))
    elif kind == "thinking":
        notes.reasoning(block.text("thinking"), block.text("signature"))
    else:
        notes.reasoning("", block.text("data"))


def _note_stop(holder: Obj, notes: Notes, *, called: bool) -> None:
    notes.stop = stop = holder.one_of("stop_reason", _STOPS)
    if stop not in _CUT and called != (stop == "tool_use"):
        refuse(f"{holder.where}: the stop_reason is {stop!r} {'with' if called else 'without'} calls")
    if stop == "stop_sequence":
        holder.word("stop_sequence")
    else:
        holder.null("stop_sequence")


def _usage(usage: Obj) -> tuple[int, int]:
    cached = sum(usage.number(key) for key in _CACHES if usage.has(key))
    return usage.number("input_tokens") + cached, usage.number("output_tokens")


def _error(event: Obj) -> str:
    event.only("type", "error", "request_id")
    error = event.obj("error")
    error.word("type")
    return error.word("message")

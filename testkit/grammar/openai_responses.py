r"""OpenAI Responses.

    event: response.created                    {"response":{"id":"resp_1","status":"in_progress","output":[],…}}
    event: response.in_progress
    event: response.output_item.added          {"output_index":0,"item":{"type":"message","id":"msg_1",…}}
    event: response.content_part.added         {"item_id":"msg_1","output_index":0,"content_index":0,"part":{…}}
    event: response.output_text.delta          {"delta":"Hi","logprobs":[],…}
    event: response.output_text.done           {"text":"Hi","logprobs":[],…}
    event: response.content_part.done
    event: response.output_item.done           {"item":{…}}
    event: response.completed                  {"response":{"output":[…],"usage":{…},…}}

Each event's data has its `type` and a `sequence_number`. A call has `function_call_arguments.delta/.done` or
`custom_tool_call_input.delta/.done` instead of parts, reasoning has `reasoning_summary_part` and
`reasoning_summary_text`, or `reasoning_text` (with or without a content part around it).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from testkit.grammar.frames import Frame, body, sse
from testkit.grammar.responses_object import check_item, check_response, note_item
from testkit.grammar.seen import Notes, Seen
from testkit.grammar.shape import Obj, expect, obj, parse, refuse

_STABLE = ("id", "type", "role", "call_id", "name", "namespace", "execution")
_ENDS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}
_FINAL = frozenset({"completed", "incomplete"})


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that comes in deltas: its kind of item, its part of the item, and its keys."""

    item: str
    part: str
    index: str
    told: str


_TEXTS = {
    "response.output_text": _Text("message", "output_text", "content_index", "text"),
    "response.reasoning_text": _Text("reasoning", "reasoning_text", "content_index", "text"),
    "response.reasoning_summary_text": _Text("reasoning", "summary_text", "summary_index", "text"),
    "response.function_call_arguments": _Text("function_call", "", "", "arguments"),
    "response.custom_tool_call_input": _Text("custom_tool_call", "", "", "input"),
}
_PARTS = {"response.content_part": "content_index", "response.reasoning_summary_part": "summary_index"}
_PARTS_OF = {"message": ("output_text",), "reasoning": ("reasoning_text", "summary_text")}
_INDEX_OF = {text.part: text.index for text in _TEXTS.values()}


def read_stream(data: bytes) -> Seen:
    """Judge a streamed response."""
    machine = _Machine()
    for number, frame in enumerate(sse(data)):
        machine.feed(frame, number)
    return machine.finish()


def read_whole(data: bytes) -> Seen:
    """Judge a response that was not streamed."""
    whole, notes = body(data), Notes()
    status = check_response(whole, tuple(_ENDS.values()), notes)
    ids: set[str] = set()
    for item in whole.objs("output"):
        check_item(item, _FINAL, ids)
        _check_status(item, status)
        note_item(item, notes)
    return notes.seal()


@dataclass(slots=True)
class _Flow:
    """One streamed text: a part of an item, or a call's arguments (then `part` is empty)."""

    part: str
    wrapped: bool
    pieces: list[str] = field(default_factory=list[str])
    told: str | None = None

    def add(self, event: Obj) -> None:
        expect(self.told is None, f"{event.where} comes after the text was done")
        self.pieces.append(event.word("delta"))

    def tell(self, event: Obj, key: str) -> None:
        expect(self.told is None, f"{event.where}: the text is done twice")
        self.told = event.text(key)
        expect(self.told == "".join(self.pieces), f"{event.at(key)} is not what the deltas add up to")


class _OpenItem:
    def __init__(self, item: Obj, index: int) -> None:
        self.item, self.index = item, index
        self.kind = item.text("type")
        self.flows: list[_Flow] = []
        self.open: _Flow | None = None
        if self.kind in {"function_call", "custom_tool_call"}:
            self.begin("", wrapped=False)

    def begin(self, part: str, *, wrapped: bool) -> _Flow:
        expect(self.open is None, f"{self.item.where}: a part begins before the last one is done")
        self.open = _Flow(part, wrapped)
        self.flows.append(self.open)
        return self.open

    def next_index(self, key: str) -> int:
        return sum(_INDEX_OF[flow.part] == key for flow in self.flows)

    def flow(self, event: Obj, text: _Text) -> _Flow:
        """Return the flow that an event continues."""
        expect(self.kind == text.item, f"{event.where} is no event of a {self.kind}")
        if self.open is None and text.part == "reasoning_text":
            self.begin(text.part, wrapped=False)
        flow = self.open
        if flow is None or flow.part != text.part:
            refuse(f"{event.where}: there is no open {text.part or text.told}")
        if text.index:
            expect(event.number(text.index) == self.next_index(text.index) - 1, f"{event.at(text.index)} is wrong")
        return flow

    def check_done(self, item: Obj) -> None:
        expect(self.open is None, f"{item.where} is done before its part is")
        for key in _STABLE:
            expect(item.fields.get(key) == self.item.fields.get(key), f"{item.at(key)} changed")
        told = [(flow.part, flow.told or "") for flow in self.flows]
        expect(_by_part(told) == _by_part(_texts_of(item)), f"{item.where} is not what was told: {told!r:.300}")


class _Machine:
    def __init__(self) -> None:
        self._notes = Notes()
        self._head: tuple[object, ...] = ()
        self._ids: set[str] = set()
        self._open: _OpenItem | None = None
        self._done: list[Obj] = []
        self._last = ""
        self._events: dict[str, Callable[[Obj], None]] = {
            "response.created": self._began,
            "response.in_progress": self._began,
            "response.output_item.added": self._item_added,
            "response.output_item.done": self._item_done,
            "error": self._error,
        }
        self._events.update(dict.fromkeys(_ENDS, self._ended))
        for name in _PARTS:
            self._events.update({f"{name}.added": self._part_added, f"{name}.done": self._part_done})
        for name in _TEXTS:
            self._events.update({f"{name}.delta": self._piece, f"{name}.done": self._text_done})

    def feed(self, frame: Frame, number: int) -> None:
        event = obj(parse(frame.data, f"event {number}"), f"event {number} ({frame.event})")
        kind = event.text("type")
        expect(frame.event == kind, f"{event.where}: the type of its data is {kind!r}")
        expect(event.number("sequence_number") == number, f"{event.at('sequence_number')} is not {number}")
        self._check_turn(kind, number, event.where)
        self._last = kind
        self._events[kind](event)

    def finish(self) -> Seen:
        expect(self._last in _ENDS or self._last == "error", f"the stream ends with {self._last}")
        if self._open is not None:
            self._note_cut(self._open)
        return self._notes.seal()

    def _check_turn(self, kind: str, number: int, where: str) -> None:
        expect(kind in self._events, f"{where}: no event of ours")
        begins = ("response.created", "response.in_progress")
        expect((kind in begins) == (number < len(begins)), f"{where} comes out of turn")
        expect(kind not in begins or kind == begins[number], f"{where} comes out of turn")
        expect(self._last not in _ENDS, f"{where} comes after the end")
        expect(self._last != "error" or kind == "response.failed", f"{where} comes after an error")

    def _began(self, event: Obj) -> None:
        response = event.obj("response")
        check_response(response, ("in_progress",), self._notes)
        expect(not response.items("output"), f"{response.at('output')} is not empty")
        self._check_head(response)

    def _item_added(self, event: Obj) -> None:
        item, index = event.obj("item"), event.number("output_index")
        expect(self._open is None, f"{event.where}: the item before is not done")
        expect(index == len(self._done), f"{event.at('output_index')} is {index}, not {len(self._done)}")
        check_item(item, frozenset({"in_progress"}), self._ids)
        empty = all(value == "" for _, value in _texts_of(item)) and not item.fields.get("content")
        expect(empty and not item.fields.get("summary"), f"{item.where} is not empty when it is added")
        self._open = _OpenItem(item, index)

    def _item_done(self, event: Obj) -> None:
        opened, item = self._item_of(event), event.obj("item")
        check_item(item, _FINAL, set())
        opened.check_done(item)
        note_item(item, self._notes)
        self._done.append(item)
        self._open = None

    def _part_added(self, event: Obj) -> None:
        opened, part = self._item_of(event), event.obj("part")
        key = _PARTS[event.text("type").removesuffix(".added")]
        kind = part.one_of("type", [name for name in _PARTS_OF.get(opened.kind, ()) if _INDEX_OF[name] == key])
        expect(event.number(key) == opened.next_index(key), f"{event.at(key)} is not the next")
        expect(part.text("text") == "", f"{part.at('text')} is not empty when it is added")
        opened.begin(kind, wrapped=True)

    def _part_done(self, event: Obj) -> None:
        opened, part = self._item_of(event), event.obj("part")
        key = _PARTS[event.text("type").removesuffix(".done")]
        flow = opened.open
        if flow is None or flow.told is None or not flow.wrapped:
            refuse(f"{event.where}: no text was done before it")
        expect(event.number(key) == opened.next_index(key) - 1, f"{event.at(key)} is wrong")
        expect(part.text("type") == flow.part and part.text("text") == flow.told, f"{part.where} is not what was told")
        opened.open = None

    def _piece(self, event: Obj) -> None:
        text = _TEXTS[event.text("type").removesuffix(".delta")]
        if text.part == "output_text":
            event.items("logprobs")
        self._item_of(event).flow(event, text).add(event)

    def _text_done(self, event: Obj) -> None:
        opened, text = self._item_of(event), _TEXTS[event.text("type").removesuffix(".done")]
        if text.part == "output_text":
            event.items("logprobs")
        flow = opened.flow(event, text)
        flow.tell(event, text.told)
        if not flow.wrapped:
            opened.open = None

    def _item_of(self, event: Obj) -> _OpenItem:
        opened = self._open
        if opened is None:
            refuse(f"{event.where}: no item is open")
        expect(event.number("output_index") == opened.index, f"{event.at('output_index')} is not {opened.index}")
        told = event.obj("item").text("id") if "item" in event.fields else event.text("item_id")
        expect(told == opened.item.text("id"), f"{event.where}: the item's id is {told!r}")
        return opened

    def _ended(self, event: Obj) -> None:
        status, response = _ENDS[event.text("type")], event.obj("response")
        expect(self._open is None or status == "failed", f"{event.where}: an item is not done")
        check_response(response, (status,), self._notes)
        self._check_head(response)
        expect(
            response.items("output") == [item.fields for item in self._done], f"{response.at('output')} is not as done"
        )
        for item in self._done:
            _check_status(item, status)

    def _check_head(self, response: Obj) -> None:
        head = (response.text("id"), response.value("created_at"), response.text("model"))
        expect(self._head in ((), head), f"{response.where}: id, created_at or model changed: {self._head} to {head}")
        self._head = head

    def _error(self, event: Obj) -> None:
        for key in ("code", "param"):
            if event.value(key) is not None:
                event.text(key)
        self._notes.error = event.word("message")

    def _note_cut(self, opened: _OpenItem) -> None:
        for flow in opened.flows:
            if flow.part == "output_text":
                self._notes.text("".join(flow.pieces))
            elif flow.part:
                self._notes.reasoning("".join(flow.pieces))
            else:
                self._notes.call_began()


def _texts_of(item: Obj) -> list[tuple[str, str]]:
    kind = item.text("type")
    if kind == "function_call":
        return [("", item.text("arguments"))]
    if kind == "custom_tool_call":
        return [("", item.text("input"))]
    holders = [key for key in ("content", "summary") if item.has(key)]
    return [(part.text("type"), part.text("text")) for key in holders for part in item.objs(key)]


def _by_part(texts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(texts, key=lambda text: text[0])


def _check_status(item: Obj, status: str) -> None:
    cut = item.fields.get("status") == "incomplete"
    expect(not cut or status != "completed", f"{item.where} is incomplete, but the response is completed")

"""Output items on their way to a client: what opens them, what goes on, what closes them.

    response.output_item.added            the item, empty
    response.content_part.added           (a message; `reasoning_summary_part` for reasoning; none for calls)
    response.output_text.delta            again and again: bytes that never change, around one JSON string
    response.output_text.done
    response.content_part.done
    response.output_item.done             the item, whole

Only one item is open at a time.
"""

from typing import Final, Protocol

from toolspeak.ir.event import CallStarted
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import ToolKind
from toolspeak.text.strict import parse
from toolspeak.wires._arguments import free_text, object_text
from toolspeak.wires._body import dump, quoted
from toolspeak.wires._tools import Toolbox
from toolspeak.wires.openai_responses.words import (
    CUSTOM_CALL,
    FUNCTION_CALL,
    MESSAGE,
    NAMESPACE,
    REASONING,
    SEARCH_CALL,
)

_TAIL = b',"sequence_number":%d}\n\n'
_FRAME = b"%b%b" + _TAIL
_TEXT_FRAME = b'%b%b,"logprobs":[]' + _TAIL


class Frames:
    """Writes the events of one answer, and keeps the items that are done."""

    def __init__(self, id: str) -> None:
        """Take the id by which the items' ids are made."""
        self._id: Final = id
        self.number = 0
        self.out: list[bytes] = []
        self.items: list[Json] = []

    def take(self) -> bytes:
        """Return what was written since the last time."""
        if len(self.out) == 1:
            return self.out.pop()
        out, self.out = self.out, []
        return b"".join(out)

    def event(self, kind: str, body: JsonObject) -> None:
        """Write one event."""
        self.raw(kind, dump(body)[1:-1])

    def raw(self, kind: str, members: bytes) -> None:
        """Write one event whose members are JSON already."""
        name = kind.encode()
        head = b'event: %b\ndata: {"type":"%b",' % (name, name)
        self.out.append(_FRAME % (head, members, self.number))
        self.number += 1

    def delta(self, head: bytes, text: str) -> None:
        """Write one piece of text."""
        self.out.append(_FRAME % (head, quoted(text), self.number))
        self.number += 1

    def delta_head(self, kind: str, place: JsonObject) -> bytes:
        """Return what stands in front of each piece."""
        name = kind.encode()
        return b'event: %b\ndata: {"type":"%b",%b,"delta":' % (name, name, dump(place)[1:-1])

    def item_id(self, prefix: str) -> str:
        """Return the id of the next item."""
        return f"{prefix}_{self._id}_{len(self.items)}"

    def added(self, item: JsonObject) -> JsonObject:
        """Open an item, and return its place."""
        index = len(self.items)
        self.event("response.output_item.added", {"output_index": index, "item": item})
        return {"item_id": item["id"], "output_index": index}

    def done(self, item: JsonObject) -> None:
        """Close an item."""
        self.event("response.output_item.done", {"output_index": len(self.items), "item": item})
        self.items.append(item)


class Block(Protocol):
    """One open item."""

    def add(self, text: str) -> None:
        """Go on; `text` is never empty."""
        ...

    def close(self, status: str) -> None:
        """End it, complete or not."""
        ...


class TextBlock:
    """A message with one part of text."""

    def __init__(self, frames: Frames) -> None:
        """Open it."""
        self._frames = frames
        self._item: JsonObject = {"id": frames.item_id("msg"), "type": MESSAGE, "role": "assistant"}
        item = frames.added({**self._item, "status": "in_progress", "content": []})
        self._place: JsonObject = {**item, "content_index": 0}
        frames.event("response.content_part.added", {**self._place, "part": _part("")})
        self._head = frames.delta_head("response.output_text.delta", self._place)
        self._said: list[str] = []

    def add(self, text: str) -> None:
        """Go on: the hot path."""
        frames = self._frames
        self._said.append(text)
        frames.out.append(_TEXT_FRAME % (self._head, quoted(text), frames.number))
        frames.number += 1

    def close(self, status: str) -> None:
        """End it."""
        text = "".join(self._said)
        done: JsonObject = {**self._place, "text": text, "logprobs": []}
        self._frames.event("response.output_text.done", done)
        self._frames.event("response.content_part.done", {**self._place, "part": _part(text)})
        self._frames.done({**self._item, "status": status, "content": [_part(text)]})


class ReasoningBlock:
    """Reasoning, as a summary of one part; one that is only a signature has none."""

    def __init__(self, frames: Frames) -> None:
        """Open it."""
        self._frames = frames
        self._item: JsonObject = {"id": frames.item_id("rs"), "type": REASONING}
        self._place: JsonObject = {**frames.added({**self._item, "summary": []}), "summary_index": 0}
        self._head = frames.delta_head("response.reasoning_summary_text.delta", self._place)
        self._said: list[str] = []
        self.signature = ""

    def add(self, text: str) -> None:
        """Go on."""
        if not self._said:
            self._frames.event("response.reasoning_summary_part.added", {**self._place, "part": _summary("")})
        self._said.append(text)
        self._frames.delta(self._head, text)

    def close(self, status: str) -> None:
        """End it; reasoning is complete whatever comes behind it."""
        del status
        text = "".join(self._said)
        signed: JsonObject = {"encrypted_content": self.signature} if self.signature else {}
        summary: list[Json] = [_summary(text)] if self._said else []
        if self._said:
            self._frames.event("response.reasoning_summary_text.done", {**self._place, "text": text})
            self._frames.event("response.reasoning_summary_part.done", {**self._place, "part": _summary(text)})
        self._frames.done({**self._item, "summary": summary, **signed})


class CallBlock:
    """A call of a function: its arguments are streamed."""

    def __init__(self, frames: Frames, call: CallStarted, tools: Toolbox) -> None:
        """Open it."""
        self._frames = frames
        self._item: JsonObject = {"id": frames.item_id("fc"), "type": FUNCTION_CALL, **_named(call, tools)}
        self._place = frames.added({**self._item, "status": "in_progress", "arguments": ""})
        self._head = frames.delta_head("response.function_call_arguments.delta", self._place)
        self._said: list[str] = []

    def add(self, text: str) -> None:
        """Go on."""
        self._said.append(text)
        self._frames.delta(self._head, text)

    def close(self, status: str) -> None:
        """End it; one that is cut stays as far as it came (P3)."""
        if status == "completed" and not "".join(self._said).strip():
            self.add("{}")
        arguments = "".join(self._said)
        done: JsonObject = {**self._place, "name": self._item["name"], "arguments": arguments}
        self._frames.event("response.function_call_arguments.done", done)
        self._frames.done({**self._item, "status": status, "arguments": arguments})


class WholeCallBlock:
    """A call of a custom tool or of the client's search: what it says can only be told when all of it is there."""

    def __init__(self, frames: Frames, call: CallStarted, tools: Toolbox) -> None:
        """Take its place; nothing is written yet."""
        self._frames = frames
        self._call = call
        self._tools = tools
        self._said: list[str] = []

    def add(self, text: str) -> None:
        """Go on."""
        self._said.append(text)

    def close(self, status: str) -> None:
        """Write it, unless it is cut (P3)."""
        if status != "completed":
            return
        if self._tools.kind(self._call.name) is ToolKind.SEARCH:
            self._search("".join(self._said))
        else:
            self._custom(free_text("".join(self._said)))

    def _custom(self, text: str) -> None:
        frames = self._frames
        item: JsonObject = {"id": frames.item_id("ctc"), "type": CUSTOM_CALL, **_named(self._call, self._tools)}
        place = frames.added({**item, "status": "in_progress", "input": ""})
        if text:
            frames.delta(frames.delta_head("response.custom_tool_call_input.delta", place), text)
        frames.event("response.custom_tool_call_input.done", {**place, "input": text})
        frames.done({**item, "status": "completed", "input": text})

    def _search(self, text: str) -> None:
        frames = self._frames
        item: JsonObject = {"id": frames.item_id("tsc"), "type": SEARCH_CALL, "call_id": self._call.id}
        item["execution"] = "client"
        frames.added({**item, "status": "in_progress", "arguments": {}})
        frames.done({**item, "status": "completed", "arguments": parse(object_text(text))})


def call_block(frames: Frames, call: CallStarted, tools: Toolbox) -> Block:
    """Open a call of any kind."""
    if tools.kind(call.name) is ToolKind.FUNCTION:
        return CallBlock(frames, call, tools)
    return WholeCallBlock(frames, call, tools)


def _named(call: CallStarted, tools: Toolbox) -> JsonObject:
    """Name a tool as the client does."""
    namespace, name = tools.split(call.name)
    return {"call_id": call.id, "name": name, **({NAMESPACE: namespace} if namespace else {})}


def _part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _summary(text: str) -> JsonObject:
    return {"type": "summary_text", "text": text}

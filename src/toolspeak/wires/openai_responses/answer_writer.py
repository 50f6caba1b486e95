"""Writes an answer for a Responses client, streamed or whole, and errors.

    response.output_item.added            the item, empty
    response.content_part.added           (a message; `reasoning_summary_part` for reasoning; none for calls)
    response.output_text.delta            again and again: bytes that never change, around one JSON string
    response.output_text.done
    response.content_part.done
    response.output_item.done             the item, whole

Only one item is open at a time. A whole answer is the response of the last event.
"""

from collections.abc import Iterable
from typing import Final, Protocol

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
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import Json, JsonObject, as_string, object_at
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ToolKind
from toolspeak.ir.turn import Turn, unfold
from toolspeak.text.strict import parse
from toolspeak.wires.openai_responses import NAME
from toolspeak.wires.openai_responses.items import (
    CUSTOM_CALL,
    FUNCTION_CALL,
    MESSAGE,
    NAMESPACE,
    REASONING,
    SEARCH_CALL,
)
from toolspeak.wires.openai_responses.request_writer import instructions_of, reasoning_body, text_body
from toolspeak.wires.openai_responses.tools import UpstreamNames, choice_body, write_tools
from toolspeak.wires.shared.answer_decoder import write_counts
from toolspeak.wires.shared.calls import CallSequencer, custom_input, object_text
from toolspeak.wires.shared.failures import ENDED_IN_ERROR
from toolspeak.wires.shared.interface import Stamp
from toolspeak.wires.shared.json_body import dump_body, quote
from toolspeak.wires.shared.tools import ToolIndex

# ---------------------------------------------------------------- output items

_TAIL = b',"sequence_number":%d}\n\n'
_FRAME = b"%b%b" + _TAIL
_TEXT_FRAME = b'%b%b,"logprobs":[]' + _TAIL


class EventFrames:
    """Writes the events of one answer, and keeps the items that are done."""

    def __init__(self, id: str) -> None:
        """Derive the items' ids from `id`."""
        self._id: Final = id
        self.number = 0
        self.out: list[bytes] = []
        self.items: list[Json] = []

    def take(self) -> bytes:
        """Return the bytes since the last call."""
        if len(self.out) == 1:
            return self.out.pop()
        out, self.out = self.out, []
        return b"".join(out)

    def event(self, kind: str, body: JsonObject) -> None:
        """Write one event."""
        self.raw(kind, dump_body(body)[1:-1])

    def raw(self, kind: str, members: bytes) -> None:
        """Write one event whose members are JSON already."""
        name = kind.encode()
        head = b'event: %b\ndata: {"type":"%b",' % (name, name)
        self.out.append(_FRAME % (head, members, self.number))
        self.number += 1

    def delta(self, head: bytes, text: str) -> None:
        """Write one piece of text."""
        self.out.append(_FRAME % (head, quote(text), self.number))
        self.number += 1

    def delta_head(self, kind: str, place: JsonObject) -> bytes:
        """Return the bytes before each piece."""
        name = kind.encode()
        return b'event: %b\ndata: {"type":"%b",%b,"delta":' % (name, name, dump_body(place)[1:-1])

    def item_id(self, prefix: str) -> str:
        """Return the id of the next item."""
        return f"{prefix}_{self._id}_{len(self.items)}"

    def added(self, item: JsonObject) -> JsonObject:
        """Open an item, and return its index."""
        index = len(self.items)
        self.event("response.output_item.added", {"output_index": index, "item": item})
        return {"item_id": item["id"], "output_index": index}

    def done(self, item: JsonObject) -> None:
        """Close an item."""
        self.event("response.output_item.done", {"output_index": len(self.items), "item": item})
        self.items.append(item)


class OutputBlock(Protocol):
    """One open item."""

    def add(self, text: str) -> None:
        """Add text, which is never empty: litellm fails on an empty delta."""
        ...

    def close(self, status: str) -> None:
        """End it, complete or not."""
        ...


class TextBlock:
    """A message with one part of text."""

    def __init__(self, frames: EventFrames) -> None:
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
        frames.out.append(_TEXT_FRAME % (self._head, quote(text), frames.number))
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

    def __init__(self, frames: EventFrames) -> None:
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
        """End it; reasoning is complete whatever follows it."""
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

    def __init__(self, frames: EventFrames, call: CallStarted, tools: ToolIndex) -> None:
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
        """End it; a truncated call is left incomplete (P3)."""
        if status == "completed" and not "".join(self._said).strip():
            self.add("{}")
        arguments = "".join(self._said)
        done: JsonObject = {**self._place, "name": self._item["name"], "arguments": arguments}
        self._frames.event("response.function_call_arguments.done", done)
        self._frames.done({**self._item, "status": status, "arguments": arguments})


class WholeCallBlock:
    """A call of a custom tool or of the client's search: its input can be written only once it is complete."""

    def __init__(self, frames: EventFrames, call: CallStarted, tools: ToolIndex) -> None:
        """Write nothing yet."""
        self._frames = frames
        self._call = call
        self._tools = tools
        self._said: list[str] = []

    def add(self, text: str) -> None:
        """Go on."""
        self._said.append(text)

    def close(self, status: str) -> None:
        """Write it, unless it is truncated (P3)."""
        if status != "completed":
            return
        if self._tools.kind(self._call.name) is ToolKind.SEARCH:
            self._search("".join(self._said))
        else:
            self._custom(custom_input("".join(self._said)))

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


def call_block(frames: EventFrames, call: CallStarted, tools: ToolIndex) -> OutputBlock:
    """Open a call of any kind."""
    if tools.kind(call.name) is ToolKind.FUNCTION:
        return CallBlock(frames, call, tools)
    return WholeCallBlock(frames, call, tools)


def _named(call: CallStarted, tools: ToolIndex) -> JsonObject:
    """Write the name of a tool as the client knows it."""
    namespace, name = tools.split(call.name)
    return {"call_id": call.id, "name": name, **({NAMESPACE: namespace} if namespace else {})}


def _part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _summary(text: str) -> JsonObject:
    return {"type": "summary_text", "text": text}


class ResponseWriter:
    """Writes the response object at any point of one answer. The echo of the request is written once."""

    def __init__(self, request: Request, stamp: Stamp) -> None:
        """Start an answer to `request`."""
        self._head: JsonObject = {"id": f"resp_{stamp.id}", "object": "response", "created_at": stamp.created}
        self._echo = dump_body(_echo(request, stamp))[1:]

    def write(
        self,
        status: str,
        output: list[Json],
        usage: JsonObject | None = None,
        *,
        error: JsonObject | None = None,
        reason: str = "",
    ) -> bytes:
        """Write the response; `reason` says why it is incomplete."""
        details: JsonObject | None = {"reason": reason} if reason else None
        state: JsonObject = {"status": status, "error": error, "incomplete_details": details}
        return dump_body({**self._head, **state, "output": output, "usage": usage})[:-1] + b"," + self._echo


def _echo(request: Request, stamp: Stamp) -> JsonObject:
    extra, names, sampling = request.extra.get(NAME, {}), UpstreamNames(request), request.sampling
    return {
        "model": request.model,
        "instructions": instructions_of(request.messages) or None,
        "max_output_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "tools": write_tools(request, names),
        "tool_choice": choice_body(request, names),
        "parallel_tool_calls": request.choice.parallel,
        "text": {"format": {"type": "text"}, **object_at(text_body(request), "text")},
        "reasoning": {"effort": None, "summary": None, **object_at(reasoning_body(request), "reasoning")},
        "truncation": as_string(extra.get("truncation")) or "disabled",
        "metadata": object_at(extra, "metadata"),
        "previous_response_id": stamp.previous or None,
        "store": stamp.is_stored,
        "background": False,
    }


KEEP_ALIVE = b": keep-alive\n\n"
_REASONS: Final = {StopReason.LENGTH: "max_output_tokens", StopReason.FILTER: "content_filter"}
_CUT_CALL: Final = Failure(
    FailureKind.OTHER, "the answer was cut in the middle of a tool call, most likely by the model's token limit", 502
)


class ResponsesEncoder:
    """Writes one streamed answer. One item is open at a time: while it is a call, everything else waits."""

    def __init__(self, request: Request, stamp: Stamp) -> None:
        """Start an answer to `request`."""
        self._tools = ToolIndex(request.tools)
        self._response = ResponseWriter(request, stamp)
        self._frames = EventFrames(stamp.id)
        self._codex = is_codex(request)
        self._started = self._over = False
        self._open: OutputBlock | None = None
        self._talk: TextBlock | None = None
        """The open block, if it is text."""
        self._call = ""
        """The id of the call that is open."""
        self._sequence = CallSequencer()
        self.response = b""
        """The final response, once it is sent."""

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes for these events."""
        for event in events:
            if type(event) is TextDelta and self._talk is not None:
                if event.text:
                    self._talk.add(event.text)
                continue
            if not self._started:
                self._start()
            if not self._over:
                self._take(event)
        return self._frames.take()

    def keep_alive(self) -> bytes:
        """Return a comment: every client of this wire skips it."""
        return KEEP_ALIVE

    def _start(self) -> None:
        self._started = True
        response = b'"response":' + self._response.write("in_progress", [])
        self._frames.raw("response.created", response)
        self._frames.raw("response.in_progress", response)

    # ---------------------------------------------------------------- items in sequence

    def _take(self, event: Event) -> None:
        match event:
            case Finished(StopReason.ERROR, usage):
                self._failed(ENDED_IN_ERROR, usage)
            case Finished(stop, usage):
                self._finished(stop, usage)
            case Failed(failure, usage):
                self._failed(failure, usage)
            case _:
                for one in self._sequence.feed(event):
                    self._write(one)

    def _write(self, event: Event) -> None:
        match event:
            case TextDelta(text):
                self._text(text)
            case ReasoningDelta(text, signature):
                self._reasoning(text, signature)
            case CallStarted(id):
                self._close()
                self._open, self._call = call_block(self._frames, event, self._tools), id
            case ArgsDelta(id, json):
                if json and id == self._call and self._open is not None:
                    self._open.add(json)
            case CallEnded(id):
                if id == self._call:
                    self._close()
            case CallRejected() | Discarded() | Finished() | Failed():
                pass

    def _text(self, text: str) -> None:
        if not text:
            return
        if self._talk is None:
            self._close()
            self._open = self._talk = TextBlock(self._frames)
        self._talk.add(text)

    def _reasoning(self, text: str, signature: str) -> None:
        if not text and not signature:
            return
        if not isinstance(self._open, ReasoningBlock):
            self._close()
            self._open = ReasoningBlock(self._frames)
        if text:
            self._open.add(text)
        if signature:  # the signature ends its item; more reasoning starts another one
            self._open.signature = signature
            self._close()

    def _close(self, status: str = "completed") -> None:
        block, self._open, self._talk, self._call = self._open, None, None, ""
        if block is not None:
            block.close(status)

    # ---------------------------------------------------------------- the end

    def _finished(self, stop: StopReason, usage: Usage) -> None:
        cut = bool(self._call)
        if cut and self._codex:
            self._failed(_CUT_CALL, usage)
            return
        reason = _REASONS.get(stop) or (_REASONS[StopReason.LENGTH] if cut else "")
        if self._codex and stop is StopReason.LENGTH:
            reason = ""
        status = "incomplete" if reason else "completed"
        self._end_items(status)
        response = self._response.write(status, self._frames.items, usage_body(usage), reason=reason)
        self._end(status, response)

    def _end_items(self, status: str) -> None:
        if self._call:
            self._close("incomplete")
        for event in self._sequence.rest():
            self._write(event)
        self._close(status)
        if status == "completed" and not self._frames.items:  # Copilot fails on a response without any
            self._open = TextBlock(self._frames)
            self._close()

    def _failed(self, failure: Failure, usage: Usage) -> None:
        """End with an error; open items stay open."""
        error: JsonObject = response_error(failure)
        self._end("failed", self._response.write("failed", self._frames.items, usage_body(usage), error=error))

    def _end(self, status: str, response: bytes) -> None:
        self._over, self.response, self._talk = True, response, None
        self._frames.raw(f"response.{status}", b'"response":' + response)


def encode_turn(request: Request, stamp: Stamp, turn: Turn) -> bytes:
    """Write a whole answer."""
    encoder = ResponsesEncoder(request, stamp)
    encoder.encode((*unfold(turn), Finished(turn.stop or StopReason.END, turn.usage)))
    return encoder.response


_CODEX = "x-codex"


def is_codex(request: Request) -> bool:
    """Return whether the client is Codex, which takes an incomplete response for a broken stream and asks again."""
    metadata = request.extra.get(NAME, {}).get("client_metadata")
    return isinstance(metadata, dict) and any(key.startswith(_CODEX) for key in metadata)


def usage_body(usage: Usage) -> JsonObject:
    """Write token counts."""
    return write_counts(usage, "input", "output")


_CODES: Final = {
    FailureKind.CONTEXT_LENGTH: "context_length_exceeded",
    FailureKind.RATE_LIMITED: "rate_limit_exceeded",
    FailureKind.TRANSIENT: "server_is_overloaded",
    FailureKind.INVALID_REQUEST: "invalid_prompt",
    FailureKind.TOO_LARGE: "invalid_prompt",
}


def response_error(failure: Failure) -> JsonObject:
    """Write the error of a failed response, with one of the codes that Codex knows."""
    return {"code": _CODES.get(failure.kind, "server_error"), "message": failure.message}

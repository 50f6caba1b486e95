"""Events become what clients of this wire read, streamed or whole: a whole answer is the response of the last event."""

from collections.abc import Iterable
from typing import Final

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
from toolspeak.ir.json import JsonObject
from toolspeak.ir.request import Request
from toolspeak.ir.turn import Turn, unfold
from toolspeak.wires._breaks import ENDED_IN_ERROR
from toolspeak.wires._sequence import Sequence
from toolspeak.wires._tools import Toolbox
from toolspeak.wires._wire import Stamp
from toolspeak.wires.openai_responses.blocks import Block, Frames, ReasoningBlock, TextBlock, call_block
from toolspeak.wires.openai_responses.errors import response_error
from toolspeak.wires.openai_responses.response import ResponseWriter
from toolspeak.wires.openai_responses.words import is_codex, usage_body

KEEP_ALIVE = b": keep-alive\n\n"
_REASONS: Final = {StopReason.LENGTH: "max_output_tokens", StopReason.FILTER: "content_filter"}
_CUT_CALL: Final = Failure(
    FailureKind.OTHER, "the answer was cut in the middle of a tool call, most likely by the model's token limit", 502
)


class ResponsesEncoder:
    """Writes one streamed answer. One item is open at a time: while it is a call, everything else waits."""

    def __init__(self, request: Request, stamp: Stamp) -> None:
        """Take the client's request and the marks of this answer."""
        self._tools = Toolbox(request.tools)
        self._response = ResponseWriter(request, stamp)
        self._frames = Frames(stamp.id)
        self._codex = is_codex(request)
        self._started = self._over = False
        self._open: Block | None = None
        self._talk: TextBlock | None = None
        """The same, if it is text."""
        self._call = ""
        """The id of the call that is open."""
        self._sequence = Sequence()
        self.response = b""
        """The final response, once it was sent."""

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

    # ---------------------------------------------------------------- one after the other

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
        if signature:  # what comes next is thought anew
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
        """Break off; what is open stays open."""
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

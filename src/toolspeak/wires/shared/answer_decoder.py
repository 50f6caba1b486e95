"""Decodes an upstream's answer: the part that all wires share, from bytes to the one event that ends it.

A wire writes a `FrameReader`: what one frame means, and what a whole body means. It reports to its `AnswerState`, and
raises where it cannot read on. An answer ends once; anything after its end is ignored.
"""

from collections.abc import Callable, Iterable
from math import exp
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from toolspeak.errors import BadFrame
from toolspeak.ir.complaint import Problem
from toolspeak.ir.event import Event, Failed, Finished, FirstToken, StopReason, Usage
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import Json, JsonObject, as_list, as_object, object_at
from toolspeak.wires.shared.failures import CUT_OFF, unreadable

CUTS: Final = (StopReason.LENGTH, StopReason.FILTER)
"""Stop reasons that can interrupt a call."""
_LEAST_LOGPROB: Final = -100.0
"""Of a token that is as good as impossible. A server may write a number that no float can hold."""
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Exceptions of a JSON decoder for bytes that are not the expected JSON."""


F = TypeVar("F")
F_co = TypeVar("F_co", covariant=True)
F_contra = TypeVar("F_contra", contravariant=True)


class CallTracker(Protocol):
    """The calls of one answer."""

    @property
    def any(self) -> bool:
        """Whether there was a call."""
        ...

    def finish(self, problem: Problem | None) -> Iterable[Event]:
        """End the calls that are still open; after a `problem`, reject those that it may have cut (P3)."""
        ...


class AnswerState:
    """The state of one answer; it ends exactly once, in `Finished` or `Failed`."""

    def __init__(self, calls: CallTracker, usage_of: Callable[[Json], Usage]) -> None:
        """Track `calls`; `usage_of` reads the wire's token counts."""
        self._calls: Final = calls
        self._usage_of: Final = usage_of
        self.stop: StopReason | None = None
        self.stop_sequence = ""
        self.usage: Json = None
        """As the upstream wrote it. Many servers repeat it in every chunk; the last one counts."""
        self.first_token: FirstToken = ()
        self.over = False

    def end(self, events: list[Event]) -> None:
        """End the answer normally. The stop reason is `CALLS` exactly if there are calls, whatever the server said."""
        if self.over:
            return
        self.over = True
        stop = self.stop or StopReason.END
        events += self._calls.finish(Problem.TRUNCATED if stop in CUTS else None)
        # Servers send `stop` with calls, and `tool_calls` without any: the calls decide.
        if stop in (StopReason.END, StopReason.CALLS):
            stop = StopReason.CALLS if self._calls.any else StopReason.END
        events.append(Finished(stop, self._usage_of(self.usage), self.stop_sequence, self.first_token))

    def fail(self, failure: Failure, events: list[Event]) -> None:
        """End the answer with a failure."""
        if not self.over:
            self.over = True
            events += self._calls.finish(Problem.DISCONNECTED)
            events.append(Failed(failure, self._usage_of(self.usage)))

    def close(self, events: list[Event]) -> None:
        """Handle the end of the bytes: an answer without a stop reason was cut off (P3, P6)."""
        # Without this, a dropped connection would look like a short answer that is complete.
        if self.stop is None:
            self.fail(CUT_OFF, events)
        self.end(events)


class FrameSplitter(Protocol[F_co]):
    """Splits bytes into frames. Raises `BadFrame` over a limit."""

    def feed(self, chunk: bytes) -> Iterable[F_co]:
        """Return the frames that this chunk completes."""
        ...

    def finish(self) -> Iterable[F_co]:
        """Return the frames that the end of the bytes completes."""
        ...


class FrameReader(Protocol[F_contra]):
    """What a wire knows about its answers."""

    answer: AnswerState

    def frame(self, frame: F_contra, events: list[Event], /) -> None:
        """Read one frame of a stream."""
        ...

    def whole(self, body: bytes, events: list[Event], /) -> None:
        """Read a whole answer."""
        ...


class AnswerDecoder(Generic[F]):
    """Decodes one answer, streamed (`feed`, `finish`) or whole."""

    def __init__(self, frames: FrameSplitter[F], reader: FrameReader[F]) -> None:
        """Split bytes with `frames`, and read each frame with `reader`."""
        self._frames: Final = frames
        self._answer: Final = reader.answer
        self._read: Final = reader.frame
        self._read_whole: Final = reader.whole

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that this chunk completes."""
        events: list[Event] = []
        try:
            for frame in self._frames.feed(chunk):
                if not self._answer.over:
                    self._read(frame, events)
        except (BadFrame, *UNREADABLE) as error:
            self._answer.fail(unreadable(error), events)
        return events

    def finish(self) -> list[Event]:
        """Return the last events, for the end of the bytes."""
        events: list[Event] = []
        try:
            for frame in self._frames.finish():
                if not self._answer.over:
                    self._read(frame, events)
        except BadFrame as error:
            self._answer.fail(unreadable(error), events)
        except UNREADABLE:  # an unreadable last frame was cut: the connection ended inside it
            self._answer.fail(CUT_OFF, events)
        self._answer.close(events)
        return events

    def whole(self, body: bytes) -> list[Event]:
        """Read a whole answer."""
        events: list[Event] = []
        try:
            self._read_whole(body, events)
        except (BadFrame, *UNREADABLE) as error:
            self._answer.fail(unreadable(error), events)
        self._answer.close(events)
        return events


# ---------------------------------------------------------------- token counts
#
# Servers send counts as numbers, null, strings or not at all; anything that is not a positive number counts as 0.


def count(body: JsonObject, key: str) -> int:
    """Return a number of tokens; 0 if it is missing or not a positive number."""
    value = body.get(key)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0


def read_first_token(tokens: Json) -> FirstToken:
    """Read the probabilities of the first of `tokens`; empty if there are none, or not in the form of the APIs."""
    entries = as_list(tokens)
    tops = as_list(as_object(entries[0]).get("top_logprobs")) if entries else []
    said = ((top.get("token"), top.get("logprob")) for top in map(as_object, tops))
    return tuple(
        (token, exp(max(min(logprob, 0.0), _LEAST_LOGPROB)))
        for token, logprob in said
        if isinstance(token, str) and isinstance(logprob, int | float)
    )


def read_counts(value: Json, told: str, said: str) -> Usage:
    """Read token counts in OpenAI's form; `told` and `said` are the words for input and output."""
    body = as_object(value)
    into, out = object_at(body, f"{told}_tokens_details"), object_at(body, f"{said}_tokens_details")
    return Usage(
        count(body, f"{told}_tokens"),
        count(body, f"{said}_tokens"),
        count(into, "cached_tokens"),
        count(into, "cache_write_tokens"),
        count(out, "reasoning_tokens"),
    )


def write_counts(usage: Usage, told: str, said: str) -> JsonObject:
    """Write token counts in OpenAI's form."""
    cache: JsonObject = {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens}
    return {
        f"{told}_tokens": usage.input_tokens,
        f"{told}_tokens_details": cache,
        f"{said}_tokens": usage.output_tokens,
        f"{said}_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }

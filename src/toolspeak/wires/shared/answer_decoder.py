"""Decodes an upstream's answer: the part that all wires share, from bytes to the one event that ends it.

A wire writes a `FrameReader`: what one frame means, and what a whole body means. It reports to its `AnswerState`, and
raises where it cannot read on. An answer ends once; anything after its end is ignored.
"""

from collections.abc import Callable, Iterable
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from toolspeak.errors import BadFrame
from toolspeak.ir.complaint import Problem
from toolspeak.ir.event import Event, Failed, Finished, StopReason, Usage
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import Json, JsonObject, as_object, object_at
from toolspeak.wires.shared.failures import CUT_OFF, unreadable

CUTS: Final = (StopReason.LENGTH, StopReason.FILTER)
"""The ends that can come in the middle of a call."""
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What is raised where bytes are not the JSON that they should be."""


F = TypeVar("F")
F_co = TypeVar("F_co", covariant=True)
F_contra = TypeVar("F_contra", contravariant=True)


class CallTracker(Protocol):
    """The calls of one answer."""

    @property
    def any(self) -> bool:
        """Return whether there was a call."""
        ...

    def finish(self, problem: Problem | None) -> Iterable[Event]:
        """End the calls that are still open; after a `problem`, reject those that it may have cut (P3)."""
        ...


class AnswerState:
    """How one answer goes, and its end."""

    def __init__(self, calls: CallTracker, usage_of: Callable[[Json], Usage]) -> None:
        """Take the calls, and how the wire counts tokens."""
        self._calls: Final = calls
        self._usage_of: Final = usage_of
        self.stop: StopReason | None = None
        self.stop_sequence = ""
        self.usage: Json = None
        """As the upstream wrote it: many write it again and again, and only the last counts."""
        self.over = False

    def end(self, events: list[Event]) -> None:
        """End it well; with calls it is never a plain end, and without never one for calls."""
        if self.over:
            return
        self.over = True
        stop = self.stop or StopReason.END
        events += self._calls.finish(Problem.TRUNCATED if stop in CUTS else None)
        if stop in (StopReason.END, StopReason.CALLS):
            stop = StopReason.CALLS if self._calls.any else StopReason.END
        events.append(Finished(stop, self._usage_of(self.usage), self.stop_sequence))

    def fail(self, failure: Failure, events: list[Event]) -> None:
        """Break it off."""
        if not self.over:
            self.over = True
            events += self._calls.finish(Problem.DISCONNECTED)
            events.append(Failed(failure, self._usage_of(self.usage)))

    def close(self, events: list[Event]) -> None:
        """Take the end of the bytes: an answer that gave no reason to stop was cut off (P3, P6)."""
        if self.stop is None:
            self.fail(CUT_OFF, events)
        self.end(events)


class FrameSplitter(Protocol[F_co]):
    """Bytes become frames; over a limit, `BadFrame` is raised."""

    def feed(self, chunk: bytes) -> Iterable[F_co]:
        """Return the frames that this chunk completes."""
        ...

    def finish(self) -> Iterable[F_co]:
        """Return what the end of the bytes completes."""
        ...


class FrameReader(Protocol[F_contra]):
    """What a wire says about its answers."""

    answer: AnswerState

    def frame(self, frame: F_contra, events: list[Event], /) -> None:
        """Read one frame of a stream."""
        ...

    def whole(self, body: bytes, events: list[Event], /) -> None:
        """Read an answer that came in one piece."""
        ...


class AnswerDecoder(Generic[F]):
    """Reads one answer."""

    def __init__(self, frames: FrameSplitter[F], reader: FrameReader[F]) -> None:
        """Take what cuts the bytes into frames, and what reads these."""
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
        """Return what the end of the bytes means."""
        events: list[Event] = []
        try:
            for frame in self._frames.finish():
                if not self._answer.over:
                    self._read(frame, events)
        except BadFrame as error:
            self._answer.fail(unreadable(error), events)
        except UNREADABLE:  # what has no end was cut, if it cannot be read
            self._answer.fail(CUT_OFF, events)
        self._answer.close(events)
        return events

    def whole(self, body: bytes) -> list[Event]:
        """Read an answer that came in one piece."""
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
    """Read a number of tokens."""
    value = body.get(key)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0


def read_counts(value: Json, told: str, said: str) -> Usage:
    """Read token counts as OpenAI writes them; what went in and out is `prompt` and `completion`, or other words."""
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
    """Write token counts as OpenAI does."""
    cache: JsonObject = {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens}
    return {
        f"{told}_tokens": usage.input_tokens,
        f"{told}_tokens_details": cache,
        f"{said}_tokens": usage.output_tokens,
        f"{said}_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }

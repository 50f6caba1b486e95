"""An upstream's answer on its way in: what all decoders do with its bytes, its breaks and its end.

A room writes a `Reader`: what one frame means, and what a whole body means. It tells its `Answer` how it goes, and
raises where it cannot read on. An answer ends once; whatever comes behind its end is passed over.
"""

from collections.abc import Callable, Iterable
from typing import Final, Generic, Protocol, TypeVar

from toolspeak.errors import BadFrame
from toolspeak.ir.complaint import Problem
from toolspeak.ir.event import Event, Failed, Finished, StopReason, Usage
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import Json
from toolspeak.wires._breaks import CUT_OFF, CUTS, UNREADABLE, unreadable

F = TypeVar("F")
F_co = TypeVar("F_co", covariant=True)
F_contra = TypeVar("F_contra", contravariant=True)


class Calls(Protocol):
    """The calls of one answer."""

    @property
    def any(self) -> bool:
        """Return whether there was a call."""
        ...

    def finish(self, problem: Problem | None) -> Iterable[Event]:
        """End the calls that are still open; after a `problem`, reject those that it may have cut (P3)."""
        ...


class Answer:
    """How one answer goes, and its end."""

    def __init__(self, calls: Calls, usage_of: Callable[[Json], Usage]) -> None:
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


class Frames(Protocol[F_co]):
    """Bytes become frames; over a limit, `BadFrame` is raised."""

    def feed(self, chunk: bytes) -> Iterable[F_co]:
        """Return the frames that this chunk completes."""
        ...

    def finish(self) -> Iterable[F_co]:
        """Return what the end of the bytes completes."""
        ...


class Reader(Protocol[F_contra]):
    """What a wire says about its answers."""

    answer: Answer

    def frame(self, frame: F_contra, events: list[Event], /) -> None:
        """Read one frame of a stream."""
        ...

    def whole(self, body: bytes, events: list[Event], /) -> None:
        """Read an answer that came in one piece."""
        ...


class AnswerDecoder(Generic[F]):
    """Reads one answer."""

    def __init__(self, frames: Frames[F], reader: Reader[F]) -> None:
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

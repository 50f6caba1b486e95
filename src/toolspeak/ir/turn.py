"""A turn: the result of one generation, made by folding its events.

There is no other way to make one. So a streamed answer and a whole one cannot differ (WIRE-4).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TypeAlias, assert_never

from msgspec import Struct

from toolspeak.ir.complaint import Complaint
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
    Why,
)
from toolspeak.ir.failure import Failure
from toolspeak.ir.message import Call, Reasoning, Text


class PartialCall(Struct, frozen=True, gc=False):
    """More of a call that is being read from text: more of that text, and of the arguments' JSON.

    It is news and no promise. What became of the call follows, whole: a call, a complaint, or text.
    """

    id: str
    name: str
    native_id: str
    raw: str
    json: str


Item: TypeAlias = Event | Call | PartialCall
"""An event, or a whole call, which is split into events only when it leaves, or news of one that is not whole."""
TurnPart: TypeAlias = Text | Reasoning | Call | CallRejected | Discarded


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. Its parts are in the order in which the model wrote them; adjacent text is one part.

    With a `failure`, the parts are those that came before it, and none of the calls may run.
    """

    parts: tuple[TurnPart, ...] = ()
    stop: StopReason | None = None
    usage: Usage = Usage()
    stop_sequence: str = ""
    failure: Failure | None = None

    @property
    def text(self) -> str:
        """All visible text."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def reasoning(self) -> str:
        """All reasoning."""
        return "".join(part.text for part in self.parts if isinstance(part, Reasoning))

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls that may run."""
        return tuple(part for part in self.parts if isinstance(part, Call))

    @property
    def complaints(self) -> tuple[Complaint, ...]:
        """Why attempted calls may not run."""
        return tuple(part.complaint for part in self.parts if isinstance(part, CallRejected))


class Fold:
    """Folds events into a turn as they arrive. Calls may interleave; each one is placed where it started."""

    def __init__(self) -> None:
        """Start an empty turn."""
        self._parts: list[TurnPart | str] = []  # a str is the id of a call that may still grow
        self._open: dict[str, tuple[CallStarted, list[str], CallEnded | None]] = {}
        self._tail: list[str] = []
        self._last: Finished | Failed | None = None
        self._tail_is: type[Text | Reasoning] | Why = Text
        self._signature = ""

    def feed(self, events: Iterable[Event]) -> None:
        """Take more events."""
        for event in events:
            # Most events are more of the same text, and a stream of them is folded twice: for its answer and its trace.
            if type(event) is TextDelta and self._tail_is is Text:
                self._tail.append(event.text)
            else:
                self._take(event)

    def turn(self) -> Turn:
        """Return the turn so far, without calls that have not ended (P3)."""
        parts = [part for part in map(self._whole, self._parts) if part is not None]
        return _ended((*parts, *self._tail_part()), self._last)

    def _take(self, event: Event) -> None:
        match event:
            case TextDelta(text):
                self._grow(Text, text)
            case ReasoningDelta(text, signature):
                self._grow(Reasoning, text)
                # A signature ends its block of reasoning. Two signed blocks must not become one: each signature
                # covers its own text only, and the vendor checks it when the history comes back.
                if signature:
                    self._signature = signature
                    self._flush()
            case Discarded(why, raw):
                self._grow(why, raw)
            case CallStarted(id):
                self._flush()
                self._open[id] = (event, [], None)
                self._parts.append(id)
            case CallRejected():
                self._flush()
                self._parts.append(event)
            case ArgsDelta(id, json):
                self._open[id][1].append(json)
            case CallEnded(id):
                started, pieces, _ = self._open[id]
                self._open[id] = (started, pieces, event)
            case Finished() | Failed():
                self._last = event
            case _:
                assert_never(event)

    def _grow(self, kind: type[Text | Reasoning] | Why, text: str) -> None:
        # Text arrives token by token. Pieces are joined once, when the part ends: `+=` on a string may copy the whole
        # text for each token, which is quadratic (P8).
        if kind is not self._tail_is:
            self._flush()
            self._tail_is = kind
        self._tail.append(text)

    def _flush(self) -> None:
        self._parts += self._tail_part()
        self._tail.clear()
        self._signature = ""

    def _tail_part(self) -> list[Text | Reasoning | Discarded]:
        text = "".join(self._tail)
        if isinstance(self._tail_is, Why):
            return [Discarded(self._tail_is, text)] if text else []
        if self._tail_is is Text:
            return [Text(text)] if text else []
        return [Reasoning(text, self._signature)] if text or self._signature else []

    def _whole(self, part: TurnPart | str) -> TurnPart | None:
        if not isinstance(part, str):
            return part
        started, pieces, ended = self._open[part]
        if ended is None:
            return None  # truncated: delivered as a call, half of a command could run (P3)
        return Call(started.id, started.name, "".join(pieces), started.native_id, ended.raw, ended.fixes)


def _ended(parts: tuple[TurnPart, ...], last: Finished | Failed | None) -> Turn:
    match last:
        case Finished(stop, usage, stop_sequence):
            return Turn(parts, stop, usage, stop_sequence)
        case Failed(failure, usage):
            return Turn(parts, StopReason.ERROR, usage, failure=failure)
        case None:
            return Turn(parts)


class EventLog:
    """Keeps the events of a stream in little memory: pieces of one text, or of one call, are joined now and then.

    A token as an event of its own takes ten times the memory of its text, and a gateway keeps the events of all streams
    that are open. The fold of the kept events is that of the added ones.
    """

    __slots__ = ("_joined", "events")

    def __init__(self) -> None:
        """Start empty."""
        self.events: list[Event] = []
        self._joined = 0
        """How many of the events are joined: each is looked at once, so that a long stream stays linear (P8)."""

    def add(self, events: Iterable[Event]) -> None:
        """Keep more events."""
        self.events += events
        if len(self.events) - self._joined >= LEAST_JOINED:
            self.events[self._joined :] = _joined(self.events[self._joined :])
            self._joined = len(self.events)


class TextLog:
    """Keeps a text that comes in pieces, in little memory. The owner appends to `pieces`, and joins them at times."""

    __slots__ = ("_blocks", "pieces")

    def __init__(self) -> None:
        """Start empty."""
        self._blocks: list[str] = []
        self.pieces: list[str] = []

    def join(self) -> None:
        """Join the pieces so far."""
        self._blocks.append("".join(self.pieces))
        self.pieces.clear()

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join((*self._blocks, *self.pieces))


LEAST_JOINED = 32
"""Pieces that are joined at once: fewer would cost more time, and more would cost more memory."""


_ONLY_TEXT = {TextDelta}
_TEXT = attrgetter("text")


def _joined(events: list[Event]) -> Iterator[Event]:
    """Yield the events with pieces beside each other joined."""
    if set(map(type, events)) == _ONLY_TEXT:  # nearly always, and ten times as fast
        yield TextDelta("".join(map(_TEXT, events)))
        return
    for (kind, id), run in groupby(events, _piece_of):
        if kind is TextDelta:
            yield TextDelta("".join(event.text for event in run if isinstance(event, TextDelta)))
        elif kind is ReasoningDelta:
            yield ReasoningDelta("".join(event.text for event in run if isinstance(event, ReasoningDelta)))
        elif kind is ArgsDelta:
            yield ArgsDelta(id, "".join(event.json for event in run if isinstance(event, ArgsDelta)))
        else:
            yield from run


def _piece_of(event: Event) -> tuple[type[Event] | None, str]:
    """Return what an event is a piece of: the visible text, reasoning or a call; None if it stays as it is."""
    if isinstance(event, TextDelta):
        return TextDelta, ""
    if isinstance(event, ArgsDelta):
        return ArgsDelta, event.id
    # A signature covers the reasoning of its own block only.
    return (ReasoningDelta, "") if isinstance(event, ReasoningDelta) and not event.signature else (None, "")


def fold(events: Iterable[Event]) -> Turn:
    """Fold the events of a whole stream into a turn."""
    folding = Fold()
    folding.feed(events)
    return folding.turn()


def events_of(call: Call) -> tuple[CallStarted, ArgsDelta, CallEnded]:
    """Return the events of a whole call."""
    ended = CallEnded(call.id, call.raw, call.fixes)
    return CallStarted(call.id, call.name, call.native_id), ArgsDelta(call.id, call.arguments), ended


def split(items: Iterable[Item]) -> list[Event]:
    """Return items as events; whole calls among them are split, and news of calls that follow is left out."""
    events: list[Event] = []
    for item in items:
        if isinstance(item, Call):
            events += events_of(item)
        elif not isinstance(item, PartialCall):
            events.append(item)
    return events


def unfold(turn: Turn) -> Iterator[Event]:
    """Yield the shortest stream of events that folds to this turn."""
    for part in turn.parts:
        match part:
            case Text(text):
                yield TextDelta(text)
            case Reasoning(text, signature):
                yield ReasoningDelta(text, signature)
            case Call():
                yield from events_of(part)
            case CallRejected() | Discarded():
                yield part
            case _:
                assert_never(part)
    if turn.failure is not None:
        yield Failed(turn.failure, turn.usage)
    elif turn.stop is not None:
        yield Finished(turn.stop, turn.usage, turn.stop_sequence)

"""Decides when events leave for the client (CHK-7), and records those that have left.

    eager      as they come; long calls while they grow
    checked    text as it comes, a call when it is complete and right
    buffered   everything at the end

An event that has left is never taken back. Therefore text that may begin a refusal ("I have no tools …") waits until
that is decided, for a few hundred characters at most: once it has left, a call of the next attempt would contradict it.
"""

from collections.abc import Container, Sequence

from toolspeak.engine.refusal import RefusalWatch
from toolspeak.engine.settings import Release
from toolspeak.ir.event import ArgsDelta, CallEnded, CallStarted, Event, ReasoningDelta, TextDelta
from toolspeak.ir.turn import EventLog


class Outbox:
    """Holds events of the present attempt, and records all events of the turn that have left.

    Within an attempt, events leave in the order in which they came. While one of them is held, all later ones are held.
    """

    def __init__(self) -> None:
        """Start with nothing held and nothing sent."""
        self._log = EventLog()
        self.has_text = self.has_calls = False
        """Whether visible text has left, and whether the beginning of a call has left, in any attempt of the turn."""
        self.refused = False
        """Whether the text of the present attempt is a refusal to use tools; known after `end`."""
        self._holds_all = self._streams_calls = False
        self._watch: RefusalWatch | None = None
        self._held: list[Event] = []

    @property
    def sent(self) -> tuple[Event, ...]:
        """All events that have left, with pieces of one text joined."""
        return tuple(self._log.events)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has left that a further attempt could contradict. Reasoning and blanks do not count."""
        return not (self.has_text or self.has_calls)

    @property
    def lets_through(self) -> bool:
        """Whether the next events leave at once."""
        return self._watch is None and not self._holds_all and not self._held

    def begin(self, release: Release, *, watches: bool) -> None:
        """Begin an attempt, and drop the held events of the one before; with `watches`, look for refusals."""
        self._holds_all, self._streams_calls = release is Release.BUFFERED, release is Release.EAGER
        self._watch = RefusalWatch() if watches else None
        self._held, self.refused = [], False

    def take(self, events: Sequence[Event]) -> Sequence[Event]:
        """Take events of the attempt; return those that leave now."""
        # The usual case after the first words of an answer: nothing is held, and nothing is copied.
        leaving = events if self.lets_through else self._let_out(events)
        self._record(leaving)
        return leaving

    def end(self) -> None:
        """End the attempt, and decide whether its text is a refusal."""
        if self._watch is not None:
            self._settle(self._watch)

    def send(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return the held events and then these; all of them leave now."""
        leaving = (*self.take_held(), *events)
        self._record(leaving)
        return leaving

    def take_held(self) -> tuple[Event, ...]:
        """Remove the held events, and return them; they have not left."""
        events, self._held = tuple(self._held), []
        return events

    def drop_text(self) -> None:
        """Drop held text and reasoning, and keep held calls."""
        self._held = [event for event in self._held if not isinstance(event, TextDelta | ReasoningDelta)]

    def drop_calls(self, ids: Container[str]) -> None:
        """Drop the held calls with these ids."""
        parts = (CallStarted, ArgsDelta, CallEnded)
        self._held = [event for event in self._held if not (isinstance(event, parts) and event.id in ids)]

    def _let_out(self, events: Sequence[Event]) -> Sequence[Event]:
        for event in events:
            if self._watch is None:
                pass
            elif isinstance(event, TextDelta):
                if not self._watch.feed(event.text):
                    self._settle(self._watch)
            elif self._streams_calls and isinstance(event, CallStarted):
                self._settle(self._watch)  # a call follows, so the text before it is no refusal to make one
            self._held.append(event)
        return () if self._holds_all or self._is_watching else self.take_held()

    @property
    def _is_watching(self) -> bool:
        """Whether held text may still be a refusal. A call before any text does not wait for it."""
        return self._watch is not None and any(isinstance(event, TextDelta) for event in self._held)

    def _settle(self, watch: RefusalWatch) -> None:
        self.refused, self._watch = watch.verdict(), None

    def _record(self, events: Sequence[Event]) -> None:
        for event in events:
            self.has_text = self.has_text or is_visible(event)
            self.has_calls = self.has_calls or type(event) is CallStarted
        self._log.add(events)


def is_visible(event: Event) -> bool:
    """Return whether an event is text that is not blank."""
    return type(event) is TextDelta and not event.text.isspace()

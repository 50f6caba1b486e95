"""Decides when events leave for the client (CHK-7), and records what has left: that is never taken back.

    eager      as they come; native calls while they grow
    checked    text as it comes, a call when it is complete and right
    buffered   everything at the end

Text that may begin a refusal ("I have no tools …") waits until that is clear, for a few hundred characters at most. If
it had left, the call that asking again brings would contradict it.
"""

from collections.abc import Container, Sequence

from toolspeak.engine.plan import Release
from toolspeak.engine.refusal import RefusalWatch
from toolspeak.ir.event import ArgsDelta, CallEnded, CallStarted, Event, ReasoningDelta, TextDelta


class Outbox:
    """Holds the events of the present attempt, and records those of the whole turn that have left."""

    def __init__(self) -> None:
        """Start with nothing held and nothing sent."""
        self.sent: list[Event] = []
        self.has_text = self.has_calls = False
        """Text that is not blank has left; the beginning of a call has left."""
        self.refused = False
        """The text of the present attempt is a refusal to use tools."""
        self._holds_all = False
        self._watch: RefusalWatch | None = None
        self._held: list[Event] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing has left that a further attempt could contradict."""
        return not (self.has_text or self.has_calls)

    def begin(self, release: Release, *, watches: bool) -> None:
        """Begin an attempt, and forget what is held of the one before; `watches`: refusals are looked for."""
        self._holds_all = release is Release.BUFFERED
        self._watch = RefusalWatch() if watches else None
        self._held, self.refused = [], False

    def take(self, events: Sequence[Event]) -> Sequence[Event]:
        """Take events of the attempt; return those that leave now."""
        leaving = events if self._watch is None and not self._holds_all and not self._held else self._let_out(events)
        self._record(leaving)
        return leaving

    def end(self) -> None:
        """End the attempt: what is held is a refusal, or is not."""
        if self._watch is not None:
            self._settle(self._watch)

    def send(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return all that is held, and then these events; all of them leave now."""
        leaving = (*self.take_held(), *events)
        self._record(leaving)
        return leaving

    def take_held(self) -> tuple[Event, ...]:
        """Remove what is held, and return it."""
        events, self._held = tuple(self._held), []
        return events

    def drop_text(self) -> None:
        """Forget the text that is held, and keep the calls."""
        self._held = [event for event in self._held if not isinstance(event, TextDelta | ReasoningDelta)]

    def drop_calls(self, ids: Container[str]) -> None:
        """Forget the held calls with these ids."""
        parts = (CallStarted, ArgsDelta, CallEnded)
        self._held = [event for event in self._held if not (isinstance(event, parts) and event.id in ids)]

    def _let_out(self, events: Sequence[Event]) -> Sequence[Event]:
        for event in events:
            if isinstance(event, TextDelta) and self._watch is not None and not self._watch.feed(event.text):
                self._settle(self._watch)
            self._held.append(event)
        return () if self._holds_all or self._is_watching else self.take_held()

    @property
    def _is_watching(self) -> bool:
        """Whether text is held that may be a refusal."""
        return self._watch is not None and any(isinstance(event, TextDelta) for event in self._held)

    def _settle(self, watch: RefusalWatch) -> None:
        self.refused, self._watch = watch.verdict(), None

    def _record(self, events: Sequence[Event]) -> None:
        for event in events:
            self.has_text = self.has_text or is_visible(event)
            self.has_calls = self.has_calls or type(event) is CallStarted
        self.sent += events


def is_visible(event: Event) -> bool:
    """Return whether an event shows something: blanks are nothing."""
    return type(event) is TextDelta and not event.text.isspace()

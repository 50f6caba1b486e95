"""Where a reader puts what it has found: labels every character once, and holds what only the end can confirm."""

from collections.abc import Iterator
from typing import TypeAlias

from toolspeak.ir.event import (
    CallEnded,
    CallRejected,
    Discarded,
    Event,
    ReasoningDelta,
    TextDelta,
    Why,
)

Fallback: TypeAlias = type[TextDelta] | type[ReasoningDelta]


class Output:
    """Events in order. Neighbouring text of one feed becomes one event.

    `pending` pieces count only if nothing but blanks, closers and more calls follow to the end of the message;
    if something else does, they were text (or reasoning) all along.
    """

    def __init__(self, max_pending: int) -> None:
        """Start with nothing; more than `max_pending` characters do not wait for the end."""
        self._events: list[Event] = []
        self._run: list[str] = []
        self._run_is: Fallback = TextDelta
        self._pending: list[tuple[str, list[Event]]] = []
        self._fallback: Fallback = TextDelta
        self._max_pending = max_pending
        self._pending_length = 0
        self._pending_calls = 0
        self._attempts = 0
        self._calls = 0

    @property
    def attempts(self) -> int:
        """Count the calls and complaints so far that surely are some."""
        return self._attempts

    @property
    def calls(self) -> int:
        """Count the calls so far, pending ones too."""
        return self._calls + self._pending_calls

    @property
    def pending(self) -> bool:
        """Tell whether something waits for the end."""
        return bool(self._pending)

    def drain(self) -> list[Event]:
        """Hand over what may leave."""
        self._flush()
        events, self._events = self._events, []
        return events

    def text(self, text: str) -> None:
        """Say that this is visible text."""
        self._say(TextDelta, text)

    def thought(self, text: str) -> None:
        """Say that this is reasoning."""
        self._say(ReasoningDelta, text)

    def discard(self, why: Why, raw: str) -> None:
        """Say that this is neither shown nor executed."""
        if not raw:
            return
        if self._pending:
            self.hold(raw, [Discarded(why, raw)], self._fallback)
        else:
            self._flush()
            self._events.append(Discarded(why, raw))

    def hold(self, raw: str, events: list[Event], fallback: Fallback) -> None:
        """Keep this until the end tells whether it counts."""
        if not self._pending:
            self._fallback = fallback
        self._pending.append((raw, events))
        self._pending_calls += _calls_in(events)
        self._pending_length += len(raw)
        if self._pending_length > self._max_pending:
            self.fail()

    def forget_repeats(self) -> None:
        """Keep what waits for the end once: the model went round in circles."""
        seen: set[str] = set()
        pending, self._pending_calls = self._pending, 0
        self._pending = []
        for raw, events in pending:
            new = not _calls_in(events) or raw.strip() not in seen
            seen.add(raw.strip())
            self._pending.append((raw, events if new else [Discarded(Why.LIMIT, raw)]))
            self._pending_calls += _calls_in(self._pending[-1][1])

    def emit(self, events: list[Event]) -> None:
        """Let events leave; what was pending counts then, since a call follows it."""
        self.commit()
        self._flush()
        self._events.extend(events)
        self._attempts += sum(isinstance(event, CallEnded | CallRejected) for event in events)
        self._calls += _calls_in(events)

    def commit(self) -> None:
        """Take what is pending at its word."""
        for _, events in self._take_pending():
            self.emit(events)

    def fail(self) -> None:
        """Turn what is pending into what it looked like."""
        if self._pending:
            fallback, raw = self._fallback, "".join(raw for raw, _ in self._take_pending())
            self._say(fallback, raw)

    def _take_pending(self) -> list[tuple[str, list[Event]]]:
        pending, self._pending = self._pending, []
        self._pending_calls = self._pending_length = 0
        return pending

    def _say(self, kind: Fallback, text: str) -> None:
        self.fail()
        if kind is not self._run_is:
            self._flush()
            self._run_is = kind
        if text:
            self._run.append(text)

    def _flush(self) -> None:
        if self._run:
            self._events.append(self._run_is("".join(self._run)))
            self._run.clear()


def _calls_in(events: list[Event]) -> int:
    return sum(isinstance(event, CallEnded) for event in events)


def counted_ids(prefix: str = "call_") -> Iterator[str]:
    """Give ids for readers that are not told any."""
    number: int = 0
    while True:
        yield f"{prefix}{number}"
        number += 1

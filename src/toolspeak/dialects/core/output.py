"""Collects what a reader has found: labels each character once, and holds what only the end can confirm.

`Output` orders text, reasoning, calls and debris. `Delivery` checks attempted calls, counts them against the limit, and
detects a model that repeats itself.
"""

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import Final, TypeAlias

from toolspeak.ir.event import CallRejected, Discarded, ReasoningDelta, TextDelta, Why
from toolspeak.ir.message import Call
from toolspeak.ir.turn import Item, PartialCall
from toolspeak.toolset.check import Attempt, CallChecker

Fallback: TypeAlias = type[TextDelta] | type[ReasoningDelta]


class Output:
    """Items in order. Neighbouring text of one feed becomes one event.

    `pending` pieces count only if nothing but blanks, closers and more calls follow to the end of the message;
    if something else does, they were text (or reasoning) all along.
    """

    def __init__(self, max_pending: int) -> None:
        """Start with nothing; more than `max_pending` characters do not wait for the end."""
        self._items: list[Item] = []
        self._run: list[str] = []
        self._run_is: Fallback = TextDelta
        self._pending: list[tuple[str, Sequence[Item]]] = []
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
        """Return whether something waits for the end."""
        return bool(self._pending)

    def drain(self) -> list[Item]:
        """Hand over what may leave."""
        self._flush()
        items, self._items = self._items, []
        return items

    def text(self, text: str) -> None:
        """Add visible text."""
        self._say(TextDelta, text)

    def thought(self, text: str) -> None:
        """Add reasoning."""
        self._say(ReasoningDelta, text)

    def discard(self, why: Why, raw: str) -> None:
        """Add text that is neither shown nor executed."""
        if not raw:
            return
        if self._pending:
            self.hold(raw, [Discarded(why, raw)], self._fallback)
        else:
            self._flush()
            self._items.append(Discarded(why, raw))

    def hold(self, raw: str, items: Sequence[Item], fallback: Fallback) -> None:
        """Keep this until the end tells whether it counts."""
        if not self._pending:
            self._fallback = fallback
        self._pending.append((raw, items))
        self._pending_calls += _calls_in(items)
        self._pending_length += len(raw)
        if self._pending_length > self._max_pending:
            self.fail()

    def forget_repeats(self) -> None:
        """Keep what waits for the end once: the model went round in circles."""
        seen: set[str] = set()
        pending, self._pending_calls = self._pending, 0
        self._pending = []
        for raw, items in pending:
            new = not _calls_in(items) or raw.strip() not in seen
            seen.add(raw.strip())
            self._pending.append((raw, items if new else [Discarded(Why.LIMIT, raw)]))
            self._pending_calls += _calls_in(self._pending[-1][1])

    def emit(self, items: Sequence[Item]) -> None:
        """Let calls and complaints leave; what was pending counts then, since a call follows it."""
        self.commit()
        self._flush()
        self._items.extend(items)
        self._attempts += sum(isinstance(item, Call | CallRejected) for item in items)
        self._calls += _calls_in(items)

    def tell(self, news: PartialCall) -> None:
        """Let news of a call leave; nothing may be pending."""
        self._flush()
        self._items.append(news)

    def commit(self) -> None:
        """Take what is pending at its word."""
        for _, items in self._take_pending():
            self.emit(items)

    def fail(self) -> None:
        """Turn what is pending into what it looked like."""
        if self._pending:
            fallback, raw = self._fallback, "".join(raw for raw, _ in self._take_pending())
            self._say(fallback, raw)

    def _take_pending(self) -> list[tuple[str, Sequence[Item]]]:
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
            self._items.append(self._run_is("".join(self._run)))
            self._run.clear()


def _calls_in(items: Sequence[Item]) -> int:
    return sum(isinstance(item, Call) for item in items)


def counted_ids(prefix: str = "call_") -> Iterator[str]:
    """Give ids for readers that are not told any."""
    number: int = 0
    while True:
        yield f"{prefix}{number}"
        number += 1


MOST_TIMES: Final = 8
"""How often the same text without a marker may be a call in a row: small models repeat themselves without end."""


class Delivered(Enum):
    """What came of the attempts of one stretch of text."""

    EVENTS = auto()
    TEXT = auto()
    """None of it was a call."""
    TOO_MANY = auto()
    """There are more calls than the limit; `Delivery.rest` is the text that no event has yet."""
    LOOP = auto()
    """The model writes the same again and again, and would not stop by itself."""


class Delivery:
    """Checks what grammars find, and passes it on to the output."""

    def __init__(self, checker: CallChecker, out: Output, max_calls: int) -> None:
        """Deliver at most `max_calls` calls."""
        self._checker, self._out, self._max_calls = checker, out, max_calls
        self.rest = ""
        self._last, self._times = "", 0

    @property
    def next_id(self) -> str:
        """The id that the next call will have."""
        return self._checker.next_id

    def deliver(self, attempts: tuple[Attempt, ...], raw: str, *, until_end: Fallback | None) -> Delivered:
        """Check the attempts; the first one carries the text. `until_end`: hold them, and what they are else."""
        if until_end is not None and self._loops(raw.strip()):
            self.rest = raw
            self._out.forget_repeats()
            return Delivered.LOOP
        found: list[Call | CallRejected] = []
        room = self._max_calls - self._out.calls
        for attempt in attempts:
            checked = self._checker.check(attempt, "" if found else raw)
            if checked is None:
                return Delivered.TEXT
            room -= isinstance(checked, Call)
            if room < 0:
                self.rest = "" if found else raw
                self._put(found, raw, until_end)
                return Delivered.TOO_MANY
            found.append(checked)
        self._put(found, raw, until_end)
        return Delivered.EVENTS

    def _loops(self, raw: str) -> bool:
        self._times = self._times + 1 if raw and raw == self._last else 1
        self._last = raw
        return self._times > MOST_TIMES

    def _put(self, found: Sequence[Call | CallRejected], raw: str, until_end: Fallback | None) -> None:
        if not found:
            return
        if until_end is None:
            self._out.emit(found)
        else:
            self._out.hold(raw, found, until_end)

"""From attempts to events: judged one by one, counted against the limit, held where only the end can confirm them."""

from enum import Enum, auto
from typing import Final

from toolspeak.dialects._attempt import Attempt
from toolspeak.dialects._judge import Judge
from toolspeak.dialects._output import Fallback, Output
from toolspeak.ir.event import CallEnded, Event

MOST_TIMES: Final = 8
"""That the same words without a marker may follow each other as a call."""


class Delivered(Enum):
    """What came of the attempts of one stretch of text."""

    EVENTS = auto()
    TEXT = auto()
    """None of it was a call."""
    TOO_MANY = auto()
    """There are more calls than may be; the text that nobody carries yet is `Delivery.rest`."""
    LOOP = auto()
    """The model writes the same again and again, and would not stop by itself."""


class Delivery:
    """Judges what grammars find and puts it out."""

    def __init__(self, judge: Judge, out: Output, max_calls: int) -> None:
        """Deliver at most `max_calls` calls."""
        self._judge, self._out, self._max_calls = judge, out, max_calls
        self.rest = ""
        self._last, self._times = "", 0

    def deliver(self, attempts: tuple[Attempt, ...], raw: str, *, until_end: Fallback | None) -> Delivered:
        """Judge the attempts; the first one carries the text. `until_end`: hold them, and what they are else."""
        if until_end is not None and self._loops(raw.strip()):
            self.rest = raw
            self._out.forget_repeats()
            return Delivered.LOOP
        events: list[Event] = []
        room = self._max_calls - self._out.calls
        for attempt in attempts:
            judged = self._judge.judge(attempt, "" if events else raw)
            if judged is None:
                return Delivered.TEXT
            room -= isinstance(judged[-1], CallEnded)
            if room < 0:
                self.rest = "" if events else raw
                self._put(events, raw, until_end)
                return Delivered.TOO_MANY
            events += judged
        self._put(events, raw, until_end)
        return Delivered.EVENTS

    def _loops(self, raw: str) -> bool:
        self._times = self._times + 1 if raw and raw == self._last else 1
        self._last = raw
        return self._times > MOST_TIMES

    def _put(self, events: list[Event], raw: str, until_end: Fallback | None) -> None:
        if not events:
            return
        if until_end is None:
            self._out.emit(events)
        else:
            self._out.hold(raw, events, until_end)

"""Checks attempts one by one, counts them against the limit, and holds those that only the end can confirm."""

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from toolspeak.dialects._output import Fallback, Output
from toolspeak.ir.event import CallRejected
from toolspeak.ir.message import Call
from toolspeak.toolset.check import Attempt, CallChecker

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
    """Checks what grammars find, and passes it on to the output."""

    def __init__(self, checker: CallChecker, out: Output, max_calls: int) -> None:
        """Deliver at most `max_calls` calls."""
        self._checker, self._out, self._max_calls = checker, out, max_calls
        self.rest = ""
        self._last, self._times = "", 0

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

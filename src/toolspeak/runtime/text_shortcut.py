"""Carries plain text from an upstream's connection to the client's while the turn's task sleeps.

    upstream's `data_received` -> decoder -> the turn's lane for plain text -> encoder -> the client's connection

Without it each chunk resumes the task, with all its frames: the turn, its driver, the reader of the upstream. Whatever
is not plain text, and all text while the client does not read, goes that way still.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from toolspeak.engine.text_lane import TextLane
from toolspeak.ir.event import Event

WriteAtOnce: TypeAlias = Callable[[bytes], None]
"""Sends bytes without waiting."""


class TextShortcut:
    """The shortcut of one turn. Its driver opens it while the turn waits for its upstream."""

    __slots__ = ("_emit", "_lane", "_received", "_writer")

    def __init__(
        self, writer: Callable[[], WriteAtOnce | None], emit: Callable[[Sequence[Event], WriteAtOnce], None]
    ) -> None:
        """`writer` returns what sends bytes to the client, None while it does not read; `emit` sends events by it."""
        self._writer: Final = writer
        self._emit: Final = emit
        self._lane: TextLane | None = None
        self._received: Callable[[list[Event]], object] = len

    def open(self, lane: TextLane | None, received: Callable[[list[Event]], object]) -> None:
        """Let text pass on this lane; `received` is told of it."""
        self._lane, self._received = lane, received

    def close(self) -> None:
        """Let nothing pass: the turn's task is at work."""
        self._lane = None

    def carries(self, events: list[Event]) -> bool:
        """Return whether the events were plain text, and have been sent to the client."""
        lane = self._lane
        if lane is None or (write := self._writer()) is None or not lane.takes(events):
            return False
        self._received(events)
        self._emit(events, write)
        return True

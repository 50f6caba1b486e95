"""Lets chunks of plain text pass a turn unread; its reader gets them later, many at once.

    lane.reopen()        after the reader has read: may the next text pass?
    lane.takes(batch)    True: this text leaves as it is
    lane.settle()        before the reader reads again: it gets the text that has passed, in one piece

Most chunks of most answers are a few words in which no marker can begin. The reader would show each of them unchanged,
and no later decision depends on where one ended: what it returns does not depend on how a text is split. So the lane
adds no rule of its own. It only asks the reader, once, what may begin anything but text, and a chunk without that
leaves at once.
"""

from collections.abc import Callable, Sequence
from typing import Final

from toolspeak.engine.answer_reader import AnswerReader, PassThrough
from toolspeak.engine.outbox import Outbox
from toolspeak.ir.event import Event, TextDelta

_MOST: Final = 4096
"""Characters that may pass before the reader gets them: it reads so many in one step (P8)."""
_PIECE: Final = 64
"""Characters for which a chunk counts beside its own: a token takes as much memory as so many characters of a text."""


class TextLane:
    """The lane of one answer."""

    __slots__ = ("_out", "_reader", "_room", "_search", "_texts")

    def __init__(self, reader: AnswerReader | PassThrough, out: Outbox) -> None:
        """Start closed."""
        self._reader: Final = reader
        self._out: Final = out
        self._texts: Final[list[str]] = []
        self._search: Callable[[str], object] = str
        """Finds what may begin more than text."""
        self._room = 0
        """Characters that may still pass; 0 while the lane is closed."""

    def reopen(self) -> None:
        """Open the lane if reader and outbox would let plain text leave unchanged; else close it."""
        search = self._reader.beginnings if self._out.lets_through else None
        self._room = 0
        if search is not None:
            self._search, self._room = search, min(self._reader.room, _MOST)

    def takes(self, batch: Sequence[Event]) -> bool:
        """Return whether the events are plain text, which leaves now and is kept for the reader."""
        room = self._room
        texts: list[str] = []
        # Each text is searched by itself, as the reader would do: else what leaves would depend on how many of them
        # came in one read.
        for event in batch:
            if type(event) is not TextDelta:
                return False
            text = event.text
            room -= len(text) + _PIECE
            if room < 0 or not text or self._search(text):
                return False
            texts.append(text)
        self._room = room
        self._texts.extend(texts)
        return bool(batch)

    def settle(self) -> None:
        """Give the reader and the outbox the text that has passed."""
        if self._texts:
            text = "".join(self._texts)
            self._texts.clear()
            self._out.take(self._reader.feed((TextDelta(text),)))

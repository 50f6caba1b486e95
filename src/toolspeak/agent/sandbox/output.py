"""A command's output: capped while it is read, and harmless to show.

Only head and tail are ever held, so that a flood costs time and no memory. What would move a terminal's cursor, set its
title, turn the direction of text or hide in it becomes an escape that is seen.
"""

import re
from typing import Final

from toolspeak.text.display import visible

_ENDS = re.compile(r"\r\n?")


class Capped:
    """Keeps the first and the last bytes of a stream, and counts the rest."""

    def __init__(self, most: int) -> None:
        """Hold at most so many bytes, and a chunk."""
        self._first: Final = most - most // 2
        self._last: Final = most // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.seen = 0

    def take(self, chunk: bytes) -> None:
        """Take more of the stream."""
        self.seen += len(chunk)
        room = self._first - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        del self._tail[: max(0, len(self._tail) - self._last)]

    @property
    def left_out(self) -> int:
        """Return how many bytes are not kept."""
        return self.seen - len(self._head) - len(self._tail)

    @property
    def text(self) -> str:
        """Return what was kept, harmless, with a note of what was not."""
        if not self.left_out:
            return harmless((self._head + self._tail).decode("utf-8", "replace"))
        head, tail = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
        return f"{harmless(head)}\n[… {self.left_out} bytes left out …]\n{harmless(tail)}"


def harmless(text: str) -> str:
    """Write control characters, and all that are not seen, as escapes; a lone carriage return ends a line."""
    return visible(_ENDS.sub("\n", text))

"""Cuts texts, so that a page stays small whatever clients and models have written."""

from dataclasses import dataclass
from typing import Final

PAGE_CHARACTERS: Final = 140_000
"""Characters of other people's text on one page. Escaped they can be six times as many bytes."""
_LEAST: Final = 200
"""Characters that are shown of a text even if the page is full."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The beginning of a text, and how many characters of it are left out."""

    text: str
    left: int = 0

    @property
    def lines(self) -> int:
        """The number of lines that are shown."""
        return self.text.count("\n") + 1


class Room:
    """The room for texts on one page."""

    def __init__(self, characters: int = PAGE_CHARACTERS) -> None:
        """Start with an empty page."""
        self._left = characters

    def cut(self, text: str, most: int) -> Excerpt:
        """Return at most `most` characters of a text, fewer if the page is almost full."""
        most = max(_LEAST, min(most, self._left))
        shown = text[:most]
        self._left -= len(shown)
        return Excerpt(shown, len(text) - len(shown))

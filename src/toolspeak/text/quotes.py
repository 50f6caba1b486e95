"""The inside of a quoted string, skipped as it comes."""

import re
from typing import Final

_PLAIN: Final = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
QUOTES: Final = frozenset(_PLAIN)


class Quoted:
    """Set `quote` behind the opening quote; it is empty again behind the closing one. A backslash hides a quote."""

    def __init__(self) -> None:
        """Start outside of any string."""
        self.quote = ""
        self._escaped = False

    def skip(self, text: str, pos: int) -> int:
        """Consume the string's text from `pos` on, through its closing quote if that comes."""
        if self._escaped:
            self._escaped = False
            return pos + 1
        found = _PLAIN[self.quote].match(text, pos)
        pos = found.end() if found else pos
        if pos == len(text):
            return pos
        if text[pos] == "\\":
            self._escaped = True
        else:
            self.quote = ""
        return pos + 1

"""Is this place quoted? In inline code, quoted lines, indented code and quotation marks no call is made (P5)."""

from typing import Final

_LINE_QUOTES: Final = (">", "|")
_MARKS: Final = {'"': '"', "'": "'", "“": "”", "„": "“", "‟": "”", "«": "»", "\u2039": "\u203a", "「": "」", "『": "』"}
QUOTED_MARKUP: Final = frozenset(mark + begin for mark in _MARKS for begin in ("<", "[", "]<", "to="))
"""Markup right behind a quotation mark: it is talked about, not meant."""
_CODE_INDENT: Final = 4


class Quotation:
    """Follows the text that is shown, line by line."""

    def __init__(self) -> None:
        """Start before the first line."""
        self.code = 0
        """Length of the backtick run that opened inline code; code ends with its paragraph at the latest."""
        self.line = False
        """This line is quoted."""
        self.mark = ""
        """The quotation mark that ends a quotation in which a marker stood; it ends with its paragraph, too."""
        self._line_has_text = False
        self._after_blank = False
        self._indented = False

    @property
    def active(self) -> bool:
        """Return whether markers are only text here."""
        return self.line or self.code > 0 or self.mark != ""

    @property
    def closer(self) -> str:
        """Return what may end the quotation before the line does."""
        return "" if self.line else self.mark or "`"

    def shown(self, text: str) -> None:
        """Note text that has left."""
        line = text.rpartition("\n")[2] if "\n" in text else text
        goes_on = self._line_has_text and line is text
        self._line_has_text = goes_on or (line != "" and not line.isspace())

    def newline(self) -> None:
        """Note the end of a line."""
        self._after_blank = not self._line_has_text
        self.line = self._line_has_text = False
        if self._after_blank:
            self.code, self.mark = 0, ""

    def begin_line(self, indent: str, first: str) -> None:
        """Note how a line begins: a mark, or the indent of a code block, which a blank line must precede."""
        self._indented = self.is_indented_code(indent)
        self.line = self._indented or first in _LINE_QUOTES

    def is_indented_code(self, indent: str) -> bool:
        """Return whether a line with this indent is code."""
        return (len(indent) >= _CODE_INDENT or "\t" in indent) and (self._after_blank or self._indented)

    def ticks(self, length: int) -> None:
        """Note a run of backticks."""
        if not self.code:
            self.code = length
        elif self.code == length:
            self.code = 0

    def opens_with(self, literal: str) -> bool:
        """Return whether a literal is a quotation that begins with markup; if so, follow it."""
        if literal not in QUOTED_MARKUP:
            return False
        self.mark = _MARKS[literal[0]]
        return True

"""Quotation, Markdown fences and placeholders: text in which a call is mentioned, not meant (P5).

In inline code, quoted lines, indented code, quotation marks and ordinary fences no call is read. A call with a
placeholder as a value is an example if text follows it.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from toolspeak.toolset.check import Attempt

MAX_RUN: Final = 64
"""Backticks in a row; more are several runs."""
_FENCE = rf"(`{{3,{MAX_RUN}}}|~{{3,{MAX_RUN}}})([^`~\n]{{0,128}})"
_OPENING = re.compile(rf"{_FENCE}\n")
_OPENING_LAST = re.compile(rf"{_FENCE}\Z")
_OPENING_CUT = re.compile(rf"(?:`{{1,2}}|~{{1,2}}|{_FENCE})\Z")
_MAY_BE_LINE = re.compile(r"\n[ \t]{0,64}(?:`*|~*)[^`~\n]{0,128}\Z")
_MAX_LINE = 512
_MAX_INDENT = 60

WHOLE_REPLY: Final = frozenset({"", "json", "xml", "tool_call", "tool_calls", "tool_code", "python", "py", "text"})
"""Info strings under which a model wraps a call when it should not wrap it at all."""


@dataclass(frozen=True, slots=True)
class Fence:
    """An opening (or closing) fence line, without its newline."""

    ticks: str
    info: str
    line: str
    indent: int = 0

    def closes(self, other: "Fence") -> bool:
        """Return whether this line closes what `other` opened."""
        return not self.info and self.ticks[0] == other.ticks[0] and len(self.ticks) >= len(other.ticks)


def fence_at(text: str, pos: int, *, final: bool) -> Fence | Literal[""] | None:
    """Return the fence line at `pos` (which is the start of a line), `""` to wait, or None."""
    if text[pos] not in "`~":
        return None
    found = _OPENING.match(text, pos) or (_OPENING_LAST.match(text, pos) if final else None)
    if found is None:
        return "" if not final and _OPENING_CUT.match(text, pos) else None
    info = " ".join(found.group(2).lower().split())
    return Fence(found.group(1), info, found.group(1) + found.group(2))


class FenceLines(NamedTuple):
    """How far text surely belongs to a fence, and which fence is open after that."""

    end: int
    fence: Fence | None


def next_line(fence: Fence, text: str, *, final: bool) -> FenceLines:
    """Go to the next line that closes the fence, or opens another one: then the model forgot to close the first."""
    found = _line_of(fence.ticks, min(fence.indent, _MAX_INDENT), final=final).search(text)
    if found is not None:
        info = " ".join(found.group(2).split())
        return FenceLines(found.end(), Fence(found.group(1), info, "", fence.indent) if info else None)
    last = text.rfind("\n")
    if last < 0 or final or len(text) - last > _MAX_LINE or not _MAY_BE_LINE.match(text, last):
        return FenceLines(len(text), fence)
    return FenceLines(last, fence)


@lru_cache(maxsize=64)
def _line_of(ticks: str, indent: int, *, final: bool) -> re.Pattern[str]:
    """Find a fence that is indented at most three more than the one that is open, as Markdown has it."""
    end = r"(?=\n|\Z)" if final else r"(?=\n)"
    return re.compile(rf"\n[ \t]{{0,{indent + 3}}}({re.escape(ticks[0])}{{{len(ticks)},}})([^`~\n]{{0,128}}){end}")


_LINE_QUOTES: Final = (">", "|")
_MARKS: Final = {'"': '"', "'": "'", "“": "”", "„": "“", "‟": "”", "«": "»", "\u2039": "\u203a", "「": "」", "『": "』"}
QUOTED_MARKUP: Final = frozenset(mark + begin for mark in _MARKS for begin in ("<", "[", "]<", "to="))
"""Markup right after a quotation mark: the text mentions it, and does not mean it."""
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


_WORDS: Final = r"[\w .,'-]+"
_GAP = re.compile(rf"<{_WORDS}>|\[{_WORDS}\]|\$?\{{{{1,2}}{_WORDS}\}}{{1,2}}|[A-Z][A-Z_ -]{{0,62}}[A-Z]")
_FILLERS: Final = frozenset(
    {"a", "an", "enter", "here", "insert", "my", "name", "of", "some", "the", "to", "use", "your"}
)
_YOURS = re.compile(r"\.{3}|(?:[Yy]our|YOUR)_\w+|YOUR [A-Z ]+|(?:[Yy]our|[Tt]he) [\w ]+ here")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_A-Za-z]+")
_NAME = re.compile(r"[\w-]{3,64}")
_LONGEST_GAP = 64


def has_placeholder(attempt: Attempt) -> bool:
    """Return whether an argument is a gap to fill in: `YOUR_CITY`, `<city>`, `[city name]`, `CITY`, `...`.

    Models explain their own markup with such calls, without any quotation. In brackets or capitals the gap has the
    name of its argument: `<b>`, `[null]` and `OSLO` are ordinary values.
    """
    if isinstance(attempt.value, dict):
        texts = [(key, value) for key, value in attempt.value.items() if isinstance(value, str)]
    else:
        texts = [(argument.key, argument.text.strip()) for argument in attempt.texts or ()]
    return any(len(text) <= _LONGEST_GAP and _is_placeholder(key, text) for key, text in texts)


def _is_placeholder(key: str, text: str) -> bool:
    if _YOURS.fullmatch(text):
        return True
    own = _words(key)
    if not _NAME.fullmatch(key) or not own or not _GAP.fullmatch(text):
        return False
    return own <= _words(text) <= own | _FILLERS


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))

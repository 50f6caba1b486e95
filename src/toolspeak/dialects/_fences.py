"""Markdown fences: where a line opens one, and where it closes."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

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


class Line(NamedTuple):
    """How far text surely belongs to a fence, and which fence is open behind that."""

    end: int
    fence: Fence | None


def next_line(fence: Fence, text: str, *, final: bool) -> Line:
    """Go to the next line that closes the fence, or opens another one: then somebody forgot to close the first."""
    found = _line_of(fence.ticks, min(fence.indent, _MAX_INDENT), final=final).search(text)
    if found is not None:
        info = " ".join(found.group(2).split())
        return Line(found.end(), Fence(found.group(1), info, "", fence.indent) if info else None)
    last = text.rfind("\n")
    if last < 0 or final or len(text) - last > _MAX_LINE or not _MAY_BE_LINE.match(text, last):
        return Line(len(text), fence)
    return Line(last, fence)


@lru_cache(maxsize=64)
def _line_of(ticks: str, indent: int, *, final: bool) -> re.Pattern[str]:
    """Find a fence that is indented at most three more than the one that is open, as Markdown has it."""
    end = r"(?=\n|\Z)" if final else r"(?=\n)"
    return re.compile(rf"\n[ \t]{{0,{indent + 3}}}({re.escape(ticks[0])}{{{len(ticks)},}})([^`~\n]{{0,128}}){end}")

"""Markdown fences: where a line opens one, and where it closes."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

_OPENING = re.compile(r"(`{3,}|~{3,})([^`\n]{0,128})\n")
_OPENING_CUT = re.compile(r"(?:`{1,2}|~{1,2}|(?:`{3,}|~{3,})[^`\n]{0,128})\Z")
_OPENING_LAST = re.compile(r"(`{3,}|~{3,})([^`\n]{0,128})\Z")
_MAY_CLOSE = re.compile(r"\n {0,3}(?:`*|~*)[ \t]*\Z")
_MAX_BLANKS_AFTER = 128

WHOLE_REPLY: Final = frozenset({"", "json", "xml", "tool_call", "tool_calls", "tool_code", "python", "py", "text"})
"""Info strings under which a model wraps a call when it should not wrap it at all."""


@dataclass(frozen=True, slots=True)
class Fence:
    """An opening (or closing) fence line, without its newline."""

    ticks: str
    info: str
    line: str

    def closes(self, other: "Fence") -> bool:
        """Tell whether this line closes what `other` opened."""
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


def closing(fence: Fence, text: str, *, final: bool) -> tuple[int, bool]:
    """Return how much of `text` surely belongs to the fence, and whether that closes it."""
    found = _closer_of(fence.ticks, final=final).search(text)
    if found is not None:
        return found.end(), True
    last = text.rfind("\n")
    if last < 0 or final or len(text) - last > _MAX_BLANKS_AFTER:
        return len(text), False
    return (last if _MAY_CLOSE.match(text, last) else len(text)), False


@lru_cache(maxsize=64)
def _closer_of(ticks: str, *, final: bool) -> re.Pattern[str]:
    end = r"(?=\n|\Z)" if final else r"(?=\n)"
    return re.compile(rf"\n {{0,3}}{re.escape(ticks[0])}{{{len(ticks)},}}[ \t]*+{end}")

"""What counts only at the beginning: of the message, of a line, or right behind a call."""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from toolspeak.dialects._fences import WHOLE_REPLY, Fence, fence_at
from toolspeak.dialects._tables import FenceLine, Found, Sign, Tables
from toolspeak.toolset.toolset import ToolSet

_ORPHAN = re.compile(r"<\\?/[\w:.\-/]{0,40}>")
_ORPHAN_CUT = re.compile(r"<(?:\\?/?[\w:.\-/]{0,40})?\Z")
HELD: Final = Found("", None)


class Place(NamedTuple):
    """What is known about a place: nothing shown yet; nothing shown since a call; calls that wait for the end."""

    virgin: bool
    after_call: bool
    pending: bool
    called: bool
    """A call came before, wherever."""
    around: Fence | None
    """The fence around it that may turn out to be around the whole reply."""


@dataclass(frozen=True, slots=True)
class Beginnings:
    """Looks things up for one reader."""

    tables: Tables
    tools: ToolSet
    stop: tuple[str, ...]

    def at(self, text: str, pos: int, place: Place, *, final: bool) -> Found | None:
        """Return what opens at `pos`; HELD to wait for more text, None for nothing."""
        if place.after_call or place.pending:
            orphan = self._orphan(text, pos, place, final=final)
            if orphan is not None:
                return orphan
        tables = (self.tables.start,) if place.virgin else ()
        for table in (*tables, self.tables.line, self.tables.anywhere):
            found = table.at(text, pos, final=final)
            if found is not None:
                return HELD if found.literal == "" else found
        fence = fence_at(text, pos, final=final)
        if fence is not None:
            return HELD if fence == "" else self._fenced(fence, place)
        return self._bare(text, pos, place, final=final)

    def _orphan(self, text: str, pos: int, place: Place, *, final: bool) -> Found | None:
        """After a call, any closing tag is debris, and so is a marker that the end of the text cuts."""
        if place.pending and text[pos] in ";,":
            return Found(text[pos], Sign.CLOSER)
        orphan = _ORPHAN.match(text, pos)
        if orphan is not None:
            return Found(orphan.group(), Sign.CLOSER)
        if _ORPHAN_CUT.match(text, pos):
            return Found(text[pos:], Sign.CLOSER) if final else HELD
        if final and self.tables.anywhere.at(text, pos, final=False) == HELD:
            return Found(text[pos:], Sign.CLOSER)
        return None

    def _fenced(self, fence: Fence, place: Place) -> Found:
        if place.around is not None and fence.closes(place.around):
            return Found(fence.line, FenceLine.CLOSES)
        if place.called and fence.info.partition(" ")[0] in self.tables.result_fences:
            return Found(fence.line, Sign.RESULT)
        wrapper = self.tables.fences.get(fence.info)
        if wrapper is not None:
            return Found(fence.line, wrapper)
        whole = self.tables.whole_fences and place.virgin and place.around is None
        return Found(fence.line, FenceLine.WHOLE if whole and fence.info in WHOLE_REPLY else FenceLine.ORDINARY)

    def _bare(self, text: str, pos: int, place: Place, *, final: bool) -> Found | None:
        """Return a wrapper without an opener if one of its forms starts here."""
        at_start = self.tables.bare_start if place.virgin or place.pending else ()
        waits = False
        for wrapper in (*at_start, *self.tables.bare_line):
            scope = wrapper.scope(self.tools, self.stop)
            for kind in wrapper.forms:
                starts = kind.starts(text, pos, scope, final=final)
                if starts:
                    return Found("", wrapper)
                waits = waits or starts is None
        return HELD if waits and not final else None

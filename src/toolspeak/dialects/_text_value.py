"""A value that is plain text between tags. Its own markup inside it is data: only the grammar around tells the end."""

import re
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from toolspeak.dialects._tags import Tag
from toolspeak.text.jsonspan import MAX_BLANKS
from toolspeak.text.scan import Markers

_BLANK = re.compile(r"\s*")
_CDATA, _CDATA_END = "<![CDATA[", "]]>"


class TagLexer(Protocol):
    """Finds tags; `first` is the character they start with."""

    @property
    def first(self) -> str:
        """Return the first character of every tag."""
        ...

    def at(self, text: str, pos: int, *, final: bool) -> Tag | Literal[""] | None:
        """Return the tag at `pos`, `""` to wait, None for no tag."""
        ...


Ends: TypeAlias = Callable[[Tag, str, int, bool], bool | None]
"""Does this tag, of which `text` goes on at this place, end the value? None asks for more text."""


class TextValue:
    """Collects the text up to the tag that ends it; that tag is left for the caller."""

    def __init__(self, tags: TagLexer, ends: Ends) -> None:
        """Start behind the opening tag."""
        self._tags, self._ends = tags, ends
        self._parts: list[str] = []
        self._cdata: bool | None = None  # None: the value has not begun

    @property
    def raw(self) -> str:
        """The value to the byte."""
        return "".join(self._parts)

    @property
    def text(self) -> str:
        """The value, without the one newline on each side that templates add."""
        whole = self.raw
        if whole.startswith("\n"):
            return whole[1:].removesuffix("\n")
        return whole

    @property
    def at_line_start(self) -> bool:
        """Return whether the value so far ends a line."""
        last = next((part for part in reversed(self._parts) if part), "")
        return last.endswith("\n")

    def feed(self, text: str, pos: int, *, final: bool) -> tuple[int, Tag | None]:
        """Consume; return the tag that ends the value, or None for more."""
        if self._cdata is None:
            pos = self._begin(text, pos, final=final)
        while self._cdata is not None and pos < len(text):
            if self._cdata:
                pos, more = self._in_cdata(text, pos, final=final)
                if not more:
                    return pos, None
                continue
            at = text.find(self._tags.first, pos)
            end = len(text) if at < 0 else at
            self._parts.append(text[pos:end])
            pos = end
            if at < 0:
                break
            step, ending = self._tag(text, pos, final=final)
            if ending is not None or step == 0:
                return pos, ending
            self._parts.append(text[pos : pos + step])
            pos += step
        return pos, None

    def _begin(self, text: str, pos: int, *, final: bool) -> int:
        head = text[pos : pos + len(_CDATA)]
        if not final and len(head) < len(_CDATA) and _CDATA.startswith(head):
            return pos
        self._cdata = head == _CDATA
        return pos + len(_CDATA) if self._cdata else pos

    def _in_cdata(self, text: str, pos: int, *, final: bool) -> tuple[int, bool]:
        end = text.find(_CDATA_END, pos)
        if end >= 0:
            self._parts.append(text[pos:end])
            self._cdata = False
            return end + len(_CDATA_END), True
        keep = 0 if final else len(_CDATA_END) - 1
        safe = max(pos, len(text) - keep)
        self._parts.append(text[pos:safe])
        return safe, False

    def _tag(self, text: str, pos: int, *, final: bool) -> tuple[int, Tag | None]:
        """Return how much of the text at `pos` is data (0: wait), or the tag that ends the value."""
        tag = self._tags.at(text, pos, final=final)
        if tag is None:
            return 1, None
        if isinstance(tag, str):
            return 0, None
        ends = self._ends(tag, text, pos + len(tag.raw), final)
        if ends is None:
            return 0, None
        return len(tag.raw), tag if ends else None


def followed(  # noqa: PLR0913  (a lookahead has that many parts; they are all plain)
    text: str, pos: int, *, final: bool, tags: TagLexer, enders: Markers, accepts: Callable[[Tag], bool]
) -> bool | None:
    """Return whether after blanks comes the end, an ender, or a tag that is accepted. None asks for more text."""
    blank = _BLANK.match(text, pos)
    pos, start = (blank.end() if blank else pos), pos
    if pos - start > MAX_BLANKS:
        return False
    if pos == len(text):
        return True if final else None
    ender = enders.match(text, pos, final=final)
    if ender:
        return True
    tag = tags.at(text, pos, final=final)
    if tag is None or isinstance(tag, str):
        return False if tag is None and ender is None else None
    return accepts(tag)

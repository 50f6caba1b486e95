"""A message header that is only dropped: `to=f<|message|>`."""

from dataclasses import dataclass
from typing import Final

from toolspeak.dialects._attempt import MORE, Mark, Outcome
from toolspeak.text.scan import Markers
from toolspeak.toolset.toolset import ToolSet

_MESSAGE = Markers(("<|message|>",))
_MAX_HEADER = 160


class HeaderBlock:
    """Reads up to `<|message|>` on the same line."""

    def __init__(self) -> None:
        """Start behind the opener."""
        self.ended = False
        self._length = 0

    def feed(self, text: str, *, final: bool) -> tuple[int, Outcome]:
        """Consume the header."""
        hit = _MESSAGE.search(text, 0, final=final)
        end = len(text) if hit is None else hit.start
        line = text.find("\n", 0, end)
        allowed = min(end if line < 0 else line, _MAX_HEADER - self._length)
        self._length += allowed
        if allowed < end or (final and hit is None):
            self.ended = True
            return allowed, Mark.REFUSED
        if hit is None or not hit.literal:
            return end, MORE
        self.ended = True
        return end + len(hit.literal), Mark.DEBRIS


@dataclass(frozen=True)
class _HeaderKind:
    def new_block(self, tools: ToolSet, stop: tuple[str, ...]) -> HeaderBlock:
        """Make a block for one header."""
        del tools, stop
        return HeaderBlock()


HEADER_TO_MESSAGE: Final = _HeaderKind()

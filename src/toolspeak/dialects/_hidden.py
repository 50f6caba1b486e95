"""Characters that nobody sees, with which a text can say something else to a model than to people (SAFE-2).

Always taken out: Unicode tags (U+E0000 to U+E007F), which spell ASCII invisibly, and the bidi controls that reorder
what is read. The price is that flags of regions (England, Wales) become black flags.

Zero-width characters are letters' joiners in Persian, Hindi and emoji. They are taken out only where both their
neighbours are ASCII (or one of the few other characters that markers are made of), or the text's own end: there they
join nothing, but can split a marker. A run of hidden characters has the neighbours that are seen.

In JSON the same characters become escapes instead: the value stays what it was.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

MARKER_CHARACTERS: Final = "｜‖▁✿"
"""What is not ASCII in the markers of any dialect."""

_ALWAYS = "\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f"
_ZERO_WIDTH = (
    "\0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2065\u206a-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0100-\U000e01ef"
)
_TAKEN = re.compile(f"[{_ALWAYS}]")
_RUN = re.compile(f"[{_ALWAYS}{_ZERO_WIDTH}]+")


class Changed(NamedTuple):
    """A text, and in how many places it was changed."""

    text: str
    places: int


def without_hidden(text: str) -> Changed:
    """Take hidden characters out."""
    return _changed(text, lambda hidden: hidden[:0])


def hidden_escaped(json: str) -> Changed:
    """Write hidden characters in JSON's strings as escapes."""
    return _changed(json, _escaped)


def _changed(text: str, shown: Callable[[str], str]) -> Changed:
    places = 0

    def run(found: re.Match[str]) -> str:
        nonlocal places
        was = found.group()
        joins = not (_is_plain(text, found.start() - 1) and _is_plain(text, found.end()))
        now = _TAKEN.sub(lambda one: shown(one.group()), was) if joins else shown(was)
        places += now != was
        return now

    return Changed(_RUN.sub(run, text), places) if not text.isascii() or "\0" in text else Changed(text, 0)


def _is_plain(text: str, at: int) -> bool:
    return not 0 <= at < len(text) or text[at].isascii() or text[at] in MARKER_CHARACTERS


def _escaped(hidden: str) -> str:
    units = hidden.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

"""Text from a server without what nobody sees: it could say something else to a model than to people."""

import re
from typing import Final

from toolspeak.text.display import cut

_UNSEEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]")
"""Control characters but line ends and tabs, what turns the direction of text, half characters, Unicode tags."""
_ZERO_WIDTH: Final = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u2060-\u2065\u206a-\u206f\ufeff]")


def plain_text(text: str, most: int) -> str:
    """Return a result's text, cleaned, of at most so many bytes and a note. Joiners of letters stay."""
    return cut(_UNSEEN.sub("", text), most)


def plain_line(text: str, most: int) -> str:
    """Return a text that a server says of itself: zero-width characters go as well."""
    return plain_text(_ZERO_WIDTH.sub("", text), most)


def is_plain(text: str) -> bool:
    """Return whether everything in a text can be seen."""
    return not _UNSEEN.search(text) and not _ZERO_WIDTH.search(text)

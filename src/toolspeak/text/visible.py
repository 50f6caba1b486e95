"""Text that is safe to show: what moves the cursor, writes backwards or cannot be seen is written as an escape."""

import re
from typing import Final

_SHOWN: Final = "\n\t\u3000"
"""What `isprintable` refuses and a terminal shows well: line ends, tabs, the blank of Chinese and Japanese."""
_ODD: Final = re.compile(r"[^ -~]")
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Write control characters, those that turn the direction of text, and all that are not seen, as escapes."""
    return _ODD.sub(_escaped, text)


def tamed(text: str) -> str:
    """Write control characters, those that turn the direction of text and halves of surrogates as escapes.

    What only cannot be seen stays: it is part of a text that somebody may want to find again letter by letter.
    """
    return _CONTROLS.sub(_coded, text)


def _escaped(found: re.Match[str]) -> str:
    char = found.group()
    return char if char.isprintable() or char in _SHOWN else _coded(found)


def _coded(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode()

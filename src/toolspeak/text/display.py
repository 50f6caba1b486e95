r"""Text that is safe and short enough to show.

    visible("a\x1b[2J")   ->  "a\\x1b[2J"                           control and invisible characters become escapes
    cut("abcdefgh", 4)    ->  "ab\n[… 4 bytes left out …]\ngh"     head and tail say most

A tool's output, a file name or a model's text may move the cursor, write backwards, or hide characters from the person
who approves a call.
"""

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


def cut(text: str, most: int) -> str:
    """Return at most `most` bytes of a text, and between them a note of what is missing; a short one as it is."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= most:
        return text
    half = max(most, 0) // 2
    end, start = max(most, 0) - half, len(data) - half
    while end and _is_inside(data, end):
        end -= 1
    while _is_inside(data, start):
        start += 1
    return f"{_text(data[:end])}\n[… {start - end} bytes left out …]\n{_text(data[start:])}"


def _is_inside(data: bytes, place: int) -> bool:
    """Return whether a cut here would part a character."""
    return place < len(data) and data[place] & 0xC0 == 0x80  # noqa: PLR2004 # how UTF-8 marks what goes on


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")

r"""Makes text safe and short enough to show to a person.

    visible("a\x1b[2J")   ->  "a\\x1b[2J"                           control and invisible characters become escapes
    cut("abcdefgh", 4)    ->  "ab\n[… 4 bytes left out …]\ngh"     head and tail say most

A tool's output, a file name or a model's text may move the cursor, turn the direction of writing, or hide characters. A
person who approves a call must see what will run.
"""

import re
from typing import Final

_SHOWN: Final = "\n\t\u3000"
"""Characters that `isprintable` refuses and a terminal shows well: line ends, tabs, the ideographic space."""
_ODD: Final = re.compile(r"[^ -~]")
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Return the text with control characters, bidirectional controls and invisible characters as escapes."""
    return _ODD.sub(_escaped, text)


def tamed(text: str) -> str:
    """Return the text with control characters, bidirectional controls and lone surrogates as escapes.

    Characters that are merely invisible stay, so that the text can still be found in its source letter by letter.
    """
    return _CONTROLS.sub(_coded, text)


def _escaped(found: re.Match[str]) -> str:
    char = found.group()
    return char if char.isprintable() or char in _SHOWN else _coded(found)


def _coded(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode()


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` bytes as it is; of a longer one, its head and tail with a note between them."""
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
    """Return whether a cut at this byte would split a character."""
    return place < len(data) and data[place] & 0xC0 == 0x80  # noqa: PLR2004 # UTF-8's mark of a continuation byte


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")

r"""Long text, cut in the middle: its head and its tail say most.

    cut("abcdefgh", 4)  ->  "ab\n[… 4 bytes left out …]\ngh"

It is counted in UTF-8, and no character is cut in two.
"""


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

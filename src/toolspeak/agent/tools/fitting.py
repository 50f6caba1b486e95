"""What a tool gave, as large as it may be: a run keeps and sends every result again, round by round (RUN-4)."""

from collections.abc import Iterable
from typing import Final

import msgspec

from toolspeak.ir.message import Image, Opaque, ResultPart, Text, ToolReference, part_text
from toolspeak.text.display import cut

IMAGES: Final = 4
IMAGE_BYTES: Final = 4 << 20
"""Of all images of a result together, as base64."""


def fit_output(content: Iterable[ResultPart], most: int) -> tuple[ResultPart, ...]:
    """Cut texts that are too long, alone or together, and leave out images that are too many or too large.

    Texts that are too long together become one, before all that is no text.
    """
    pieces = tuple(_without_surplus(content))
    texts = [piece.text for piece in pieces if isinstance(piece, Text)]
    if sum(_size(text) + 1 for text in texts) <= most + 1:
        return pieces
    others = (piece for piece in pieces if not isinstance(piece, Text))
    return (Text(cut("\n".join(texts), most)), *others)


def _without_surplus(content: Iterable[ResultPart]) -> Iterable[ResultPart]:
    count, left = 0, IMAGE_BYTES
    for piece in content:
        if isinstance(piece, Text):
            yield _writable(piece)
            continue
        size = _weight(piece)
        if count == IMAGES or size > left:
            yield Text(f"{part_text(piece)} ({size} bytes; at most {IMAGES} and {IMAGE_BYTES} bytes together)")
        else:
            count, left = count + 1, left - size
            yield piece


def _weight(piece: Image | ToolReference | Opaque) -> int:
    match piece:
        case Image():
            return len(piece.data) + len(piece.url)
        case ToolReference():
            return len(piece.name)
        case Opaque():
            return len(msgspec.json.encode(piece.vendor.fields))


def _writable(piece: Text) -> Text:
    """Replace halves of surrogates: a file's name may have them, JSON cannot."""
    if piece.text.isascii():
        return piece
    text = piece.text.encode("utf-8", "replace").decode()
    return piece if text == piece.text else Text(text, piece.vendor)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())

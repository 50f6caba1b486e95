"""Images as data URLs, the form that most wires share."""

from toolspeak.ir.message import Image

_PREFIX = "data:"
_MARK = ";base64,"


def from_url(url: str) -> Image:
    """Read a data URL; any other URL stays one, and is never fetched."""
    head, mark, data = url.partition(_MARK)
    if mark and head.startswith(_PREFIX):
        return Image(head.removeprefix(_PREFIX), data)
    return Image(url=url)


def to_url(image: Image) -> str:
    """Write an image as a URL."""
    return image.url or f"{_PREFIX}{image.media_type or 'image/png'}{_MARK}{image.data}"

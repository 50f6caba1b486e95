"""Converts a server's result of a call into a `ToolOutput`. Sizes are bounded, and no link is fetched."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from mcp import types

from toolspeak.agent.mcp.definition import plain_line, plain_text
from toolspeak.agent.tools.action import ToolOutput
from toolspeak.errors import BadJson
from toolspeak.ir.message import Image, Text
from toolspeak.text.strict import dump

MOST_TEXT: Final = 64 * 1024
"""Maximum bytes of all texts of a result; the toolbox cuts further."""
MOST_BLOCKS: Final = 256
MOST_IMAGES: Final = 4
LARGEST_IMAGE: Final = 2 << 20
"""Maximum characters of an image's base64."""
LONGEST_NAME: Final = 256
_IMAGES: Final = frozenset(("image/gif", "image/jpeg", "image/png", "image/webp"))
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_UNFIT: Final = "It was run, but what it returned is not what it declares ({problems}). It returned:"


def tool_output(result: types.CallToolResult, problems: str = "") -> ToolOutput:
    """Convert a result. With `problems`, it violates the server's own output schema, and becomes an error."""
    parts = list(_parts(result.content[:MOST_BLOCKS]))
    images = [part for part in parts if isinstance(part, Image)]
    pieces = [_UNFIT.format(problems=problems)] if problems else []
    pieces += [part for part in parts if isinstance(part, str)]
    if (more := len(result.content) - MOST_BLOCKS) > 0:
        pieces.append(f"[{more} more blocks left out]")
    if result.structured_content is not None and not any(
        isinstance(each, types.TextContent) for each in result.content
    ):
        pieces.append(_structured(result.structured_content))
    texts = [Text(_joined(pieces))] if pieces or not images else []
    return ToolOutput((*texts, *images), result.is_error or bool(problems))


def _parts(blocks: Iterable[types.ContentBlock]) -> Iterator[Image | str]:
    """Convert blocks: the first few images stay images, everything else becomes text."""
    images = 0
    for block in blocks:
        if isinstance(block, types.ImageContent) and images < MOST_IMAGES and _can_be_shown(block):
            images += 1
            yield Image(block.mime_type, block.data)
        else:
            yield _text(block)


def _can_be_shown(image: types.ImageContent) -> bool:
    small = len(image.data) <= LARGEST_IMAGE
    return small and image.mime_type in _IMAGES and _BASE64.fullmatch(image.data) is not None


def _text(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent(text=text):
            return text
        case types.ImageContent(mime_type=kind, data=data) | types.AudioContent(mime_type=kind, data=data):
            return f"[{plain_line(kind, LONGEST_NAME)} of {len(data) * 3 // 4} bytes left out]"
        case types.ResourceLink(name=name, uri=uri):
            return f"[{plain_line(name, LONGEST_NAME)}: {plain_line(uri, LONGEST_NAME)}, not fetched]"
        case types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, text=text)):
            return f"[{plain_line(uri, LONGEST_NAME)}]\n{text}"
        case types.EmbeddedResource(resource=resource):
            return f"[{plain_line(resource.uri, LONGEST_NAME)}: not text, left out]"


def _structured(value: object) -> str:
    try:
        return dump(value)  # type: ignore[arg-type] # it was read from JSON
    except BadJson as error:
        return f"[a structured result that cannot be written: {error}]"


def _joined(pieces: Iterable[str]) -> str:
    """Join texts until the limit is reached, with a note that the rest is left out."""
    kept: list[str] = []
    size = 0
    for piece in pieces:
        if size > MOST_TEXT:
            kept.append("[more left out]")
            break
        kept.append(plain_text(piece, MOST_TEXT))
        size += len(kept[-1])
    return plain_text("\n".join(kept), MOST_TEXT)

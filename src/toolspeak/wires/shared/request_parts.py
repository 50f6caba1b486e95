"""Parts of requests that several wires handle alike: vendor fields, images, constraints.

A field that only one vendor knows is kept as `Vendor` and written again on that vendor's wire. On another wire it is
lost, and `EncodedRequest.dropped` names it.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, cast

import msgspec

from toolspeak.ir.constraint import TextSchema
from toolspeak.ir.json import Json, JsonObject, as_object
from toolspeak.ir.message import Image, Opaque, Part, Result, ResultPart, Vendor
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.toolset.memo import Cache
from toolspeak.wires.shared.json_body import dump_body

_LONG: Final = 4096
"""Characters from which instructions are cached; shorter ones are encoded in no time."""
_INSTRUCTIONS: Final = Cache[str, msgspec.Raw]()


def write_instructions_once(messages: list[Json]) -> list[Json]:
    """Return the messages with a long system message at their head as encoded JSON; the same text is encoded once.

    An emulated request describes its tools there. With 30 tools, that text took most of the time to encode a request.
    """
    head = as_object(messages[0]) if messages else {}
    text = head.get("content")
    if head.get("role") not in ("system", "developer") or not isinstance(text, str) or len(text) < _LONG:
        return messages
    known = _INSTRUCTIONS.find(text)
    if known is None:
        known = _INSTRUCTIONS.keep(text, msgspec.Raw(dump_body(text)), len(text))
    return [{**head, "content": cast("Json", known)}, *messages[1:]]


def own_fields(vendor: Vendor | None, wire: str) -> JsonObject:
    """Return the vendor's fields if they are of this wire."""
    return vendor.fields if vendor is not None and vendor.wire == wire else {}


def is_own(part: Opaque, wire: str) -> bool:
    """Whether this wire can write the part."""
    return part.vendor.wire == wire


def foreign_fields(request: Request, wire: str) -> tuple[str, ...]:
    """Name the fields and parts of other wires that this wire drops."""
    if set(request.extra) <= {wire}:
        return ()
    names = {f"{other}: {key}" for other, fields in request.extra.items() if other != wire for key in fields}
    for message in request.messages:
        for part in message.parts:
            names |= {*_named(part, wire)}
            for piece in part.content if isinstance(part, Result) else ():
                names |= {*_named(piece, wire)}
    for tool in request.tools:
        names |= {*_named(tool, wire)}
    return tuple(sorted(names))


def _named(part: Part | ResultPart | Tool, wire: str) -> Iterator[str]:
    """Name a part that is dropped, and `cache_control`, which costs money when it is lost.

    Other vendor fields only restore a message on its own wire.
    """
    if part.vendor is None or part.vendor.wire == wire:
        return
    if isinstance(part, Opaque):
        yield f"{part.vendor.wire}: {part.label}"
    elif "cache_control" in part.vendor.fields:
        yield f"{part.vendor.wire}: cache_control"


# ---------------------------------------------------------------- images
#
# Most wires accept images as data URLs.

_PREFIX = "data:"
_MARK = ";base64,"


def image_from_url(url: str) -> Image:
    """Read a data URL; any other URL is kept as it is, and never fetched."""
    head, mark, data = url.partition(_MARK)
    if mark and head.startswith(_PREFIX):
        return Image(head.removeprefix(_PREFIX), data)
    return Image(url=url)


def image_to_url(image: Image) -> str:
    """Write an image as a URL."""
    return image.url or f"{_PREFIX}{image.media_type or 'image/png'}{_MARK}{image.data}"


# ---------------------------------------------------------------- constraint
#
# For wires whose only constraint is a schema for the answer (CHK-8).


def constraint_as_schema(request: Request) -> tuple[Request, tuple[str, ...]]:
    """Return the request with its constraint as the schema of its answer, and the names of what is dropped."""
    constraint = request.constraint
    if constraint is None:
        return request, ()
    if not isinstance(constraint, TextSchema) or request.tools:
        return request, (f"constraint: {type(constraint).__name__}",)
    return replace(request, output_schema=constraint.schema), ()

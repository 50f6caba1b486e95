"""What goes along on the same wire only, and what is therefore lost on another."""

from collections.abc import Iterator

from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Opaque, Part, Result, ResultPart
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.ir.vendor import Vendor


def own(vendor: Vendor | None, wire: str) -> JsonObject:
    """Return the vendor's fields if they are of this wire."""
    return vendor.fields if vendor is not None and vendor.wire == wire else {}


def is_own(part: Opaque, wire: str) -> bool:
    """Return whether this wire can write the part."""
    return part.vendor.wire == wire


def foreign(request: Request, wire: str) -> tuple[str, ...]:
    """Name what other wires brought along, and this one has no word for."""
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
    """Name a part that is lost, or the one field that people pay for; the others are marks for the way back."""
    if part.vendor is None or part.vendor.wire == wire:
        return
    if isinstance(part, Opaque):
        yield f"{part.vendor.wire}: {part.label}"
    elif "cache_control" in part.vendor.fields:
        yield f"{part.vendor.wire}: cache_control"

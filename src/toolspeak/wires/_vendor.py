"""What goes along on the same wire only, and what is therefore lost on another."""

from collections.abc import Iterator

from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Message, Opaque, Part, Result, ResultPart
from toolspeak.ir.request import Request
from toolspeak.ir.vendor import Vendor


def own(vendor: Vendor | None, wire: str) -> JsonObject:
    """Return the vendor's fields if they are of this wire."""
    return vendor.fields if vendor is not None and vendor.wire == wire else {}


def is_own(part: Opaque, wire: str) -> bool:
    """Tell whether this wire can write the part."""
    return part.vendor.wire == wire


def foreign(request: Request, wire: str) -> tuple[str, ...]:
    """Name the fields that other wires brought along, and that this one has no word for."""
    if set(request.extra) <= {wire}:
        return ()
    names = {f"{other}: {key}" for other, fields in request.extra.items() if other != wire for key in fields}
    for vendor in _vendors(request):
        if vendor.wire != wire:
            names |= {f"{vendor.wire}: {key}" for key in vendor.fields}
    return tuple(sorted(names))


def _vendors(request: Request) -> Iterator[Vendor]:
    for message in request.messages:
        yield from _vendors_of(message)
        for part in message.parts:
            yield from _vendors_of(part)
            for piece in part.content if isinstance(part, Result) else ():
                yield from _vendors_of(piece)
    for tool in request.tools:
        if tool.vendor is not None:
            yield tool.vendor


def _vendors_of(part: Message | Part | ResultPart) -> Iterator[Vendor]:
    if isinstance(part, Opaque):
        yield Vendor(part.vendor.wire, {part.label: None})
    elif part.vendor is not None:
        yield part.vendor

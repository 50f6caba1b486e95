"""Vendor bodies to ir and back: one room each, all with the same doors.

Belongs here: how a vendor writes requests, answers, streams and errors. Does not: text forms of calls, decisions, I/O.
Read first: `_wire.py` (what every wire gives), then `openai_chat/`.

A wire's module name is its public name; from outside, the entry point group `toolspeak.wires` adds more.
"""

from functools import cache
from importlib import import_module, metadata
from pkgutil import iter_modules

from toolspeak.errors import UnknownName
from toolspeak.wires._wire import ErrorBody, EventDecoder, EventEncoder, Outgoing, Stamp, Wire

__all__ = ["ErrorBody", "EventDecoder", "EventEncoder", "Outgoing", "Stamp", "Wire", "load", "names"]

GROUP = "toolspeak.wires"


def names() -> tuple[str, ...]:
    """Return the names of all wires, ours first."""
    ours = sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
    others = sorted(point.name for point in metadata.entry_points(group=GROUP))
    return tuple(dict.fromkeys((*ours, *others)))


@cache
def load(name: str) -> Wire:
    """Return the wire of that name."""
    if name.isidentifier() and not name.startswith("_"):
        try:
            return _wire(import_module(f"{__name__}.{name}"), name)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    for point in metadata.entry_points(group=GROUP, name=name):
        return _wire(point.load(), name)
    raise UnknownName(f"wire {name!r} is not one of {', '.join(names())}")


def _wire(module: object, name: str) -> Wire:
    found = module if isinstance(module, Wire) else getattr(module, "WIRE", None)
    if not isinstance(found, Wire):
        raise UnknownName(f"wire {name!r}: its module has no WIRE")
    return found

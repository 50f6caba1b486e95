"""Vendor bodies to ir and back: one room each, all with the same doors.

Belongs here: how a vendor writes requests, answers, streams and errors. Does not: text forms of calls, decisions, I/O.
Read first: `_wire.py` (what every wire gives), then `openai_chat/`.

A wire's module name is its public name; from outside, the entry point group `toolspeak.wires` adds more.
"""

from functools import cache

from toolspeak.discovery import Shelf
from toolspeak.wires._echo import rests_on_echo
from toolspeak.wires._wire import ErrorBody, EventDecoder, EventEncoder, Outgoing, Stamp, Wire

__all__ = ["ErrorBody", "EventDecoder", "EventEncoder", "Outgoing", "Stamp", "Wire", "load", "names", "rests_on_echo"]

_SHELF = Shelf(__name__, Wire, "WIRE", hidden=("limits", "rounds"))


def names() -> tuple[str, ...]:
    """Return the names of all wires, ours first."""
    return _SHELF.names()


@cache
def load(name: str) -> Wire:
    """Return the wire of that name."""
    return _SHELF.load(name)

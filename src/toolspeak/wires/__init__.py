"""Vendor bodies to ir and back: one room each, all with the same doors.

Belongs here: how a vendor writes requests, answers, streams and errors. Does not: text forms of calls, decisions, I/O.
Read first: `_wire.py` (what every wire gives), then `openai_chat/`.

A wire's module name is its public name; from outside, the entry point group `toolspeak.wires` adds more. A room's
`__init__.py` has its `API`, which the gateway needs at its start; `wire.py` has the `WIRE`, loaded with all its codecs
when it is first used.
"""

from functools import cache
from typing import Final

from toolspeak.discovery import Shelf
from toolspeak.wires._api import MODEL_FIELD, Endpoint, HttpApi, Operation, RequestHead
from toolspeak.wires._echo import rests_on_echo
from toolspeak.wires._models import ModelEntry
from toolspeak.wires._wire import ErrorBody, EventDecoder, EventEncoder, Outgoing, Stamp, Wire

__all__ = [
    "DEFAULT",
    "MODEL_FIELD",
    "Endpoint",
    "ErrorBody",
    "EventDecoder",
    "EventEncoder",
    "HttpApi",
    "ModelEntry",
    "Operation",
    "Outgoing",
    "RequestHead",
    "Stamp",
    "Wire",
    "apis",
    "load",
    "names",
    "rests_on_echo",
]

DEFAULT: Final = "openai_chat"
"""The wire of a client that shows no sign of another one."""

_SHELF = Shelf(__name__, Wire, "WIRE", hidden=("limits", "rounds"))


def names() -> tuple[str, ...]:
    """Return the names of all wires, ours first."""
    return _SHELF.names()


@cache
def load(name: str) -> Wire:
    """Return the wire of that name."""
    return _SHELF.load(name)


def apis() -> dict[str, HttpApi]:
    """Return where each wire is served, ours first; a foreign one that cannot be loaded is left out with a warning."""
    return dict(_SHELF.each(_api_of))


def _api_of(name: str) -> HttpApi:
    api = getattr(_SHELF.home(name), "API", None)
    return api if isinstance(api, HttpApi) else load(name).api

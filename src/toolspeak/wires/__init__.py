"""Vendor formats to ir and back: one package per wire, all with the same modules.

Belongs here: how a vendor writes requests, answers, streams and errors. Does not: text forms of calls, decisions, I/O.
Read first: `shared/interface.py` (what every wire provides), then `openai_chat/`.

    __init__.py        `API`: endpoints, and how the gateway recognizes a client; loaded at start
    wire.py            `WIRE`: the functions below as one record; loaded with all codecs on first use
    request_reader.py  a client's request  ->  `Request`
    request_writer.py  `Request`           ->  the upstream's request
    answer_reader.py   an upstream's bytes ->  events
    answer_writer.py   events              ->  bytes for the client; errors too

A wire's module name is its public name. Other packages add wires through the entry point group `toolspeak.wires`.
"""

from functools import cache
from typing import Final

from toolspeak.discovery import Shelf
from toolspeak.wires.shared.failure_echo import rests_on_echo
from toolspeak.wires.shared.interface import (
    MODEL_FIELD,
    EncodedRequest,
    Endpoint,
    ErrorBody,
    EventDecoder,
    EventEncoder,
    ExpandedRequest,
    FindResponse,
    HttpApi,
    Operation,
    RequestHead,
    Stamp,
    StoredResponse,
    Wire,
)
from toolspeak.wires.shared.model_list import ModelEntry

__all__ = [
    "DEFAULT",
    "MODEL_FIELD",
    "EncodedRequest",
    "Endpoint",
    "ErrorBody",
    "EventDecoder",
    "EventEncoder",
    "ExpandedRequest",
    "FindResponse",
    "HttpApi",
    "ModelEntry",
    "Operation",
    "RequestHead",
    "Stamp",
    "StoredResponse",
    "Wire",
    "apis",
    "load",
    "names",
    "rests_on_echo",
]

DEFAULT: Final = "openai_chat"
"""The wire of a client that shows no sign of another one."""

_SHELF = Shelf(__name__, Wire, "WIRE", hidden=("limits", "shared"))


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

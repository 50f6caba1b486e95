"""Presets of known upstreams: base URL, wire, header of the key, and facts that hold for all of their models.

Belongs here: facts about a server before the first request. Does not: code that connects to it (`runtime`).
Read first: `table.py`, which has all presets. Other packages add theirs by the entry point group `toolspeak.upstreams`.
"""

from dataclasses import dataclass
from enum import StrEnum

from toolspeak.discovery import Shelf
from toolspeak.facts.model import Support
from toolspeak.ir.quirks import QUIRKS, Quirks

__all__ = ["Auth", "Preset", "load", "names"]


class Auth(StrEnum):
    """The header that carries the upstream's key."""

    NONE = "none"
    BEARER = "bearer"
    X_API_KEY = "x-api-key"
    X_GOOG_API_KEY = "x-goog-api-key"
    API_KEY = "api-key"


@dataclass(frozen=True, slots=True)
class Preset:
    """The defaults of a known upstream; every one of them can be overridden in the configuration."""

    title: str
    url: str = ""
    """The base URL, up to the wire's own paths; empty if the user must give it."""
    url_form: str = ""
    """What the URL looks like that the user must give; empty if it can be any."""
    wire: str = "openai_chat"
    auth: Auth = Auth.BEARER
    key_env: str = ""
    """The environment variable that usually has the key; its value is only sent to the preset's own server."""
    local: bool = False
    """It may run on this machine, and is searched for there if no upstream is configured."""
    start: str = ""
    """The command that starts it on this machine, for people whose server does not answer."""
    headers: tuple[tuple[str, str], ...] = ()
    tools: Support = Support.UNKNOWN
    """Support for tools by every model of the vendor. It is mostly unknown, because most vendors serve some without."""
    quirks: Quirks = QUIRKS


_SHELF = Shelf("toolspeak.upstreams", Preset, "UPSTREAM", table="table")
load = _SHELF.load
names = _SHELF.names

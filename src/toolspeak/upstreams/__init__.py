"""Upstreams that people know by name: base URL, wire, header of the key, and facts that hold for all of their models.

Belongs here: what is known about a server before the first request. Does not: code that talks to it.
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


@dataclass(frozen=True, slots=True)
class Preset:
    """An upstream by name."""

    title: str
    url: str = ""
    """Everything before the wire's own paths; empty if the user must give it."""
    wire: str = "openai_chat"
    auth: Auth = Auth.BEARER
    key_env: str = ""
    """The environment variable in which people keep the key."""
    local: bool = False
    """It may run on this machine, and is searched for there when no upstream is named."""
    headers: tuple[tuple[str, str], ...] = ()
    tools: Support = Support.UNKNOWN
    """What holds for every model that the vendor serves; most vendors serve some without tools."""
    quirks: Quirks = QUIRKS


_SHELF = Shelf("toolspeak.upstreams", Preset, "UPSTREAM", table="table")
load = _SHELF.load
names = _SHELF.names

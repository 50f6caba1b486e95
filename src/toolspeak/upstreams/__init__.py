"""Upstreams that people know by name, one file of data each.

Belongs here: base URL, wire, header of the key, facts that hold for all of its models.
Does not: code that talks to them.
Read first: `_preset.py`, then `ollama.py`.
"""

from toolspeak.discovery import Shelf
from toolspeak.upstreams._preset import Auth, Preset

__all__ = ["Auth", "Preset", "load", "names"]

_SHELF = Shelf("toolspeak.upstreams", Preset, "UPSTREAM")
load = _SHELF.load
names = _SHELF.names

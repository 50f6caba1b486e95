"""Text forms of a tool call: one file each, on seven shared grammars.

Belongs here: how a model writes calls, and how we write them for it. Does not: vendor bodies, decisions, I/O.
Read first: `hermes.py`, then `_reader.py` (the machine) and `_json_form.py` (a grammar).

A dialect's module name is its public name; from outside, the entry point group `toolspeak.dialects` adds more.
"""

from collections.abc import Iterator
from functools import cache

from toolspeak.dialects._dialect import Dialect, Writer
from toolspeak.dialects._grammar import Grammar, Label, Reasoning, Where, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._native import native_attempt
from toolspeak.dialects._options import ReadOptions
from toolspeak.dialects._reader import Reader
from toolspeak.dialects._shape import Shape
from toolspeak.dialects._tagged import XML
from toolspeak.discovery import Shelf

__all__ = [
    "JSON",
    "XML",
    "Dialect",
    "Grammar",
    "Label",
    "ReadOptions",
    "Reader",
    "Reasoning",
    "Shape",
    "Where",
    "Wrapper",
    "Writer",
    "installed",
    "load",
    "names",
    "native_attempt",
]

_SHELF = Shelf(__name__, Dialect, "DIALECT", hidden=("keyed",))  # that one is made for one conversation, by its key


def names() -> tuple[str, ...]:
    """Return the names of all dialects, ours first."""
    return _SHELF.names()


@cache
def load(name: str) -> Dialect:
    """Return the dialect of that name."""
    return _SHELF.load(name)


def installed(but: str = "") -> Iterator[Dialect]:
    """Load every dialect except one, ours first; a foreign one that cannot be loaded is left out with a warning."""
    return (dialect for _, dialect in _SHELF.each(load, but))

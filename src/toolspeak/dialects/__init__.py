"""Text forms of a tool call: those that toolspeak writes have a module each, the others are rows of `table.py`.

Belongs here: how a model writes calls, and how we write them for it. Does not: vendor bodies, decisions, I/O.
Read first: `hermes.py`, then `core/reader.py` (the state machine) and `core/json_form.py` (a form of call).

The name of the module or the row is the dialect's public name; the entry point group `toolspeak.dialects` adds
dialects of other packages.
"""

from collections.abc import Iterator
from functools import cache, reduce

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import Label, MarkupGrammar, OpenerPosition, ReasoningMarks, Wrapper
from toolspeak.dialects.core.json_form import JSON
from toolspeak.dialects.core.quotation import has_placeholder
from toolspeak.dialects.core.reader import TextReader, native_attempt
from toolspeak.dialects.core.states import ReadOptions
from toolspeak.dialects.core.tag_form import XML
from toolspeak.dialects.core.writer import Shape, Writer
from toolspeak.discovery import Shelf

__all__ = [
    "JSON",
    "XML",
    "Dialect",
    "Label",
    "MarkupGrammar",
    "OpenerPosition",
    "ReadOptions",
    "ReasoningMarks",
    "Shape",
    "TextReader",
    "Wrapper",
    "Writer",
    "has_placeholder",
    "installed",
    "load",
    "load_together",
    "names",
    "native_attempt",
    "register",
]

# `keyed` makes a dialect for one conversation, by its key: there is none to load by that name.
_SHELF = Shelf(
    __name__, Dialect, "DIALECT", hidden=("core", "keyed", "response_template", "template_export"), table="table"
)
_MADE: dict[str, Dialect] = {}


def register(dialect: Dialect) -> str:
    """Let a dialect that was made at run time be loaded by its name, and return that name.

    Call it while the configuration is read, with a name that tells what the dialect was made of: one that has been
    loaded is not replaced.
    """
    _MADE.setdefault(dialect.name, dialect)
    return dialect.name


def names() -> tuple[str, ...]:
    """Return the names of all dialects, ours first."""
    return _SHELF.names()


@cache
def load(name: str) -> Dialect:
    """Return the dialect of that name. Raises `UnknownName`."""
    return _MADE[name] if name in _MADE else _SHELF.load(name)


@cache
def load_together(*several: str) -> Dialect:
    """Return a dialect that reads the forms of all of these and writes none; the first one settles a shared opener."""
    grammars = (load(name).grammar for name in dict.fromkeys(several))
    return Dialect(" + ".join(several), reduce(lambda one, other: one | other, grammars))


def installed(but: str = "") -> Iterator[Dialect]:
    """Load every dialect except one, ours first; a foreign one that cannot be loaded is left out with a warning."""
    return (dialect for _, dialect in _SHELF.each(load, but))

"""Text forms of a tool call: one file each, on seven shared grammars.

Belongs here: how a model writes calls, and how we write them for it. Does not: vendor bodies, decisions, I/O.
Read first: `hermes.py`, then `_reader.py` (the machine) and `_json_form.py` (a grammar).

A dialect's module name is its public name; from outside, the entry point group `toolspeak.dialects` adds more.
"""

from functools import cache
from importlib import import_module, metadata
from pkgutil import iter_modules

from toolspeak.dialects._dialect import Dialect, Writer
from toolspeak.dialects._native import NativeCalls
from toolspeak.dialects._options import ReadOptions
from toolspeak.dialects._reader import Reader
from toolspeak.errors import UnknownName

__all__ = ["Dialect", "NativeCalls", "ReadOptions", "Reader", "Writer", "load", "names"]

GROUP = "toolspeak.dialects"
_NOT_BY_NAME = ("keyed",)  # made for one conversation, by its key


def names() -> tuple[str, ...]:
    """Return the names of all dialects, ours first."""
    ours = sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
    others = sorted(point.name for point in metadata.entry_points(group=GROUP))
    return tuple(dict.fromkeys(name for name in (*ours, *others) if name not in _NOT_BY_NAME))


@cache
def load(name: str) -> Dialect:
    """Return the dialect of that name."""
    if name.isidentifier() and not name.startswith("_") and name not in _NOT_BY_NAME:
        try:
            return _dialect(import_module(f"{__name__}.{name}"), name)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    for point in metadata.entry_points(group=GROUP, name=name):
        return _dialect(point.load(), name)
    message = f"dialect {name!r} is not one of {', '.join(names())}"
    raise UnknownName(message)


def _dialect(module: object, name: str) -> Dialect:
    found = module if isinstance(module, Dialect) else getattr(module, "DIALECT", None)
    if not isinstance(found, Dialect):
        message = f"dialect {name!r}: its module has no DIALECT"
        raise UnknownName(message)
    return found

"""Functions by their name, `module:attribute`: those of the user, found again by whoever goes on with a run."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import reduce
from importlib import import_module
from typing import Final, cast

from toolspeak.errors import BadField
from toolspeak.runtime.tools.action import Action
from toolspeak.runtime.tools.functions import Runnable, actions_of

_SERVERS: Final = "mcp"
"""`mcp:NAME` is a server of the configuration."""


def is_function(name: str) -> bool:
    """Tell whether a name is of the form `module:attribute`, each with dots or without."""
    module, _, attribute = name.partition(":")
    parts = (*module.split("."), *attribute.split("."))
    return module != _SERVERS and all(part.isidentifier() for part in parts)


def imported(name: str, allowed: Sequence[str]) -> Sequence[Action]:
    """Import a function, or a sequence of them, if its name is one of those that are allowed, or fits a glob.

    The name is judged before anything is imported, because importing runs the module.
    """
    if not any(fnmatchcase(name, pattern) for pattern in allowed):
        raise BadField("tools", f"{name!r} may not be imported here; allowed: {', '.join(allowed) or 'nothing'}")
    module, _, attribute = name.partition(":")
    try:
        found: object = reduce(getattr, attribute.split("."), import_module(module))
    except (ImportError, AttributeError) as error:
        raise BadField("tools", f"{name!r} cannot be imported: {error}") from None
    return actions_of(_sequence(found))


def _sequence(found: object) -> Iterable[Runnable]:
    return cast("Iterable[Runnable]", found if isinstance(found, list | tuple) else (found,))

"""Things that are found by name: a module of their room, or an entry point of another package.

A module's name is the thing's public name; the module ends in a constant that is the thing.
"""

from collections.abc import Collection
from dataclasses import dataclass
from importlib import import_module, metadata
from pkgutil import iter_modules
from typing import Generic, TypeVar

from toolspeak.errors import UnknownName

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Shelf(Generic[Thing]):
    """A room with one thing a module, such as dialects or wires."""

    package: str
    """The room's module name; also the group of entry points."""
    kind: type[Thing]
    constant: str
    hidden: Collection[str] = ()
    """Modules that are not found by name."""

    @property
    def word(self) -> str:
        """What people call such a thing."""
        return self.constant.lower()

    def names(self) -> tuple[str, ...]:
        """Return all names, ours first."""
        path = import_module(self.package).__path__
        ours = sorted(module.name for module in iter_modules(path) if not module.name.startswith("_"))
        others = sorted(point.name for point in metadata.entry_points(group=self.package))
        return tuple(dict.fromkeys(name for name in (*ours, *others) if name not in self.hidden))

    def load(self, name: str) -> Thing:
        """Return the thing of that name."""
        if name.isidentifier() and not name.startswith("_") and name not in self.hidden:
            try:
                return self._thing(import_module(f"{self.package}.{name}"), name)
            except ModuleNotFoundError as error:
                if error.name != f"{self.package}.{name}":
                    raise
        for point in metadata.entry_points(group=self.package, name=name):
            return self._thing(point.load(), name)
        raise UnknownName(f"{self.word} {name!r} is not one of {', '.join(self.names())}")

    def _thing(self, module: object, name: str) -> Thing:
        found = module if isinstance(module, self.kind) else getattr(module, self.constant, None)
        if not isinstance(found, self.kind):
            raise UnknownName(f"{self.word} {name!r}: its module has no {self.constant}")
        return found

"""Things that are found by name: a module of their package, a row of its table, or an entry point of another package.

A module's name is the thing's public name; the module ends in a constant that is the thing. A package of several files
may keep it in the file of that name (`WIRE` in `wire.py`), so that importing its `__init__.py` costs no more than that.
Small things may share one module, the table: a mapping from names to things (`DIALECTS` in `table.py`). The table is
imported only to list all names, or for a name that no module has.
"""

import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, metadata
from pkgutil import iter_modules
from types import ModuleType
from typing import Generic, TypeVar

from toolspeak.errors import UnknownName

Thing = TypeVar("Thing")
T = TypeVar("T")


@dataclass(frozen=True)
class Shelf(Generic[Thing]):
    """A room with one thing a module, such as dialects or wires."""

    package: str
    """The room's module name; also the group of entry points."""
    kind: type[Thing]
    constant: str
    hidden: Collection[str] = ()
    """Modules that are not found by name."""
    table: str = ""
    """The module with the mapping of things that have no module of their own; none if empty."""

    @property
    def word(self) -> str:
        """What people call such a thing."""
        return self.constant.lower()

    def names(self) -> tuple[str, ...]:
        """Return all names, ours first."""
        others = sorted(point.name for point in self._points())
        return tuple(dict.fromkeys((*self._ours(), *(name for name in others if not self._is_hidden(name)))))

    def load(self, name: str) -> Thing:
        """Return the thing of that name."""
        return self._thing(self.home(name), name)

    def home(self, name: str) -> object:
        """Return the module of that name, or what its entry point names: a module, or the thing itself."""
        if name.isidentifier() and not name.startswith("_") and not self._is_hidden(name):
            try:
                return import_module(f"{self.package}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{self.package}.{name}":
                    raise
            if name in (rows := self._rows()):
                return rows[name]
        for point in self._points().select(name=name):
            return point.load()
        raise UnknownName(f"{self.word} {name!r} is not one of {', '.join(self.names())}")

    def each(self, take: Callable[[str], T], but: str = "") -> Iterator[tuple[str, T]]:
        """Yield every name except one, ours first, with what `take` makes of it.

        A thing of another package that cannot be loaded is left out with a warning: it must not take ours with it.
        """
        ours = self._ours()
        for name in self.names():
            if name == but:
                continue
            try:
                yield name, take(name)
            except Exception as error:  # whatever the code of another package raises when it is imported
                if name in ours:
                    raise
                warnings.warn(f"{self.word} {name!r} cannot be loaded: {error!r}", RuntimeWarning, stacklevel=2)

    def _points(self) -> metadata.EntryPoints:
        return _entry_points(self.package, tuple(sys.path))

    def _ours(self) -> tuple[str, ...]:
        path = import_module(self.package).__path__
        modules = (module.name for module in iter_modules(path) if not module.name.startswith("_"))
        return tuple(sorted({*self._rows(), *(name for name in modules if not self._is_hidden(name))}))

    def _is_hidden(self, name: str) -> bool:
        return name in self.hidden or name == self.table

    def _rows(self) -> Mapping[str, Thing]:
        """Return the table's things by name: the mapping `DIALECTS` for the constant `DIALECT`."""
        if not self.table:
            return {}
        rows: Mapping[str, Thing] = getattr(import_module(f"{self.package}.{self.table}"), f"{self.constant}S")
        return rows

    def _thing(self, home: object, name: str) -> Thing:
        found = home if isinstance(home, self.kind) else getattr(home, self.constant, None)
        if found is None and isinstance(home, ModuleType) and hasattr(home, "__path__"):
            found = getattr(_inner(home, self.word), self.constant, None)
        if not isinstance(found, self.kind):
            raise UnknownName(f"{self.word} {name!r}: its module has no {self.constant}")
        return found


def _inner(home: ModuleType, word: str) -> ModuleType | None:
    try:
        return import_module(f"{home.__name__}.{word}")
    except ModuleNotFoundError as error:
        if error.name != f"{home.__name__}.{word}":
            raise
        return None


@lru_cache
def _entry_points(group: str, path: tuple[str, ...]) -> metadata.EntryPoints:
    """Read the entry points of all installed packages once: 80 packages take 6 ms, and start-up asks several times."""
    del path  # only a key: `metadata` reads `sys.path`
    return metadata.entry_points(group=group)

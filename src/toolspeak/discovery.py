"""Finds dialects, wires and upstreams by name: in a module, in a table, or by an entry point of another package.

The module's name is the public name, and a constant in the module is the thing itself (`DIALECT`). A package of several
files may have the constant in the file of that name (`WIRE` in `wire.py`), so that importing its `__init__.py` stays
cheap. Small things may share one module, the table: a mapping from names to things (`DIALECTS` in `table.py`). It is
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
    """A package whose modules can be loaded by name, such as `toolspeak.dialects` or `toolspeak.wires`."""

    package: str
    """The package's name; also the group of entry points in which other packages register."""
    kind: type[Thing]
    constant: str
    hidden: Collection[str] = ()
    """Modules of the package that are not things."""
    table: str = ""
    """The module with the mapping of things that have no module of their own; empty if there is none."""

    @property
    def word(self) -> str:
        """The word for such a thing in messages: `dialect`, `wire`, `upstream`."""
        return self.constant.lower()

    def names(self) -> tuple[str, ...]:
        """Return all names: those of this package first, then those of others."""
        others = sorted(point.name for point in self._points())
        return tuple(dict.fromkeys((*self._ours(), *(name for name in others if not self._is_hidden(name)))))

    def load(self, name: str) -> Thing:
        """Return the thing of that name. Raises `UnknownName`."""
        return self._thing(self.home(name), name)

    def home(self, name: str) -> object:
        """Return the module of that name, or the object of its entry point: a module, or the thing itself.

        Raises `UnknownName`. Names of this package come first, so another package cannot replace one of ours.
        """
        # Names come from requests (`x-toolspeak-dialect`) and files: only an identifier may reach `import_module`.
        if name.isidentifier() and not name.startswith("_") and not self._is_hidden(name):
            try:
                return import_module(f"{self.package}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{self.package}.{name}":  # the module exists, and lacks one of its own imports
                    raise
            if name in (rows := self._rows()):
                return rows[name]
        for point in self._points().select(name=name):
            return point.load()
        raise UnknownName(f"{self.word} {name!r} is not one of {', '.join(self.names())}")

    def each(self, take: Callable[[str], T], but: str = "") -> Iterator[tuple[str, T]]:
        """Yield every name except `but`, those of this package first, with the result of `take`.

        A thing of another package that cannot be loaded is skipped with a warning: a broken plugin must not stop ours.
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
    """Return the entry points of a group. Cached: 80 packages take 6 ms, and start-up needs them several times."""
    del path  # only a key of the cache: `metadata` itself reads `sys.path`
    return metadata.entry_points(group=group)

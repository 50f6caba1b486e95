"""Python modules of a source tree, and which of them import which.

Imports are read from the syntax tree, so no code of the tree runs, and imports inside functions count like those at the
top. `from toolspeak.text import scan` imports the module `toolspeak.text.scan` if there is one, else `toolspeak.text`.
The packages on the way to a module are not counted as imported, although Python runs their `__init__`.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Module:
    """One file of Python."""

    name: str
    """Dotted; a package has the name of its folder."""
    path: str
    """From the root of the tree, with `/`."""
    source: str

    @cached_property
    def syntax(self) -> ast.Module:
        """Return the syntax tree, parsed once."""
        return ast.parse(self.source)

    @cached_property
    def imports(self) -> tuple[ast.Import | ast.ImportFrom, ...]:
        """Return the import statements, those inside functions too."""
        return tuple(node for node in ast.walk(self.syntax) if isinstance(node, ast.Import | ast.ImportFrom))

    @property
    def lines(self) -> int:
        """Return the number of lines, comments and empty lines included."""
        return self.source.count("\n")

    @property
    def is_package(self) -> bool:
        """Return whether the file is the `__init__` of a folder."""
        return self.path.endswith("/__init__.py")


def read_modules(root: Path, folder: str, package: str = "") -> dict[str, Module]:
    """Read every module below a folder of the tree; `package` is the dotted name of that folder."""
    found = (_read_module(root, root / folder, file, package) for file in sorted((root / folder).rglob("*.py")))
    return {module.name: module for module in found}


def _read_module(root: Path, base: Path, file: Path, package: str) -> Module:
    parts = list(file.relative_to(base).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    name = ".".join(filter(None, (package, *parts)))
    return Module(name, file.relative_to(root).as_posix(), file.read_text(encoding="utf-8"))


def import_graph(modules: Mapping[str, Module]) -> dict[str, frozenset[str]]:
    """Return for each module the given modules that it imports, itself excluded."""
    return {name: frozenset(_imported(module, modules)) - {name} for name, module in modules.items()}


def _imported(module: Module, modules: Mapping[str, Module]) -> Iterator[str]:
    for node in module.imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif node.module is not None and not node.level:  # ruff refuses relative imports
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if found := next((name for name in (inner, node.module) if name in modules), None):
                    yield found


def importers(graph: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    """Turn the graph around: return for each module those that import it."""
    found: dict[str, set[str]] = {name: set() for name in graph}
    for name, targets in graph.items():
        for target in targets:
            found[target].add(name)
    return {name: frozenset(names) for name, names in found.items()}


def cycles(graph: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """Return the groups of modules that import each other in a circle, each sorted by name."""
    reached = {name: reachable(graph, name) for name in graph}
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in graph
        if name in reached[name]
    }
    return sorted(groups)


def reachable(graph: Mapping[str, Iterable[str]], start: str) -> set[str]:
    """Return the modules that an import of `start` leads to; `start` is among them only if it is in a circle."""
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(graph[name])
    return found


def distances(graph: Mapping[str, Iterable[str]], start: str) -> dict[str, int]:
    """Return how many imports away each module is that `start` leads to; `start` itself is 0 away."""
    found = {start: 0}
    waiting = [start]
    for name in waiting:  # it grows while it is read
        for target in graph[name]:
            if target not in found:
                found[target] = found[name] + 1
                waiting.append(target)
    return found

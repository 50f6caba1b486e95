"""Which test files are nearest to a module.

Near is, in this order: a test file with the module's name (`test_guard.py` for `guard.py`, `_guard.py` or the
folder `guard`), one in the folder of the module's package, and then the one that needs the fewest imports to get
there. Imports of `tests` and `testkit` count as well, so a test that uses a shared scene is as near as the scene
allows. A test file that does not lead to the module comes only if it has its name: it may start the module in a
process of its own.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tools.imports import Module, distances, import_graph, read_modules
from tools.mutants.targets import PACKAGE

DISCOVERED = ("toolspeak.dialects", "toolspeak.wires", "toolspeak.upstreams")
"""Packages that load their modules by name, which no import statement shows."""


@dataclass(frozen=True)
class TestMap:
    """The test files of a tree, with what they lead to."""

    modules: dict[str, Module]
    steps: dict[str, dict[str, int]]
    """Path of a test file, then path of a module: how many imports lie between them."""

    def nearest(self, path: str) -> list[str]:
        """Return test files for a module, nearest first."""
        words = _words(path)
        package = PurePosixPath(path).relative_to(PACKAGE).parts[0].removesuffix(".py")
        ranked: list[tuple[bool, bool, int, str]] = []
        for test, steps in self.steps.items():
            named = bool(words & _words(test))
            if named or path in steps:
                ranked.append((not named, package not in PurePosixPath(test).parts, steps.get(path, 99), test))
        return [test for *_, test in sorted(ranked)]


def _words(path: str) -> set[str]:
    """Return the name of a file without what all have in common."""
    file = PurePosixPath(path)
    stem = file.stem.strip("_").removeprefix("test_")
    return {file.parent.name} if stem == "init" else {stem}


def read_tests(root: Path) -> TestMap:
    """Read the test files of a tree and follow their imports."""
    modules = {
        **read_modules(root, "src"),
        **read_modules(root, "tests", "tests"),
        **read_modules(root, "testkit", "testkit"),
    }
    graph = import_graph(modules)
    for package in DISCOVERED:
        graph[package] |= {name for name in modules if name.startswith(f"{package}.")}
    steps = {
        module.path: {modules[found].path: count for found, count in distances(graph, name).items()}
        for name, module in modules.items()
        if PurePosixPath(module.path).name.startswith("test_") and module.path.startswith("tests/")
    }
    return TestMap(modules, steps)

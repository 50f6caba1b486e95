"""One state of the repository to measure: the working tree, or a commit unpacked into a temporary folder."""

import io
import subprocess
import tarfile
import tomllib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tools.imports import Module, cycles, import_graph, importers, read_modules

MEASURED = ("src", "docs", "pyproject.toml")
"""The files that are read from a commit."""


@dataclass(frozen=True)
class Tree:
    """A folder with `src`, `docs` and `pyproject.toml`."""

    root: Path

    @cached_property
    def modules(self) -> dict[str, Module]:
        """Return the modules of src by name."""
        return read_modules(self.root, "src")

    @cached_property
    def graph(self) -> dict[str, frozenset[str]]:
        """Return which module imports which."""
        return import_graph(self.modules)

    @cached_property
    def importers(self) -> dict[str, frozenset[str]]:
        """Return the modules that import each one."""
        return importers(self.graph)

    @cached_property
    def cycles(self) -> list[tuple[str, ...]]:
        """Return the groups of modules that import each other in a circle."""
        return cycles(self.graph)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Return pyproject.toml."""
        return tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield path and text of each file of src and docs that people read as words."""
        yield from ((module.path, module.source) for module in self.modules.values())
        for page in sorted((self.root / "docs").rglob("*.md")):
            yield page.relative_to(self.root).as_posix(), page.read_text(encoding="utf-8")


@contextmanager
def committed(repository: Path, revision: str) -> Generator[Tree]:
    """Unpack a commit into a temporary folder; raises `CalledProcessError` if git does not know it."""
    command = ["git", "archive", "--format=tar", revision, *MEASURED]
    packed = subprocess.run(command, cwd=repository, check=True, capture_output=True).stdout
    with TemporaryDirectory(prefix="house-") as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        yield Tree(Path(folder))

"""Public names of src that are defined in more than one module.

A reader who searches a name should find one idea. Counted are classes, functions and type aliases at the top of a
module without a leading underscore. Two ideas under one name get two names; the same idea in several peers gets a
line in `ALLOWED`, with the package in which it may be repeated and the reason.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tools.house.tree import Tree
from tools.imports import Module


@dataclass(frozen=True)
class Allowed:
    """Definitions that count as one."""

    name: str
    """May have `*`."""
    package: str
    """Definitions in this package and below count as one; those elsewhere still count."""
    reason: str


_WIRES = "each wire writes the same functions, which its `Wire` holds"

ALLOWED = (
    Allowed("decode_*", "toolspeak.wires", _WIRES),
    Allowed("encode_*", "toolspeak.wires", _WIRES),
    Allowed("new_*", "toolspeak.wires", _WIRES),
    Allowed("error_body", "toolspeak.wires", _WIRES),
    Allowed("names_of", "toolspeak.wires", _WIRES),
    Allowed("read_choice", "toolspeak.wires", _WIRES),
    Allowed("read_tools", "toolspeak.wires", _WIRES),
    Allowed("stream_type", "toolspeak.wires", _WIRES),
    Allowed("usage_body", "toolspeak.wires", _WIRES),
    Allowed("usage_of", "toolspeak.wires", _WIRES),
    Allowed("MessageWriter", "toolspeak.wires", _WIRES),
    Allowed("load", "toolspeak", "the word for discovery, in each package whose modules are found by name"),
    Allowed("names", "toolspeak", "the word for discovery, in each package whose modules are found by name"),
    Allowed("main", "toolspeak", "where a process starts: Python's own word"),
    Allowed("run", "toolspeak.cli", "a command's function has the name that the user types"),
    Allowed("serve", "toolspeak.cli", "a command's function has the name that the user types"),
    Allowed("show", "toolspeak.cli", "a command's function has the name that the user types"),
    Allowed("actions", "toolspeak.agent.tools", "each module of tools returns its own in this function"),
)


def repeated_names(tree: Tree) -> dict[str, list[str]]:
    """Return the names that are defined in more than one module, each with its modules."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for module in tree.modules.values():
        for name in public_names(module):
            found[name].append(module.name)
    return {name: modules for name, modules in sorted(found.items()) if len(_ideas(name, modules)) > 1}


def _ideas(name: str, modules: list[str]) -> set[str]:
    """Return the modules, with those that the list allows put together under their package."""
    packages = [entry.package for entry in ALLOWED if fnmatchcase(name, entry.name)]
    return {next((found for found in packages if _is_in(module, found)), module) for module in modules}


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def public_names(module: Module) -> set[str]:
    """Return the public classes, functions and type aliases of a module."""
    return {name for node in module.syntax.body for name in _defined(node) if not name.startswith("_")}


def _defined(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
            yield name
        case _:
            return

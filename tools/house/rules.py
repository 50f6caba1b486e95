"""The rules that fail the command: no cycle, no import up, no name for two things, no small module for one importer."""

import ast
from collections.abc import Iterator

from tools.house.layers import arrows_up
from tools.house.names import repeated_names
from tools.house.tree import Tree
from tools.imports import Module

SMALL = 40
"""A module with fewer lines and one importer belongs into that importer, unless its docstring has a reason."""
REASON = "One importer: "
"""The beginning of the docstring line that gives the reason for a small module."""


def breaches(tree: Tree) -> Iterator[str]:
    """Yield every broken rule."""
    for group in tree.cycles:
        yield f"import cycle: {' <-> '.join(group)}"
    for importer, target in arrows_up(tree):
        yield f"import up: {importer} imports {target}, which the layers do not allow"
    for name, modules in repeated_names(tree).items():
        yield f"name defined twice: {name} in {', '.join(modules)}; rename one, or allow it in tools/house/names.py"
    for module in lonely(tree):
        (importer,) = tree.importers[module.name]
        yield (
            f"{module.path}: {module.lines} lines that only {importer} imports; move them there, or add a line "
            f"{REASON + '<reason>'!r} to the docstring"
        )


def lonely(tree: Tree) -> list[Module]:
    """Return the small modules with one importer and no reason; a package needs its `__init__`, so that is none."""
    return [
        module
        for name, module in tree.modules.items()
        if len(tree.importers[name]) == 1 and module.lines < SMALL and not module.is_package and not has_reason(module)
    ]


def has_reason(module: Module) -> bool:
    """Return whether the docstring gives the reason for a single importer."""
    docstring = ast.get_docstring(module.syntax) or ""
    return any(line.startswith(REASON) and line.removeprefix(REASON).strip() for line in docstring.splitlines())

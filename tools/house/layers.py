"""Imports that go up: the layers are those of the import-linter contracts in pyproject.toml, highest first.

import-linter itself runs in `just check`. Here the arrows are counted, also in an old commit with its own contract.
As there, modules on one line with `|` between them may not import each other, with `:` they may; parentheses mean
that the module may be missing.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tools.house.tree import Tree

PACKAGE = "toolspeak"
_SEPARATOR = re.compile(r"\s*[|:]\s*")


def arrows_up(tree: Tree) -> list[tuple[str, str]]:
    """Return the imports, importer first, that go up or to an independent sibling."""
    return sorted({arrow for contract in _contracts(tree) for arrow in _arrows_of(tree, contract)})


def _contracts(tree: Tree) -> Iterator[dict[str, Any]]:
    linter: dict[str, Any] = tree.settings.get("tool", {}).get("importlinter", {})
    contracts: list[dict[str, Any]] = linter.get("contracts", [])
    return (contract for contract in contracts if contract["type"] == "layers")


def rooms(tree: Tree) -> list[list[str]]:
    """Return the rooms of the package by layer, the highest first; missing rooms are left out."""
    (contract,) = (found for found in _contracts(tree) if found.get("containers") == [PACKAGE])
    layers = [[name.strip("() ") for name in _SEPARATOR.split(layer)] for layer in contract["layers"]]
    there = [[room for room in layer if f"{PACKAGE}.{room}" in tree.modules] for layer in layers]
    return [layer for layer in there if layer]


def _arrows_of(tree: Tree, contract: dict[str, Any]) -> Iterator[tuple[str, str]]:
    containers: list[str] = contract.get("containers", [""])
    for container in containers:
        places = _places(container, contract["layers"])
        for importer, targets in tree.graph.items():
            for target in targets:
                if _is_up(_place(importer, places), _place(target, places)):
                    yield importer, target


Place = tuple[int, int]
"""The layer, 0 is the highest, and which of its independent siblings."""


def _places(container: str, layers: Sequence[str]) -> dict[str, Place]:
    """Return the place of each module that the contract names."""
    found: dict[str, Place] = {}
    for height, layer in enumerate(layers):
        for number, name in enumerate(_SEPARATOR.split(layer)):
            full = ".".join(filter(None, (container, name.strip("() "))))
            found[full] = (height, 0 if ":" in layer else number)
    return found


def _place(module: str, places: dict[str, Place]) -> Place | None:
    """Return the place of a module or of the package that holds it, None if it is in no layer."""
    while module not in places:
        module, dot, _ = module.rpartition(".")
        if not dot:
            return None
    return places[module]


def _is_up(importer: Place | None, target: Place | None) -> bool:
    if importer is None or target is None or importer == target:
        return False
    return target[0] <= importer[0]

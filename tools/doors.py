"""Which tests go through the product: the gateway, the client, the command line, or a run.

A test goes through a door if the names that it uses lead to one: its own body, its fixtures, and the functions,
classes and values of `tests` and `testkit` that these use in turn. Annotations do not count. The doors are the modules
of the rooms that users meet, and processes that are started as `toolspeak`. Code of `src` is not followed: a test of a
function that the gateway happens to call is not a test of the gateway.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import toolspeak
from tools.imports import Module, read_modules

DOORS = ("gateway", "client", "cli", "runs", "agent")
NO_DOORS = ("agent.tools", "agent.mcp", "agent.sandbox")
"""Parts of a door's room that a run uses and no user meets: a test of such a part alone does not count as a run."""
PROCESS = "toolspeak"
"""A string like this starts the command line in a separate process."""

Symbol = tuple[str, str]
"""Module and name."""


@dataclass
class Names:
    """The names of a module: the nodes that define one, or the place that it is imported from."""

    defined: dict[str, list[ast.stmt]] = field(default_factory=dict[str, list[ast.stmt]])
    imported: dict[str, Symbol] = field(default_factory=dict[str, Symbol])
    """An imported module is (its name, "")."""


class Doors:
    """The names of all tests, and which of them lead to a door."""

    def __init__(self, root: Path) -> None:
        """Read the tests and their kit below `root`."""
        read = {**read_modules(root, "tests", "tests"), **read_modules(root, "testkit", "testkit")}
        self._modules = {module.path: module for module in read.values()}
        self._names = {name: _names_of(module) for name, module in read.items()}
        symbols = [(module, name) for module, names in self._names.items() for name in names.defined]
        self._leading = _leading({symbol: list(self._used_by(symbol)) for symbol in symbols})

    def reached_by(self, path: str, test: str) -> bool:
        """Return whether a test function of a file, or a fixture that it uses, leads to a door."""
        return (self._modules[path].name, test) in self._leading

    def _used_by(self, symbol: Symbol) -> Iterator[Symbol | bool]:
        """Yield the symbols that a symbol uses, and True for a door."""
        module, name = symbol
        names = self._names[module]
        for node in names.defined.get(name, ()):
            for used in _used(node):
                if isinstance(used, str):
                    yield used == PROCESS
                else:
                    yield from self._resolved(module, *used)

    def _resolved(self, module: str, name: str, attribute: str) -> Iterator[Symbol | bool]:
        names = self._names[module]
        if name in names.defined:
            yield module, name
        elif name in names.imported:
            source, inner = names.imported[name]
            if inner and f"{source}.{inner}" in self._names:
                source, inner = f"{source}.{inner}", ""
            if source in self._names:
                yield source, inner or attribute
            else:
                yield _is_door(source, inner or attribute)
        elif conftest := self._fixture(module, name):
            yield conftest, name

    def _fixture(self, module: str, name: str) -> str:
        """Return the nearest conftest above a module that defines the name."""
        folder = PurePosixPath(*module.split(".")).parent
        for above in (folder, *folder.parents):
            conftest = ".".join((*above.parts, "conftest"))
            if conftest in self._names and name in self._names[conftest].defined:
                return conftest
        return ""


def _leading(uses: dict[Symbol, list[Symbol | bool]]) -> set[Symbol]:
    """Return the symbols from which uses lead to a door."""
    users: dict[Symbol | bool, list[Symbol]] = {}
    for symbol, used in uses.items():
        for each in used:
            users.setdefault(each, []).append(symbol)
    found = set[Symbol]()
    waiting = list(users.get(True, ()))
    while waiting:
        symbol = waiting.pop()
        if symbol not in found:
            found.add(symbol)
            waiting.extend(users.get(symbol, ()))
    return found


def _is_door(module: str, name: str) -> bool:
    package, _, rest = module.partition(".")
    if package != PROCESS:
        return False
    if not rest and name in toolspeak.__all__:
        home = getattr(getattr(toolspeak, name), "__module__", "") or ""
        rest = str(home).partition(".")[2]
    inner = f"{rest}.{name}"
    if any(inner == part or inner.startswith(f"{part}.") for part in NO_DOORS):
        return False
    return (rest or name).partition(".")[0] in DOORS


def _names_of(module: Module) -> Names:
    """Read what the names at the top of a module mean."""
    names = Names()
    for node in module.syntax.body:
        for name in _defines(node):
            names.defined.setdefault(name, []).append(node)
    for node in module.imports:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                names.imported[alias.asname or alias.name] = (node.module or "", alias.name)
            else:
                names.imported[alias.asname or alias.name] = (alias.name, "")
    return names


def _defines(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case _:
            return


def _used(node: ast.AST) -> Iterator[tuple[str, str] | str]:
    """Yield each name that a definition uses, with the attribute taken of it, and each string; no annotations."""
    waiting: list[ast.AST] = [node]
    while waiting:
        found = waiting.pop()
        match found:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                yield name, attribute
                continue
            case ast.Name(id=name):
                yield name, ""
            case ast.arg(arg=name):
                yield name, ""  # a fixture, if there is one of that name
                continue
            case ast.Constant(value=str(text)):
                yield text
            case _:
                pass
        hidden = {getattr(found, "annotation", None), getattr(found, "returns", None)}
        waiting.extend(child for child in ast.iter_child_nodes(found) if child not in hidden)

"""Which functions of a tree are reached, by name.

The code of every module runs when it is imported. A function is reached if its name is used in reached code, as a name,
an attribute, or a string (`getattr(module, "WIRE")`), and so is a decorated one, because its decorator registers it.
Methods are not distinguished by class, so a function may wrongly count as reached, but never as unreached.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from tools.imports import Module

Function = ast.FunctionDef | ast.AsyncFunctionDef


def reached_functions(modules: Mapping[str, Module], public: Iterable[str]) -> set[tuple[str, str]]:
    """Return module and name of each reached function; `public` are names that users of the package call."""
    bodies: defaultdict[str, list[tuple[str, ast.AST]]] = defaultdict(list)
    waiting = [*public]
    for module in modules.values():
        waiting.extend(_names(module.syntax, outside_functions=True))
        for node in ast.walk(module.syntax):
            if isinstance(node, Function):
                bodies[node.name].append((module.name, node))
                if node.decorator_list or node.name.startswith("__"):
                    waiting.append(node.name)
    seen: set[str] = set()
    found: set[tuple[str, str]] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for module_name, body in bodies.get(name, ()):
            found.add((module_name, name))
            waiting.extend(_names(body))
    return found


def _names(root: ast.AST, *, outside_functions: bool = False) -> Iterator[str]:
    waiting: list[ast.AST] = [*ast.iter_child_nodes(root)]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if outside_functions:
                waiting.extend(node.decorator_list)
                continue
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.Constant(value=str(name)):
                yield name
            case ast.alias(name=name):
                continue  # an import alone does not count as a use
            case _:
                pass
        waiting.extend(ast.iter_child_nodes(node))

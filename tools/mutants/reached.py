"""Records which blocks of src a process runs. It is loaded in every process of a copy, before anything else.

`copies.py` puts this file into the copy's site-packages beside a `.pth` file that imports it. With `MUTANTS_REACHED` (a
folder) and `MUTANTS_PLAN` set, modules of src are compiled with one more statement at the start of each block, which
sets a byte. That costs a few percent; with a profiler the largest contract tests exceeded their time limit and were
lost. The bytes are in a file of the process, so they survive when the process is killed.

A process that is started with `-I -S`, such as the sandbox's guard, loads no `.pth` file and often gets no environment.
Its command line is changed so that it records too.
"""

import ast
import builtins
import json
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, cast

BODIES = ("body", "orelse", "finalbody")
_CONDITIONAL = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.ExceptHandler, ast.match_case)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def blocks(tree: ast.Module) -> list[list[ast.stmt]]:
    """Return the blocks of all functions: their bodies, and each part that is run only sometimes."""
    found: list[list[ast.stmt]] = []
    for function in (node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)):
        found.append(function.body)
        for node in _inside(function):
            if isinstance(node, _CONDITIONAL):
                found.extend(body for name in BODIES if (body := getattr(node, name, None)))
    return found


def _inside(function: ast.AST) -> Iterator[ast.AST]:
    """Yield what a function contains, functions in it excluded: they have their own blocks."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _FUNCTIONS):
            waiting.extend(ast.iter_child_nodes(node))


def lines_of(block: list[ast.stmt]) -> tuple[int, int]:
    """Return the first and the last line of a block."""
    return block[0].lineno, max(node.end_lineno or node.lineno for node in block)


def instrumented(tree: ast.Module, first: int) -> ast.Module:
    """Put the statement that sets a byte at the start of each block; the numbers begin with `first`."""
    for number, block in enumerate(blocks(tree), start=first):
        has_docstring = isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant) and len(block) > 1
        (statement,) = ast.parse(f"__mutants_reached__[{number}] = 1").body
        for node in ast.walk(statement):
            ast.copy_location(node, block[0])
        block.insert(1 if has_docstring else 0, statement)
    return tree


# ---------------------------------------------------------------- in every process


def record(folder: Path, plan: dict[str, int], size: int) -> None:
    """From now on compile src with the statements; the bytes are in a file of this process."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{os.getpid()}.reached").open("w+b") as file:
        file.truncate(size)
        setattr(builtins, "__mutants_reached__", mmap.mmap(file.fileno(), size))  # noqa: B010 - no checker knows it
    plain = SourceFileLoader.source_to_code

    def source_to_code(loader: Any, data: Any, path: Any, *more: Any, **options: Any) -> Any:  # noqa: ANN401 - as Python's
        if str(path) in plan and isinstance(data, bytes | str):
            return compile(instrumented(ast.parse(data), plan[str(path)]), path, "exec", dont_inherit=True)
        return plain(loader, data, path, *more, **options)

    SourceFileLoader.source_to_code = source_to_code  # type: ignore[method-assign]


ISOLATED = ("-I", "-S")
PASSED_ON = ("MUTANTS_REACHED", "MUTANTS_PLAN")


def record_isolated() -> None:
    """From now on let Python processes that this one starts with `-I -S` record what they run."""
    plain = subprocess.Popen.__init__

    def start(process: Any, args: Any, *more: Any, **options: Any) -> None:  # noqa: ANN401 - as Python's
        if is_isolated(args):
            given = options.get("env")
            inherited = {name: os.environ[name] for name in PASSED_ON}
            options["env"] = {**(os.environ if given is None else given), **inherited}
            args = with_site(args)
        plain(process, args, *more, **options)

    subprocess.Popen.__init__ = start  # type: ignore[method-assign]


def is_isolated(args: Any) -> bool:  # noqa: ANN401 - as Python's
    """Return whether the arguments of `Popen` start Python with `-I -S`."""
    return not isinstance(args, os.PathLike) and tuple(cast("Sequence[str]", args)[:3]) == (sys.executable, *ISOLATED)


def with_site(words: Sequence[str]) -> list[str]:
    """Return a command line without `-S`. `-I` stays, so the folder of the bytecode must be an option."""
    return [words[0], ISOLATED[0], "-X", f"pycache_prefix={sys.pycache_prefix}", *words[1 + len(ISOLATED) :]]


if "MUTANTS_REACHED" in os.environ and "MUTANTS_PLAN" in os.environ:
    _PLAN = json.loads(Path(os.environ["MUTANTS_PLAN"]).read_text("utf-8"))
    record(Path(os.environ["MUTANTS_REACHED"]), _PLAN["files"], _PLAN["size"])
    record_isolated()

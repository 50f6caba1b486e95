"""Small mistakes in a source file: each is one place of the syntax tree and the text that replaces it.

    kind            before                after
    comparison      a < b                 (a <= b)
    boolean         a and b               (a or b), (a), (b)
    constant        1, True, "x", ""      2, False, "", "mutant"
    not             not a                 (a)
    branch          if a:                 if not (a):
    statement       self.seen.add(x)      pass
    early return    x = f()               return; x = f()

Only the text of the place changes, so line numbers of a report are those of the file. Left out is whatever no test can
notice: docstrings, annotations, decorators, messages of exceptions and the names of type variables.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from typing_extensions import override

KINDS = ("comparison", "boolean", "constant", "not", "branch", "statement", "early return")

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_REMOVABLE = (ast.Expr, ast.AugAssign, ast.Raise, ast.Return, ast.Continue, ast.Break, ast.Delete)
_NAMING = {"TypeVar", "NewType", "ParamSpec", "TypeAliasType"}
"""Calls whose text is a name for the type checker."""


@dataclass(frozen=True)
class Mutation:
    """One mistake: the bytes from `start` to `end` of the source are replaced."""

    kind: str
    line: int
    start: int
    end: int
    new: str

    def apply(self, source: str) -> str:
        """Return the source with the mistake."""
        data = source.encode()
        return (data[: self.start] + self.new.encode() + data[self.end :]).decode()

    def is_valid(self, source: str) -> bool:
        """Return whether the source with the mistake is still Python."""
        try:
            compile(self.apply(source), "mutant", "exec", dont_inherit=True)
        except SyntaxError:
            return False
        return True

    def describe(self, source: str) -> str:
        """Return the change in one line."""
        old = source.encode()[self.start : self.end].decode()
        return f"{_one_line(old)}  ->  {_one_line(self.new)}"


def _one_line(text: str, limit: int = 100) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def mutations(source: str) -> list[Mutation]:
    """Return every mistake that this module can make in a source, in the order of the file."""
    found = _Places(source)
    found.visit(ast.parse(source))
    return sorted(found.made, key=lambda made: (made.start, made.new))


class _Places(ast.NodeVisitor):
    """Collects the mistakes of a source."""

    def __init__(self, source: str) -> None:
        self.made: list[Mutation] = []
        lengths = (len(line.encode()) for line in source.splitlines(keepends=True))
        self._line_starts = [0, *accumulate(lengths)]
        self._functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []

    def _replace(self, kind: str, node: ast.expr | ast.stmt, new: str) -> None:
        start = self._line_starts[node.lineno - 1] + node.col_offset
        end = self._line_starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        self.made.append(Mutation(kind, node.lineno, start, end, new))

    # ---------------------------------------------------------------- the visited nodes

    @override
    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._enter_function(node)

    @override
    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._enter_function(node)

    def _enter_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Visit defaults and body; decorators and annotations are left out."""
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        self._functions.append(node)
        self._visit_body(node.body)
        self._functions.pop()

    @override
    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_body(node.body)

    @override
    def visit_Module(self, node: ast.Module) -> None:
        self._visit_body(node.body)

    def _visit_body(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self.visit(statement)

    @override
    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and not (isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"):
            self.visit(node.value)
        self._change_statement(node)

    @override
    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave out f-strings: before Python 3.12 their parts have no position."""

    @override
    def visit_Call(self, node: ast.Call) -> None:
        if not (isinstance(node.func, ast.Name) and node.func.id in _NAMING):
            self.generic_visit(node)

    @override
    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node, ast.stmt):
            self._change_statement(node)
        if not isinstance(node, ast.Raise):  # its message is for people
            super().generic_visit(node)

    # ---------------------------------------------------------------- the mistakes

    def _change_statement(self, node: ast.stmt) -> None:
        if isinstance(node, _REMOVABLE) or _stores_inside(node):
            self._replace("statement", node, "pass")
        if self._functions and not isinstance(node, ast.Return | ast.Nonlocal | ast.Global):
            self._return_before(node, self._functions[-1])

    def _return_before(self, node: ast.stmt, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Return in front of a statement: nothing, or either answer of a function that returns a bool."""
        returns_bool = isinstance(function.returns, ast.Name) and function.returns.id == "bool"
        start = self._line_starts[node.lineno - 1] + node.col_offset
        for value in (" True", " False") if returns_bool else ("",):
            new = f"return{value}\n{' ' * node.col_offset}"
            self.made.append(Mutation("early return", node.lineno, start, start, new))

    @override
    def visit_If(self, node: ast.If) -> None:
        self._replace("branch", node.test, f"not ({ast.unparse(node.test)})")
        self.generic_visit(node)

    @override
    def visit_IfExp(self, node: ast.IfExp) -> None:
        swapped = ast.IfExp(node.test, node.orelse, node.body)
        self._replace("branch", node, f"({ast.unparse(swapped)})")
        self.generic_visit(node)

    @override
    def visit_Compare(self, node: ast.Compare) -> None:
        for index, operator in enumerate(node.ops):
            other = [*node.ops[:index], _COMPARISONS[type(operator)](), *node.ops[index + 1 :]]
            self._replace("comparison", node, f"({ast.unparse(ast.Compare(node.left, other, node.comparators))})")
        self.generic_visit(node)

    @override
    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._replace("boolean", node, f"({ast.unparse(ast.BoolOp(other, node.values))})")
        for index in range(len(node.values)):
            rest = [*node.values[:index], *node.values[index + 1 :]]
            kept = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            self._replace("boolean", node, f"({ast.unparse(kept)})")
        self.generic_visit(node)

    @override
    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace("not", node, f"({ast.unparse(node.operand)})")
        self.generic_visit(node)

    @override
    def visit_Constant(self, node: ast.Constant) -> None:
        if (new := _other_constant(node.value)) is not None:
            self._replace("constant", node, repr(new))


def _stores_inside(node: ast.stmt) -> bool:
    """Return whether a statement assigns to a part of an object; a variable that is never bound fails any test."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    return any(isinstance(target, ast.Attribute | ast.Subscript) for target in targets)


def _other_constant(value: object) -> bool | int | float | str | None:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return "" if value else "mutant"
        case _:
            return None

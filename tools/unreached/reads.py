"""Finds where the fields of classes are read, with a small inference of types.

The type of an expression is the set of classes of the tree that its annotation names, whatever containers are around
them: `config.upstreams` and `for one in config.upstreams` are both an `Upstream`. That is enough to tell
`settings.retries` from `address.retries`, and needs no type checker. An object of unknown type counts as read only if
one class alone has a field of that name.

A value that is passed to the constructor of a class (`UpstreamAddress(upstream.url, …)`) is copied, not read: the field
that it becomes must be read in turn. `replace(…)` is a copy into the same class.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tools.imports import Module

Function = ast.FunctionDef | ast.AsyncFunctionDef
Types = frozenset[str]
Attribute = tuple[str, str]
"""Class and field."""
UNKNOWN: Types = frozenset()
_WORD = re.compile(r"[A-Za-z_]\w*")
_BINDING = (
    *(ast.arg, ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.AsyncFor),
    *(ast.comprehension, ast.withitem, ast.Match),
)
_ROUNDS = 3
"""How often attributes are inferred: `self._x = y.z` needs the type of `y.z` first."""


@dataclass
class ClassFacts:
    """A class of the tree."""

    bases: list[str]
    fields: list[str] = field(default_factory=list[str])
    """Annotated names of the body, in order: the parameters of a dataclass."""
    has_init: bool = False
    """It has its own `__init__`, whose arguments count as read."""
    types: dict[str, Types] = field(default_factory=dict[str, Types])
    """The types of its attributes, and of what its methods return."""


@dataclass(frozen=True)
class Read:
    """A field that is read, or copied into another one."""

    attribute: Attribute
    function: tuple[str, str]
    """The module and the name of the function; the name is empty for code of the module."""
    copied: Attribute | None = None


class Reads:
    """All reads of a tree."""

    def __init__(self, modules: Mapping[str, Module]) -> None:
        """Read the modules."""
        self._classes: dict[str, ClassFacts] = {}
        self._returns: defaultdict[str, Types] = defaultdict(frozenset)
        self._values: defaultdict[str, Types] = defaultdict(frozenset)
        """Types of the values of modules, by name."""
        self._aliases: dict[str, Types] = {}
        self._bindings: dict[Function, list[ast.AST]] = {}
        self._definitions: dict[ast.Module, list[ast.ClassDef | Function]] = {}
        trees = [(module.name, module.syntax) for module in modules.values()]
        for _, tree in trees:
            self._declare(tree)
        for _ in range(_ROUNDS):
            for _, tree in trees:
                self._infer(tree)
        self._owners = self._fields_by_name()
        self.found = [read for name, tree in trees for read in self._reads_in(name, tree)]

    def bindings(self, function: Function) -> list[ast.AST]:
        """Return the nodes of a function that bind names."""
        if function not in self._bindings:
            self._bindings[function] = [node for node in ast.walk(function) if isinstance(node, _BINDING)]
        return self._bindings[function]

    def fields_of(self, name: str) -> list[str]:
        """Return the annotated fields of a class."""
        return self._classes[name].fields if name in self._classes else []

    # ---------------------------------------------------------------- declarations

    def _declare(self, tree: ast.Module) -> None:
        self._definitions[tree] = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | Function)]
        for node in self._definitions[tree]:
            if isinstance(node, ast.ClassDef):
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                facts = self._classes.setdefault(node.name, ClassFacts(bases))
                for each in node.body:
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                        facts.fields.append(each.target.id)
                    elif isinstance(each, Function) and each.name == "__init__":
                        facts.has_init = True

    def _infer(self, tree: ast.Module) -> None:
        for node in tree.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self._values[node.target.id] |= self._named(node.annotation)
                if "TypeAlias" in ast.unparse(node.annotation):
                    self._aliases[node.target.id] = self._named(node.value)
                if node.value is not None:
                    self._values[node.target.id] |= Scope(self).type_of(node.value)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                self._values[name] |= Scope(self).type_of(node.value)
                if isinstance(node.value, ast.Subscript | ast.BinOp | ast.Name):
                    self._aliases[name] = self._aliases.get(name, UNKNOWN) | self._named(node.value)
        for node in self._definitions[tree]:
            if isinstance(node, ast.ClassDef):
                self._infer_class(node)
            elif node.returns is not None:
                self._returns[node.name] |= self._named(node.returns)

    def _infer_class(self, node: ast.ClassDef) -> None:
        types = self._classes[node.name].types
        for each in node.body:
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                types[each.target.id] = self._named(each.annotation)
            elif isinstance(each, Function):
                types[each.name] = self._named(each.returns) if each.returns else UNKNOWN
                self._infer_self(node.name, each)

    def _infer_self(self, owner: str, function: Function) -> None:
        """Infer `self.x = …` of a method."""
        types = self._classes[owner].types
        scope = Scope(self, owner)
        scope.enter(function)
        for node in self.bindings(function):
            if isinstance(node, ast.AnnAssign | ast.Assign) and node.value is not None:
                stated = self._named(node.annotation) if isinstance(node, ast.AnnAssign) else UNKNOWN
                for target, value in _pairs(
                    node.target if isinstance(node, ast.AnnAssign) else node.targets[0], node.value
                ):
                    match target:
                        case ast.Attribute(value=ast.Name(id="self"), attr=name):
                            types[name] = types.get(name, UNKNOWN) | stated | scope.type_of(value)
                        case _:
                            pass

    def _named(self, annotation: ast.expr | None) -> Types:
        """Return the classes that an annotation names, also in quotes and through an alias."""
        found: set[str] = set()
        for node in ast.walk(annotation) if annotation is not None else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= self._classes.keys() & set(_WORD.findall(node.value))  # `"Config | None"`
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
            if name in self._classes:
                found.add(name)
            elif name in self._aliases:
                found |= self._aliases[name]
        return frozenset(found)

    # ---------------------------------------------------------------- questions of a scope

    def family(self, name: str) -> Iterator[str]:
        """Yield a class and those that it is derived from."""
        if name in self._classes:
            yield name
            for base in self._classes[name].bases:
                yield from self.family(base)

    def attribute(self, owners: Types, name: str) -> tuple[Types, Types]:
        """Return the classes among these that have an attribute, and its type."""
        having = {one for owner in owners for one in self.family(owner) if name in self._classes[one].types}
        return frozenset(having), UNKNOWN.union(*(self._classes[one].types[name] for one in having))

    def value(self, name: str) -> Types:
        """Return the type of a name of a module: a class, a function's result, or a value."""
        if name in self._classes:
            return frozenset((name,))
        return self._returns.get(name, UNKNOWN) | self._values.get(name, UNKNOWN)

    def parameters(self, name: str) -> list[str] | None:
        """Return the fields that a constructor fills; None if the name is no class of the tree with fields."""
        if name not in self._classes or any(self._classes[one].has_init for one in self.family(name)):
            return None
        inherited = [each for one in reversed([*self.family(name)]) for each in self._classes[one].fields]
        return [*dict.fromkeys(inherited)]

    def only_owner(self, name: str) -> Types:
        """Return the class that has a field, if it is the only one."""
        owners = self._owners.get(name, set())
        return frozenset(owners) if len(owners) == 1 else UNKNOWN

    def annotated(self, annotation: ast.expr | None) -> Types:
        """Return the type of an annotation."""
        return self._named(annotation)

    def _fields_by_name(self) -> dict[str, set[str]]:
        found: defaultdict[str, set[str]] = defaultdict(set)
        for name, facts in self._classes.items():
            for each in facts.types:
                found[each].add(name)
        return found

    # ---------------------------------------------------------------- reads

    def _reads_in(self, module: str, tree: ast.Module) -> Iterator[Read]:
        for owner, function in _functions(tree):
            scope = Scope(self, owner)
            scope.enter(function)
            yield from scope.reads((module, function.name), function)
        scope = Scope(self)
        yield from scope.reads((module, ""), tree)


def _parts(node: ast.expr) -> Iterable[ast.expr]:
    """Return the expressions whose types an expression has."""
    match node:
        case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return parts
        case ast.Dict(values=parts):
            return parts
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            return (one, other)
        case ast.ListComp(elt=part) | ast.SetComp(elt=part) | ast.GeneratorExp(elt=part) | ast.DictComp(value=part):
            return (part,)
        case ast.Await(value=part) | ast.Starred(value=part) | ast.Subscript(value=part) | ast.NamedExpr(value=part):
            return (part,)
        case _:
            return ()


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each target with its value: two for `a, b = c, d`."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


def _functions(tree: ast.AST, owner: str = "") -> Iterator[tuple[str, Function]]:
    """Yield each outermost function with the class that it is in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield owner, node
        else:
            yield from _functions(node, node.name if isinstance(node, ast.ClassDef) else owner)


class Scope:
    """The types of the names inside a function."""

    def __init__(self, tree: Reads, owner: str = "") -> None:
        """Begin with the names of the modules, and with `self` in a class."""
        self._tree = tree
        self._names: dict[str, Types] = {"self": frozenset((owner,)), "cls": frozenset((owner,))} if owner else {}

    def enter(self, function: Function) -> None:
        """Infer the parameters and the local names, functions inside included; twice, for names that come later."""
        nodes = self._tree.bindings(function)
        for node in nodes:
            if isinstance(node, ast.arg) and node.annotation is not None:
                self._names[node.arg] = self._tree.annotated(node.annotation)
        for _ in range(2):
            for node in nodes:
                self._assign(node)

    def _assign(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, value)
            case ast.AnnAssign(target=target, annotation=annotation):
                self._put(target, self._tree.annotated(annotation))
            case ast.NamedExpr(target=target, value=value):
                self._bind(target, value)
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                self._bind(target, value)
            case ast.comprehension(target=target, iter=value):
                self._bind(target, value)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                self._bind(target, value)
            case ast.Match(subject=subject, cases=cases):
                for case in cases:
                    self._capture(case.pattern, subject)
            case _:
                pass

    def _capture(self, pattern: ast.pattern, subject: ast.expr) -> None:
        for node in ast.walk(pattern):
            if isinstance(node, ast.MatchAs) and node.name:
                named = self._tree.annotated(node.pattern.cls) if isinstance(node.pattern, ast.MatchClass) else UNKNOWN
                self._names[node.name] = named or self.type_of(subject)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        for one, other in _pairs(target, value):
            self._put(one, self.type_of(other))

    def _put(self, target: ast.expr, types: Types) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                self._names[node.id] = self._names.get(node.id, UNKNOWN) | types

    def type_of(self, node: ast.expr) -> Types:
        """Return the type of an expression: the classes of the tree that it may be, or that are in it."""
        match node:
            case ast.Name(id=name):
                return self._names[name] if name in self._names else self._tree.value(name)
            case ast.Attribute(value=value, attr=name):
                owners = self.type_of(value)
                having, types = self._tree.attribute(owners, name)
                return types if having else owners  # a method of the container: `.values()`
            case ast.Call(func=ast.Name(id=name), args=arguments) if name not in self._names:
                known = self._tree.value(name)
                return known or self._all(arguments)  # `sorted(keys)`, `replace(config, …)`
            case ast.Call(func=function, args=arguments):
                return self.type_of(function) or self._all(arguments)
            case _:
                return self._all(_parts(node))

    def _all(self, nodes: Iterable[ast.expr]) -> Types:
        return UNKNOWN.union(*map(self.type_of, nodes))

    # ---------------------------------------------------------------- reads

    def reads(self, function: tuple[str, str], root: ast.AST) -> Iterator[Read]:
        """Yield the reads inside a function, or inside the code of a module that is in no function."""
        waiting: list[tuple[ast.AST, Attribute | None]] = [(root, None)]
        while waiting:
            node, target = waiting.pop()
            if isinstance(root, ast.Module) and isinstance(node, Function):
                waiting.extend((each, None) for each in node.decorator_list)
                continue
            yield from (Read(attribute, function, target) for attribute in self._read_by(node))
            copies = self._copies(node) if isinstance(node, ast.Call) else {}
            passed = target if isinstance(node, ast.BoolOp | ast.keyword) else None  # `Address(url=one.url or other)`
            waiting.extend((child, copies.get(child, passed)) for child in _values(node))

    def _read_by(self, node: ast.AST) -> Iterator[Attribute]:
        match node:
            case ast.Attribute(value=value, attr=name, ctx=ast.Load()):
                owners = self.type_of(value)
                having, _ = self._tree.attribute(owners, name)
                yield from ((owner, name) for owner in (having if owners else self._tree.only_owner(name)))
            case ast.MatchClass(cls=kind, kwd_attrs=names):
                for name in names:
                    having, _ = self._tree.attribute(self._tree.annotated(kind), name)
                    yield from ((owner, name) for owner in having)
            case ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str(name)), *_]):
                having, _ = self._tree.attribute(self.type_of(value), name)
                yield from ((owner, name) for owner in having)
            case _:
                pass

    def _copies(self, call: ast.Call) -> dict[ast.AST, Attribute]:
        """Return the arguments of a constructor, each with the field that it becomes."""
        if not isinstance(call.func, ast.Name):
            return {}
        name = call.func.id
        if name == "replace" and call.args:
            owners = self.type_of(call.args[0])
            return {each: (owner, each.arg) for owner in owners for each in call.keywords if each.arg}
        parameters = self._tree.parameters(name)
        if parameters is None:
            return {}
        found: dict[ast.AST, Attribute] = {each: (name, each.arg) for each in call.keywords if each.arg}
        return found | {each: (name, parameter) for each, parameter in zip(call.args, parameters, strict=False)}


def _values(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node; an annotation does not use what it names."""
    hidden = {getattr(node, "annotation", None), getattr(node, "returns", None)}
    yield from (child for child in ast.iter_child_nodes(node) if child not in hidden)

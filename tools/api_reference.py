"""Writes docs/api.md from the docstrings of the public names; with `--check`, only checks whether it is up to date.

    python tools/api_reference.py [--check]

A name is public if `toolspeak.__all__` has it. The page shows what a caller needs: signatures, fields, members, methods
and their docstrings, with the page that shows each group in use.
"""

import ast
import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple, get_args

import toolspeak
from toolspeak.client import request

PAGE: Final = Path(__file__).parent.parent / "docs" / "api.md"
GROUPS: Final = {
    "Ask a model": (
        (
            "Client",
            "AsyncClient",
            "Stream",
            "AsyncStream",
            "MessagesInput",
            "ToolsInput",
            "Answer",
            "tool_result",
            "Settings",
            "Mode",
            "Strategy",
            "Release",
            "Constrain",
            "Timeouts",
            "Config",
            "AsyncUpstream",
            "ChatOptions",
            "Plan",
            "Way",
            "Outcome",
        ),
        "library.md",
    ),
    "Inside another SDK": (
        ("Transport", "AsyncTransport", "TransportOptions"),
        "in-process.md",
    ),
    "Tools and runs": (
        (
            "Tool",
            "ToolKind",
            "Grammar",
            "ToolChoice",
            "ChoiceMode",
            "tool",
            "ToolEffect",
            "CallContext",
            "ToolOutput",
            "Action",
            "RunnableTools",
            "RunOptions",
            "Approval",
            "Ending",
            "Status",
            "Compact",
            "Round",
        ),
        "tools.md",
    ),
    "Events of a run": (
        (
            "RunEvent",
            "TurnBegan",
            "Wrote",
            "TurnEnded",
            "ToolCallBegan",
            "ToolCallAsked",
            "ToolCallEnded",
            "ToolCallRejected",
            "RunEnded",
        ),
        "library.md",
    ),
    "Conversations": (
        (
            "Message",
            "Role",
            "Text",
            "Image",
            "Reasoning",
            "Call",
            "Result",
            "ToolReference",
            "Opaque",
            "Vendor",
            "Request",
            "Sampling",
        ),
        "library.md",
    ),
    "Events of an answer": (
        (
            "Event",
            "TextDelta",
            "ReasoningDelta",
            "CallStarted",
            "ArgsDelta",
            "CallEnded",
            "CallRejected",
            "Discarded",
            "Finished",
            "Failed",
            "StopReason",
            "Usage",
            "Complaint",
            "Problem",
            "Fix",
            "Why",
        ),
        "reading.md",
    ),
    "Read a model's text": (
        ("read", "dialects", "Dialect", "TextReader", "ReadOptions", "Turn", "PartialCall", "fold", "unfold"),
        "reading.md",
    ),
    "Know a model": (
        (
            "strategy_for",
            "Chosen",
            "Capability",
            "Overrides",
            "Override",
            "Support",
            "ModelFacts",
            "Source",
            "Verdict",
            "Depth",
            "Finding",
            "Layer",
            "ConstraintForm",
        ),
        "facts.md",
    ),
    "Errors": (
        (
            "ToolspeakError",
            "UpstreamFailed",
            "Failure",
            "FailureKind",
            "ClientClosed",
            "BadRequest",
            "BadField",
            "BadSchema",
            "BadConfig",
            "BadJson",
            "BadFrame",
            "TooLarge",
            "NotStored",
            "UnknownPrevious",
            "UnknownModel",
            "UnknownName",
            "UnknownRun",
            "TooManyRuns",
            "RunsUnavailable",
            "CellUnavailable",
            "ServerLost",
            "McpFailed",
            "MissingExtra",
        ),
        "library.md",
    ),
}
WIDTH: Final = 100
HEAD: Final = """# API reference

Every public name of the package, made from its docstrings (`just docs`). Import each from `toolspeak`:
`from toolspeak import Client`. Names that are not on this page may change without notice.
"""


def page() -> str:
    """Return the whole page; raises `SystemExit` for a public name that has no group."""
    listed = [name for names, _ in GROUPS.values() for name in names]
    if sorted(listed) != sorted(toolspeak.__all__):
        wrong = sorted(set(listed) ^ set(toolspeak.__all__))
        raise SystemExit(f"public names and GROUPS in tools/api_reference.py differ: {', '.join(wrong)}")
    parts = [HEAD]
    for title, (names, guide) in GROUPS.items():
        parts.append(f"## {title}\n\nShown in use on the page [{guide.removesuffix('.md')}]({guide}).\n")
        parts.extend("\n".join(_entry(name, getattr(toolspeak, name))) for name in names)
    return "\n".join(parts)


def _entry(name: str, found: object) -> Iterator[str]:
    yield f"### {name}\n"
    if isinstance(found, ModuleType):
        yield f"{_doc(found)}\n"
        yield from (_method(each, getattr(found, each)) for each in sorted(found.__all__) if _function(found, each))
        yield ""
    elif inspect.isclass(found):
        yield from _class(name, found)
    elif inspect.isfunction(found):
        yield f"```python\n{_call(name, _node(found))}\n```\n\n{_doc(found)}\n"
    elif all(map(inspect.isclass, get_args(found))):
        yield "One of:\n"
        yield from (f"- `{each.__name__}`: {_doc(each).splitlines()[0]}" for each in get_args(found))
        yield ""
    else:
        yield from _alias(name)


def _alias(name: str) -> Iterator[str]:
    """Yield an alias that is not a plain union, as the source of `toolspeak.client.request` has it."""
    body = ast.parse(inspect.getsource(request)).body
    for node, about in itertools.pairwise(body):
        if isinstance(node, ast.AnnAssign) and _value(node.target) == name and node.value:
            text = about.value.value if isinstance(about, ast.Expr) and isinstance(about.value, ast.Constant) else ""
            yield f"```python\n{name} = {_value(node.value)}\n```\n\n{' '.join(str(text).split())}\n"


def _function(module: ModuleType, name: str) -> bool:
    return inspect.isfunction(getattr(module, name))


def _class(name: str, found: type[object]) -> Iterator[str]:
    node = _node(found)
    assert isinstance(node, ast.ClassDef)
    fields = _fields(node)
    if not issubclass(found, Enum | BaseException):
        yield f"```python\n{_construction(name, node, fields)}\n```\n"
    yield f"{_doc(found)}\n"
    if issubclass(found, Enum):
        yield from (f"- `{each.name}`: `{each.value!r}`{_about(fields[each.name].doc, ' ')}" for each in found)
    else:
        yield from (f"- `{each}`{_about(field.doc)}" for each, field in fields.items() if field.doc)
    yield from (_method(each, member) for each, member in vars(found).items() if _is_shown(each, member))
    yield ""
    for options in dict.fromkeys(_options(found)):
        if name.startswith("Async"):  # the same as those of its namesake, which comes before it
            continue
        yield f"The keyword arguments of `{options.__name__}`, all optional:\n"
        inner = _node(options)
        assert isinstance(inner, ast.ClassDef)
        for each, field in _fields(inner).items():
            yield f"- `{each}: {field.type}`{_about(field.doc)}"
        yield ""


def _options(found: type[object]) -> Iterator[type[object]]:
    """Yield the classes that list keyword arguments (`**wishes: Unpack[…]`) of the methods."""
    for each, member in vars(found).items():
        if _is_shown(each, member) and inspect.isfunction(member):
            for parameter in inspect.signature(member).parameters.values():
                if parameter.kind is parameter.VAR_KEYWORD and get_args(parameter.annotation):
                    yield get_args(parameter.annotation)[0]


def _is_shown(name: str, member: object) -> bool:
    is_method = inspect.isfunction(member) or isinstance(member, property) or hasattr(member, "__func__")
    return not name.startswith("_") and is_method and bool(_doc(member))


def _method(name: str, member: object) -> str:
    if isinstance(member, property):
        return f"- `{name}`{_about(_doc(member))}"
    inner: object = getattr(member, "__func__", member)  # of a class method
    node = _node(inner)
    awaited = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"- `{awaited}{_call(name, node, one_line=True)}`{_about(_doc(inner))}"


# ---------------------------------------------------------------- signatures, as their source has them


class Field(NamedTuple):
    """A field of a class, or a member of an enumeration."""

    type: str
    default: str
    doc: str


def _node(found: object) -> ast.stmt:
    """Return the definition of a class or function."""
    assert inspect.isclass(found) or inspect.isfunction(found)
    return ast.parse(textwrap.dedent(inspect.getsource(found))).body[0]


def _fields(node: ast.ClassDef) -> dict[str, Field]:
    """Return the public fields of a class in order, each with the string below it."""
    found: dict[str, Field] = {}
    last = ""
    for each in node.body:
        if isinstance(each, ast.AnnAssign | ast.Assign):
            target = each.target if isinstance(each, ast.AnnAssign) else each.targets[0]
            last = target.id if isinstance(target, ast.Name) and not target.id.startswith("_") else ""
            if last:
                annotation = _type(each.annotation) if isinstance(each, ast.AnnAssign) else ""
                found[last] = _declared(annotation, each.value)
        elif isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) and last:
            found[last] = found[last]._replace(doc=inspect.cleandoc(str(each.value.value)))
        else:
            last = ""
    return found


def _declared(annotation: str, value: ast.expr | None) -> Field:
    """Return a field; a setting (`setting(DEFAULT, HELP, …)`) has its documentation in its declaration."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "setting":
        default, about = value.args
        return Field(annotation, _value(default), str(ast.literal_eval(about)))
    return Field(annotation, _value(value) if value else "", "")


def _construction(name: str, node: ast.ClassDef, fields: dict[str, Field]) -> str:
    """Return how an object is made: by `__init__`, or from the fields of a data class."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            each.returns = None
            return _call(name, each)
    defaults = {each: re.sub(r"(?:dataclasses\.)?field\(.*\)", "…", field.default) for each, field in fields.items()}
    return _joined(
        name,
        [f"{each}: {field.type}{' = ' * bool(defaults[each])}{defaults[each]}" for each, field in fields.items()],
        "",
    )


def _call(name: str, node: ast.stmt, *, one_line: bool = False) -> str:
    """Return how a function is called."""
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    parameters = list(_parameters(node.args))
    if parameters and parameters[0] in ("self", "cls"):
        del parameters[0]
    returns = f" -> {_type(node.returns)}" if node.returns else ""
    if one_line:
        return f"{name}({', '.join(parameters)}){returns}"
    return "async def " * isinstance(node, ast.AsyncFunctionDef) + _joined(name, parameters, returns)


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + [*arguments.defaults]
    for index, (each, default) in enumerate(zip(positional, defaults, strict=True), 1):
        yield _parameter(each, default)
        if index == len(arguments.posonlyargs):
            yield "/"
    if arguments.vararg or arguments.kwonlyargs:
        yield f"*{_parameter(arguments.vararg) if arguments.vararg else ''}"
    yield from map(_parameter, arguments.kwonlyargs, arguments.kw_defaults)
    if arguments.kwarg:
        yield f"**{_parameter(arguments.kwarg)}"


def _parameter(parameter: ast.arg, default: ast.expr | None = None) -> str:
    if parameter.annotation is None:
        return parameter.arg + (f"={_value(default)}" if default else "")
    return f"{parameter.arg}: {_type(parameter.annotation)}" + (f" = {_value(default)}" if default else "")


def _type(annotation: ast.expr) -> str:
    """Write a type; one that is quoted because it is defined later loses its quotes."""
    quoted = annotation.value if isinstance(annotation, ast.Constant) else None
    return quoted if isinstance(quoted, str) else _value(annotation)


def _value(node: ast.expr) -> str:
    written = ast.unparse(node)
    return written if '"' in written else written.replace("'", '"')


def _joined(name: str, parameters: list[str], returns: str) -> str:
    short = f"{name}({', '.join(parameters)}){returns}"
    if len(short) <= WIDTH:
        return short
    return "\n".join((f"{name}(", *(f"    {each}," for each in parameters), f"){returns}"))


def _about(text: str, before: str = ": ") -> str:
    return f"{before}{' '.join(text.split())}" if text else ""


def _doc(found: object) -> str:
    return inspect.cleandoc(found.__doc__ or "")


def main() -> None:
    """Write the page, or check it."""
    made = page().rstrip() + "\n"
    if "--check" not in sys.argv:
        PAGE.write_text(made, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != made:
        raise SystemExit("docs/api.md is stale: run `just docs`")


if __name__ == "__main__":
    main()

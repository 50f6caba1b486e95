"""What a function takes: the JSON Schema of its parameters, and their values from what a model wrote."""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import msgspec

from toolspeak.agent.tools.action import CallContext
from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject

_REFERENCE: Final = "#/$defs/{name}"
_ARGUMENTS: Final = ("args:", "arguments:", "parameters:")
_ENTRY: Final = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_UNNAMED: Final = {
    inspect.Parameter.POSITIONAL_ONLY: "is taken by its place",
    inspect.Parameter.VAR_POSITIONAL: "is any number of values",
    inspect.Parameter.VAR_KEYWORD: "is any number of names",
}


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function; `context` names those that receive the `CallContext`."""

    schema: JsonObject
    types: Mapping[str, Any]
    context: tuple[str, ...] = ()

    def values(self, arguments: JsonObject, context: CallContext) -> dict[str, Any]:
        """Convert what the model wrote to the annotated types; `BadField` says which parameter cannot be."""
        if unknown := arguments.keys() - self.types.keys():
            raise BadField(min(unknown), f"is no parameter; these are: {', '.join(self.types) or 'none'}")
        told = dict.fromkeys(self.context, context)
        return told | {name: _converted(name, value, self.types[name]) for name, value in arguments.items()}


def signature_of(function: Callable[..., Any], name: str) -> Signature:
    """Read a function's signature."""
    parameters = _parameters(function, name)
    hints = _hints(function, name)
    types = {each.name: hints.get(each.name, Any) for each in parameters}
    context = tuple(parameter for parameter, kind in types.items() if kind is CallContext)
    shown = [each for each in parameters if each.name not in context]
    schema = _schema(shown, types, _documented(function), name)
    return Signature(schema, {each.name: types[each.name] for each in shown}, context)


def described(function: Callable[..., Any]) -> str:
    """Return the first paragraph of a function's docstring."""
    first = (inspect.getdoc(_bare(function)) or "").split("\n\n", 1)[0]
    return " ".join(line.strip() for line in first.splitlines())


def _converted(name: str, value: Json, kind: Any) -> Any:  # noqa: ANN401 # whatever is annotated
    try:
        return msgspec.convert(value, kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise BadField(name, str(error)) from None


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise BadField(f"tools: {name}", "its parameters cannot be seen; write a function around it") from None
    for each in parameters:
        if each.kind in _UNNAMED:
            raise BadField(f"tools: {name}({each.name})", f"{_UNNAMED[each.kind]}; a tool's parameters have names")
    return parameters


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(_bare(function), include_extras=True)
    except (NameError, TypeError) as error:
        raise BadField(f"tools: {name}", f"an annotation cannot be read: {error}") from None


def _bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that has the annotations and the docstring."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _schema(
    parameters: Iterable[inspect.Parameter], types: Mapping[str, Any], documented: Mapping[str, str], name: str
) -> JsonObject:
    properties: JsonObject = {}
    required: list[Json] = []
    shared: JsonObject = {}
    for each in parameters:
        written, components = _of_type(types[each.name], f"tools: {name}({each.name})")
        properties[each.name] = written | _noted(each, types[each.name], documented)
        shared |= components
        if each.default is inspect.Parameter.empty:
            required.append(each.name)
    schema: JsonObject = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    if shared:
        schema["$defs"] = shared
    return schema


def _of_type(kind: Any, where: str) -> tuple[JsonObject, JsonObject]:  # noqa: ANN401 # whatever is annotated
    try:
        (written,), components = msgspec.json.schema_components([kind], ref_template=_REFERENCE)
    except (TypeError, ValueError) as error:
        raise BadField(where, f"{kind!r} has no JSON form: {str(error).splitlines()[-1]}") from None
    return written, components


def _noted(parameter: inspect.Parameter, kind: Any, documented: Mapping[str, str]) -> JsonObject:  # noqa: ANN401
    """Add what is said of a parameter, and what it is if nothing is said; None says nothing."""
    text = _annotation_text(kind) or documented.get(parameter.name, "")
    noted: JsonObject = {"description": text} if text else {}
    if parameter.default in (None, inspect.Parameter.empty):
        return noted
    try:
        return noted | {"default": msgspec.to_builtins(parameter.default, str_keys=True)}
    except (TypeError, ValueError):
        return noted


def _annotation_text(kind: Any) -> str:  # noqa: ANN401 # whatever is annotated
    notes = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return next((note for note in notes if isinstance(note, str)), "")


def _documented(function: Callable[..., Any]) -> dict[str, str]:
    """Read the lines `name: text` below `Args:` of a docstring; deeper lines go on with the text."""
    found: dict[str, str] = {}
    name, margin = "", None
    for line in _section((inspect.getdoc(_bare(function)) or "").splitlines()):
        depth = len(line) - len(line.lstrip())
        margin = depth if margin is None else margin
        entry = _ENTRY.fullmatch(line.strip()) if depth <= margin else None
        if entry:
            name, found[entry[1]] = entry[1], entry[2]
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def _section(lines: Iterable[str]) -> Iterable[str]:
    """Return the lines of the section about arguments."""
    inside = False
    for line in lines:
        if line.strip() and not line[0].isspace():
            inside = line.strip().lower() in _ARGUMENTS
        elif inside and line.strip():
            yield line

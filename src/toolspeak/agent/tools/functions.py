"""Converts Python functions into tools: the signature becomes the schema, the docstring the description (RUN-4).

@tool(effect="reads")
def weather(city: Annotated[str, "its name"], days: int = 1) -> list[Day]:
    'Say what the weather will be.'

The decorator only stores what a signature does not show; the function is unchanged. `action_of` makes the tool.
Arguments from the model are converted to the annotated types, and never evaluated. A function that may block runs in a
thread, so that it does not block the event loop.
"""

import asyncio
import contextvars
import functools
import inspect
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_args, get_origin, get_type_hints, overload

import msgspec

from toolspeak.agent.tools.action import (
    SECONDS,
    Act,
    Action,
    CallContext,
    ToolEffect,
    ToolOutput,
    parse_effect,
    text_output,
)
from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Image, Text
from toolspeak.ir.tool import Tool

T = TypeVar("T")


async def run_in_thread(function: Callable[..., T], *args: object, **kwargs: object) -> T:
    """Call a function in its own thread, and return its result.

    Python cannot stop a thread: after a cancellation or a timeout this stops waiting, but the function continues.
    asyncio's thread pool is not used, because a few functions that hang would block all other users of the pool
    (such as DNS lookups), and the exit of the process. A daemon thread does neither.
    """
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    ended: asyncio.Future[T] = loop.create_future()

    def call() -> None:
        try:
            value = context.run(function, *args, **kwargs)
        except BaseException as error:  # noqa: BLE001 # SystemExit too: a tool must not end the process
            _tell(loop, ended, partial(ended.set_exception, _catchable(error)))
        else:
            _tell(loop, ended, partial(ended.set_result, value))

    # A daemon: a function that hangs must not keep the process from exiting.
    threading.Thread(target=call, name=f"tool {getattr(function, '__name__', '')}", daemon=True).start()
    return await ended


def _tell(loop: asyncio.AbstractEventLoop, ended: "asyncio.Future[T]", settle: Callable[[], None]) -> None:
    def settled() -> None:
        if not ended.done():
            settle()

    with suppress(RuntimeError):  # the loop is closed, so no task waits for the result
        loop.call_soon_threadsafe(settled)


def _catchable(error: BaseException) -> Exception:
    """Return an exception for a future: it rejects StopIteration, and callers of a tool catch `Exception` only."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"{type(error).__name__}: {error}")


# ---------------------------------------------------------------- signatures


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
    """The parameters of a function. `context` names those that receive the `CallContext`."""

    schema: JsonObject
    types: Mapping[str, Any]
    context: tuple[str, ...] = ()

    def values(self, arguments: JsonObject, context: CallContext) -> dict[str, Any]:
        """Convert the model's arguments to the annotated types. Raises `BadField` with the name of a wrong one."""
        if unknown := arguments.keys() - self.types.keys():
            raise BadField(min(unknown), f"is no parameter; these are: {', '.join(self.types) or 'none'}")
        told = dict.fromkeys(self.context, context)
        return told | {name: _converted(name, value, self.types[name]) for name, value in arguments.items()}


def signature_of(function: Callable[..., Any], name: str) -> Signature:
    """Read a function's signature. Raises `BadField` for a parameter without a JSON form."""
    parameters = _parameters(function, name)
    hints = _hints(function, name)
    types = {each.name: hints.get(each.name, Any) for each in parameters}
    context = tuple(parameter for parameter, kind in types.items() if kind is CallContext)
    shown = [each for each in parameters if each.name not in context]
    schema = _schema(shown, types, _documented(function), name)
    return Signature(schema, {each.name: types[each.name] for each in shown}, context)


def described(function: Callable[..., Any]) -> str:
    """Return the first paragraph of a function's docstring, as one line."""
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
    """Return the function that has the annotations and the docstring: partials and callable objects have none."""
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
    """Return the description and the default of a parameter, as far as it has them. A default of None is omitted."""
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
    """Parse the lines `name: text` below `Args:` of a docstring; indented lines continue the text."""
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
    """Return the lines of the docstring's section on arguments."""
    inside = False
    for line in lines:
        if line.strip() and not line[0].isspace():
            inside = line.strip().lower() in _ARGUMENTS
        elif inside and line.strip():
            yield line


# ---------------------------------------------------------------- tools


Function: TypeAlias = Callable[..., Any]
Runnable: TypeAlias = Function | Action
F = TypeVar("F", bound=Function)
_NOTES: Final = "__toolspeak__"


@dataclass(frozen=True, slots=True)
class Notes:
    """Properties of a tool that its function's signature does not show."""

    name: str = ""
    description: str = ""
    effect: ToolEffect = ToolEffect.ONCE
    contained: bool = False
    ends: bool = False
    seconds: float = SECONDS


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *,
    name: str = "",
    description: str = "",
    effect: ToolEffect | str = ToolEffect.ONCE,
    contained: bool = False,
    ends: bool = False,
    seconds: float = SECONDS,
) -> Callable[[F], F]: ...


def tool(  # noqa: PLR0913 # all by name
    function: F | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    effect: ToolEffect | str = ToolEffect.ONCE,
    contained: bool = False,
    ends: bool = False,
    seconds: float = SECONDS,
) -> F | Callable[[F], F]:
    """Store a function's properties as a tool. The function can still be called as before.

    `effect` tells what a second execution would mean: it `reads`, it `repeats` (nothing more happens), or it must run
    only `once`, which is the default. `contained`: it cannot reach anything outside the run's folder. `ends`: its
    result is the run's final text. `seconds` is the timeout of a call.
    """
    notes = Notes(name, description, parse_effect(effect), contained, ends, seconds)

    def note(noted: F) -> F:
        setattr(noted, _NOTES, notes)
        return noted

    return note if function is None else note(function)


def action_of(function: Function) -> Action:
    """Return a function as a tool. Raises `BadField` for a parameter without a JSON form."""
    notes: Notes = getattr(function, _NOTES, Notes())
    name = notes.name or getattr(function, "__name__", "")
    if not name.isidentifier() and not notes.name:
        raise BadField("tools", f"{name or function!r} has no name; say @tool(name=…)")
    taken = signature_of(function, name)
    about = Tool(name, notes.description or described(function), taken.schema)
    act = _act(function, taken)
    return Action(about, act, notes.effect, contained=notes.contained, ends=notes.ends, seconds=notes.seconds)


def actions_of(runnables: Iterable[Runnable]) -> tuple[Action, ...]:
    """Convert functions to tools; actions are returned unchanged."""
    return tuple(each if isinstance(each, Action) else action_of(_callable(each)) for each in runnables)


def _callable(value: object) -> Function:
    if not callable(value):
        raise BadField("tools", f"{value!r:.80} is neither a function nor an Action")
    return value


def _act(function: Function, taken: Signature) -> Act:
    async def act(arguments: JsonObject, context: CallContext) -> ToolOutput:
        values = taken.values(arguments, context)
        returned = function(**values) if _awaits(function) else await run_in_thread(function, **values)
        return _yielded(await returned if inspect.isawaitable(returned) else returned)

    return act


def _awaits(function: Function) -> bool:
    """Return whether calling the function only creates a coroutine. Others get a thread, where they may block."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _yielded(value: object) -> ToolOutput:
    match value:
        case ToolOutput():
            return value
        case str():
            return text_output(value)
        case Text() | Image():
            return ToolOutput((value,))
        case _:
            return text_output(_json(value))


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadField("its result", f"a {type(value).__name__} cannot be written as JSON: {error}") from None

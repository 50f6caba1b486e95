"""Python functions as tools: the signature is the schema, the docstring the description (RUN-4).

@tool(effect="reads")
def weather(city: Annotated[str, "its name"], days: int = 1) -> list[Day]:
    'Say what the weather will be.'

The decorator only notes what cannot be seen in a signature: the function stays a function. `action_of` makes the tool.
What the model wrote is converted to the annotated types, and never evaluated.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar, overload

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
from toolspeak.agent.tools.signature import Signature, described, signature_of
from toolspeak.agent.tools.thread import run_in_thread
from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Image, Text
from toolspeak.ir.tool import Tool

Function: TypeAlias = Callable[..., Any]
Runnable: TypeAlias = Function | Action
F = TypeVar("F", bound=Function)
_NOTES: Final = "__toolspeak__"


@dataclass(frozen=True, slots=True)
class Notes:
    """What is said about a function beside its signature."""

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
    """Note what a function does as a tool. It is still called as before.

    `effect` says what a second time would mean: it `reads`, it `repeats` (nothing more happens), or it may be done only
    `once`, which is what we believe of a function that says nothing. `contained`: it cannot reach out of the run's
    folder. `ends`: its result is the run's final text. `seconds` is how long a call may take.
    """
    notes = Notes(name, description, parse_effect(effect), contained, ends, seconds)

    def note(noted: F) -> F:
        setattr(noted, _NOTES, notes)
        return noted

    return note if function is None else note(function)


def action_of(function: Function) -> Action:
    """Make a function a tool; `BadField` says which parameter no schema can be written for."""
    notes: Notes = getattr(function, _NOTES, Notes())
    name = notes.name or getattr(function, "__name__", "")
    if not name.isidentifier() and not notes.name:
        raise BadField("tools", f"{name or function!r} has no name; say @tool(name=…)")
    taken = signature_of(function, name)
    about = Tool(name, notes.description or described(function), taken.schema)
    act = _act(function, taken)
    return Action(about, act, notes.effect, contained=notes.contained, ends=notes.ends, seconds=notes.seconds)


def actions_of(runnables: Iterable[Runnable]) -> tuple[Action, ...]:
    """Make functions tools, and leave what is one."""
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
    """Return whether calling it does nothing yet; all others get a thread, where they may block."""
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

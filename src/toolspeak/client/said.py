"""What callers write becomes a request. Messages and tools may also be dicts, in the form of OpenAI Chat."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar

import msgspec

from toolspeak import wires
from toolspeak.engine.plan import NOTHING_SAID, Mode, Settings
from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice

Said: TypeAlias = str | Message | Mapping[str, Any] | Sequence[str | Message | Mapping[str, Any]]
"""One text of the user, one message, or a conversation; a text in it is the user's."""
Offered: TypeAlias = Sequence[Tool | Mapping[str, Any]]
"""Tools; a dict may also have its schema where Anthropic and MCP have it."""
T = TypeVar("T")
_CHAT = "openai_chat"
_MODES = {mode.value: ToolChoice(mode) for mode in ChoiceMode if mode is not ChoiceMode.NAMED}
_SCHEMA, _SCHEMAS_ELSEWHERE = "parameters", ("input_schema", "inputSchema")
_INDEX = re.compile(r"\[(\d+)\]")


class Wishes(TypedDict, total=False):
    """What else can be said with a question."""

    model: str
    """Instead of the client's own."""
    choice: str | ToolChoice
    """`auto`, `none`, `required`, or the name of the tool that must be called."""
    mode: Mode | Literal["off", "fallback", "force", "auto"]
    """Whether calls are emulated."""
    max_tokens: int | None
    temperature: float | None
    stop: str | Sequence[str]
    sampling: Sampling
    """These three and more, such as `top_p` and `effort`."""
    output_schema: JsonObject | None
    """The JSON Schema of the answer; an empty one asks for any JSON object."""
    settings: Settings
    """The mode and more, such as `dialect` and `release`."""


def request_of(messages: Said, tools: Offered, wishes: Wishes, *, stream: bool = False) -> Request:
    """Make the request; raises `BadField`."""
    if unknown := wishes.keys() - Wishes.__annotations__.keys():
        known = ", ".join(Wishes.__annotations__)
        raise TypeError(f"{min(unknown)!r} is nothing that can be said with a question; these are: {known}")
    offered = tools_of(tools)
    return Request(
        wishes.get("model", ""),
        messages_of(messages),
        offered,
        choice_of(wishes.get("choice", AUTO), offered),
        _sampling_of(wishes),
        stream,
        wishes.get("output_schema"),
    )


def settings_of(wishes: Wishes) -> Settings:
    """Return what the wishes say about tools."""
    settings = wishes.get("settings", NOTHING_SAID)
    mode = wishes.get("mode")
    if mode is None:
        return settings
    if mode not in list(Mode):
        raise BadField("mode", f"{mode!r} is not one of {', '.join(Mode)}")
    return replace(settings, mode=Mode(mode))


def messages_of(said: Said) -> tuple[Message, ...]:
    """Return the messages; dicts that stand together are read together, since results refer to calls."""
    conversation = [said] if isinstance(said, str | Message | Mapping) else said
    ours = [Message(Role.USER, (Text(one),)) if isinstance(one, str) else one for one in conversation]
    return tuple(_read_dicts(ours, Message, "messages", lambda request: request.messages))


def tools_of(offered: Offered) -> tuple[Tool, ...]:
    """Return the tools, in their order."""
    ours = [_in_our_form(one) if isinstance(one, Mapping) else one for one in offered]
    return tuple(_read_dicts(ours, Tool, "tools", lambda request: request.tools))


def choice_of(choice: "str | ToolChoice", tools: Iterable[Tool]) -> ToolChoice:
    """Return the choice: `auto`, `none`, `required`, or the name of the tool that must be called."""
    if isinstance(choice, ToolChoice):
        return choice
    if choice in _MODES:
        return _MODES[choice]
    names = [tool.name for tool in tools]
    if choice not in names:
        raise BadField("choice", f"{choice!r} is neither one of {', '.join(_MODES)} nor a tool ({', '.join(names)})")
    return ToolChoice(ChoiceMode.NAMED, choice)


def _sampling_of(wishes: Wishes) -> Sampling:
    sampling = wishes.get("sampling", Sampling())
    if "max_tokens" in wishes:
        sampling = replace(sampling, max_tokens=wishes["max_tokens"])
    if "temperature" in wishes:
        sampling = replace(sampling, temperature=wishes["temperature"])
    if "stop" in wishes:
        stop = wishes["stop"]
        sampling = replace(sampling, stop=(stop,) if isinstance(stop, str) else tuple(stop))
    return sampling


def _in_our_form(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    elsewhere = next((name for name in _SCHEMAS_ELSEWHERE if name in tool), None)
    if elsewhere is None or _SCHEMA in tool:
        return tool
    return {_SCHEMA if name == elsewhere else name: value for name, value in tool.items()}


def _read_dicts(
    all_: Iterable[T | Mapping[str, Any]], kind: type[T], field: str, part: Callable[[Request], tuple[T, ...]]
) -> Iterator[T]:
    """Return what is ours as it is, and read the rest as a body of the wire."""
    start = 0
    for _, group in groupby(all_, lambda one: isinstance(one, kind)):
        together = list(group)
        ours = [one for one in together if isinstance(one, kind)]
        yield from ours or part(_read(field, together, start))
        start += len(together)


def _read(field: str, values: Sequence[object], start: int) -> Request:
    """Read some values; in an error they have the places that they have in the whole."""
    try:
        written = msgspec.json.encode({"model": "", "messages": [], field: values})
        return wires.load(_CHAT).decode_request(written, "")
    except (TypeError, ValueError) as error:
        raise BadField(field, f"it cannot be written as JSON: {error}") from None
    except BadField as error:
        problem = str(error).removeprefix(f"{error.field}: ")
        place = _INDEX.sub(lambda index: f"[{int(index[1]) + start}]", error.field, count=1)
        raise BadField(place, problem) from None

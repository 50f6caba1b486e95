"""What callers write becomes a request. Messages and tools may also be dicts, in the form of OpenAI Chat."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

import msgspec

from toolspeak import wires
from toolspeak.errors import BadField
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice

Said: TypeAlias = str | Sequence[Message | Mapping[str, Any]]
"""One text of the user, or a conversation."""
Offered: TypeAlias = Sequence[Tool | Mapping[str, Any]]
_CHAT = "openai_chat"
_MODES = {mode.value: ToolChoice(mode) for mode in ChoiceMode if mode is not ChoiceMode.NAMED}


def messages_of(said: Said) -> tuple[Message, ...]:
    """Return the messages; dicts that stand together are read together, since results refer to calls."""
    if isinstance(said, str):
        return (Message(Role.USER, (Text(said),)),)
    found: list[Message] = []
    for _, group in groupby(said, lambda one: isinstance(one, Message)):
        together = list(group)
        ours = [one for one in together if isinstance(one, Message)]
        found += ours or _read(messages=together).messages
    return tuple(found)


def tools_of(offered: Offered) -> tuple[Tool, ...]:
    """Return the tools, in their order."""
    return tuple(tool for one in offered for tool in ((one,) if isinstance(one, Tool) else _read(tools=[one]).tools))


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


def _read(**body: object) -> Request:
    try:
        written = msgspec.json.encode({"model": "", "messages": [], **body})
    except (TypeError, ValueError) as error:
        raise BadField(next(iter(body)), f"it cannot be written as JSON: {error}") from None
    return wires.load(_CHAT).decode_request(written, "")


__all__ = ["AUTO", "Offered", "Said", "choice_of", "messages_of", "tools_of"]

"""The client's request as a page shows it: its messages and its tools."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from toolspeak.dashboard.excerpt import Excerpt, Room
from toolspeak.dashboard.prompt_diff import json_lines
from toolspeak.errors import BadJson
from toolspeak.ir.message import Call, Image, Message, Opaque, Part, Reasoning, Result, Text, ToolReference
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.text.strict import parse

_MOST_MESSAGES: Final = 60
_MOST_TOOLS: Final = 80
_LONGEST_PART: Final = 6000
_LONGEST_TOOL: Final = 1500
_LONGEST_DESCRIPTION: Final = 600
_LONGEST_NAME: Final = 120
_LONGEST_PARSED: Final = 100_000
"""Characters of arguments that are laid out; longer ones are shown as they are."""


@dataclass(frozen=True, slots=True)
class ShownPart:
    """A part of a message or of an answer."""

    kind: str
    """`text`, `reasoning`, `call`, `result` or `other`."""
    title: str
    body: Excerpt


@dataclass(frozen=True, slots=True)
class MessageView:
    """One message."""

    number: int
    role: str
    pieces: list[ShownPart]


@dataclass(frozen=True, slots=True)
class ToolView:
    """One tool."""

    name: str
    description: Excerpt
    parameters: Excerpt


@dataclass(frozen=True, slots=True)
class RequestView:
    """The messages, the newest first, and the tools; the numbers say how many there are in all."""

    messages: list[MessageView]
    message_count: int
    tools: list[ToolView]
    tool_count: int


def view_request(request: Request, room: Room) -> RequestView:
    """Return the request, cut to the room that the page has. The newest messages come first: they matter most."""
    numbered = [*enumerate(request.messages, 1)][::-1]
    messages = [_message(number, message, room) for number, message in numbered[:_MOST_MESSAGES]]
    tools = [_tool(tool, room) for tool in request.tools[:_MOST_TOOLS]]
    return RequestView(messages, len(request.messages), tools, len(request.tools))


def _message(number: int, message: Message, room: Room) -> MessageView:
    return MessageView(number, message.role, [*view_parts(message.parts, room)])


def view_parts(parts: Iterable[Part], room: Room) -> Iterator[ShownPart]:
    """Yield the parts of a message."""
    for part in parts:
        match part:
            case Text(text):
                yield ShownPart("text", "", room.cut(text, _LONGEST_PART))
            case Reasoning(text):
                yield ShownPart("reasoning", "reasoning", room.cut(text, _LONGEST_PART))
            case Call():
                yield shown_call(part.name, part.arguments, room)
            case Result():
                name = f" of {part.name[:_LONGEST_NAME]}" if part.name else ""
                title = f"result{name}{', an error' if part.is_error else ''}"
                yield ShownPart("result", title, room.cut("\n".join(map(_told, part.content)), _LONGEST_PART))
            case Image() | Opaque():
                yield ShownPart("other", _told(part)[:_LONGEST_NAME], Excerpt(""))


def shown_call(name: str, arguments: str, room: Room) -> ShownPart:
    """Return a call with its arguments, laid out if they are JSON."""
    return ShownPart("call", name[:_LONGEST_NAME], room.cut(pretty_json(arguments), _LONGEST_PART))


def pretty_json(text: str) -> str:
    """Return JSON laid out for people; other text, and very long text, as it is."""
    if len(text) > _LONGEST_PARSED:
        return text
    try:
        return "\n".join(json_lines(parse(text)))
    except BadJson:
        return text


def _told(part: Text | Image | ToolReference | Opaque) -> str:
    match part:
        case Text(text):
            return text
        case Image():
            return f"an image ({part.media_type or 'by its address'})"
        case ToolReference(name):
            return f"the tool {name} may be called now"
        case Opaque():
            return part.label


def _tool(tool: Tool, room: Room) -> ToolView:
    parameters = "\n".join(json_lines(tool.parameters))
    return ToolView(
        tool.name[:_LONGEST_NAME], room.cut(tool.description, _LONGEST_DESCRIPTION), room.cut(parameters, _LONGEST_TOOL)
    )

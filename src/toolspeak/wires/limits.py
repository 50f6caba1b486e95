"""How large a request may be, counted by what it costs to read it (SAFE-7).

A limit on the bytes of a body is not enough: 26 MB of two-word messages kept the event loop busy for 18 seconds, and
19 MB of schemas for 23. So a request has limits on what is in it, each far above what agents send and models accept.

`json_values` and `json_escapes` are checked on the bytes, before they are parsed; everything else on the decoded
request.
"""

import re
from dataclasses import dataclass
from typing import Final

from toolspeak.declaration import setting
from toolspeak.errors import BadField, TooLarge
from toolspeak.ir.message import Call, Message, Reasoning, Result, Text
from toolspeak.ir.request import Request
from toolspeak.text.strict import dump
from toolspeak.toolset.toolset import MOST_TOOLS
from toolspeak.wires.shared.interface import Wire

_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""A JSON string; one without an end is matched to the end of the body, so that no byte is looked at twice."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits on the contents of one request."""

    json_values: int = setting(250_000, "Members and elements of the JSON of a request.", least=1)
    json_escapes: int = setting(2_000_000, "Backslashes in the JSON of a request.", least=1)
    # The parser reads a body in one call, which nothing can interrupt; 28 MB of escapes took four times as long as
    # 28 MB of plain text.
    messages: int = setting(10_000, "Messages of a request.", least=1)
    parts: int = setting(50_000, "Texts, images, calls and results of all messages of a request.", least=1)
    text_characters: int = setting(
        8 << 20,
        "Text of all messages and tool descriptions, about two million tokens. Images do not count.",
        unit="characters",
        least=1,
    )
    tools: int = setting(MOST_TOOLS, "Tools of a request.", least=1, most=MOST_TOOLS)
    tools_bytes: int = setting(2 << 20, "Schemas of all tools of a request.", unit="bytes", least=1)
    schema_bytes: int = setting(256 << 10, "Schema of one tool, or of the answer.", unit="bytes", least=1)


DEFAULT_LIMITS: Final = RequestLimits()


def decode_within(limits: RequestLimits, wire: Wire, body: bytes, path: str) -> Request:
    """Decode a client's request; raises `BadField`, which is `TooLarge` over a limit of size."""
    check_body(body, limits)
    request = wire.decode_request(body, path)
    check_request(request, len(body), limits)
    return request


def check_body(body: bytes, limits: RequestLimits) -> None:
    """Raise `TooLarge` for too many escapes or JSON values; values are counted by their commas and brackets."""
    if len(body) > limits.json_escapes and body.count(b"\\") > limits.json_escapes:
        raise TooLarge("", f"the body has more than {limits.json_escapes} escapes in its texts (limits.json_escapes)")
    most = limits.json_values
    if len(body) > most and _marks(body) > most and _marks_outside_strings(body, most) > most:
        raise TooLarge("", f"the body has more than {most} JSON values (limits.json_values)")


def check_request(request: Request, body_bytes: int, limits: RequestLimits) -> None:
    """Raise `BadField` for a decoded request over a limit."""
    _count("messages", len(request.messages), limits.messages, "messages")
    _count("tools", len(request.tools), limits.tools, "tools")
    _count("messages", sum(map(_parts, request.messages)), limits.parts, "parts")
    if body_bytes <= min(limits.schema_bytes, limits.tools_bytes, limits.text_characters):
        return  # no text in it can be larger than the body: most requests end here
    _size("messages", _characters(request), limits.text_characters, "text_characters")
    schemas = [len(dump(tool.parameters)) for tool in request.tools]
    for index, size in enumerate(schemas):
        _size(f"tools[{index}]", size, limits.schema_bytes, "schema_bytes")
    _size("tools", sum(schemas), limits.tools_bytes, "tools_bytes")
    if request.output_schema is not None:
        _size("output schema", len(dump(request.output_schema)), limits.schema_bytes, "schema_bytes")


def _count(field: str, found: int, most: int, setting: str) -> None:
    if found > most:
        raise BadField(field, f"{found} {setting}, at most {most} are accepted (limits.{setting})")


def _size(field: str, found: int, most: int, setting: str) -> None:
    if found > most:
        raise TooLarge(field, f"its size is {found}, at most {most} is accepted (limits.{setting})")


def _marks(piece: bytes) -> int:
    return piece.count(b",") + piece.count(b"[") + piece.count(b"{")


def _marks_outside_strings(body: bytes, most: int) -> int:
    """Count until there are too many; code in strings is full of commas and brackets that cost nothing."""
    found = end = 0
    for string in _STRING.finditer(body):
        found += _marks(body[end : string.start()])
        end = string.end()
        if found > most:
            return found
    return found + _marks(body[end:])


def _parts(message: Message) -> int:
    return len(message.parts) + sum(len(part.content) for part in message.parts if isinstance(part, Result))


def _characters(request: Request) -> int:
    said = sum(_of_message(message) for message in request.messages)
    return said + sum(len(tool.description) for tool in request.tools)


def _of_message(message: Message) -> int:
    size = 0
    for part in message.parts:
        match part:
            case Text(text) | Reasoning(text):
                size += len(text)
            case Call():
                size += len(part.arguments)
            case Result():
                size += sum(len(piece.text) for piece in part.content if isinstance(piece, Text))
            case _:
                pass
    return size

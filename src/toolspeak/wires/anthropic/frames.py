"""The pieces that answers are made of, streamed or whole."""

from typing import Final

from toolspeak.ir.event import Usage
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.request import Request
from toolspeak.wires._body import dump
from toolspeak.wires._wire import Stamp
from toolspeak.wires.anthropic.builtins import TOOLSET
from toolspeak.wires.anthropic.words import REDACTED, usage_body

PING: Final = b'event: ping\ndata: {"type":"ping"}\n\n'
COMMENT: Final = b": keep-alive\n\n"
MESSAGE_STOP: Final = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
TEXT: Final = "text"
THINKING: Final = "thinking"
TOOL_USE: Final = "tool_use"
STARTS: Final = {
    TEXT: b'{"type":"text","text":""}',
    THINKING: b'{"type":"thinking","thinking":"","signature":""}',
}
DELTAS: Final = {
    TEXT: b'{"type":"text_delta","text":',
    THINKING: b'{"type":"thinking_delta","thinking":',
    TOOL_USE: b'{"type":"input_json_delta","partial_json":',
    REDACTED: b"",
}
TAIL: Final = b"}}\n\n"
_START: Final = b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":%b}\n\n'
_DELTA: Final = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":%b'


def frame(event: str, body: JsonObject) -> bytes:
    """Write one event; clients skip those without the line that names it."""
    return b"event: %b\ndata: %b\n\n" % (event.encode(), dump({"type": event, **body}))


def block_start(index: int, block: bytes) -> bytes:
    """Write the start of a block."""
    return _START % (index, block)


def delta_head(index: int, kind: str) -> bytes:
    """Write what stands before the text of each delta of a block; behind it comes `TAIL`."""
    return _DELTA % (index, DELTAS[kind])


def message_body(request: Request, stamp: Stamp) -> JsonObject:
    """Write a message that has no content yet."""
    return {
        "id": f"msg_{stamp.id}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage_body(Usage()),
    }


def tool_use(id: str, name: str, members: dict[str, tuple[str, str]], arguments: Json) -> JsonObject:
    """Write a call; one of a family's tools goes by the name that the client knows."""
    family, member = members.get(name, ("", name))
    body: JsonObject = {"type": TOOL_USE, "id": id, "name": member, "input": arguments}
    return {**body, TOOLSET: family} if family else body

"""What the tests of the Anthropic wire share: requests read and written, and what means the same."""

import json
from typing import Any

from toolspeak import wires
from toolspeak.ir.message import Message, Part, Role, Text
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.request import Request

WIRE = wires.load("anthropic")
CHAT = wires.load("openai_chat")
Body = dict[str, Any]
SCHEMA: Body = {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]}
NOW: Body = {"name": "now", "description": "Tell the time.", "input_schema": SCHEMA}
CACHE: Body = {"type": "ephemeral"}


def decode(**body: object) -> Request:
    whole = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}], **body}
    return WIRE.decode_request(json.dumps(whole).encode(), "/v1/messages?beta=true")


def encode(request: Request) -> Body:
    body: Body = json.loads(WIRE.encode_request(request, QUIRKS).body)
    return body


def again(**body: object) -> Body:
    return encode(decode(**body))


def dropped(request: Request) -> tuple[str, ...]:
    return WIRE.encode_request(request, QUIRKS).dropped


def ask(*messages: Message, **more: object) -> Request:
    """Make a request that came on another wire."""
    fields: Body = more
    return Request("m", messages or (Message(Role.USER, (Text("hi"),)),), **fields)


def said(*parts: Part) -> Message:
    return Message(Role.ASSISTANT, parts)


def user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


# ---------------------------------------------------------------- what means the same


def blocks(content: str | list[Body] | None) -> list[Body]:
    """Write content in the long form."""
    listed = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    return [block(one) for one in listed if one.get("text") != ""]


def block(one: Body) -> Body:
    kept = {key: value for key, value in one.items() if value is not None}
    if kept["type"] == "tool_result":
        kept["content"] = blocks(kept.get("content"))
        if kept.get("is_error") is False:
            del kept["is_error"]
    return kept

"""Items of a conversation: their types, and the contents of messages and tool outputs, both ways."""

from collections.abc import Iterable, Sequence
from typing import Final

from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Image, Opaque, Part, ResultPart, Text, ToolReference, Vendor, part_text
from toolspeak.ir.tool import ToolKind
from toolspeak.wires.openai_responses import NAME
from toolspeak.wires.shared.json_body import Fields, dump_text
from toolspeak.wires.shared.request_parts import image_from_url, image_to_url, is_own, own_fields

MESSAGE: Final = "message"
REASONING: Final = "reasoning"
MORE_TOOLS: Final = "additional_tools"
SEARCH_TOOL: Final = "tool_search"
NAMESPACE: Final = "namespace"

FUNCTION_CALL: Final = "function_call"
CUSTOM_CALL: Final = "custom_tool_call"
SEARCH_CALL: Final = "tool_search_call"
CALL_TYPES: Final = {
    ToolKind.FUNCTION: FUNCTION_CALL,
    ToolKind.CUSTOM: CUSTOM_CALL,
    ToolKind.SEARCH: SEARCH_CALL,
}
"""The item type of a call, by the kind of its tool."""
RESULT_TYPES: Final = {
    FUNCTION_CALL: "function_call_output",
    CUSTOM_CALL: "custom_tool_call_output",
    SEARCH_CALL: "tool_search_output",
}
"""The item type of a result, by the type of its call."""

BEFORE: Final = "before"
"""In the vendor's fields of a message: items before it that only declare more tools."""
HEAD: Final = "message"
"""In the vendor's fields of an assistant's text: the fields of the item that begins with it."""
ITEM: Final = "item"
"""In the vendor's fields of an opaque part: it is an item of its own. Of a tool: an item of this type declares it."""


# ---------------------------------------------------------------- reading

SAID: Final = "output_text"
TOLD: Final = "input_text"
_TEXTS: Final = (SAID, TOLD, "text")
_EMPTY: Final = ("annotations", "logprobs")


def content_of(fields: Fields, role: str) -> list[Text | Image | Opaque]:
    """Take the content of a message."""
    value = fields.left.get("content")
    if value is None or isinstance(value, str):
        fields.left.pop("content", None)
        return [Text(value)] if value else []
    usual = SAID if role == "assistant" else TOLD
    return [_part(part, usual) for part in fields.each("content")]


def output_of(fields: Fields) -> tuple[ResultPart, ...]:
    """Take the output of a tool."""
    value = fields.left.get("output")
    if value is None or isinstance(value, str):
        fields.left.pop("output", None)
        return (Text(value),) if value else ()
    if isinstance(value, dict):  # some clients send a tool's result as an object
        del fields.left["output"]
        return (Text(dump_text(value)),)
    return tuple(_part(part, TOLD) for part in fields.each("output"))


def _part(fields: Fields, usual: str) -> Text | Image | Opaque:
    kind = fields.text("type") or usual
    if kind in _TEXTS:
        return _text(fields, kind, usual)
    if kind == "refusal":
        return Text(fields.text("refusal") or "", Vendor(NAME, {"type": kind}))
    if kind == "input_image" and fields.left.get("image_url") is not None:
        return _image(fields)
    return Opaque(Vendor(NAME, {"type": kind, **fields.left}), kind)


def _text(fields: Fields, kind: str, usual: str) -> Text:
    text = fields.text("text") or ""
    for key in _EMPTY:
        if not fields.left.get(key):
            fields.left.pop(key, None)
    if kind != usual:
        fields.left["type"] = kind
    return Text(text, fields.vendor(NAME))


def _image(fields: Fields) -> Image:
    value = fields.left["image_url"]
    inside = fields.fields("image_url") if isinstance(value, dict) else fields
    image = image_from_url((inside or fields).need_text("url" if isinstance(value, dict) else "image_url"))
    return Image(image.media_type, image.data, image.url, fields.vendor(NAME))


# ---------------------------------------------------------------- writing


def said_body(parts: Sequence[Part], *, plain: bool) -> Json:
    """Write the assistant's content; `plain` text is written as one string."""
    first = parts[0] if parts else None
    if plain and len(parts) == 1 and isinstance(first, Text) and not _fields(first.vendor):
        return first.text
    return [_said(part) for part in parts]


def told_body(parts: Sequence[Part]) -> Json:
    """Write the content of a user or system message; a single plain text is written as a string."""
    first = parts[0] if parts else None
    if len(parts) == 1 and isinstance(first, Text) and not _fields(first.vendor):
        return first.text
    return [_told(part) for part in parts if isinstance(part, Text | Image | Opaque)] if parts else ""


def output_body(content: Iterable[ResultPart]) -> Json:
    """Write the output of a tool."""
    return told_body([Text(part_text(piece)) if isinstance(piece, ToolReference) else piece for piece in content])


def _fields(vendor: Vendor | None) -> JsonObject:
    return {key: value for key, value in own_fields(vendor, NAME).items() if key != HEAD}


def _said(part: Part) -> JsonObject:
    match part:
        case Text(text, vendor):
            fields = _fields(vendor)
            kind = fields.get("type", SAID)
            if kind == "refusal":
                return {"type": kind, "refusal": text}
            return {"type": kind, "text": text, **({"annotations": []} if kind == SAID else {}), **fields}
        case Opaque(vendor) if is_own(part, NAME):
            return _fields(vendor)
        case Image() if own_fields(part.vendor, NAME):
            return _told(part)
        case Image() | Opaque():
            return {"type": SAID, "text": part_text(part), "annotations": []}
        case _:
            return {"type": SAID, "text": "", "annotations": []}


def _told(part: Text | Image | Opaque) -> JsonObject:
    match part:
        case Text(text, vendor):
            return {"type": TOLD, "text": text, **_fields(vendor)}
        case Image(vendor=vendor):
            return {"type": "input_image", "image_url": image_to_url(part), **_fields(vendor)}
        case Opaque(vendor):
            return _fields(vendor) if is_own(part, NAME) else {"type": TOLD, "text": part_text(part)}

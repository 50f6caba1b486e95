"""A client's request becomes ours."""

from typing import Final

from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Image, Message, Opaque, Part, Reasoning, Result, ResultPart, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import Tool
from toolspeak.ir.vendor import Vendor
from toolspeak.wires._arguments import take_arguments
from toolspeak.wires._body import dump_text, parse, parse_request
from toolspeak.wires._fields import Fields
from toolspeak.wires._history import add_result
from toolspeak.wires._images import from_url
from toolspeak.wires._tools import cached, unique
from toolspeak.wires.ollama.arguments import unescaped
from toolspeak.wires.ollama.pairing import answered
from toolspeak.wires.ollama.words import NAME

_ROLES: Final = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "control": Role.SYSTEM,  # by which Granite's template is told to think
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
}
_OWN_ROLES: Final = ("developer", "control")
_URLS: Final = ("data:", "http://", "https://")
_MAGIC: Final = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}


def decode_request(body: bytes, path: str) -> Request:
    """Read a request's body."""
    del path
    value, raw_tools = parse_request(body)
    fields = Fields(value)
    tools, hosted = read_tools(raw_tools)
    return Request(
        model=fields.text("model") or "",
        messages=answered(_messages(fields)),
        tools=tools,
        sampling=_sampling(fields),
        stream=fields.flag("stream") is not False,
        output_schema=_output_schema(fields),
        extra={NAME: {**fields.left, **({"tools": list(hosted)} if hosted else {})}},
    )


def _sampling(fields: Fields) -> Sampling:
    options = fields.fields("options") or Fields({}, fields, "options")
    sampling = Sampling(
        max_tokens=_positive(options, "num_predict"),
        temperature=options.number("temperature"),
        top_p=options.number("top_p"),
        top_k=_positive(options, "top_k"),
        frequency_penalty=options.number("frequency_penalty"),
        presence_penalty=options.number("presence_penalty"),
        seed=options.integer("seed"),
        stop=options.texts("stop"),
        effort=_effort(fields),
    )
    fields.put_back("options", options)
    return sampling


def _positive(options: Fields, key: str) -> int | None:
    """Take a number; zero and less mean here what they mean nowhere else (no limit, all of the context)."""
    value = options.integer(key)
    if value is None or value > 0:
        return value
    options.left[key] = value
    return None


def _effort(fields: Fields) -> str | None:
    """Take how much to think; `true`, to think as much as the model likes, has no word of ours."""
    value = fields.left.get("think")
    if value is True:
        return None
    fields.take("think")
    if value is False:
        return "none"
    if value is None or isinstance(value, str):
        return value or None
    raise fields.bad("think", "a boolean or a string", value)


def _output_schema(fields: Fields) -> JsonObject | None:
    value = fields.take("format")
    if value is None or value == "":
        return None
    if value == "json":
        return {}
    if isinstance(value, dict):
        return value
    raise fields.bad("format", '"json" or a JSON Schema', value)


def _vendor(outer: Fields, inner: Fields) -> Vendor | None:
    """Keep what is left of an entry and of the `function` in it."""
    if inner is not outer:
        outer.put_back("function", inner)
    return outer.vendor(NAME)


# ---------------------------------------------------------------- tools


@cached
def read_tools(raw: bytes) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
    """Read the bytes of `tools`."""
    tools: list[Tool] = []
    hosted: list[JsonObject] = []
    for fields in Fields({"tools": parse(raw)}).each("tools"):
        kind = fields.text("type") or "function"
        if kind == "function":
            tools.append(_function(fields, fields.fields("function") or fields))
        else:
            hosted.append({"type": kind, **fields.left})
    return unique(tools), tuple(hosted)


def _function(outer: Fields, fields: Fields) -> Tool:
    return Tool(
        name=fields.need_text("name"),
        description=fields.text("description") or "",
        parameters=fields.json_object("parameters") or {"type": "object", "properties": {}},
        strict=fields.left.get("strict") is True,  # no field of this wire, so it stays among those that are left
        vendor=_vendor(outer, fields),
    )


# ---------------------------------------------------------------- messages


def _messages(fields: Fields) -> list[Message]:
    messages: list[Message] = []
    for message in fields.each("messages"):
        role = (message.text("role") or "").lower()
        if role == "tool":
            add_result(messages, _result(message))
        elif role in _ROLES:
            messages.append(_message(message, role))
        else:
            raise BadField(message.where("role"), f"expected system, user, assistant or tool, got {role!r}")
    return messages


def _message(fields: Fields, role: str) -> Message:
    parts: list[Part] = []
    if role == "assistant":
        parts += _reasoning(fields)
    parts += _content(fields)
    if role == "assistant":
        parts += [_call(call) for call in fields.each("tool_calls")]
    if role in _OWN_ROLES:
        fields.left["role"] = role
    return Message(_ROLES[role], tuple(parts), fields.vendor(NAME))


def _reasoning(fields: Fields) -> list[Reasoning]:
    text = fields.text("thinking")
    return [Reasoning(text)] if text else []


def _content(fields: Fields) -> list[Text | Image | Opaque]:
    """Read the text, which some clients write as parts or as an object, and the images behind it."""
    images = [_image(image) for image in fields.texts("images")]
    value = fields.left.get("content")
    if isinstance(value, list):
        return [*map(_part, fields.each("content")), *images]
    if isinstance(value, dict):
        value = dump_text(value)
        fields.take("content")
    else:
        value = fields.text("content")
    return [*([Text(value)] if value else []), *images]


def _part(fields: Fields) -> Text | Image | Opaque:
    kind = fields.text("type") or "text"
    if kind == "text":
        return Text(fields.text("text") or "", fields.vendor(NAME))
    url = fields.left.get("image_url")
    url = url.get("url") if isinstance(url, dict) else url
    if kind == "image_url" and isinstance(url, str):
        return _image(url)
    return Opaque(Vendor(NAME, {"type": kind, **fields.left}), kind)


def _image(text: str) -> Image:
    """Read base64, which does not say of what: its first characters do."""
    if text.startswith(_URLS):
        return from_url(text)
    known = (media_type for magic, media_type in _MAGIC.items() if text.startswith(magic))
    return Image(next(known, "image/png"), text)


def _call(fields: Fields) -> Call:
    function = fields.fields("function")
    if function is None:
        raise BadField(fields.where("function"), "is required: an object with name and arguments")
    id, name = fields.text("id") or "", function.need_text("name")
    return Call(id, name, _arguments(function), vendor=_vendor(fields, function))


def _arguments(fields: Fields) -> str:
    is_text = isinstance(fields.left.get("arguments"), str)
    text = take_arguments(fields, accepted="an object")
    return text if is_text else unescaped(text)


def _result(fields: Fields) -> Result:
    call_id = fields.text("tool_call_id") or ""
    name, other_name = fields.text("tool_name"), fields.text("name")
    content: list[ResultPart] = [*_content(fields)]
    return Result(call_id, tuple(content), name or other_name or "", vendor=fields.vendor(NAME))

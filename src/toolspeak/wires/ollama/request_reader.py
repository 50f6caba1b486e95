"""Reads a client's Ollama request: messages, tools, options; calls and results without ids are linked."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Image, Message, Opaque, Part, Reasoning, Result, ResultPart, Role, Text, Vendor
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import Tool
from toolspeak.wires.ollama import NAME
from toolspeak.wires.shared.calls import history_calls, object_text, take_arguments
from toolspeak.wires.shared.history import add_result, link_history
from toolspeak.wires.shared.json_body import Fields, dump_text, one_line, parse_body, parse_request
from toolspeak.wires.shared.request_parts import image_from_url
from toolspeak.wires.shared.tools import cache_tools, unique_tools

_ROLES: Final = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "control": Role.SYSTEM,  # turns reasoning on in Granite's template
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
}
_OWN_ROLES: Final = ("developer", "control")
_URLS: Final = ("data:", "http://", "https://")
_MAGIC: Final = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}


def decode_request(body: bytes, path: str) -> Request:
    """Read a request. Raises `BadField`, which names the field."""
    del path
    value, raw_tools = parse_request(body)
    fields = Fields(value)
    tools, hosted = read_tools(raw_tools)
    return Request(
        model=fields.text("model") or "",
        messages=pair_results(_messages(fields)),
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
    """Take a positive number. Others keep their meaning in Ollama (no limit, the whole context), so they are left."""
    value = options.integer(key)
    if value is None or value > 0:
        return value
    options.left[key] = value
    return None


def _effort(fields: Fields) -> str | None:
    """Take the effort. `true` (as much as the model likes) has no equivalent, and stays with the vendor's fields."""
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
    """Keep the remaining fields of an entry and of the `function` in it."""
    if inner is not outer:
        outer.put_back("function", inner)
    return outer.vendor(NAME)


# ---------------------------------------------------------------- tools


@cache_tools
def read_tools(raw: bytes) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
    """Read the bytes of `tools`."""
    tools: list[Tool] = []
    hosted: list[JsonObject] = []
    for fields in Fields({"tools": parse_body(raw)}).each("tools"):
        kind = fields.text("type") or "function"
        if kind == "function":
            tools.append(_function(fields, fields.fields("function") or fields))
        else:
            hosted.append({"type": kind, **fields.left})
    return unique_tools(tools), tuple(hosted)


def _function(outer: Fields, fields: Fields) -> Tool:
    return Tool(
        name=fields.need_text("name"),
        description=fields.text("description") or "",
        parameters=fields.json_object("parameters") or {"type": "object", "properties": {}},
        strict=fields.left.get("strict") is True,  # not a field of this wire, so it also stays with the vendor's fields
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
    """Read the text, which some clients send as parts or as an object, then the images."""
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
    """Read an image. Its base64 has no media type; the first characters tell it."""
    if text.startswith(_URLS):
        return image_from_url(text)
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


# ---------------------------------------------------------------- links between calls and results
#
# Most clients of Ollama send no ids at all. litellm keeps them on results and loses them on calls: there the position
# in the history tells which call it was, and the call gets its id back.


def pair_results(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Give each call an id of its own, and each result the id of its call."""
    known = {call.id for call in history_calls(messages)}
    if "" not in known:
        return link_history(messages)
    history = link_history(_each(message, lambda part: _without_strange_id(part, known)) for message in messages)
    lost = _lost_ids(messages, history, known)
    return tuple(_each(message, lambda part: _with_lost_id(part, lost)) for message in history)


def _lost_ids(before: Sequence[Message], after: Sequence[Message], known: set[str]) -> dict[str, str]:
    """Map the ids that calls were given to the ids that only their results have; no id is used twice."""
    taken = {call.id for call in history_calls(after)}
    lost: dict[str, str] = {}
    for came, answers in zip(_results(before), _results(after), strict=True):
        given = answers.call_id in taken and answers.call_id not in known
        if given and came.call_id and came.call_id not in taken:
            lost[answers.call_id] = came.call_id
            taken.add(came.call_id)
    return lost


def _each(message: Message, change: Callable[[Part], Part]) -> Message:
    return replace(message, parts=tuple(map(change, message.parts)))


def _results(messages: Sequence[Message]) -> Iterator[Result]:
    return (part for message in messages for part in message.parts if isinstance(part, Result))


def _without_strange_id(part: Part, known: set[str]) -> Part:
    return replace(part, call_id="") if isinstance(part, Result) and part.call_id not in known else part


def _with_lost_id(part: Part, lost: dict[str, str]) -> Part:
    if isinstance(part, Call):
        return replace(part, id=lost.get(part.id, part.id))
    return replace(part, call_id=lost.get(part.call_id, part.call_id)) if isinstance(part, Result) else part


# ---------------------------------------------------------------- arguments
#
# Ollama escapes characters that are special in HTML and JavaScript (`<` becomes a unicode escape). The next model that
# sees the call would take the escapes for its own text, so they are undone; everything else is kept to the byte.

_ESCAPE = re.compile(r"\\(?:u(003[ce]|0026|0085|2028|2029)|.)", re.DOTALL)


def object_bytes(arguments: str) -> bytes:
    """Write the arguments on one line; line breaks occur only between JSON tokens, where a space means the same."""
    return one_line(object_text(arguments).replace("\n", " ").replace("\r", " ").encode())


def unescaped(text: str) -> str:
    """Undo Ollama's escapes of `<`, `>`, `&` and line separators."""
    return _ESCAPE.sub(_character, text) if "\\u" in text else text


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else escape[0]

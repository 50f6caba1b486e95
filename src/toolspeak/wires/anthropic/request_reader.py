"""Reads a client's Anthropic request: messages, tools, tool choice."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import (
    Call,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Result,
    ResultPart,
    Role,
    Text,
    ToolReference,
    Vendor,
)
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice
from toolspeak.wires.anthropic import NAME
from toolspeak.wires.anthropic.builtins import TOOLSET, client_tool, member_name, toolset
from toolspeak.wires.shared.calls import take_arguments
from toolspeak.wires.shared.json_body import Fields, parse_body, parse_request
from toolspeak.wires.shared.tools import cache_tools, unique_tools

REDACTED: Final = "redacted_thinking"
"""A thought that only the vendor can read. In the ir it is a signature: this word, a colon, and the encrypted data."""

THREAD: Final = "thread"
"""The field that asks a server to store the conversation, which toolspeak never does."""

_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}


def decode_request(body: bytes, path: str) -> Request:
    """Read a request. Raises `BadField`, which names the field."""
    del path
    value, raw_tools = parse_request(body)
    fields = Fields(value)
    if fields.take(THREAD) is not None:
        raise BadField(THREAD, "toolspeak stores no conversations: send all messages, without thread")
    tools, hosted = read_tools(raw_tools)
    effort, output_schema = _output(fields)
    return Request(
        model=fields.text("model") or "",
        messages=_messages(fields),
        tools=tools,
        choice=read_choice(fields),
        sampling=_sampling(fields, effort),
        stream=fields.flag("stream") or False,
        output_schema=output_schema,
        extra={NAME: {**fields.left, **({"tools": list(hosted)} if hosted else {})}},
    )


def _sampling(fields: Fields, effort: str | None) -> Sampling:
    return Sampling(
        max_tokens=fields.integer("max_tokens"),
        temperature=fields.number("temperature"),
        top_p=fields.number("top_p"),
        top_k=fields.integer("top_k"),
        stop=fields.texts("stop_sequences"),
        effort=effort,
    )


def _output(fields: Fields) -> tuple[str | None, JsonObject | None]:
    """Take the effort and the schema of the answer, which older clients send as `output_format`."""
    older = _schema(fields, "output_format")
    if older is not None:
        fields.left.setdefault("output_format", {})  # written back under the name under which it came
    config = fields.fields("output_config")
    if config is None:
        return None, older
    effort, schema = config.text("effort"), _schema(config, "format")
    fields.put_back("output_config", config)
    return effort, older if schema is None else schema


def _schema(fields: Fields, key: str) -> JsonObject | None:
    """Take a JSON schema; a format of another kind is left in place."""
    inside = fields.fields(key)
    if inside is None:
        return None
    if inside.left.get("type") != "json_schema":
        fields.left[key] = inside.left
        return None
    del inside.left["type"]
    schema = inside.json_object("schema") or {}
    fields.put_back(key, inside)
    return schema


# ---------------------------------------------------------------- messages


def _messages(fields: Fields) -> tuple[Message, ...]:
    messages: list[Message] = _system(fields)
    called: dict[str, str] = {}
    for message in fields.each("messages"):
        role = _ROLES.get(message.text("role") or "")
        if role is None:
            raise BadField(message.where("role"), "expected user, assistant or system")
        parts = _parts(message, role, called)
        if role is Role.SYSTEM and all(before.role is Role.SYSTEM for before in messages):
            # Claude Code sends system messages inside `messages`. Without this mark, one at the beginning would be
            # written back as the `system` field of the request.
            message.left["role"] = role.value
        messages += (
            _split(parts, message.vendor(NAME))
            if role is Role.USER
            else [Message(role, tuple(parts), message.vendor(NAME))]
        )
    return tuple(messages)


def _system(fields: Fields) -> list[Message]:
    parts = _parts(fields, Role.SYSTEM, {}, "system")
    return [Message(Role.SYSTEM, tuple(parts))] if parts else []


def _split(parts: list[Part], vendor: Vendor | None) -> list[Message]:
    """Put results into messages of their own, in the order in which everything came."""
    messages = [
        Message(Role.TOOL if results else Role.USER, tuple(group))
        for results, group in groupby(parts, lambda part: isinstance(part, Result))
    ]
    last = messages.pop() if messages else Message(Role.USER, ())
    return [*messages, Message(last.role, last.parts, vendor)]


def _parts(fields: Fields, role: Role, called: dict[str, str], key: str = "content") -> list[Part]:
    value = fields.left.get(key)
    if value is None or isinstance(value, str):
        fields.left.pop(key, None)
        return [Text(value)] if value else []
    if not isinstance(value, list):
        raise fields.bad(key, "a string or an array of blocks", value)
    return [_part(block, role, called) for block in fields.each(key)]


def _part(fields: Fields, role: Role, called: dict[str, str]) -> Part:
    kind = fields.text("type") or "text"
    if kind == "tool_use" and role is Role.ASSISTANT:
        call = _call(fields)
        called[call.id] = call.name
        return call
    if kind == REDACTED and role is Role.ASSISTANT and isinstance(fields.left.get("data"), str):
        return Reasoning("", redacted_signature(fields.text("data") or ""), fields.vendor(NAME))
    if kind == "thinking" and role is Role.ASSISTANT:
        return Reasoning(fields.text("thinking") or "", fields.text("signature") or "", fields.vendor(NAME))
    if kind == "tool_result" and role is Role.USER:
        return _result(fields, called)
    return _content(fields, kind)


def _content(fields: Fields, kind: str) -> Text | Image | Opaque:
    if kind == "text":
        return Text(fields.text("text") or "", fields.vendor(NAME))
    return _image(fields) if kind == "image" else _opaque(fields, kind)


def _opaque(fields: Fields, kind: str) -> Opaque:
    return Opaque(Vendor(NAME, {"type": kind, **fields.left}), kind)


def _image(fields: Fields) -> Image | Opaque:
    """Read an image; one that refers to a file of the vendor stays opaque, because other upstreams cannot fetch it."""
    inside = fields.left.get("source")
    kind = inside.get("type") if isinstance(inside, dict) else None
    if kind not in ("base64", "url"):
        return _opaque(fields, "image")
    source = Fields(fields.take("source"), fields, "source")
    source.take("type")
    if kind == "url":
        media_type, data, url = "", "", source.need_text("url")
    else:
        media_type, data, url = source.text("media_type") or "", source.need_text("data"), ""
    fields.put_back("source", source)
    return Image(media_type, data, url, fields.vendor(NAME))


def _call(fields: Fields) -> Call:
    id, name = fields.text("id") or "", fields.need_text("name")
    family = fields.left.get(TOOLSET)
    if isinstance(family, str) and family:
        name = member_name(family, name)
    arguments = take_arguments(fields, "input", "an object")
    return Call(id, name, arguments, vendor=fields.vendor(NAME))


def _result(fields: Fields, called: dict[str, str]) -> Result:
    id, is_error = fields.text("tool_use_id") or "", fields.flag("is_error") or False
    content = tuple(_pieces(fields))
    return Result(id, content, called.get(id, ""), is_error=is_error, vendor=fields.vendor(NAME))


def _pieces(fields: Fields) -> Iterator[ResultPart]:
    value = fields.left.get("content")
    if value is None or isinstance(value, str):
        fields.left.pop("content", None)
        if value:
            yield Text(value)
        return
    if not isinstance(value, list):
        raise fields.bad("content", "a string or an array of blocks", value)
    for block in fields.each("content"):
        kind = block.text("type") or "text"
        if kind == "tool_reference":
            yield ToolReference(block.need_text("tool_name"), block.vendor(NAME))
        else:
            yield _content(block, kind)


# ---------------------------------------------------------------- tools

_MODES: Final = {
    "auto": ChoiceMode.AUTO,
    "any": ChoiceMode.REQUIRED,
    "tool": ChoiceMode.NAMED,
    "none": ChoiceMode.NONE,
}


@cache_tools
def read_tools(raw: bytes) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
    """Read the bytes of `tools`."""
    tools: list[Tool] = []
    hosted: list[JsonObject] = []
    for fields in Fields({"tools": parse_body(raw)}).each("tools"):
        kind = fields.text("type") or "custom"
        # Tools without a schema are the vendor's. bash, text_editor, memory and computer run in the client, and their
        # schema is implied, so that other models must be given ours. All others run on the vendor's servers.
        if kind == "custom" or "input_schema" in fields.left:
            tools.append(_custom(fields, kind))
            continue
        body: JsonObject = {"type": kind, **fields.left}
        family = toolset(kind, body)
        if family is None and (tool := client_tool(kind, body)) is not None:
            tools.append(tool)
        else:  # also a toolset: on the same wire its body is written back instead of its tools
            hosted.append(body)
            tools += family or ()
    return unique_tools(tools), tuple(hosted)


def _custom(fields: Fields, kind: str) -> Tool:
    """Read a tool of the client's own; an unknown type is kept with its schema."""
    if kind != "custom":
        fields.left["type"] = kind
    return Tool(
        name=fields.need_text("name"),
        description=fields.text("description") or "",
        parameters=fields.json_object("input_schema") or {"type": "object", "properties": {}},
        strict=fields.flag("strict") or False,
        deferred=fields.flag("defer_loading") or False,
        vendor=fields.vendor(NAME),
    )


def read_choice(fields: Fields) -> ToolChoice:
    """Take `tool_choice` out of a request."""
    inside = fields.fields("tool_choice")
    if inside is None:
        return AUTO
    kind = inside.text("type") or "auto"
    mode = _MODES.get(kind)
    if mode is None:
        raise BadField(inside.where("type"), f"expected auto, any, tool or none, got {kind!r}")
    name = inside.need_text("name") if mode is ChoiceMode.NAMED else ""
    parallel = inside.flag("disable_parallel_tool_use") is not True
    fields.put_back("tool_choice", inside)
    return ToolChoice(mode, name, parallel=parallel)


def redacted_signature(data: str) -> str:
    """Return the signature that carries a redacted thought."""
    return f"{REDACTED}:{data}"


def redacted_data(signature: str) -> str:
    """Return the encrypted data of a redacted thought's signature; empty for an ordinary signature."""
    head, mark, data = signature.partition(":")
    return data if mark and head == REDACTED else ""

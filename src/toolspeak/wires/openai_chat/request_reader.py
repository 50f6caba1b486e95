"""Reads a client's Chat Completions request: messages, tools, tool choice."""

from typing import Final

from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Image, Message, Opaque, Part, Reasoning, Result, ResultPart, Role, Text, Vendor
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import AUTO, ChoiceMode, Grammar, Tool, ToolChoice, ToolKind
from toolspeak.wires.openai_chat import NAME
from toolspeak.wires.shared.calls import arguments_json, custom_arguments, take_arguments
from toolspeak.wires.shared.history import add_result, link_history
from toolspeak.wires.shared.json_body import Fields, dump_text, parse_body, parse_request
from toolspeak.wires.shared.request_parts import image_from_url
from toolspeak.wires.shared.tools import cache_tools, free_form_parameters, unique_tools

_ROLES: Final = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT}
_MODES: Final = {"auto": ChoiceMode.AUTO, "none": ChoiceMode.NONE, "required": ChoiceMode.REQUIRED}


def decode_request(body: bytes, path: str) -> Request:
    """Read a request. Raises `BadField`, which names the field."""
    del path
    value, raw_tools = parse_request(body)
    fields = Fields(value)
    tools, hosted = read_tools(raw_tools)
    if (several := fields.integer("n")) is not None and several != 1:
        raise BadField("n", f"expected 1, got {several}: toolspeak returns one answer per request")
    return Request(
        model=fields.text("model") or "",
        messages=link_history(_messages(fields)),
        tools=tools or _legacy_tools(fields),
        choice=_choice(fields),
        sampling=_sampling(fields),
        stream=fields.flag("stream") or False,
        output_schema=_output_schema(fields),
        extra={NAME: {**fields.left, **({"tools": list(hosted)} if hosted else {})}},
    )


def _sampling(fields: Fields) -> Sampling:
    modern, older = fields.integer("max_completion_tokens"), fields.integer("max_tokens")
    sampling = Sampling(
        max_tokens=older if modern is None else modern,
        temperature=fields.number("temperature"),
        top_p=fields.number("top_p"),
        top_k=fields.integer("top_k"),
        frequency_penalty=fields.number("frequency_penalty"),
        presence_penalty=fields.number("presence_penalty"),
        seed=fields.integer("seed"),
        stop=fields.texts("stop"),
        effort=fields.text("reasoning_effort"),
    )
    if modern is not None:
        fields.left["max_completion_tokens"] = modern  # written back under the name under which it came
    return sampling


def _output_schema(fields: Fields) -> JsonObject | None:
    asked = fields.fields("response_format")
    if asked is None or (kind := asked.need_text("type")) == "text":
        return None
    if kind == "json_object":
        return {}
    inside = asked.fields("json_schema")
    if kind != "json_schema" or inside is None:
        raise BadField(asked.where("type"), f"expected text, json_object or json_schema, got {kind!r}")
    schema = inside.json_object("schema") or {}
    fields.left["response_format"] = inside.left
    return schema


# ---------------------------------------------------------------- tools


@cache_tools
def read_tools(raw: bytes) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
    """Read the bytes of `tools`."""
    tools: list[Tool] = []
    hosted: list[JsonObject] = []
    for fields in Fields({"tools": parse_body(raw)}).each("tools"):
        kind = fields.text("type") or "function"
        if kind == "function":
            tools.append(_function(fields.fields("function") or fields))
        elif kind == "custom":
            tools.append(_custom(fields.fields("custom") or fields))
        else:
            hosted.append({"type": kind, **fields.left})
    return unique_tools(tools), tuple(hosted)


def _function(fields: Fields) -> Tool:
    return Tool(
        name=fields.need_text("name"),
        description=fields.text("description") or "",
        parameters=fields.json_object("parameters") or {"type": "object", "properties": {}},
        strict=fields.flag("strict") or False,
        vendor=fields.vendor(NAME),
    )


def _custom(fields: Fields) -> Tool:
    name, description = fields.need_text("name"), fields.text("description") or ""
    grammar = _grammar(fields.fields("format"))
    return Tool(
        name,
        description,
        free_form_parameters(grammar),
        kind=ToolKind.CUSTOM,
        grammar=grammar,
        vendor=Vendor(NAME, {"type": "custom"}),
    )


def _grammar(fields: Fields | None) -> Grammar | None:
    if fields is None or fields.text("type") != "grammar":
        return None
    inside = fields.fields("grammar") or fields
    return Grammar(inside.need_text("syntax"), inside.need_text("definition"))


def _legacy_tools(fields: Fields) -> tuple[Tool, ...]:
    return unique_tools(_function(function) for function in fields.each("functions"))


def _choice(fields: Fields) -> ToolChoice:
    parallel = fields.flag("parallel_tool_calls")
    value = fields.take("tool_choice") or fields.take("function_call")
    if value is None and parallel is not False:
        return AUTO
    if value is None or isinstance(value, str):
        mode = _MODES.get(value or "auto")
        if mode is None:
            raise fields.bad("tool_choice", "auto, none, required or an object", value)
        return ToolChoice(mode, parallel=parallel is not False)
    return _choice_object(Fields(value, fields, "tool_choice"), parallel=parallel is not False)


def _choice_object(fields: Fields, *, parallel: bool) -> ToolChoice:
    kind = fields.text("type") or "function"
    inside = fields.fields(kind) or fields
    if kind == "allowed_tools":
        mode = _MODES.get(inside.text("mode") or "auto", ChoiceMode.AUTO)
        allowed = tuple(_allowed(tool) for tool in inside.each("tools"))
        return ToolChoice(mode, parallel=parallel, allowed=allowed)
    if kind not in ("function", "custom"):
        raise BadField(fields.where("type"), f"expected function, custom or allowed_tools, got {kind!r}")
    return ToolChoice(ChoiceMode.NAMED, inside.need_text("name"), parallel=parallel)


def _allowed(fields: Fields) -> str:
    return (fields.fields(fields.text("type") or "function") or fields).need_text("name")


# ---------------------------------------------------------------- messages


def _messages(fields: Fields) -> list[Message]:
    messages: list[Message] = []
    for message in fields.each("messages"):
        role = (message.text("role") or "").lower()
        if role in ("tool", "function"):
            add_result(messages, _result(message, role))
        elif role in _ROLES:
            messages.append(_message(message, role))
        else:
            raise BadField(message.where("role"), f"expected system, developer, user, assistant or tool, got {role!r}")
    return messages


def _message(fields: Fields, role: str) -> Message:
    parts: list[Part] = [*_reasoning(fields), *_content(fields)]
    if role == "assistant":
        parts += _calls(fields)
    if role == "developer":
        fields.left["role"] = role
    return Message(_ROLES[role], tuple(parts), fields.vendor(NAME))


def _reasoning(fields: Fields) -> list[Reasoning]:
    for key in ("reasoning_content", "reasoning"):
        if isinstance(text := fields.left.get(key), str):
            del fields.left[key]
            return [Reasoning(text, vendor=None if key == "reasoning_content" else Vendor(NAME, {key: True}))]
    return []


def _content(fields: Fields) -> list[Text | Image | Opaque]:
    value = fields.left.get("content")
    if value is None or isinstance(value, str):
        fields.left.pop("content", None)
        return [Text(value)] if value else []
    if isinstance(value, dict):  # some clients send a tool's result as an object instead of a string
        fields.left.pop("content")
        return [Text(dump_text(value))]
    return [_part(part) for part in fields.each("content")]


def _part(fields: Fields) -> Text | Image | Opaque:
    kind = fields.text("type") or "text"
    if kind == "text":
        return Text(fields.text("text") or "", fields.vendor(NAME))
    if kind == "refusal":
        return Text(fields.text("refusal") or "", Vendor(NAME, {"type": kind}))
    if kind == "image_url":
        return _image(fields)
    return Opaque(Vendor(NAME, {"type": kind, **fields.left}), kind)


def _image(fields: Fields) -> Image:
    value = fields.take("image_url")
    inside = Fields({"url": value} if isinstance(value, str) else value, fields, "image_url")
    image = image_from_url(inside.need_text("url"))
    return Image(image.media_type, image.data, image.url, inside.vendor(NAME))


def _calls(fields: Fields) -> list[Call]:
    calls = [_call(call) for call in fields.each("tool_calls")]
    legacy = fields.fields("function_call")
    if legacy is not None:
        calls.append(Call("", legacy.need_text("name"), arguments_json(legacy.take("arguments"))))
    return calls


def _call(fields: Fields) -> Call:
    id, kind = fields.text("id") or "", fields.text("type") or "function"
    if kind == "custom" and (custom := fields.fields("custom")) is not None:
        vendor = Vendor(NAME, {"type": kind})
        return Call(id, custom.need_text("name"), custom_arguments(custom.text("input") or ""), vendor=vendor)
    function = fields.fields("function")
    if function is None:
        raise BadField(fields.where("function"), "is required: an object with name and arguments")
    name, arguments = function.need_text("name"), take_arguments(function)
    fields.put_back("function", function)
    return Call(id, name, arguments, vendor=fields.vendor(NAME))


def _result(fields: Fields, role: str) -> Result:
    call_id, name = fields.text("tool_call_id") or "", fields.text("name") or ""
    content: list[ResultPart] = [*_content(fields)]
    if name:
        fields.left["name"] = name
    if role == "function":
        fields.left["role"] = role
    return Result(call_id, tuple(content), name, vendor=fields.vendor(NAME))

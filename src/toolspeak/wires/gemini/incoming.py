"""A client's request becomes ours. What its messages say is read in `history.py`."""

from typing import Final

from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Message, Role
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice
from toolspeak.wires._body import parse, parse_request
from toolspeak.wires._fields import Fields
from toolspeak.wires._history import linked
from toolspeak.wires._tools import cached, unique
from toolspeak.wires.gemini.history import read_contents, read_parts
from toolspeak.wires.gemini.path import MODELS, read_path
from toolspeak.wires.gemini.schemas import json_schema
from toolspeak.wires.gemini.words import NAME, camel, camel_at, camel_each

_MODES: Final = {
    "MODE_UNSPECIFIED": ChoiceMode.AUTO,
    "AUTO": ChoiceMode.AUTO,
    "VALIDATED": ChoiceMode.AUTO,
    "ANY": ChoiceMode.REQUIRED,
    "NONE": ChoiceMode.NONE,
}
_JSON: Final = "application/json"
_NO_LEVEL: Final = "thinking_level_unspecified"


def decode_request(body: bytes, path: str) -> Request:
    """Read a request's body, and its path, which says the model and whether to stream."""
    value, raw_tools = parse_request(body)
    fields = camel(Fields(value))
    address = read_path(path)
    named = (fields.text("model") or "").removeprefix(MODELS)
    tools, hosted = read_tools(raw_tools)
    config = camel_at(fields, "generationConfig") or Fields({}, fields, "generationConfig")
    choice = _choice(fields)
    return Request(
        model=address.model or named,
        messages=linked((*_system(fields), *read_contents(fields))),
        tools=tools,
        choice=choice,
        sampling=_sampling(config),
        stream=address.stream,
        output_schema=_output_schema(config),
        extra={NAME: _extra(fields, config, hosted, array=address.stream and not address.sse)},
    )


def _extra(fields: Fields, config: Fields, hosted: tuple[JsonObject, ...], *, array: bool) -> JsonObject:
    fields.put_back("generationConfig", config)
    extra = fields.left
    if hosted:
        extra["tools"] = list(hosted)
    if array:
        extra["alt"] = "json"
    return extra


def _sampling(config: Fields) -> Sampling:
    if (several := config.integer("candidateCount")) is not None and several != 1:
        raise BadField(config.where("candidateCount"), f"expected 1, got {several}: one answer per request")
    return Sampling(
        max_tokens=config.integer("maxOutputTokens"),
        temperature=config.number("temperature"),
        top_p=config.number("topP"),
        top_k=config.integer("topK"),
        frequency_penalty=config.number("frequencyPenalty"),
        presence_penalty=config.number("presencePenalty"),
        seed=config.integer("seed"),
        stop=config.texts("stopSequences"),
        effort=_effort(config),
    )


def _effort(config: Fields) -> str | None:
    thinking = camel_at(config, "thinkingConfig")
    if thinking is None:
        return None
    level = (thinking.text("thinkingLevel") or "").lower()
    config.put_back("thinkingConfig", thinking)
    return level if level and level != _NO_LEVEL else None


def _output_schema(config: Fields) -> JsonObject | None:
    if config.left.get("responseMimeType") != _JSON:
        return None
    config.take("responseMimeType")
    schema, older = config.json_object("responseJsonSchema"), config.json_object("responseSchema")
    if schema is None:
        return {} if older is None else json_schema(older)
    return schema


# ---------------------------------------------------------------- tools


@cached
def read_tools(raw: bytes) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
    """Read the bytes of `tools`: a list, or one object that stands alone."""
    tools: list[Tool] = []
    hosted: list[JsonObject] = []
    for fields in camel_each(Fields({"tools": parse(raw)}), "tools"):
        tools += (_function(function) for function in camel_each(fields, "functionDeclarations"))
        if fields.left:
            hosted.append(fields.left)
    return unique(tools), tuple(hosted)


def _function(fields: Fields) -> Tool:
    return Tool(
        name=fields.need_text("name"),
        description=fields.text("description") or "",
        parameters=_parameters(fields) or {"type": "object", "properties": {}},
        vendor=fields.vendor(NAME),
    )


def _parameters(fields: Fields) -> JsonObject | None:
    schema, older = fields.json_object("parametersJsonSchema"), fields.json_object("parameters")
    return json_schema(older) if schema is None and older is not None else schema


def _choice(fields: Fields) -> ToolChoice:
    config = camel_at(fields, "toolConfig")
    calling = camel_at(config, "functionCallingConfig") if config is not None else None
    choice = AUTO if calling is None else _calling(calling)
    if config is not None:
        config.put_back("functionCallingConfig", calling)
    fields.put_back("toolConfig", config)
    return choice


def _calling(fields: Fields) -> ToolChoice:
    said = fields.text("mode") or "AUTO"
    mode = _MODES.get(said.upper())
    if mode is None:
        raise fields.bad("mode", "AUTO, ANY, NONE or VALIDATED", said)
    allowed = fields.texts("allowedFunctionNames")
    if said.upper() == "VALIDATED":
        fields.left["mode"] = "VALIDATED"
    if mode is ChoiceMode.REQUIRED and len(allowed) == 1:
        return ToolChoice(ChoiceMode.NAMED, allowed[0])
    return ToolChoice(mode, allowed=allowed)


# ---------------------------------------------------------------- messages


def _system(fields: Fields) -> tuple[Message, ...]:
    value: Json = fields.take("systemInstruction")
    if value is None or value == "":
        return ()
    inside = camel(
        Fields({"parts": [{"text": value}]} if isinstance(value, str) else value, fields, "systemInstruction")
    )
    if "text" in inside.left and "parts" not in inside.left:  # one part, without the content around it
        inside = Fields({"parts": inside.left}, fields, "systemInstruction")
    return (Message(Role.SYSTEM, tuple(read_parts(inside)), inside.vendor(NAME)),)

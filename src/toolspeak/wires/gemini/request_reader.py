"""Reads a client's Gemini request: its path, contents, tools and signatures.

    {"role": "model", "parts": [{"text": "…", "thought": true}, {"functionCall": {…}, "thoughtSignature": "…"}]}
        ->  assistant: Reasoning("…"), Reasoning("", "…"), Call(…)
    {"role": "user", "parts": [{"functionResponse": {…}}, {"inlineData": {…}}]}
        ->  tool: Result(…)   user: Image(…)

Ids may be missing, and a result's name may be anything: calls and results are linked later, by their position.

Schemas may be in Google's own form, a part of OpenAPI 3.0 with types in capitals and counts that may be strings:

    {"type": "STRING", "nullable": true, "maxLength": "9"}   ->   {"type": ["string", "null"], "maxLength": 9}
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Final

from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call, Image, Message, Opaque, Part, Reasoning, Result, ResultPart, Role, Text, Vendor
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice
from toolspeak.wires.gemini import NAME
from toolspeak.wires.shared.history import link_history
from toolspeak.wires.shared.json_body import Fields, dump_text, parse_body, parse_request
from toolspeak.wires.shared.tools import cache_tools, unique_tools

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
    """Read a request. Its path has the model and whether to stream. Raises `BadField`, which names the field."""
    value, raw_tools = parse_request(body)
    fields = camel(Fields(value))
    address = read_path(path)
    named = (fields.text("model") or "").removeprefix(MODELS)
    tools, hosted = read_tools(raw_tools)
    config = camel_at(fields, "generationConfig") or Fields({}, fields, "generationConfig")
    choice = _choice(fields)
    return Request(
        model=address.model or named,
        messages=link_history((*_system(fields), *read_contents(fields))),
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


@cache_tools
def read_tools(raw: bytes) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
    """Read the bytes of `tools`: an array, or a single object, which goose sends."""
    tools: list[Tool] = []
    hosted: list[JsonObject] = []
    for fields in camel_each(Fields({"tools": parse_body(raw)}), "tools"):
        tools += (_function(function) for function in camel_each(fields, "functionDeclarations"))
        if fields.left:
            hosted.append(fields.left)
    return unique_tools(tools), tuple(hosted)


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
    if "text" in inside.left and "parts" not in inside.left:  # a bare part, without the content around it
        inside = Fields({"parts": inside.left}, fields, "systemInstruction")
    return (Message(Role.SYSTEM, tuple(read_parts(inside)), inside.vendor(NAME)),)


_ROLES: Final = {"": Role.USER, "user": Role.USER, "function": Role.USER, "model": Role.ASSISTANT}
_ANSWERS: Final = ("output", "error", "content", "result", "return_value")
"""Keys under which clients send the text of a result."""


def read_contents(fields: Fields) -> Iterator[Message]:
    """Read the messages of a request."""
    for content in camel_each(fields, "contents"):
        role = _ROLES.get((content.text("role") or "").lower())
        if role is None:
            raise BadField(content.where("role"), "expected user or model")
        parts = list(read_parts(content))
        vendor = content.vendor(NAME)
        for speaker, group in groupby(parts, partial(_speaker, role)):
            yield Message(speaker, tuple(group), vendor)
            vendor = None


def read_parts(fields: Fields) -> Iterator[Part]:
    """Read the parts of one content."""
    for part in camel_each(fields, "parts"):
        yield from _part(part)


def _speaker(role: Role, part: Part) -> Role:
    if isinstance(part, Result):
        return Role.TOOL
    return Role.ASSISTANT if isinstance(part, Call) else role


def _part(fields: Fields) -> Iterator[Part]:
    if (call := camel_at(fields, "functionCall")) is not None:
        yield from _call(fields, call)
    elif (result := camel_at(fields, "functionResponse")) is not None:
        yield _result(fields, result)
    elif fields.left.get("text") is not None:
        yield _text(fields)
    else:
        yield _media(fields)


def _signature(fields: Fields) -> str:
    return unwrap_signature(fields.text("thoughtSignature") or "")


def _text(fields: Fields) -> Text | Reasoning:
    """Read text or reasoning; a signature without text becomes a part of its own."""
    text, thought, signature = fields.text("text") or "", fields.flag("thought"), _signature(fields)
    if thought or (signature and not text):
        return Reasoning(text, signature, fields.vendor(NAME))
    if signature:
        fields.left["thoughtSignature"] = signature
    return Text(text, fields.vendor(NAME))


def _call(fields: Fields, inside: Fields) -> Iterator[Part]:
    """Read a call, preceded by its signature."""
    if signature := _signature(fields):
        yield Reasoning("", signature)
    id, name, args = inside.text("id") or "", inside.need_text("name"), inside.json_object("args")
    yield Call(id, name, dump_text(args or {}), vendor=_vendor(fields, "functionCall", inside.left))


def _result(fields: Fields, inside: Fields) -> Result:
    """Read a result, and keep the object in which it came, to write it back unchanged."""
    id, name, response = inside.text("id") or "", inside.text("name") or "", inside.json_object("response") or {}
    content: list[ResultPart] = [*_answer(response), *map(_media, camel_each(inside, "parts"))]
    vendor = _vendor(fields, "functionResponse", {**inside.left, "response": response})
    return Result(id, tuple(content), name, is_error=bool(response.get("error")), vendor=vendor)


def _answer(response: JsonObject) -> list[Text]:
    """Return the text of a result; an object with more fields than the text is returned as JSON."""
    said = [key for key in response if key != "name" or "content" not in response]
    value = response[said[0]] if len(said) == 1 and said[0] in _ANSWERS else None
    if isinstance(value, str):
        return [Text(value)]
    return [Text(dump_text(response))] if response else []


def _media(fields: Fields) -> Image | Opaque:
    """Read an image; any other part stays opaque."""
    body = dict(fields.left)
    inside = camel_at(fields, "inlineData")
    if inside is None:
        return Opaque(Vendor(NAME, body), next(iter(body), "part"))
    whole = dict(inside.left)
    kind, data = inside.text("mimeType") or "", inside.text("data") or ""
    if not kind.startswith("image/"):
        return Opaque(Vendor(NAME, {**body, "inlineData": whole}), kind or "inlineData")
    return Image(kind, data, vendor=_vendor(fields, "inlineData", inside.left))


def _vendor(fields: Fields, key: str, inside: JsonObject) -> Vendor | None:
    """Keep the remaining fields of a part and of the object in it."""
    left: JsonObject = {**fields.left, key: inside} if inside else fields.left
    return Vendor(NAME, left) if left else None


_WORD_START = re.compile(r"(?<=[a-z0-9])_([a-z0-9])")


def camel(fields: Fields) -> Fields:
    """Rename the keys of one object to camel case.

    Google accepts both `functionCall` and `function_call`, and so do clients: litellm sends snake case. Keys inside
    arguments, results and schemas are the user's own, and are never renamed.
    """
    if any("_" in key for key in fields.left):
        fields.left = {_WORD_START.sub(_upper, key): value for key, value in fields.left.items()}
    return fields


def camel_at(fields: Fields, key: str) -> Fields | None:
    """Take an object as `Fields`, with its keys in camel case."""
    inside = fields.fields(key)
    return None if inside is None else camel(inside)


def camel_each(fields: Fields, key: str) -> list[Fields]:
    """Take an array of objects; a single object counts as an array of one, as in Google's own examples."""
    if isinstance(fields.left.get(key), dict):
        return [inside] if (inside := camel_at(fields, key)) is not None else []
    return [camel(each) for each in fields.each(key)]


def _upper(found: re.Match[str]) -> str:
    return found[1].upper()


# ---------------------------------------------------------------- signatures
#
# A `thoughtSignature` is base64, and google-genai rejects a whole answer in which one is not. So signatures of other
# vendors go out wrapped in base64, and are unwrapped when they come back.

_MARK: Final = "dG9vbHNwZWFr"  # "toolspeak" in base64: nine bytes, so that the rest stays aligned
_GROUP: Final = 4
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}|[A-Za-z0-9_-]+={0,2}")
_STANDARD = str.maketrans("-_", "+/")


def wrap_signature(signature: str) -> str:
    """Return a signature that every client accepts: base64 as it is, anything else wrapped."""
    if _BASE64.fullmatch(signature) and len(signature.rstrip("=")) % _GROUP != 1:
        return signature
    return _MARK + b64encode(signature.encode("utf-8", "replace")).decode()


def unwrap_signature(signature: str) -> str:
    """Return a signature as its vendor wrote it; clients may have changed it to the other base64 alphabet."""
    if not signature.startswith(_MARK):
        return signature
    inner = signature.removeprefix(_MARK).rstrip("=").translate(_STANDARD)
    try:
        return b64decode(inner + "=" * (-len(inner) % _GROUP), validate=True).decode()
    except ValueError:
        return signature


# ---------------------------------------------------------------- path

MODELS: Final = "models/"
TUNED: Final = "tunedModels/"
STREAM: Final = "streamGenerateContent"
WHOLE: Final = "generateContent"
SSE: Final = "alt=sse"

_PLACE = re.compile(r"(?:^|/)(models|tunedModels)/(.*)", re.DOTALL)
_ESCAPED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_UNSAFE = re.compile(r"[^A-Za-z0-9._~-]")


@dataclass(frozen=True, slots=True)
class RequestPath:
    """The contents of a path. `sse` is the framing of a stream: server-sent events, or one JSON array."""

    model: str = ""
    stream: bool = False
    sse: bool = True


def read_path(path: str) -> RequestPath:
    """Read the path of a request, with its query.

    /v1beta/models/google%2Fgemma:streamGenerateContent?alt=sse   ->  google/gemma, streamed as server-sent events
    /models/m:streamGenerateContent                               ->  m, streamed as one array
    /v1/tunedModels/mine:generateContent                          ->  tunedModels/mine, whole
    """
    route, _, query = path.partition("?")
    place = _PLACE.search(route)
    if place is None:
        return RequestPath()
    rest = place[2] if ":" in place[2] else _unquoted(place[2])
    model, colon, method = rest.rpartition(":")
    if not colon:
        model, method = method, ""
    prefix = TUNED if place[1] == "tunedModels" else ""
    sse = any(option.removeprefix("$") == SSE for option in query.split("&"))
    return RequestPath(prefix + _unquoted(model), method == STREAM, sse)


def write_path(model: str, *, stream: bool) -> str:
    """Write the path of a request, relative to the base URL."""
    prefix = TUNED if model.startswith(TUNED) else MODELS
    method = f"{STREAM}?{SSE}" if stream else WHOLE
    return f"{prefix}{_quoted(model.removeprefix(prefix))}:{method}"


def _unquoted(text: str) -> str:
    return _ESCAPED.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace"), text)


def _quoted(text: str) -> str:
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace")), text)


# ---------------------------------------------------------------- schemas in Google's form


_MAPS: Final = ("properties", "patternProperties", "$defs", "defs", "definitions")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE: Final = ("items", "additionalProperties", "not")
_COUNTS: Final = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_MOST_DIGITS: Final = 18
_NO_TYPE: Final = "type_unspecified"


def json_schema(schema: JsonObject) -> JsonObject:
    """Change a schema in place, at any depth, and return it."""
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        _lower(one)
        _count(one)
        _nullable(one)
        waiting += _inside(one)
    return schema


def _lower(schema: JsonObject) -> None:
    kind = schema.get("type")
    if isinstance(kind, str):
        schema["type"] = kind.lower()
        if kind.lower() == _NO_TYPE:
            del schema["type"]
    elif isinstance(kind, list):
        schema["type"] = [item.lower() if isinstance(item, str) else item for item in kind]


def _count(schema: JsonObject) -> None:
    for key in _COUNTS:
        value = schema.get(key)
        if isinstance(value, str) and value.isdecimal() and len(value) <= _MOST_DIGITS:
            schema[key] = int(value)


def _nullable(schema: JsonObject) -> None:
    if not isinstance(schema.get("nullable"), bool) or schema.pop("nullable") is False:
        return
    kind, choices, values = schema.get("type"), schema.get("anyOf"), schema.get("enum")
    if isinstance(kind, str) and kind != "null":
        schema["type"] = [kind, "null"]
    if isinstance(choices, list):
        schema["anyOf"] = [*choices, {"type": "null"}]
    if isinstance(values, list) and None not in values:
        schema["enum"] = [*values, None]


def _inside(schema: JsonObject) -> Iterator[JsonObject]:
    """Yield the schemas in a schema: not its examples, and not a property that is called `type`."""
    found: list[Json] = [schema.get(key) for key in _SINGLE]
    for key in _MAPS:
        named = schema.get(key)
        found += named.values() if isinstance(named, dict) else ()
    for key in _LISTS:
        listed = schema.get(key)
        found += listed if isinstance(listed, list) else ()
    yield from (value for value in found if isinstance(value, dict))

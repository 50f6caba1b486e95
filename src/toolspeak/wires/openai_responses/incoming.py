"""A client's request becomes ours."""

from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.wires._body import parse_request
from toolspeak.wires._fields import Fields
from toolspeak.wires._history import linked
from toolspeak.wires.openai_responses.choice import read_choice
from toolspeak.wires.openai_responses.names import FlatNames
from toolspeak.wires.openai_responses.read_items import ItemReader, tools_of
from toolspeak.wires.openai_responses.tools import merged, offered_at_once, read_tools
from toolspeak.wires.openai_responses.words import NAME

_STORED = ("previous_response_id", "conversation")


def decode_request(body: bytes, path: str) -> Request:
    """Read a request's body."""
    del path
    value, raw_tools = parse_request(body)
    fields = Fields(value)
    _refuse_stored(fields)
    declared, hosted = read_tools(raw_tools)
    items = _items(fields)
    tools = merged(declared, tools_of(items))
    names = FlatNames(tools)
    return Request(
        model=fields.text("model") or "",
        messages=linked((*_instructions(fields), *ItemReader(names).read(items))),
        tools=offered_at_once(tuple(names.named(tools))),
        choice=read_choice(fields, names),
        sampling=_sampling(fields),
        stream=fields.flag("stream") or False,
        output_schema=_output_schema(fields),
        extra={NAME: {**fields.left, **({"tools": list(hosted)} if hosted else {})}},
    )


def _refuse_stored(fields: Fields) -> None:
    for key in _STORED:
        if fields.left.get(key) is not None:
            raise BadField(key, "is not supported, no conversation is stored here: send the whole of it in `input`")


def _items(fields: Fields) -> list[Fields]:
    value = fields.left.get("input")
    if isinstance(value, str):
        said: list[Json] = [{"role": "user", "content": value}] if value else []
        fields.left["input"] = said
    return fields.each("input")


def _instructions(fields: Fields) -> tuple[Message, ...]:
    """Read the instructions: the one message of the system that has no fields of this wire."""
    text = fields.text("instructions")
    return (Message(Role.SYSTEM, (Text(text),)),) if text else ()


def _sampling(fields: Fields) -> Sampling:
    return Sampling(
        max_tokens=fields.integer("max_output_tokens"),
        temperature=fields.number("temperature"),
        top_p=fields.number("top_p"),
        top_k=fields.integer("top_k"),
        frequency_penalty=fields.number("frequency_penalty"),
        presence_penalty=fields.number("presence_penalty"),
        seed=fields.integer("seed"),
        stop=fields.texts("stop"),
        effort=_effort(fields),
    )


def _effort(fields: Fields) -> str | None:
    reasoning = fields.fields("reasoning")
    if reasoning is None:
        return None
    effort = reasoning.text("effort")
    fields.put_back("reasoning", reasoning)
    return effort


def _output_schema(fields: Fields) -> JsonObject | None:
    text = fields.fields("text")
    if text is None:
        return None
    asked = text.fields("format")
    schema = None if asked is None else _schema(asked)
    text.put_back("format", asked)
    fields.put_back("text", text)
    return schema


def _schema(asked: Fields) -> JsonObject | None:
    kind = asked.need_text("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return {}
    if kind != "json_schema":
        raise BadField(asked.where("type"), f"expected text, json_object or json_schema, got {kind!r}")
    return asked.json_object("schema") or {}

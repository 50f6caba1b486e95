"""Reads a client's Responses request.

    message (user)                       user:       text
    reasoning, message, function_call    assistant:  reasoning, text, call, call     (one turn: one message)
    function_call
    function_call_output, ..._output     tool:       result, result

An item that only this wire knows is kept whole, as an opaque part.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import (
    Call,
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
from toolspeak.ir.tool import Tool
from toolspeak.wires.openai_responses import NAME
from toolspeak.wires.openai_responses.items import (
    BEFORE,
    CUSTOM_CALL,
    FUNCTION_CALL,
    HEAD,
    ITEM,
    MESSAGE,
    MORE_TOOLS,
    NAMESPACE,
    REASONING,
    RESULT_TYPES,
    SEARCH_CALL,
    content_of,
    output_of,
)
from toolspeak.wires.openai_responses.tools import (
    FlatNames,
    merge_tools,
    offered_at_once,
    read_choice,
    read_tool_list,
    read_tools,
)
from toolspeak.wires.shared.calls import arguments_json, custom_arguments, take_arguments
from toolspeak.wires.shared.history import link_history
from toolspeak.wires.shared.json_body import Fields, dump_body, parse_body, parse_request
from toolspeak.wires.shared.request_parts import own_fields

_STORED = ("previous_response_id", "conversation")


def decode_request(body: bytes, path: str) -> Request:
    """Read a request. Raises `BadField`, which names the field."""
    del path
    value, raw_tools = parse_request(body)
    fields = Fields(value)
    _refuse_stored(fields)
    declared, hosted = read_tools(raw_tools)
    items = _items(fields)
    tools = merge_tools(declared, tools_in_items(items))
    names = FlatNames(tools)
    return Request(
        model=fields.text("model") or "",
        messages=link_history((*_instructions(fields), *ItemReader(names).read(items))),
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
            raise BadField(key, "is not supported here: send the whole conversation in `input`")


def _items(fields: Fields) -> list[Fields]:
    value = fields.left.get("input")
    if isinstance(value, str):
        said: list[Json] = [{"role": "user", "content": value}] if value else []
        fields.left["input"] = said
    return fields.each("input")


def _instructions(fields: Fields) -> tuple[Message, ...]:
    """Read the instructions, as the only system message without fields of this wire."""
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


# ---------------------------------------------------------------- items

_ROLES: Final = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT}
_SEARCH_OUTPUT = RESULT_TYPES[SEARCH_CALL]
_ANSWERS: Final = ("_output", "_response")
_CALLABLE: Final = (None, "function", "custom")


def tools_in_items(items: Iterable[Fields]) -> list[Tool]:
    """Return the tools that items declare, such as `additional_tools` of Codex; the items are unchanged."""
    tools: list[Tool] = []
    for item in items:
        kind = item.left.get("type")
        if kind == MORE_TOOLS:
            tools += [_found(tool, MORE_TOOLS) for tool in _read(item)[0]]
        elif kind == _SEARCH_OUTPUT:
            tools += [replace(_found(tool, _SEARCH_OUTPUT), deferred=_by_client(item)) for tool in _read(item)[0]]
    return tools


def _read(item: Fields) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
    """Read the tools of an item from a copy, so that its body stays whole."""
    copied = parse_body(dump_body({"tools": item.left.get("tools")}))
    return read_tool_list(Fields(copied, key=item.path))


def _found(tool: Tool, kind: str) -> Tool:
    return replace(tool, vendor=Vendor(NAME, {**own_fields(tool.vendor, NAME), ITEM: kind}))


def _by_client(item: Fields) -> bool:
    """Whether the client runs the search of this item; a search on the vendor's servers has no id."""
    return item.left.get("execution") == "client" or (
        item.left.get("execution") is None and bool(item.left.get("call_id"))
    )


class ItemReader:
    """Reads the items of one request."""

    def __init__(self, names: FlatNames) -> None:
        """Take the names of all tools."""
        self._names = names
        self._messages: list[Message] = []
        self._said: list[Part] = []
        self._results: list[Part] = []
        self._before: list[Json] = []

    def read(self, items: Iterable[Fields]) -> tuple[Message, ...]:
        """Return the messages."""
        for item in items:
            self._item(item)
        self._flush()
        self._tell_tools()
        return tuple(self._messages)

    def _item(self, fields: Fields) -> None:
        kind = fields.text("type") or (MESSAGE if "role" in fields.left else "item_reference")
        if kind == MESSAGE:
            self._message(fields)
        elif kind in (FUNCTION_CALL, CUSTOM_CALL):
            self._say([self._call(fields, kind)])
        elif kind in (RESULT_TYPES[FUNCTION_CALL], RESULT_TYPES[CUSTOM_CALL]):
            self._answer(Result(fields.text("call_id") or "", output_of(fields), vendor=fields.vendor(NAME)))
        elif kind == REASONING:
            self._say([_reasoning(fields)])
        elif kind == MORE_TOOLS:
            self._flush()
            self._before.append({"type": kind, **fields.left})
        elif kind in (SEARCH_CALL, _SEARCH_OUTPUT) and _by_client(fields):
            self._search(fields, kind)
        else:
            self._opaque(fields, kind)

    # ---------------------------------------------------------------- turns

    def _say(self, parts: list[Part]) -> None:
        if self._results:
            self._flush()
        self._said += parts

    def _answer(self, result: Result) -> None:
        if self._said:
            self._flush()
        self._tell_tools()
        self._results.append(result)

    def _flush(self) -> None:
        """End the assistant's turn, or the results of one."""
        said, results, self._said, self._results = self._said, self._results, [], []
        if said:
            self._add(Role.ASSISTANT, said, {})
        if results:
            self._messages.append(Message(Role.TOOL, tuple(results)))

    def _add(self, role: Role, parts: Iterable[Part], left: JsonObject) -> None:
        if self._before:
            left = {**left, BEFORE: self._before}
            self._before = []
        self._messages.append(Message(role, tuple(parts), Vendor(NAME, left) if left else None))

    def _tell_tools(self) -> None:
        """Add a message for items that declare tools, if none follows that could carry them."""
        for item in self._before:
            self._messages.append(Message(Role.SYSTEM, (Opaque(Vendor(NAME, {ITEM: item}), MORE_TOOLS),)))
        self._before = []

    # ---------------------------------------------------------------- items

    def _message(self, fields: Fields) -> None:
        role = fields.text("role") or ""
        if role not in _ROLES:
            raise BadField(fields.where("role"), f"expected user, assistant, system or developer, got {role!r}")
        parts: list[Part] = [*content_of(fields, role)]
        if role == "assistant":
            self._say(self._headed(parts, fields.left))
            return
        self._flush()
        if role != "user":
            fields.left["role"] = role
        self._add(_ROLES[role], parts, fields.left)

    def _headed(self, parts: list[Part], head: JsonObject) -> list[Part]:
        """Mark the beginning of an item where it would be lost otherwise."""
        goes_on = bool(self._said) and is_content(self._said[-1])
        if not parts or not (head or goes_on):
            return parts
        first = parts[0]
        fields = own_fields(first.vendor, NAME)
        return [replace(first, vendor=Vendor(NAME, {**fields, HEAD: head})), *parts[1:]]

    def _call(self, fields: Fields, kind: str) -> Call:
        id, namespace, name = fields.text("call_id") or "", fields.text(NAMESPACE) or "", fields.need_text("name")
        text = custom_arguments(fields.text("input") or "") if kind == CUSTOM_CALL else take_arguments(fields)
        if namespace:
            fields.left |= {NAMESPACE: namespace, "name": name}
        elif self._names.is_flat(name):
            fields.left[NAMESPACE] = None  # the client's history has this call without a namespace
        if kind == CUSTOM_CALL:
            fields.left["type"] = kind
        return Call(id, self._names.of(namespace, name), text, vendor=fields.vendor(NAME))

    def _search(self, fields: Fields, kind: str) -> None:
        id = fields.text("call_id") or ""
        if kind == SEARCH_CALL:
            arguments = arguments_json(fields.take("arguments"))
            vendor = Vendor(NAME, {"type": kind, **fields.left})
            self._say([Call(id, self._names.search, arguments, vendor=vendor)])
            return
        found = tuple(self._reference(inner, space) for inner, space in _inside(fields.array("tools") or []))
        self._answer(Result(id, found, self._names.search, vendor=fields.vendor(NAME)))

    def _reference(self, body: Json, space: JsonObject) -> ResultPart:
        """Return a reference to a tool that a search found, with its body."""
        vendor = Vendor(NAME, {"tool": body, **({NAMESPACE: space} if space else {})})
        name = body.get("name") if isinstance(body, dict) and body.get("type") in _CALLABLE else None
        if not isinstance(name, str):
            return Opaque(vendor, "tool")
        return ToolReference(self._names.of(str(space.get("name", "")), name), vendor)

    def _opaque(self, fields: Fields, kind: str) -> None:
        part = Opaque(Vendor(NAME, {ITEM: {"type": kind, **fields.left}}), kind)
        if kind.endswith(_ANSWERS):
            self._flush()
            self._add(Role.USER, [part], {})
        else:
            self._say([part])


def is_content(part: Part) -> bool:
    """Whether a part belongs inside a message, and is not an item of its own."""
    return not isinstance(part, Call | Result | Reasoning) and ITEM not in own_fields(part.vendor, NAME)


def _inside(tools: Iterable[Json]) -> Iterator[tuple[Json, JsonObject]]:
    """Yield the bodies of tools one by one, each with the fields of its namespace."""
    for body in tools:
        inner = body.get("tools") if isinstance(body, dict) and body.get("type") == NAMESPACE else None
        if not isinstance(body, dict) or not isinstance(inner, list) or not inner:
            yield body, {}
            continue
        space = {key: value for key, value in body.items() if key not in ("type", "tools")}
        yield from ((tool, space) for tool in inner)


def _reasoning(fields: Fields) -> Reasoning:
    summary, content = fields.each("summary"), fields.each("content")
    bodies: dict[str, Json] = {"summary": [{**part.left} for part in summary]}
    if content:
        bodies["content"] = [{**part.left} for part in content]
    texts = [part.text("text") or "" for part in (*summary, *content)]
    signature = fields.text("encrypted_content") or ""
    if len(texts) > 1 or content:
        fields.left |= bodies
    return Reasoning("\n\n".join(texts), signature, fields.vendor(NAME))

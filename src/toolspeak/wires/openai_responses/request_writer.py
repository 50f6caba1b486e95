"""Writes a request for an upstream that speaks Responses."""

from collections.abc import Iterable, Iterator
from typing import Final

from toolspeak.ir.json import Json, JsonObject, as_list, object_at
from toolspeak.ir.message import Call, Message, Opaque, Part, Reasoning, Result, Role, Text
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ToolKind
from toolspeak.text.strict import parse
from toolspeak.wires.openai_responses import NAME
from toolspeak.wires.openai_responses.items import (
    BEFORE,
    CALL_TYPES,
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
    output_body,
    said_body,
    told_body,
)
from toolspeak.wires.openai_responses.tools import UpstreamNames, add_tool, known_as, write_choice, write_tools
from toolspeak.wires.shared.calls import custom_input, object_text, with_ids
from toolspeak.wires.shared.history import pair_history
from toolspeak.wires.shared.interface import EncodedRequest
from toolspeak.wires.shared.json_body import dump_body
from toolspeak.wires.shared.request_parts import constraint_as_schema, foreign_fields, is_own, own_fields
from toolspeak.wires.shared.tools import ToolIndex

PATH: Final = "responses"
_STATELESS: Final[JsonObject] = {"store": False, "include": ["reasoning.encrypted_content"]}
"""toolspeak sends the whole history: nothing is stored, and encrypted reasoning is returned for the next request."""


def encode_request(request: Request, quirks: Quirks) -> EncodedRequest:
    """Write a request, and name what this wire cannot express."""
    request, unwritten = constraint_as_schema(request)
    names = UpstreamNames(request)
    same_wire = NAME in request.extra
    extra = dict(request.extra[NAME]) if same_wire else dict(_STATELESS)
    history = with_ids(pair_history(request.messages), quirks.ids)
    said = instructions_of(history)
    unsaid, more = ({}, _more_sampling(request)) if same_wire else (_more_sampling(request), {})
    body: JsonObject = {
        "model": request.model,
        **({"instructions": said} if said else {}),
        "input": [*ItemWriter(request, names).write(history[1:] if said else history)] or "",
        **_tools(request, names),
        **_sampling(request),
        **more,
        **reasoning_body(request),
        **text_body(request),
        **({"stream": True} if request.stream else {}),
        **{key: value for key, value in extra.items() if key not in ("tools", "tool_choice", "text", "reasoning")},
    }
    return EncodedRequest(PATH, dump_body(body), (*foreign_fields(request, NAME), *unsaid, *unwritten))


def instructions_of(messages: tuple[Message, ...]) -> str:
    """Return the text of the first system message, if it is plain and was not an item of this wire."""
    match messages:
        case (Message(role=Role.SYSTEM, parts=(Text(text),), vendor=vendor), *_) if not own_fields(vendor, NAME):
            return text
        case _:
            return ""


def reasoning_body(request: Request) -> JsonObject:
    """Write the effort and the other fields of `reasoning`."""
    body = {**object_at(request.extra.get(NAME, {}), "reasoning")}
    if request.sampling.effort is not None:
        body = {"effort": request.sampling.effort, **body}
    return {"reasoning": body} if body else {}


def text_body(request: Request) -> JsonObject:
    """Write the format of the text."""
    body = {**object_at(request.extra.get(NAME, {}), "text")}
    asked = body.pop("format", None)
    if request.output_schema is not None:
        body["format"] = _format(
            request.output_schema, {"name": "calls", "strict": True} if request.constraint else asked
        )
    return {"text": body} if body else {}


def _format(schema: JsonObject, asked: Json) -> JsonObject:
    if not schema:
        return {"type": "json_object"}
    said = asked if isinstance(asked, dict) else {"name": "answer"}
    return {"type": "json_schema", **said, "schema": schema}


def _tools(request: Request, names: UpstreamNames) -> JsonObject:
    tools = write_tools(request, names)
    if not tools and not request.tools:
        return {}
    return {**({"tools": tools} if tools else {}), **write_choice(request, names)}


def _sampling(request: Request) -> JsonObject:
    sampling = request.sampling
    body: JsonObject = {
        "max_output_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
    }
    return _said(body)


def _more_sampling(request: Request) -> JsonObject:
    """Write settings that OpenAI rejects, but some servers of this wire accept."""
    sampling = request.sampling
    body: JsonObject = {
        "top_k": sampling.top_k,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "seed": sampling.seed,
        "stop": list(sampling.stop) or None,
    }
    return _said(body)


def _said(body: JsonObject) -> JsonObject:
    return {key: value for key, value in body.items() if value is not None}


# ---------------------------------------------------------------- items

_COMPLETED: Final = {"status": "completed"}


class ItemWriter:
    """Writes the items of a history in which each call has its result."""

    def __init__(self, request: Request, names: UpstreamNames) -> None:
        """Take the request, and the names of its tools."""
        self._same_wire = NAME in request.extra
        self._names = names
        self._tools = ToolIndex(request.tools)
        self._known = {known_as(tool) for tool in request.tools}
        self._types: dict[str, str] = {}
        """Item types of calls, by call id: a result has the type that matches its call."""

    def write(self, messages: Iterable[Message]) -> Iterator[Json]:
        """Write a history in which each call has its result."""
        for message in messages:
            fields = dict(own_fields(message.vendor, NAME))
            yield from map(self._item, as_list(fields.pop(BEFORE, None)))
            if message.role is Role.ASSISTANT:
                yield from self._assistant(message.parts)
            elif message.role is Role.TOOL:
                yield from (self._result(part) for part in message.parts if isinstance(part, Result))
            else:
                yield from self._told(message, fields)

    def _told(self, message: Message, fields: JsonObject) -> Iterator[Json]:
        """Write a user or system message."""
        parts: list[Part] = []
        for part in message.parts:
            if (item := _item_of(part)) is None:
                parts.append(part)
            else:
                yield self._item(item)
        if parts or not message.parts:
            role = "user" if message.role is Role.USER else "developer"
            yield {"type": MESSAGE, "role": role, "content": told_body(parts), **fields}

    def _assistant(self, parts: Iterable[Part]) -> Iterator[Json]:
        said: list[Part] = []
        for part in parts:
            written = self._own_item(part)
            if said and (written is not None or HEAD in _fields_of(part)):
                yield _said_item(said)
                said = []
            if written is not None:
                yield written
            elif _worth_saying(part):
                said.append(part)
        if said:
            yield _said_item(said)

    def _own_item(self, part: Part) -> Json:
        """Write a part that is an item of its own."""
        if isinstance(part, Call):
            return self._call(part)
        if isinstance(part, Reasoning):
            return _reasoning(part) if self._same_wire or part.signature else None
        item = _item_of(part)
        return None if item is None else self._item(item)

    def _call(self, call: Call) -> JsonObject:
        fields = dict(own_fields(call.vendor, NAME))
        kind = fields.pop("type", None) or self._type_of(call)
        self._types[call.id] = str(kind)
        if kind == SEARCH_CALL:
            arguments = parse(object_text(call.arguments))
            return {
                "type": kind,
                "call_id": call.id,
                "execution": "client",
                "arguments": arguments,
                **_COMPLETED,
                **fields,
            }
        body: JsonObject = {"type": kind, "call_id": call.id, **self._named(call, fields)}
        if kind == CUSTOM_CALL:
            return {**body, "input": custom_input(call.arguments), **fields}
        return {**body, "arguments": call.arguments, **fields}

    def _type_of(self, call: Call) -> str:
        return CALL_TYPES[self._tools.kind(call.name) if self._same_wire else ToolKind.FUNCTION]

    def _named(self, call: Call, fields: JsonObject) -> JsonObject:
        """Write the name as the client sent it; a call without fields of this wire gets the name of its tool."""
        if NAMESPACE not in fields:
            namespace, name = self._names.out(call.name)
            return {"name": name, **({NAMESPACE: namespace} if namespace else {})}
        inside = fields.pop(NAMESPACE)
        return {"name": fields.pop("name", call.name), **({NAMESPACE: inside} if inside else {})}

    def _result(self, result: Result) -> JsonObject:
        fields = own_fields(result.vendor, NAME)
        called = self._types.get(result.call_id, FUNCTION_CALL)
        body: JsonObject = {"type": RESULT_TYPES[called], "call_id": result.call_id}
        if called == SEARCH_CALL:
            return {**body, "execution": "client", **_COMPLETED, "tools": _found(result), **fields}
        return {**body, "output": output_body(result.content), **fields}

    def _item(self, item: Json) -> Json:
        """Write an item as it came; of an item that declares tools, only those that the request still has."""
        if not isinstance(item, dict) or item.get("type") != MORE_TOOLS:
            return item
        return {**item, "tools": [*self._still_there(as_list(item.get("tools")))]}

    def _still_there(self, tools: list[Json], namespace: str = "") -> Iterator[Json]:
        for tool in tools:
            kind = tool.get("type") or "function" if isinstance(tool, dict) else ""
            if not isinstance(tool, dict) or kind not in ("function", "custom", NAMESPACE if not namespace else ""):
                yield tool
            elif kind != NAMESPACE:
                yield from [tool] if (namespace, tool.get("name")) in self._known else []
            elif inside := [*self._still_there(as_list(tool.get("tools")), str(tool.get("name")))]:
                yield {**tool, "tools": inside}


def _item_of(part: Part) -> Json:
    """Return the body of an opaque part that is an item of its own."""
    return own_fields(part.vendor, NAME).get(ITEM) if isinstance(part, Opaque) else None


def _fields_of(part: Part) -> JsonObject:
    return own_fields(part.vendor, NAME)


def _worth_saying(part: Part) -> bool:
    """Whether a part has content that this wire can express."""
    if isinstance(part, Text):
        return bool(part.text) or bool(_fields_of(part))
    return is_own(part, NAME) if isinstance(part, Opaque) else not isinstance(part, Reasoning | Result)


def _said_item(parts: list[Part]) -> JsonObject:
    fields = object_at(_fields_of(parts[0]), HEAD)
    return {"type": MESSAGE, "role": "assistant", "content": said_body(parts, plain=not fields), **fields}


def _reasoning(part: Reasoning) -> JsonObject:
    summary: list[Json] = [{"type": "summary_text", "text": part.text}] if part.text else []
    signed: JsonObject = {"encrypted_content": part.signature} if part.signature else {}
    return {"type": REASONING, "summary": summary, **signed, **_fields_of(part)}


def _found(result: Result) -> list[Json]:
    """Write the tools that a search found."""
    tools: list[Json] = []
    for piece in result.content:
        fields = own_fields(piece.vendor, NAME)
        space = fields.get(NAMESPACE)
        if "tool" in fields:
            add_tool(tools, space if isinstance(space, dict) else None, fields["tool"])
    return tools

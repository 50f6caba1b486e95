"""Messages become input items."""

from collections.abc import Iterable, Iterator
from typing import Final

from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call, Message, Opaque, Part, Reasoning, Result, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ToolKind
from toolspeak.text.strict import parse
from toolspeak.wires._arguments import free_text, object_text
from toolspeak.wires._loose import inner, listed
from toolspeak.wires._tools import Toolbox
from toolspeak.wires._vendor import is_own, own
from toolspeak.wires.openai_responses.content import output_body, said_body, told_body
from toolspeak.wires.openai_responses.names import UpstreamNames
from toolspeak.wires.openai_responses.tools import add_tool, known_as
from toolspeak.wires.openai_responses.words import (
    BEFORE,
    CALL_TYPES,
    CUSTOM_CALL,
    FUNCTION_CALL,
    HEAD,
    ITEM,
    MESSAGE,
    MORE_TOOLS,
    NAME,
    NAMESPACE,
    REASONING,
    RESULT_TYPES,
    SEARCH_CALL,
)

_COMPLETED: Final = {"status": "completed"}


class ItemWriter:
    """Writes the items of one request, in which each call has its result."""

    def __init__(self, request: Request, names: UpstreamNames) -> None:
        """Take the request, and the names of its tools."""
        self._same_wire = NAME in request.extra
        self._names = names
        self._tools = Toolbox(request.tools)
        self._known = {known_as(tool) for tool in request.tools}
        self._types: dict[str, str] = {}
        """The types of the calls, by their ids: a result is of the same kind."""

    def write(self, messages: Iterable[Message]) -> Iterator[Json]:
        """Write a history that is paired."""
        for message in messages:
            fields = dict(own(message.vendor, NAME))
            yield from map(self._item, listed(fields.pop(BEFORE, None)))
            if message.role is Role.ASSISTANT:
                yield from self._assistant(message.parts)
            elif message.role is Role.TOOL:
                yield from (self._result(part) for part in message.parts if isinstance(part, Result))
            else:
                yield from self._told(message, fields)

    def _told(self, message: Message, fields: JsonObject) -> Iterator[Json]:
        """Write what a user or the system said."""
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
                yield _said(said)
                said = []
            if written is not None:
                yield written
            elif _worth_saying(part):
                said.append(part)
        if said:
            yield _said(said)

    def _own_item(self, part: Part) -> Json:
        """Write a part that is an item of its own."""
        if isinstance(part, Call):
            return self._call(part)
        if isinstance(part, Reasoning):
            return _reasoning(part) if self._same_wire or part.signature else None
        item = _item_of(part)
        return None if item is None else self._item(item)

    def _call(self, call: Call) -> JsonObject:
        fields = dict(own(call.vendor, NAME))
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
            return {**body, "input": free_text(call.arguments), **fields}
        return {**body, "arguments": call.arguments, **fields}

    def _type_of(self, call: Call) -> str:
        return CALL_TYPES[self._tools.kind(call.name) if self._same_wire else ToolKind.FUNCTION]

    def _named(self, call: Call, fields: JsonObject) -> JsonObject:
        """Write the name as the client had it; a call that has no fields of this wire is named as its tool."""
        if NAMESPACE not in fields:
            namespace, name = self._names.out(call.name)
            return {"name": name, **({NAMESPACE: namespace} if namespace else {})}
        inside = fields.pop(NAMESPACE)
        return {"name": fields.pop("name", call.name), **({NAMESPACE: inside} if inside else {})}

    def _result(self, result: Result) -> JsonObject:
        fields = own(result.vendor, NAME)
        called = self._types.get(result.call_id, FUNCTION_CALL)
        body: JsonObject = {"type": RESULT_TYPES[called], "call_id": result.call_id}
        if called == SEARCH_CALL:
            return {**body, "execution": "client", **_COMPLETED, "tools": _found(result), **fields}
        return {**body, "output": output_body(result.content), **fields}

    def _item(self, item: Json) -> Json:
        """Write an item as it came; of those that tell of tools, only the tools that are still there."""
        if not isinstance(item, dict) or item.get("type") != MORE_TOOLS:
            return item
        return {**item, "tools": [*self._still_there(listed(item.get("tools")))]}

    def _still_there(self, tools: list[Json], namespace: str = "") -> Iterator[Json]:
        for tool in tools:
            kind = tool.get("type") or "function" if isinstance(tool, dict) else ""
            if not isinstance(tool, dict) or kind not in ("function", "custom", NAMESPACE if not namespace else ""):
                yield tool
            elif kind != NAMESPACE:
                yield from [tool] if (namespace, tool.get("name")) in self._known else []
            elif inside := [*self._still_there(listed(tool.get("tools")), str(tool.get("name")))]:
                yield {**tool, "tools": inside}


def _item_of(part: Part) -> Json:
    """Return the body of an opaque part that is an item of its own."""
    return own(part.vendor, NAME).get(ITEM) if isinstance(part, Opaque) else None


def _fields_of(part: Part) -> JsonObject:
    return own(part.vendor, NAME)


def _worth_saying(part: Part) -> bool:
    """Return whether a part says something that this wire can say."""
    if isinstance(part, Text):
        return bool(part.text) or bool(_fields_of(part))
    return is_own(part, NAME) if isinstance(part, Opaque) else not isinstance(part, Reasoning | Result)


def _said(parts: list[Part]) -> JsonObject:
    fields = inner(_fields_of(parts[0]), HEAD)
    return {"type": MESSAGE, "role": "assistant", "content": said_body(parts, plain=not fields), **fields}


def _reasoning(part: Reasoning) -> JsonObject:
    summary: list[Json] = [{"type": "summary_text", "text": part.text}] if part.text else []
    signed: JsonObject = {"encrypted_content": part.signature} if part.signature else {}
    return {"type": REASONING, "summary": summary, **signed, **_fields_of(part)}


def _found(result: Result) -> list[Json]:
    """Write the tools that a search has found."""
    tools: list[Json] = []
    for piece in result.content:
        fields = own(piece.vendor, NAME)
        space = fields.get(NAMESPACE)
        if "tool" in fields:
            add_tool(tools, space if isinstance(space, dict) else None, fields["tool"])
    return tools

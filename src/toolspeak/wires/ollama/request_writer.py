"""Writes a request for an Ollama upstream."""

from collections.abc import Iterable, Iterator
from typing import Final, cast

import msgspec

from toolspeak.ir.json import Json, JsonObject, as_list, as_object, object_at
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
    part_text,
)
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode, Tool
from toolspeak.wires.ollama import NAME
from toolspeak.wires.ollama.request_reader import object_bytes
from toolspeak.wires.shared.calls import with_ids
from toolspeak.wires.shared.history import instructions_first, pair_history
from toolspeak.wires.shared.interface import EncodedRequest
from toolspeak.wires.shared.json_body import dump_body
from toolspeak.wires.shared.request_parts import (
    constraint_as_schema,
    foreign_fields,
    is_own,
    own_fields,
    write_instructions_once,
)
from toolspeak.wires.shared.tools import ToolNames, write_tools_once

LONGEST_NAME: Final = 128
"""Ollama documents no limit; no tool of a real client was longer."""

PATH: Final = "api/chat"
_EFFORTS: Final = ("low", "medium", "high")


def encode_request(request: Request, quirks: Quirks) -> EncodedRequest:
    """Write a request, and name what this wire cannot express."""
    request, unsaid = constraint_as_schema(request)
    names = names_of(request)
    extra = dict(request.extra.get(NAME, {}))
    # Within one protocol the order of the client is kept.
    told = request.messages if NAME in request.extra else instructions_first(request.messages)
    messages = with_ids(pair_history(told), quirks.ids)
    body: JsonObject = {
        "model": request.model,
        "messages": write_instructions_once([*_Messages(names, quirks).write(messages)]),
        **_tools(request, names, extra.pop("tools", None)),
        "stream": request.stream,
        **_options(request, extra.pop("options", None)),
        **_format(request),
        **_think(request, extra.pop("think", None)),
        **({"logprobs": True, "top_logprobs": request.top_tokens} if request.top_tokens else {}),
        **extra,
    }
    return EncodedRequest(PATH, dump_body(body), (*_dropped(request), *unsaid))


def names_of(request: Request) -> ToolNames:
    """Return the map between the tools' names and the names that this wire allows."""
    return ToolNames.of(request.tools, LONGEST_NAME)


def _options(request: Request, others: Json) -> JsonObject:
    sampling = request.sampling
    options: JsonObject = {
        "num_predict": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "seed": sampling.seed,
        "stop": list(sampling.stop) or None,
    }
    said = {key: value for key, value in options.items() if value is not None}
    options = {**as_object(others), **said}
    return {"options": options} if options else {}


def _format(request: Request) -> JsonObject:
    return {} if request.output_schema is None else {"format": request.output_schema or "json"}


def _think(request: Request, own_word: Json) -> JsonObject:
    effort = request.sampling.effort
    if effort is None:
        return {} if own_word is None else {"think": own_word}
    return {"think": False if effort == "none" else effort} if _has_word(request) else {}


def _has_word(request: Request) -> bool:
    """Whether this wire can express the effort; on the same wire it is the client's own value."""
    effort = request.sampling.effort
    return effort in (None, "none", *_EFFORTS) or NAME in request.extra


def _dropped(request: Request) -> tuple[str, ...]:
    choice = request.choice
    dropped = [*foreign_fields(request, NAME)]
    if choice.mode in (ChoiceMode.REQUIRED, ChoiceMode.NAMED):
        dropped.append(f"tool_choice: {choice.mode}")
    if not choice.parallel:
        dropped.append("parallel_tool_calls: false")
    if not _has_word(request):
        dropped.append(f"effort: {request.sampling.effort}")
    if any(isinstance(part, Image) and not part.data for part in _parts(request.messages)):
        dropped.append("image: a URL")
    return tuple(dropped)


def _parts(messages: Iterable[Message]) -> Iterator[Part | ResultPart]:
    for message in messages:
        for part in message.parts:
            yield from part.content if isinstance(part, Result) else (part,)


# ---------------------------------------------------------------- tools


def _tools(request: Request, names: ToolNames, hosted: Json) -> JsonObject:
    choice = request.choice
    if choice.mode is ChoiceMode.NONE:
        return {}
    only = (choice.name,) if choice.mode is ChoiceMode.NAMED else choice.allowed
    offered = request.offered()
    if offered and offered is request.tools and not only and not as_list(hosted):
        return {"tools": write_tools_once(offered, NAME, lambda: [_tool(tool, names) for tool in offered])}
    tools: list[Json] = [_tool(tool, names) for tool in offered if not only or tool.name in only]
    tools += as_list(hosted)
    return {"tools": tools} if tools else {}


def _tool(tool: Tool, names: ToolNames) -> JsonObject:
    said = own_fields(tool.vendor, NAME)
    function: JsonObject = {"name": names.out(tool.name)}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    return {"type": "function", **said, "function": {**function, **object_at(said, "function")}}


# ---------------------------------------------------------------- messages


class _Messages:
    """Writes the messages of one request."""

    def __init__(self, names: ToolNames, quirks: Quirks) -> None:
        self._names = names
        self._quirks = quirks

    def write(self, messages: Iterable[Message]) -> Iterator[Json]:
        """Write a history in which each call has its result."""
        for message in messages:
            if message.role is Role.TOOL:
                yield from (self._result(part) for part in message.parts if isinstance(part, Result))
            elif message.role is Role.ASSISTANT:
                yield self._assistant(message)
            else:
                said = [part for part in message.parts if isinstance(part, Text | Image | Opaque)]
                yield {"role": message.role.value, **_content(said, "\n"), **own_fields(message.vendor, NAME)}

    def _assistant(self, message: Message) -> JsonObject:
        said = [part for part in message.parts if isinstance(part, Text | Image | Opaque)]
        told = [part for part in said if not isinstance(part, Opaque) or is_own(part, NAME)]
        body: JsonObject = {"role": "assistant", **_content(told, ""), **self._thinking(message.parts)}
        calls: list[Json] = [self._call(part) for part in message.parts if isinstance(part, Call)]
        if calls:
            body["tool_calls"] = calls
        return body | own_fields(message.vendor, NAME)

    def _thinking(self, parts: Iterable[Part]) -> JsonObject:
        text = "".join(part.text for part in parts if isinstance(part, Reasoning))
        return {"thinking": text} if text and self._quirks.reasoning_history else {}

    def _call(self, call: Call) -> JsonObject:
        said = own_fields(call.vendor, NAME)
        arguments = cast("Json", msgspec.Raw(object_bytes(call.arguments)))
        function: JsonObject = {"name": self._names.out(call.name), "arguments": arguments}
        return {"id": call.id, **said, "function": {**function, **object_at(said, "function")}}

    def _result(self, result: Result) -> JsonObject:
        body: JsonObject = {"role": "tool", **_content(result.content, "\n")}
        if result.name:
            body["tool_name"] = self._names.out(result.name)
        return {**body, "tool_call_id": result.call_id, **own_fields(result.vendor, NAME)}


def _content(parts: Iterable[ResultPart], glue: str) -> JsonObject:
    """Write texts as one string, with images beside it; an image that is only a URL becomes a text that says so."""
    images: list[Json] = []
    said: list[ResultPart] = []
    for part in parts:
        if isinstance(part, Image) and part.data:
            images.append(part.data)
        else:
            said.append(part)
    body: JsonObject = {"content": _said(said, glue)}
    return {**body, "images": images} if images else body


def _said(parts: list[ResultPart], glue: str) -> Json:
    """Write one string, unless a part has fields of this wire."""
    if any(own_fields(part.vendor, NAME) for part in parts):
        return [_part(part) for part in parts]
    return glue.join(filter(None, map(part_text, parts)))


def _part(part: ResultPart) -> JsonObject:
    if isinstance(part, Opaque) and is_own(part, NAME):
        return part.vendor.fields
    return {"type": "text", "text": part_text(part), **own_fields(part.vendor, NAME)}

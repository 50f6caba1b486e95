r"""Writes a request for an Anthropic upstream.

    system: A                             system:    A
    assistant: call 1, call 2             user:      "."                     (a conversation must begin with the user)
    tool: result of 1, result of 2   ->   assistant: tool_use 1, tool_use 2
    user: B                               user:      tool_result 1, tool_result 2, B, "<system>\nC\n</system>"
    system: C

Anthropic's servers are strict: `max_tokens` is required, blank texts and empty messages are rejected, and results come
first in the message after their calls. So adjacent messages of one role become one, blank ones are left out, and a
conversation of which nothing is left has one user message, ".". Later system messages keep their place if they came on
this wire; otherwise the user says them. `EncodedRequest.dropped` names what the wire cannot express.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, cast

import msgspec

from toolspeak.ir.json import Json, JsonObject, as_list, as_object
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
    part_text,
)
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode, Tool
from toolspeak.wires.anthropic import NAME
from toolspeak.wires.anthropic.builtins import TOOLSET
from toolspeak.wires.anthropic.request_reader import REDACTED, redacted_data
from toolspeak.wires.shared.calls import object_text, with_ids
from toolspeak.wires.shared.history import pair_history
from toolspeak.wires.shared.interface import EncodedRequest
from toolspeak.wires.shared.json_body import dump_body
from toolspeak.wires.shared.request_parts import constraint_as_schema, foreign_fields, is_own, own_fields
from toolspeak.wires.shared.tools import ToolNames, write_tools_once

PATH: Final = "messages"
LONGEST_NAME: Final = 128
MAX_TOKENS: Final = 8192
"""The default, because the field is required; every model of this vendor accepts it."""
WARMEST: Final = 1.0

_CHOICES: Final = {
    ChoiceMode.AUTO: "auto",
    ChoiceMode.REQUIRED: "any",
    ChoiceMode.NAMED: "tool",
    ChoiceMode.NONE: "none",
}
_EFFORTS: Final = {"none": None, "minimal": "low"}
"""Efforts of other vendors; None has no equivalent."""


def encode_request(request: Request, quirks: Quirks) -> EncodedRequest:
    """Write a request, and name what this wire cannot express."""
    request, unsaid = constraint_as_schema(request)
    names, extra = names_of(request), dict(request.extra.get(NAME, {}))
    writer = MessageWriter(request, names)
    system, messages = writer.write(with_ids(pair_history(request.messages), quirks.ids))
    body: JsonObject = {
        "model": request.model,
        **_sampling(request),
        **system,
        "messages": messages,
        **_tools(request, names, extra),
        **_output(request, extra),
        **({"stream": True} if request.stream else {}),
        **extra,
    }
    dropped = {*foreign_fields(request, NAME), *_dropped(request), *writer.dropped, *unsaid}
    return EncodedRequest(PATH, dump_body(body), tuple(sorted(dropped)))


def names_of(request: Request) -> ToolNames:
    """Return the map between the tools' names and the names that this wire allows."""
    return ToolNames.of(request.tools, LONGEST_NAME)


def _is_ours(request: Request) -> bool:
    return NAME in request.extra


def _sampling(request: Request) -> JsonObject:
    sampling, temperature = request.sampling, request.sampling.temperature
    if temperature is not None and not _is_ours(request):
        temperature = min(temperature, WARMEST)
    body: JsonObject = {
        "max_tokens": MAX_TOKENS if sampling.max_tokens is None else sampling.max_tokens,
        "temperature": temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "stop_sequences": list(_stops(request)) or None,
    }
    return {key: value for key, value in body.items() if value is not None}


def _stops(request: Request) -> tuple[str, ...]:
    """Return the stop sequences without blank ones, which the vendor rejects."""
    return tuple(stop for stop in request.sampling.stop if _is_ours(request) or stop.strip())


def _dropped(request: Request) -> Iterator[str]:
    """Name the settings that this wire cannot express, or only in part."""
    sampling = request.sampling
    for name in ("frequency_penalty", "presence_penalty", "seed"):
        if getattr(sampling, name) is not None:
            yield name
    if _is_ours(request):
        return
    if sampling.temperature is not None and sampling.temperature > WARMEST:
        yield f"temperature above {WARMEST}"
    if _stops(request) != sampling.stop:
        yield "blank stop sequences"
    if sampling.effort == "none":
        yield "effort none"
    if request.output_schema == {}:
        yield "output of any JSON object"


def _output(request: Request, extra: JsonObject) -> JsonObject:
    """Write the effort and the schema of the answer, each in the field in which the client sent it."""
    config, older = extra.pop("output_config", None), extra.pop("output_format", None)
    body = {**as_object(config)}
    effort = request.sampling.effort
    if not _is_ours(request) and effort is not None:
        effort = _EFFORTS.get(effort, effort)
    if effort is not None:
        body["effort"] = effort
    if isinstance(older, dict):
        return {"output_format": _format(older, request), **({"output_config": body} if body else {})}
    if request.output_schema or (request.output_schema is not None and _is_ours(request)):
        body["format"] = _format(body.get("format"), request)
    return {"output_config": body} if body else {}


def _format(said: Json, request: Request) -> JsonObject:
    if request.output_schema is None:
        return as_object(said)
    return {"type": "json_schema", "schema": request.output_schema, **as_object(said)}


# ---------------------------------------------------------------- tools


def _tools(request: Request, names: ToolNames, extra: JsonObject) -> JsonObject:
    """Write the tools; for clients of this wire also deferred ones, which the vendor hides from the model."""
    hosted, said = extra.pop("tools", None), extra.pop("tool_choice", None)
    allowed = request.choice.allowed
    offered = request.tools if _is_ours(request) else request.offered()
    sent = [
        tool
        for tool in offered
        if (not allowed or tool.name in allowed) and TOOLSET not in own_fields(tool.vendor, NAME)
    ]
    if not sent and not as_list(hosted):
        return {}

    def write() -> list[Json]:
        return [*(_tool(tool, request, names) for tool in sent), *as_list(hosted)]

    is_whole = offered is request.tools and len(sent) == len(offered) and not as_list(hosted)
    tools: Json = write_tools_once(offered, NAME, write) if is_whole else write()
    return {"tools": tools, **_choice(request, names, said)}


def _tool(tool: Tool, request: Request, names: ToolNames) -> JsonObject:
    said = own_fields(tool.vendor, NAME)
    if "name" in said:  # a built-in tool of the vendor: its whole body is kept
        return said
    body: JsonObject = {"name": names.out(tool.name)}
    if tool.description:
        body["description"] = tool.description
    body["input_schema"] = {"type": "object", **tool.parameters}
    if tool.strict:
        body["strict"] = True
    if tool.deferred and _is_ours(request):
        body["defer_loading"] = True
    return body | said


def _choice(request: Request, names: ToolNames, said: Json) -> JsonObject:
    choice = request.choice
    body = {**as_object(said)}
    if choice.mode is ChoiceMode.AUTO and choice.parallel and not body:
        return {}
    body["type"] = _CHOICES[choice.mode]
    if choice.mode is ChoiceMode.NAMED:
        body["name"] = names.out(choice.name)
    if not choice.parallel and choice.mode is not ChoiceMode.NONE:
        body["disable_parallel_tool_use"] = True
    return {"tool_choice": body}


# ---------------------------------------------------------------- messages

NOTHING: Final = "."
"""The text of a user message that the wire requires and the conversation lacks."""
SILENT_ERROR: Final = "The tool failed and said nothing."
UNSIGNED: Final = "reasoning without a signature"


@dataclass(slots=True)
class _Turn:
    """A message under construction."""

    role: str
    blocks: list[JsonObject]
    fields: JsonObject

    def body(self) -> JsonObject:
        """Write the message, results first: the vendor rejects any other order."""
        blocks = sorted(self.blocks, key=lambda block: block.get("type") != "tool_result")
        return {"role": self.role, "content": _short(blocks), **self.fields}


class MessageWriter:
    """Writes the messages of one request."""

    def __init__(self, request: Request, names: ToolNames) -> None:
        """Take the request and the names of its tools."""
        self._names = names
        self._ours = NAME in request.extra
        self._deferred = (
            frozenset(tool.name for tool in request.tools if tool.deferred) if self._ours else frozenset[str]()
        )
        self.dropped: Final[set[str]] = set()
        """Names of parts that this wire cannot express."""

    def write(self, messages: tuple[Message, ...]) -> tuple[JsonObject, list[Json]]:
        """Write a history in which each call has its result: the request's `system`, and its messages."""
        leading = tuple(takewhile(_is_system_field, messages))
        system = [block for message in leading for block in self._blocks(message.parts)]
        turns = self._turns(messages[len(leading) :])
        if not turns or (turns[0].role == "assistant" and not self._ours):
            turns.insert(0, _Turn("user", [_text(NOTHING)], {}))
        return {"system": _short(system)} if system else {}, [turn.body() for turn in turns]

    def alone(self, message: Message) -> list[JsonObject]:
        """Write one message on its own, without merging; an empty list if nothing of it can be written."""
        turn = self._turn(message)
        return [turn.body()] if turn.blocks else []

    def _turns(self, messages: Iterable[Message]) -> list[_Turn]:
        turns: list[_Turn] = []
        for message in messages:
            turn = self._turn(message)
            if not turn.blocks:
                continue
            if turns and turns[-1].role == turn.role and turn.role != "system":
                turns[-1].blocks += turn.blocks
                turns[-1].fields |= turn.fields
            else:
                turns.append(turn)
        return turns

    def _turn(self, message: Message) -> _Turn:
        blocks, fields = list(self._blocks(message.parts)), dict(own_fields(message.vendor, NAME))
        if message.role is Role.ASSISTANT:
            return _Turn("assistant", blocks, fields)
        if message.role is Role.SYSTEM and self._ours:
            return _Turn("system", blocks, fields)
        if message.role is Role.SYSTEM:
            blocks = [_text(f"<system>\n{block.get('text', '')}\n</system>") for block in blocks]
        return _Turn("user", blocks, fields)

    def _blocks(self, parts: Iterable[Part]) -> Iterator[JsonObject]:
        for part in parts:
            block = self._block(part)
            if block is not None:
                yield block

    def _block(self, part: Part) -> JsonObject | None:
        match part:
            case Call():
                return self._call(part)
            case Result():
                return self._result(part)
            case Reasoning():
                return self._reasoning(part)
            case Text() | Image() | Opaque():
                return _content(part)

    def _reasoning(self, part: Reasoning) -> JsonObject | None:
        """Write reasoning; the vendor rejects reasoning that it has not signed."""
        if data := redacted_data(part.signature):
            return {"type": REDACTED, "data": data, **own_fields(part.vendor, NAME)}
        if part.signature:
            return {
                "type": "thinking",
                "thinking": part.text,
                "signature": part.signature,
                **own_fields(part.vendor, NAME),
            }
        if part.text:
            self.dropped.add(UNSIGNED)
        return None

    def _call(self, call: Call) -> JsonObject:
        said = own_fields(call.vendor, NAME)
        family = said.get(TOOLSET)
        name = self._names.out(call.name) if not family else call.name.removeprefix(f"{family}_")
        return {"type": "tool_use", "id": call.id, "name": name, "input": _object(call.arguments), **said}

    def _result(self, result: Result) -> JsonObject:
        body: JsonObject = {"type": "tool_result", "tool_use_id": result.call_id, "content": self._said(result)}
        if result.is_error:
            body |= {"is_error": True, "content": body["content"] or SILENT_ERROR}
        return body | own_fields(result.vendor, NAME)

    def _said(self, result: Result) -> Json:
        match result.content:
            case (Text(text, None),):
                return text
            case _:
                return _short([block for block in map(self._piece, result.content) if block is not None])

    def _piece(self, piece: ResultPart) -> JsonObject | None:
        if not isinstance(piece, ToolReference):
            return _content(piece)
        if piece.name in self._deferred:
            return {
                "type": "tool_reference",
                "tool_name": self._names.out(piece.name),
                **own_fields(piece.vendor, NAME),
            }
        return _text(part_text(piece))  # the vendor rejects references to tools that are not deferred


def _is_system_field(message: Message) -> bool:
    """Whether a message belongs to the request's `system`, if only such messages come before it."""
    return message.role is Role.SYSTEM and "role" not in own_fields(message.vendor, NAME)


def _content(part: Text | Image | Opaque) -> JsonObject | None:
    match part:
        case Text(text, vendor):
            return {**_text(text), **own_fields(vendor, NAME)} if text.strip() else None
        case Image():
            return _image(part)
        case Opaque(vendor):
            return vendor.fields if is_own(part, NAME) else _text(part_text(part))


def _image(image: Image) -> JsonObject:
    said = dict(own_fields(image.vendor, NAME))
    rest = said.pop("source", None)
    if image.data:
        source: JsonObject = {"type": "base64", "media_type": image.media_type or "image/png", "data": image.data}
    elif image.url.startswith(("http://", "https://")):
        source = {"type": "url", "url": image.url}
    else:
        return _text(part_text(image))
    return {"type": "image", "source": {**source, **as_object(rest)}, **said}


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _short(blocks: list[JsonObject]) -> Json:
    """Write content; a single plain text is written as a string."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} and blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return [*blocks] if blocks else ""


def _object(arguments: str) -> Json:
    """Return arguments as a JSON object to embed, byte for byte, without parsing them again."""
    return cast("Json", msgspec.Raw(object_text(arguments).encode()))

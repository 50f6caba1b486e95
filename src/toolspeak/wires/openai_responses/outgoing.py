"""Our request becomes the upstream's."""

from typing import Final

from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.wires._body import dump
from toolspeak.wires._constraint import with_schema
from toolspeak.wires._history import paired
from toolspeak.wires._ids import with_ids
from toolspeak.wires._loose import inner
from toolspeak.wires._vendor import foreign, own
from toolspeak.wires._wire import Outgoing
from toolspeak.wires.openai_responses.choice import write_choice
from toolspeak.wires.openai_responses.names import UpstreamNames
from toolspeak.wires.openai_responses.tools import write_tools
from toolspeak.wires.openai_responses.words import NAME
from toolspeak.wires.openai_responses.write_items import ItemWriter

PATH: Final = "responses"
_STATELESS: Final[JsonObject] = {"store": False, "include": ["reasoning.encrypted_content"]}
"""What a client that keeps its own history wants: nothing stored, and the reasoning to send back."""


def encode_request(request: Request, quirks: Quirks) -> Outgoing:
    """Write a request's body."""
    request, unwritten = with_schema(request)
    names = UpstreamNames(request)
    same_wire = NAME in request.extra
    extra = dict(request.extra[NAME]) if same_wire else dict(_STATELESS)
    history = with_ids(paired(request.messages), quirks.ids)
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
    return Outgoing(PATH, dump(body), (*foreign(request, NAME), *unsaid, *unwritten))


def instructions_of(messages: tuple[Message, ...]) -> str:
    """Return what the system said first, if it is plain text that this wire does not know as an item."""
    match messages:
        case (Message(role=Role.SYSTEM, parts=(Text(text),), vendor=vendor), *_) if not own(vendor, NAME):
            return text
        case _:
            return ""


def reasoning_body(request: Request) -> JsonObject:
    """Write how much to think, and what was said beside it."""
    body = {**inner(request.extra.get(NAME, {}), "reasoning")}
    if request.sampling.effort is not None:
        body = {"effort": request.sampling.effort, **body}
    return {"reasoning": body} if body else {}


def text_body(request: Request) -> JsonObject:
    """Write what the text must look like."""
    body = {**inner(request.extra.get(NAME, {}), "text")}
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
    """Write what the vendor refuses, but some servers of this wire take."""
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

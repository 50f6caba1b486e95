"""Our request becomes the upstream's.

This vendor is strict: `max_tokens` must be there, no text may be blank, results come first in the message behind their
calls. What it has no word for is left out, and named in `Outgoing.dropped`.
"""

from collections.abc import Iterator
from typing import Final

from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode, Tool
from toolspeak.wires._body import dump
from toolspeak.wires._constraint import with_schema
from toolspeak.wires._history import paired
from toolspeak.wires._ids import with_ids
from toolspeak.wires._loose import listed, mapped
from toolspeak.wires._names import Names
from toolspeak.wires._vendor import foreign, own
from toolspeak.wires._wire import Outgoing
from toolspeak.wires.anthropic.builtins import TOOLSET
from toolspeak.wires.anthropic.outgoing_messages import MessageWriter
from toolspeak.wires.anthropic.words import LONGEST_NAME, NAME

PATH: Final = "messages"
MAX_TOKENS: Final = 8192
"""What is written where the client left it open: the field is required, and every model of this vendor allows it."""
WARMEST: Final = 1.0

_CHOICES: Final = {
    ChoiceMode.AUTO: "auto",
    ChoiceMode.REQUIRED: "any",
    ChoiceMode.NAMED: "tool",
    ChoiceMode.NONE: "none",
}
_EFFORTS: Final = {"none": None, "minimal": "low"}
"""Words of other vendors."""


def encode_request(request: Request, quirks: Quirks) -> Outgoing:
    """Write a request's body."""
    request, unsaid = with_schema(request)
    names, extra = names_of(request), dict(request.extra.get(NAME, {}))
    writer = MessageWriter(request, names)
    system, messages = writer.write(with_ids(paired(request.messages), quirks.ids))
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
    dropped = {*foreign(request, NAME), *_dropped(request), *writer.dropped, *unsaid}
    return Outgoing(PATH, dump(body), tuple(sorted(dropped)))


def names_of(request: Request) -> Names:
    """Return the names of the tools as this wire allows them."""
    return Names((tool.name for tool in request.tools), LONGEST_NAME)


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
    """Return the stop texts; the vendor refuses blank ones."""
    return tuple(stop for stop in request.sampling.stop if _is_ours(request) or stop.strip())


def _dropped(request: Request) -> Iterator[str]:
    """Name the wishes that this wire cannot tell, or not in full."""
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
    """Write how much to think and the schema of the answer, each where the client had it."""
    config, older = extra.pop("output_config", None), extra.pop("output_format", None)
    body = {**mapped(config)}
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
        return mapped(said)
    return {"type": "json_schema", "schema": request.output_schema, **mapped(said)}


# ---------------------------------------------------------------- tools


def _tools(request: Request, names: Names, extra: JsonObject) -> JsonObject:
    """Write the tools; the vendor itself hides the deferred ones, if they are its client's."""
    hosted, said = extra.pop("tools", None), extra.pop("tool_choice", None)
    allowed = request.choice.allowed
    offered = request.tools if _is_ours(request) else request.offered()
    tools: list[Json] = [
        _tool(tool, request, names)
        for tool in offered
        if (not allowed or tool.name in allowed) and TOOLSET not in own(tool.vendor, NAME)
    ]
    tools += listed(hosted)
    if not tools:
        return {}
    return {"tools": tools, **_choice(request, names, said)}


def _tool(tool: Tool, request: Request, names: Names) -> JsonObject:
    said = own(tool.vendor, NAME)
    if "name" in said:  # one of the vendor's: its whole body is there
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


def _choice(request: Request, names: Names, said: Json) -> JsonObject:
    choice = request.choice
    body = {**mapped(said)}
    if choice.mode is ChoiceMode.AUTO and choice.parallel and not body:
        return {}
    body["type"] = _CHOICES[choice.mode]
    if choice.mode is ChoiceMode.NAMED:
        body["name"] = names.out(choice.name)
    if not choice.parallel and choice.mode is not ChoiceMode.NONE:
        body["disable_parallel_tool_use"] = True
    return {"tool_choice": body}

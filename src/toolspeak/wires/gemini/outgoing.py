"""Our request becomes the upstream's. Its messages are written in `contents.py`."""

from typing import Final

from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode, Tool
from toolspeak.wires._body import dump
from toolspeak.wires._constraint import with_schema
from toolspeak.wires._history import paired
from toolspeak.wires._ids import with_ids
from toolspeak.wires._loose import inner, listed
from toolspeak.wires._names import Names
from toolspeak.wires._vendor import foreign, own
from toolspeak.wires._wire import Outgoing
from toolspeak.wires.gemini.contents import Contents
from toolspeak.wires.gemini.path import write_path
from toolspeak.wires.gemini.words import LONGEST_NAME, NAME

_MODES: Final = {ChoiceMode.REQUIRED: "ANY", ChoiceMode.NAMED: "ANY", ChoiceMode.NONE: "NONE"}
_LEVELS: Final = {"xhigh": "HIGH", "max": "HIGH"}
_NO_THINKING: Final = "none"


def encode_request(request: Request, quirks: Quirks) -> Outgoing:
    """Write a request's path and body."""
    request, unsaid = with_schema(request)
    names = names_of(request)
    extra = dict(request.extra.get(NAME, {}))
    extra.pop("alt", None)  # how the client wants its stream; ours comes as server-sent events
    messages = with_ids(paired(request.messages), quirks.ids)
    writing = Contents(messages, names, same_wire=NAME in request.extra, nested=quirks.image_results)
    body: JsonObject = {
        **writing.system(),
        "contents": writing.contents(),
        **_tools(request, names, extra.pop("tools", None), inner(extra, "toolConfig")),
        **_config(request, inner(extra, "generationConfig")),
    }
    kept = {key: value for key, value in extra.items() if key not in ("toolConfig", "generationConfig")}
    path = write_path(request.model, stream=request.stream)
    return Outgoing(path, dump({**body, **kept}), (*foreign(request, NAME), *unsaid))


def names_of(request: Request) -> Names:
    """Return the names of the tools as this wire allows them."""
    return Names((tool.name for tool in request.tools), LONGEST_NAME, letter_first=True)


def _config(request: Request, kept: JsonObject) -> JsonObject:
    sampling = request.sampling
    body: JsonObject = {
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "topK": sampling.top_k,
        "maxOutputTokens": sampling.max_tokens,
        "stopSequences": list(sampling.stop) or None,
        "seed": sampling.seed,
        "presencePenalty": sampling.presence_penalty,
        "frequencyPenalty": sampling.frequency_penalty,
        "responseMimeType": None if request.output_schema is None else "application/json",
        "responseJsonSchema": request.output_schema or None,
        "thinkingConfig": {**inner(kept, "thinkingConfig"), **_thinking(sampling.effort)} or None,
    }
    config = {**kept, **{key: value for key, value in body.items() if value is not None}}
    return {"generationConfig": config} if config else {}


def _thinking(effort: str | None) -> JsonObject:
    if effort is None:
        return {}
    if effort == _NO_THINKING:
        return {"thinkingBudget": 0}
    return {"thinkingLevel": _LEVELS.get(effort, effort.upper())}


# ---------------------------------------------------------------- tools


def _tools(request: Request, names: Names, hosted: Json, config: JsonObject) -> JsonObject:
    same_wire = NAME in request.extra
    allowed = () if same_wire or request.choice.mode is ChoiceMode.REQUIRED else request.choice.allowed
    functions: list[Json] = [_tool(tool, names) for tool in request.offered() if not allowed or tool.name in allowed]
    tools: list[Json] = [{"functionDeclarations": functions}] if functions else []
    tools += listed(hosted)
    calling = _calling(request, names, inner(config, "functionCallingConfig"), same_wire=same_wire) if functions else {}
    kept = {key: value for key, value in config.items() if key != "functionCallingConfig"}
    config = {**kept, **({"functionCallingConfig": calling} if calling else {})}
    return {**({"tools": tools} if tools else {}), **({"toolConfig": config} if config else {})}


def _tool(tool: Tool, names: Names) -> JsonObject:
    body: JsonObject = {"name": names.out(tool.name)}
    if tool.description:
        body["description"] = tool.description
    return {**body, "parametersJsonSchema": tool.parameters, **own(tool.vendor, NAME)}


def _calling(request: Request, names: Names, kept: JsonObject, *, same_wire: bool) -> JsonObject:
    """Write the choice. Arguments in pieces are never asked for: they have a form that nobody reads here."""
    choice = request.choice
    body = {key: value for key, value in kept.items() if key not in ("mode", "streamFunctionCallArguments")}
    if choice.mode is not ChoiceMode.AUTO:
        body["mode"] = _MODES[choice.mode]
    elif kept.get("mode") or (same_wire and choice.allowed):
        body["mode"] = kept.get("mode") or "AUTO"
    allowed = (choice.name,) if choice.mode is ChoiceMode.NAMED else choice.allowed
    if allowed and (same_wire or body.get("mode") == "ANY"):
        body["allowedFunctionNames"] = [names.out(name) for name in allowed]
    return body

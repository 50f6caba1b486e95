"""What a request says about using its tools, both ways."""

from typing import Final

from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.request import Request
from toolspeak.ir.tool import AUTO, ChoiceMode, ToolChoice, ToolKind
from toolspeak.wires._fields import Fields
from toolspeak.wires._loose import listed, mapped
from toolspeak.wires._tools import Toolbox
from toolspeak.wires.openai_responses.names import FlatNames, UpstreamNames
from toolspeak.wires.openai_responses.words import NAME, NAMESPACE, SEARCH_TOOL

_KEY = "tool_choice"
_ALLOWED = "allowed_tools"
_MODES: Final = {"auto": ChoiceMode.AUTO, "none": ChoiceMode.NONE, "required": ChoiceMode.REQUIRED}
_OURS: Final = ("function", "custom", SEARCH_TOOL)


def read_choice(fields: Fields, names: FlatNames) -> ToolChoice:
    """Take the choice; one of a hosted tool stays with the vendor's fields."""
    parallel = fields.flag("parallel_tool_calls") is not False
    value = fields.take(_KEY)
    if value is None:
        return AUTO if parallel else ToolChoice(parallel=False)
    if not isinstance(value, str):
        return _choice_object(Fields(value, fields, _KEY), fields, names, parallel=parallel)
    if value not in _MODES:
        raise fields.bad(_KEY, "auto, none, required or an object", value)
    return ToolChoice(_MODES[value], parallel=parallel)


def _choice_object(choice: Fields, request: Fields, names: FlatNames, *, parallel: bool) -> ToolChoice:
    kind = choice.text("type") or "function"
    if kind == _ALLOWED:
        return _allowed(choice, request, names, parallel=parallel)
    if kind in _OURS:
        return ToolChoice(ChoiceMode.NAMED, _name(choice, kind, names), parallel=parallel)
    request.left[_KEY] = {"type": kind, **choice.left}
    return ToolChoice(parallel=parallel)


def _allowed(choice: Fields, request: Fields, names: FlatNames, *, parallel: bool) -> ToolChoice:
    said = choice.text("mode") or "auto"
    hosted: list[Json] = []
    allowed: list[str] = []
    for tool in choice.each("tools"):
        kind = tool.text("type") or "function"
        if kind in _OURS:
            allowed.append(_name(tool, kind, names))
        else:
            hosted.append({"type": kind, **tool.left})
    if hosted:
        request.left[_KEY] = {"type": _ALLOWED, "mode": said, "tools": hosted}
    # Where the hosted ones do not exist, there is nothing that may be called.
    mode = _MODES.get(said, ChoiceMode.AUTO) if allowed or not hosted else ChoiceMode.NONE
    return ToolChoice(mode, parallel=parallel, allowed=tuple(allowed))


def _name(fields: Fields, kind: str, names: FlatNames) -> str:
    if kind == SEARCH_TOOL:
        return names.search
    namespace, name = fields.text(NAMESPACE), fields.need_text("name")
    return names.of(namespace, name) if namespace else names.find(name)


def write_choice(request: Request, names: UpstreamNames) -> JsonObject:
    """Write the choice; what the vendor takes for granted is not said."""
    choice = request.choice
    body: JsonObject = {} if choice.parallel else {"parallel_tool_calls": False}
    said = choice_body(request, names)
    return body if said == "auto" else {_KEY: said, **body}


def choice_body(request: Request, names: UpstreamNames) -> Json:
    """Write the choice alone."""
    choice, same_wire = request.choice, NAME in request.extra
    tools = Toolbox(request.tools if same_wire else ())
    hosted = request.extra.get(NAME, {}).get(_KEY)
    if choice.allowed and same_wire:
        allowed: list[Json] = [_reference(name, tools, names) for name in choice.allowed]
        allowed += listed(mapped(hosted).get("tools"))
        return {"type": _ALLOWED, "mode": choice.mode.value, "tools": allowed}
    if choice.mode is ChoiceMode.NAMED:
        return _reference(choice.name, tools, names)
    if isinstance(hosted, dict) and choice.mode is _mode_of(hosted):
        return hosted
    return choice.mode.value


def _mode_of(hosted: JsonObject) -> ChoiceMode:
    """Return the mode that a choice of hosted tools was read as."""
    return ChoiceMode.NONE if hosted.get("type") == _ALLOWED else ChoiceMode.AUTO


def _reference(name: str, tools: Toolbox, names: UpstreamNames) -> JsonObject:
    kind = tools.kind(name)
    if kind is ToolKind.SEARCH:
        return {"type": SEARCH_TOOL}
    namespace, local = names.out(name)
    return {"type": kind.value, "name": local, **({NAMESPACE: namespace} if namespace else {})}

"""What a client's request says about tools becomes ours."""

from typing import Final

from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice
from toolspeak.wires._body import parse
from toolspeak.wires._fields import Fields
from toolspeak.wires._tools import cached, unique
from toolspeak.wires.anthropic.builtins import built_in, toolset
from toolspeak.wires.anthropic.words import NAME

_MODES: Final = {
    "auto": ChoiceMode.AUTO,
    "any": ChoiceMode.REQUIRED,
    "tool": ChoiceMode.NAMED,
    "none": ChoiceMode.NONE,
}


@cached
def read_tools(raw: bytes) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
    """Read the bytes of `tools`."""
    tools: list[Tool] = []
    hosted: list[JsonObject] = []
    for fields in Fields({"tools": parse(raw)}).each("tools"):
        kind = fields.text("type") or "custom"
        if kind == "custom" or "input_schema" in fields.left:
            tools.append(_custom(fields, kind))
            continue
        body: JsonObject = {"type": kind, **fields.left}
        family = toolset(kind, body)
        if family is None and (tool := built_in(kind, body)) is not None:
            tools.append(tool)
        else:  # a family stands here too: on the same wire its body is written back, and not its tools
            hosted.append(body)
            tools += family or ()
    return unique(tools), tuple(hosted)


def _custom(fields: Fields, kind: str) -> Tool:
    """Read a tool of the client's own; a type that we do not know is kept beside its schema."""
    if kind != "custom":
        fields.left["type"] = kind
    return Tool(
        name=fields.need_text("name"),
        description=fields.text("description") or "",
        parameters=fields.json_object("input_schema") or {"type": "object", "properties": {}},
        strict=fields.flag("strict") or False,
        deferred=fields.flag("defer_loading") or False,
        vendor=fields.vendor(NAME),
    )


def read_choice(fields: Fields) -> ToolChoice:
    """Take `tool_choice` out of a request."""
    inside = fields.fields("tool_choice")
    if inside is None:
        return AUTO
    kind = inside.text("type") or "auto"
    mode = _MODES.get(kind)
    if mode is None:
        raise BadField(inside.where("type"), f"expected auto, any, tool or none, got {kind!r}")
    name = inside.need_text("name") if mode is ChoiceMode.NAMED else ""
    parallel = inside.flag("disable_parallel_tool_use") is not True
    fields.put_back("tool_choice", inside)
    return ToolChoice(mode, name, parallel=parallel)

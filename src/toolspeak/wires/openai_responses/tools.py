"""Tools: functions, custom tools, namespaces of both, the client's own search; both ways.

What only the vendor's servers can run (web_search, mcp, a search on the server) is hosted: it stays as it is.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Grammar, Tool, ToolKind
from toolspeak.ir.vendor import Vendor
from toolspeak.wires._body import parse
from toolspeak.wires._fields import Fields
from toolspeak.wires._loose import listed
from toolspeak.wires._tools import cached, free_form_parameters
from toolspeak.wires._vendor import own
from toolspeak.wires.openai_responses.names import UpstreamNames
from toolspeak.wires.openai_responses.words import ITEM, NAME, NAMESPACE, SEARCH_TOOL

_DEFERRED = "defer_loading"
_CLIENT = "client"


@cached
def read_tools(raw: bytes) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
    """Read the bytes of `tools`."""
    return tools_in(Fields({"tools": parse(raw)}))


def tools_in(fields: Fields) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
    """Take the `tools` of a request or of an item."""
    tools: list[Tool] = []
    hosted: list[JsonObject] = []
    for tool in fields.each("tools"):
        kind = tool.text("type") or "function"
        if kind == NAMESPACE:
            _read_namespace(tool, tools, hosted)
        elif (read := _tool(tool, kind)) is not None:
            tools.append(read)
        else:
            hosted.append({"type": kind, **tool.left})
    return tuple(tools), tuple(hosted)


def known_as(tool: Tool) -> tuple[str, str]:
    """Return the two names by which the client knows a tool; its search has none."""
    if tool.kind is ToolKind.SEARCH:
        return "", ""
    return tool.namespace, tool.local_name or tool.name


def merged(declared: Iterable[Tool], found: Iterable[Tool]) -> tuple[Tool, ...]:
    """Join the tools that the request declares now and those of its items: each once, the later word holds."""
    first = {known_as(tool): tool for tool in declared}
    return tuple({**first, **{known_as(tool): tool for tool in found}, **first}.values())


def offered_at_once(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Show deferred tools that nobody could find: the search for them would be ours to run."""
    if any(tool.kind is ToolKind.SEARCH for tool in tools):
        return tools
    return tuple(
        replace(tool, deferred=False) if tool.deferred and ITEM not in own(tool.vendor, NAME) else tool
        for tool in tools
    )


def _tool(fields: Fields, kind: str) -> Tool | None:
    if kind == "function":
        return _function(fields)
    if kind == "custom":
        return _custom(fields)
    if kind == SEARCH_TOOL and fields.left.get("execution") == _CLIENT:
        return _search(fields)
    return None


def _function(fields: Fields) -> Tool:
    name, description = fields.need_text("name"), fields.text("description") or ""
    strict, deferred = fields.flag("strict"), _deferred(fields)
    parameters = fields.json_object("parameters") or {"type": "object", "properties": {}}
    if strict is None:  # not the same as false: the vendor then tries to be strict
        fields.left["strict"] = None
    return Tool(name, description, parameters, strict or False, deferred=deferred, vendor=fields.vendor(NAME))


def _custom(fields: Fields) -> Tool:
    name, description = fields.need_text("name"), fields.text("description") or ""
    grammar, deferred = _grammar(fields.fields("format")), _deferred(fields)
    return Tool(
        name,
        description,
        free_form_parameters(grammar),
        kind=ToolKind.CUSTOM,
        grammar=grammar,
        deferred=deferred,
        vendor=fields.vendor(NAME),
    )


def _grammar(fields: Fields | None) -> Grammar | None:
    if fields is None or fields.text("type") != "grammar":
        return None
    inside = fields.fields("grammar") or fields
    return Grammar(inside.need_text("syntax"), inside.need_text("definition"))


def _search(fields: Fields) -> Tool:
    del fields.left["execution"]
    description = fields.text("description") or ""
    parameters = fields.json_object("parameters") or {"type": "object", "properties": {}}
    return Tool(SEARCH_TOOL, description, parameters, kind=ToolKind.SEARCH, vendor=fields.vendor(NAME))


def _deferred(fields: Fields) -> bool:
    deferred = fields.flag(_DEFERRED) or False
    if deferred:
        fields.left[_DEFERRED] = True
    return deferred


def _read_namespace(fields: Fields, tools: list[Tool], hosted: list[JsonObject]) -> None:
    space = fields.need_text("name")
    inner = fields.each("tools")
    if not inner:
        hosted.append({"type": NAMESPACE, "name": space, **fields.left, "tools": []})
    for tool in inner:
        kind = tool.text("type") or "function"
        read = _tool(tool, kind) if kind != SEARCH_TOOL else None
        if read is None:
            strange: JsonObject = {"type": kind, **tool.left}
            hosted.append({"type": NAMESPACE, "name": space, **fields.left, "tools": [strange]})
        else:
            vendor = Vendor(NAME, {**tool.left, NAMESPACE: fields.left})
            local = read.name
            tools.append(replace(read, name=f"{space}__{local}", namespace=space, local_name=local, vendor=vendor))


# ---------------------------------------------------------------- out


def write_tools(request: Request, names: UpstreamNames) -> list[Json]:
    """Write the tools that stand in the request itself, and not in one of its items."""
    written: list[Json] = []
    for tool in _offered(request):
        body = _body(tool, names, is_own=NAME in request.extra)
        if NAME in request.extra and tool.namespace:
            _add_inside(written, {"name": tool.namespace, **_head(tool)}, body)
        else:
            written.append(body)
    return [*written, *listed(request.extra.get(NAME, {}).get("tools"))]


def add_tool(written: list[Json], space: JsonObject | None, body: Json) -> None:
    """Write a tool behind the others: in its namespace, if it has one."""
    if space is not None:
        _add_inside(written, space, body)
    elif isinstance(body, dict) and isinstance(inside := body.get("tools"), list):
        written.append({**body, "tools": [*inside]})  # others may be put in there
    else:
        written.append(body)


def _offered(request: Request) -> Iterator[Tool]:
    """Yield the tools to write. On this wire those to be found later are told too, as deferred ones."""
    shown = {tool.name for tool in request.offered()}
    if NAME not in request.extra:
        allowed = frozenset(request.choice.allowed)
        yield from (tool for tool in request.tools if tool.name in shown and (not allowed or tool.name in allowed))
        return
    for tool in request.tools:
        said = own(tool.vendor, NAME)
        if ITEM not in said and (tool.name in shown or said.get(_DEFERRED)):
            yield tool


def _head(tool: Tool) -> JsonObject:
    head = own(tool.vendor, NAME).get(NAMESPACE)
    return head if isinstance(head, dict) else {"description": ""}


def _add_inside(written: list[Json], space: JsonObject, body: Json) -> None:
    last = written[-1] if written else None
    head: JsonObject = {"type": NAMESPACE, **space}
    if isinstance(last, dict) and isinstance(inside := last.get("tools"), list) and head == _without_tools(last):
        inside.append(body)
    else:
        written.append({**head, "tools": [body]})


def _without_tools(body: JsonObject) -> JsonObject:
    return {key: value for key, value in body.items() if key != "tools"}


def _body(tool: Tool, names: UpstreamNames, *, is_own: bool) -> JsonObject:
    said = {key: value for key, value in own(tool.vendor, NAME).items() if key not in (NAMESPACE, ITEM, "strict")}
    words: JsonObject = {"description": tool.description} if tool.description else {}
    if is_own and tool.kind is ToolKind.SEARCH:
        return {"type": SEARCH_TOOL, "execution": _CLIENT, **words, "parameters": tool.parameters, **said}
    named: JsonObject = {"name": names.out(tool.name)[1], **words}
    if is_own and tool.kind is ToolKind.CUSTOM:
        return {"type": "custom", **named, "format": _format(tool.grammar), **said}
    strict: JsonObject = {"strict": tool.strict}
    if not tool.strict and "strict" in own(tool.vendor, NAME):
        strict = {}
    return {"type": "function", **named, "parameters": tool.parameters, **strict, **said}


def _format(grammar: Grammar | None) -> JsonObject:
    if grammar is None:
        return {"type": "text"}
    return {"type": "grammar", "syntax": grammar.syntax, "definition": grammar.definition}

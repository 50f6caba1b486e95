"""Tools of a request, both ways: their names in namespaces, their bodies, and the tool choice.

{"type": "namespace", "name": "agents", "tools": [{"name": "close"}]}   ->  agents__close
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Final

from toolspeak.ir.json import Json, JsonObject, as_list, as_object
from toolspeak.ir.message import Vendor
from toolspeak.ir.request import Request
from toolspeak.ir.tool import AUTO, ChoiceMode, Grammar, Tool, ToolChoice, ToolKind
from toolspeak.wires.openai_responses import NAME
from toolspeak.wires.openai_responses.items import ITEM, NAMESPACE, SEARCH_TOOL
from toolspeak.wires.shared.calls import USABLE
from toolspeak.wires.shared.json_body import Fields, parse_body
from toolspeak.wires.shared.request_parts import own_fields
from toolspeak.wires.shared.tools import ToolIndex, ToolNames, cache_tools, free_form_parameters

LONGEST_NAME: Final = 64


# ---------------------------------------------------------------- names
#
# A model knows a tool of a namespace by one flat name, which depends on the two names alone, unless another tool has it
# already. A call goes back to the client under both names: Codex rejects `close`, `agents.close` and `agents__close`.

_DIGITS = 8


class FlatNames:
    """Gives the tools of a client's request, and those that its history has called, their flat names."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Take all tools; those without a namespace keep the name that they have."""
        known = tuple(tools)
        self._plain: Final = {tool.name for tool in known if not tool.namespace and tool.kind is not ToolKind.SEARCH}
        self._taken: Final = set(self._plain)
        self._flat: Final[dict[tuple[str, str], str]] = {}
        self._by_local: Final[dict[str, list[str]]] = {}
        self.search: Final = self._new("", SEARCH_TOOL)
        for tool in known:
            if tool.namespace:
                self.of(tool.namespace, tool.local_name)

    def of(self, namespace: str, name: str) -> str:
        """Return the flat name of a tool that the client knows by these two."""
        if not namespace:
            return name
        if (known := self._flat.get((namespace, name))) is not None:
            return known
        if namespace == name and name in self._plain:  # OpenAI's name for a deferred tool that has no namespace
            return name
        flat = self._flat[namespace, name] = self._new(namespace, name)
        self._by_local.setdefault(name, []).append(flat)
        return flat

    def find(self, name: str) -> str:
        """Return the flat name of the only tool of this name, in whatever namespace; else the name as it is."""
        inside = self._by_local.get(name, [])
        return inside[0] if name not in self._plain and len(inside) == 1 else name

    def is_flat(self, name: str) -> bool:
        """Return whether this is the flat name of a tool that has a namespace."""
        return name in self._taken and name not in self._plain

    def named(self, tools: Iterable[Tool]) -> Iterator[Tool]:
        """Give each tool its flat name."""
        for tool in tools:
            name = self.of(tool.namespace, tool.local_name) if tool.namespace else tool.name
            name = self.search if tool.kind is ToolKind.SEARCH else name
            yield tool if name == tool.name else replace(tool, name=name)

    def _new(self, namespace: str, name: str) -> str:
        flat, tries = _joined(namespace, name), 0
        while not USABLE.fullmatch(flat) or flat in self._taken:
            flat, tries = _hashed(namespace, name, tries), tries + 1
        self._taken.add(flat)
        return flat


def _joined(namespace: str, name: str) -> str:
    return f"{namespace}__{name}" if namespace else name


def _hashed(namespace: str, name: str, tries: int) -> str:
    digits = sha256(f"{tries}:{namespace}\0{name}".encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    legal = "".join(char if USABLE.fullmatch(char) else "_" for char in _joined(namespace, name)[:LONGEST_NAME])
    return f"{legal[: LONGEST_NAME - _DIGITS - 1]}_{digits}"


class UpstreamNames:
    """Maps the names of a request to those of its upstream, and back.

    The clients of this wire name their tools themselves, and are the only ones that have namespaces.
    """

    def __init__(self, request: Request) -> None:
        """Take the request that is sent."""
        same_wire = NAME in request.extra
        searches = (tool.name for tool in request.tools if tool.kind is ToolKind.SEARCH)
        self.search: Final = next(searches, SEARCH_TOOL)
        """The name of the client's own search."""
        spaced = [tool for tool in request.tools if tool.namespace and same_wire]
        self._inside: Final = {tool.name: (tool.namespace, tool.local_name) for tool in spaced}
        self._flat: Final = {both: name for name, both in self._inside.items()}
        self._aliases: Final = None if same_wire else ToolNames.of(request.tools, LONGEST_NAME)

    def out(self, name: str) -> tuple[str, str]:
        """Return the namespace (maybe empty) and the name for the upstream."""
        return self._inside.get(name) or ("", self._aliases.out(name) if self._aliases is not None else name)

    def back(self, namespace: str, name: str) -> str:
        """Return the name as the request has it."""
        if (flat := self._flat.get((namespace, name))) is not None:
            return flat
        if namespace not in ("", name):
            return _joined(namespace, name)
        return self._aliases.back(name) if self._aliases is not None else name


# ---------------------------------------------------------------- reading
#
# Functions, custom tools, namespaces of both, and the client's own search. Tools that only OpenAI's servers can run
# (web_search, mcp, a search on the server) are hosted: they are kept as they are.

_DEFERRED = "defer_loading"
_CLIENT = "client"


@cache_tools
def read_tools(raw: bytes) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
    """Read the bytes of `tools`."""
    return read_tool_list(Fields({"tools": parse_body(raw)}))


def read_tool_list(fields: Fields) -> tuple[tuple[Tool, ...], tuple[JsonObject, ...]]:
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
    """Return the namespace and name by which the client knows a tool; both are empty for its search."""
    if tool.kind is ToolKind.SEARCH:
        return "", ""
    return tool.namespace, tool.local_name or tool.name


def merge_tools(declared: Iterable[Tool], found: Iterable[Tool]) -> tuple[Tool, ...]:
    """Merge the tools of the request and of its items; of two with the same name, the later one is kept."""
    first = {known_as(tool): tool for tool in declared}
    return tuple({**first, **{known_as(tool): tool for tool in found}, **first}.values())


def offered_at_once(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Offer deferred tools at once if no client can search for them: toolspeak runs no search."""
    if any(tool.kind is ToolKind.SEARCH for tool in tools):
        return tools
    return tuple(
        replace(tool, deferred=False) if tool.deferred and ITEM not in own_fields(tool.vendor, NAME) else tool
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
    if strict is None:  # not the same as false: OpenAI then tries to be strict
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


# ---------------------------------------------------------------- writing


def write_tools(request: Request, names: UpstreamNames) -> list[Json]:
    """Write the tools of the request itself, without those that its items declare."""
    written: list[Json] = []
    for tool in _offered(request):
        body = _body(tool, names, is_own=NAME in request.extra)
        if NAME in request.extra and tool.namespace:
            _add_inside(written, {"name": tool.namespace, **_head(tool)}, body)
        else:
            written.append(body)
    return [*written, *as_list(request.extra.get(NAME, {}).get("tools"))]


def add_tool(written: list[Json], space: JsonObject | None, body: Json) -> None:
    """Append a tool, inside its namespace if it has one."""
    if space is not None:
        _add_inside(written, space, body)
    elif isinstance(body, dict) and isinstance(inside := body.get("tools"), list):
        written.append({**body, "tools": [*inside]})  # a copy: more tools may be added to it
    else:
        written.append(body)


def _offered(request: Request) -> Iterator[Tool]:
    """Yield the tools to write. On the same wire this includes deferred tools that were not found yet."""
    shown = {tool.name for tool in request.offered()}
    if NAME not in request.extra:
        allowed = frozenset(request.choice.allowed)
        yield from (tool for tool in request.tools if tool.name in shown and (not allowed or tool.name in allowed))
        return
    for tool in request.tools:
        said = own_fields(tool.vendor, NAME)
        if ITEM not in said and (tool.name in shown or said.get(_DEFERRED)):
            yield tool


def _head(tool: Tool) -> JsonObject:
    head = own_fields(tool.vendor, NAME).get(NAMESPACE)
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
    said = {
        key: value for key, value in own_fields(tool.vendor, NAME).items() if key not in (NAMESPACE, ITEM, "strict")
    }
    words: JsonObject = {"description": tool.description} if tool.description else {}
    if is_own and tool.kind is ToolKind.SEARCH:
        return {"type": SEARCH_TOOL, "execution": _CLIENT, **words, "parameters": tool.parameters, **said}
    named: JsonObject = {"name": names.out(tool.name)[1], **words}
    if is_own and tool.kind is ToolKind.CUSTOM:
        return {"type": "custom", **named, "format": _format(tool.grammar), **said}
    strict: JsonObject = {"strict": tool.strict}
    if not tool.strict and "strict" in own_fields(tool.vendor, NAME):
        strict = {}
    return {"type": "function", **named, "parameters": tool.parameters, **strict, **said}


def _format(grammar: Grammar | None) -> JsonObject:
    if grammar is None:
        return {"type": "text"}
    return {"type": "grammar", "syntax": grammar.syntax, "definition": grammar.definition}


# ---------------------------------------------------------------- tool choice

_KEY = "tool_choice"
_ALLOWED = "allowed_tools"
_MODES: Final = {"auto": ChoiceMode.AUTO, "none": ChoiceMode.NONE, "required": ChoiceMode.REQUIRED}
_OURS: Final = ("function", "custom", SEARCH_TOOL)


def read_choice(fields: Fields, names: FlatNames) -> ToolChoice:
    """Take the tool choice; a choice of a hosted tool stays with the vendor's fields."""
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
    # An upstream without the hosted tools has nothing that may be called.
    mode = _MODES.get(said, ChoiceMode.AUTO) if allowed or not hosted else ChoiceMode.NONE
    return ToolChoice(mode, parallel=parallel, allowed=tuple(allowed))


def _name(fields: Fields, kind: str, names: FlatNames) -> str:
    if kind == SEARCH_TOOL:
        return names.search
    namespace, name = fields.text(NAMESPACE), fields.need_text("name")
    return names.of(namespace, name) if namespace else names.find(name)


def write_choice(request: Request, names: UpstreamNames) -> JsonObject:
    """Write the tool choice; defaults are left out."""
    choice = request.choice
    body: JsonObject = {} if choice.parallel else {"parallel_tool_calls": False}
    said = choice_body(request, names)
    return body if said == "auto" else {_KEY: said, **body}


def choice_body(request: Request, names: UpstreamNames) -> Json:
    """Write only the value of `tool_choice`."""
    choice, same_wire = request.choice, NAME in request.extra
    tools = ToolIndex(request.tools if same_wire else ())
    hosted = request.extra.get(NAME, {}).get(_KEY)
    if choice.allowed and same_wire:
        allowed: list[Json] = [_reference(name, tools, names) for name in choice.allowed]
        allowed += as_list(as_object(hosted).get("tools"))
        return {"type": _ALLOWED, "mode": choice.mode.value, "tools": allowed}
    if choice.mode is ChoiceMode.NAMED:
        return _reference(choice.name, tools, names)
    if isinstance(hosted, dict) and choice.mode is _mode_of(hosted):
        return hosted
    return choice.mode.value


def _mode_of(hosted: JsonObject) -> ChoiceMode:
    """Return the mode as which a choice of hosted tools was read."""
    return ChoiceMode.NONE if hosted.get("type") == _ALLOWED else ChoiceMode.AUTO


def _reference(name: str, tools: ToolIndex, names: UpstreamNames) -> JsonObject:
    kind = tools.kind(name)
    if kind is ToolKind.SEARCH:
        return {"type": SEARCH_TOOL}
    namespace, local = names.out(name)
    return {"type": kind.value, "name": local, **({NAMESPACE: namespace} if namespace else {})}

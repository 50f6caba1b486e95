"""The vendor's tools that run in the client, and whose schema the vendor implies.

    {"type": "bash_20250124", "name": "bash"}      one tool; other models need its parameters
    {"type": "computer_toolset_20260801"}          a toolset; its calls have `toolset_name` beside their name

Parameters are written `name` or `name:type`, with a `?` if they are optional. The descriptions are ours.
"""

from collections.abc import Iterable
from functools import cache
from typing import Final

from toolspeak.ir.json import Json, JsonObject, as_list, as_object, object_at
from toolspeak.ir.message import Vendor
from toolspeak.ir.tool import Tool
from toolspeak.wires.anthropic import NAME
from toolspeak.wires.shared.request_parts import own_fields

TOOLSET: Final = "toolset_name"

_INTEGERS: Final[JsonObject] = {"type": "array", "items": {"type": "integer"}}
_COORDINATE: Final[JsonObject] = {
    "type": "object",
    "properties": {"type": {"const": "coordinate"}, "x": {"type": "integer"}, "y": {"type": "integer"}},
    "required": ["type", "x", "y"],
}
_REF: Final[JsonObject] = {
    "type": "object",
    "properties": {"type": {"const": "ref"}, "ref": {"type": "string"}},
    "required": ["type", "ref"],
}
_TYPES: Final[dict[str, JsonObject]] = {
    "string": {"type": "string"},
    "strings": {"type": "array", "items": {"type": "string"}},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "point": {**_INTEGERS, "minItems": 2, "maxItems": 2, "description": "x and y in pixels, from the top left corner"},
    "region": {**_INTEGERS, "minItems": 4, "maxItems": 4, "description": "x0, y0, x1, y1 in pixels"},
    "lines": {**_INTEGERS, "minItems": 2, "maxItems": 2, "description": "first and last line; -1 is the end"},
    "direction": {"type": "string", "enum": ["up", "down", "left", "right"]},
    "filter": {"type": "string", "enum": ["all", "interactive"]},
    "value": {"type": ["string", "number", "boolean"]},
    "coordinate": _COORDINATE,
    "ref": _REF,
    "target": {"anyOf": [_COORDINATE, _REF]},
}

_EDITS: Final = "path view_range?:lines file_text? old_str? new_str? insert_line?:integer insert_text?"
_ACTIONS: Final = (
    *("key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click", "double_click"),
    *("screenshot", "cursor_position"),
)
_LATER_ACTIONS: Final = ("left_mouse_down", "left_mouse_up", "triple_click", "scroll", "hold_key", "wait")
_AT: Final = "coordinate?:point text?"
_COMPUTER: Final = {
    "key": ("Press a key or a combination, such as ctrl+s.", "text repeat?:integer"),
    "hold_key": ("Hold a key or a combination down for some seconds.", "text duration:integer"),
    "type": ("Type a text.", "text"),
    "cursor_position": ("Get the position of the cursor.", ""),
    "mouse_move": ("Move the cursor without clicking.", "coordinate:point"),
    "left_mouse_down": ("Press the left mouse button and hold it.", ""),
    "left_mouse_up": ("Release the left mouse button.", ""),
    "left_click": ("Click with the left button, holding the keys in text.", _AT),
    "left_click_drag": ("Drag from one point to another.", "start_coordinate:point coordinate:point text?"),
    "right_click": ("Click with the right button, holding the keys in text.", _AT),
    "middle_click": ("Click with the middle button, holding the keys in text.", _AT),
    "double_click": ("Click twice with the left button.", _AT),
    "triple_click": ("Click three times with the left button.", _AT),
    "scroll": ("Turn the scroll wheel.", f"scroll_direction:direction scroll_amount:integer {_AT}"),
    "wait": ("Wait for some seconds.", "duration:integer"),
    "screenshot": ("Take a screenshot.", ""),
    "zoom": ("Take an enlarged screenshot of a region.", "region:region"),
}
_CLICK: Final = "target:target modifiers? tab_id?"
_BROWSER: Final = {
    "navigate": ("Go to a URL, or back, forward, reload.", "url tab_id?"),
    "list_tabs": ("List the open tabs.", ""),
    "new_tab": ("Open an empty tab.", ""),
    "switch_tab": ("Make a tab the active one.", "tab_id"),
    "close_tab": ("Close a tab.", "tab_id"),
    "read_page": ("Read the page as a tree of elements with references.", "filter?:filter depth?:integer ref? tab_id?"),
    "get_page_text": ("Read the visible text of the page.", "tab_id?"),
    "read_console": ("Read the new console output.", "tab_id?"),
    "read_network": ("List the new network requests.", "tab_id?"),
    "find": ("Find elements by a description.", "query tab_id?"),
    "form_input": ("Set the value of a form element.", "target:ref value:value tab_id?"),
    "file_upload": ("Put files into a file input.", "target:ref paths?:strings document_ids?:strings tab_id?"),
    "scroll_to": ("Scroll an element into view.", "target:ref tab_id?"),
    "screenshot": ("Take a screenshot of the viewport.", "tab_id?"),
    "zoom": ("Take an enlarged screenshot of a region.", "region:region tab_id?"),
    "left_click": ("Click with the left button.", _CLICK),
    "right_click": ("Click with the right button.", _CLICK),
    "middle_click": ("Click with the middle button.", _CLICK),
    "double_click": ("Click twice with the left button.", _CLICK),
    "triple_click": ("Click three times with the left button.", _CLICK),
    "hover": ("Move the cursor to a place without clicking.", "target:target tab_id?"),
    "left_click_drag": ("Drag from one point to another.", "from:coordinate target:coordinate tab_id?"),
    "left_mouse_down": ("Press the left mouse button and hold it.", "target:coordinate tab_id?"),
    "left_mouse_up": ("Release the left mouse button.", "target:coordinate tab_id?"),
    "mouse_move": ("Move the cursor to a point.", "target:coordinate tab_id?"),
    "scroll": ("Scroll.", "scroll_direction:direction target:coordinate scroll_amount?:integer tab_id?"),
    "type": ("Type a text where the focus is.", "text tab_id?"),
    "key": ("Press keys, such as ctrl+a or Return.", "text repeat?:integer tab_id?"),
    "hold_key": ("Hold a key down for some seconds.", "text duration:number tab_id?"),
    "wait": ("Wait for some seconds.", "duration:number tab_id?"),
    "javascript_exec": ("Run JavaScript in the page; the last expression is the result.", "text tab_id?"),
}
_TOOLSETS: Final = {"computer_toolset_": ("computer", _COMPUTER), "browser_toolset_": ("browser", _BROWSER)}
_DEFAULT_NAMES: Final = {
    "bash_": "bash",
    "text_editor_": "str_replace_based_edit_tool",
    "memory_": "memory",
    "computer_": "computer",
}


def toolset(kind: str, body: JsonObject) -> tuple[Tool, ...] | None:
    """Return the tools of a toolset; None if the type is not a toolset that the client runs."""
    for prefix, (family, members) in _TOOLSETS.items():
        if kind.startswith(prefix):
            return tuple(
                _member(family, name, *members[name]) for name in members if _is_enabled(body.get("configs"), name)
            )
    return None


def client_tool(kind: str, body: JsonObject) -> Tool | None:
    """Return the tool that a client's type of tool means; None if the client does not run it."""
    prefix = next((prefix for prefix in _DEFAULT_NAMES if kind.startswith(prefix)), None)
    if prefix is None:
        return None
    description, parameters = _implied(prefix, kind, body)
    told = body.get("name")
    name = told if isinstance(told, str) and told else _DEFAULT_NAMES[prefix]
    return Tool(
        name=name,
        description=description,
        parameters=parameters,
        strict=body.get("strict") is True,
        deferred=body.get("defer_loading") is True,
        vendor=Vendor(NAME, {**body, "name": name}),
    )


def member_name(family: str, name: str) -> str:
    """Return the name by which a model knows a tool of a toolset."""
    return f"{family}_{name}"


def members_of(tools: Iterable[Tool]) -> dict[str, tuple[str, str]]:
    """Map tools of toolsets to their toolset and the name that the client knows."""
    return {tool.name: (tool.namespace, tool.local_name) for tool in tools if TOOLSET in own_fields(tool.vendor, NAME)}


def _member(family: str, name: str, description: str, parameters: str) -> Tool:
    return Tool(
        name=member_name(family, name),
        description=description,
        parameters=_schema(parameters),
        namespace=family,
        local_name=name,
        vendor=Vendor(NAME, {TOOLSET: family}),
    )


def _is_enabled(configs: Json, name: str) -> bool:
    return object_at(as_object(configs), name).get("enabled") is not False


def _implied(prefix: str, kind: str, body: JsonObject) -> tuple[str, JsonObject]:
    if prefix == "bash_":
        return "Run a command in a bash session that stays open.", _schema("command? restart?:boolean")
    if prefix == "text_editor_":
        undo = ("undo_edit",) if kind < "text_editor_20250429" else ()
        commands = ("view", "create", "str_replace", "insert", *undo)
        return "View, create and edit files.", _commands("command", commands, _EDITS)
    if prefix == "memory_":
        commands = ("view", "create", "str_replace", "insert", "delete", "rename")
        keys = _EDITS.replace("path", "path?", 1) + " old_path? new_path?"
        return "Keep notes in files under /memories, for later conversations.", _commands("command", commands, keys)
    return _computer(kind, body)


def _computer(kind: str, body: JsonObject) -> tuple[str, JsonObject]:
    later = _LATER_ACTIONS if kind >= "computer_20250124" else ()
    zoom = ("zoom",) if body.get("enable_zoom") is True else ()
    keys = "coordinate?:point start_coordinate?:point text? duration?:number scroll_direction?:direction"
    keys += " scroll_amount?:integer region?:region"
    size = f"{body.get('display_width_px')}x{body.get('display_height_px')}"
    schema = _commands("action", (*_ACTIONS, *later, *zoom), keys)
    return f"Use the mouse, the keyboard and the screen of a computer ({size} pixels).", schema


def _commands(key: str, commands: tuple[str, ...], keys: str) -> JsonObject:
    """Return a schema whose first parameter selects the command."""
    schema = _schema(keys)
    return {
        **schema,
        "properties": {key: {"type": "string", "enum": list(commands)}, **object_at(schema, "properties")},
        "required": [key, *as_list(schema["required"])],
    }


@cache
def _schema(keys: str) -> JsonObject:
    """Build a schema from parameters in the notation of this module."""
    properties: JsonObject = {}
    required: list[Json] = []
    for key in keys.split():
        name, _, kind = key.partition(":")
        properties[name.rstrip("?")] = _TYPES[kind or "string"]
        if not name.endswith("?"):
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}

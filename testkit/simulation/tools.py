"""The tools of the simulation, arguments for them that fit or do not, and an independent judge of both."""

from random import Random
from typing import Any, Final

from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Tool

_WORDS: Final = ("Oslo", "Bergen", "fjord", "snow", "coat", "ferry", "harbour", "timber", "lantern", "compass")
_ODD: Final = ('"quoted"', "ø🙂", "a\nb", "{x}", "a, b", "<b>", "it's", "C:\\temp", "`tick`", "50%", "[1]", "a: b")


def _tool(name: str, required: tuple[str, ...], **properties: JsonObject) -> Tool:
    needed: list[Json] = list(required)
    schema: JsonObject = {"type": "object", "properties": dict(properties), "required": needed}
    return Tool(name, f"Does what {name} says.", {**schema, "additionalProperties": False})


_TAGS: Final[JsonObject] = {"type": "array", "items": {"type": "string"}}
_ENTRY: Final[JsonObject] = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "tags": _TAGS},
    "required": ["id"],
    "additionalProperties": False,
}
POOL: Final = (
    _tool("get_weather", ("city",), city={"type": "string"}, unit={"type": "string", "enum": ["celsius", "kelvin"]}),
    _tool("search", ("query",), query={"type": "string"}, limit={"type": "integer", "minimum": 1, "maximum": 50}),
    _tool("set_timer", ("minutes",), minutes={"type": "number"}, loud={"type": "boolean"}, label={"type": "string"}),
    _tool("write_file", ("path", "content"), path={"type": "string"}, content={"type": "string"}),
    _tool("record-entries", ("entries",), entries={"type": "array", "items": _ENTRY}),
    _tool("now", ()),
)
BY_NAME: Final = {tool.name: tool for tool in POOL}
UNMISTAKABLE: Final = tuple(BY_NAME[name] for name in ("get_weather", "search", "write_file"))
"""Tools whose calls contain a unique word, so that an equal call cannot occur by chance."""
UNKNOWN: Final = ("launch_rocket", "teleport", "summon_demon")


def token(dice: Random) -> str:
    """Make a word that occurs once."""
    return f"{dice.choice(_WORDS)}{dice.randrange(10**7)}"


def phrase(dice: Random) -> str:
    """Make a string for an argument, sometimes an odd one."""
    return f"{token(dice)} {dice.choice(_ODD)} {dice.choice(_WORDS)}" if dice.random() < 0.3 else token(dice)


def arguments(tool: Tool, dice: Random) -> JsonObject:
    """Make arguments that fit; a tool of the pool that only a history mentions takes its usual arguments."""
    schema: Any = BY_NAME.get(tool.name, tool).parameters
    properties: dict[str, JsonObject] = schema["properties"]
    return {
        key: _value(one, dice) for key, one in properties.items() if key in schema["required"] or dice.random() < 0.5
    }


def wrong_arguments(tool: Tool, dice: Random) -> JsonObject:
    """Make arguments that no lossless change makes fit: something is missing, or has a wrong value."""
    right = arguments(tool, dice)
    first = next(iter(right), "")
    if dice.random() < 0.5 or not first:
        return {key: value for key, value in right.items() if key != first} | {"nonsense": token(dice)}
    return {**right, first: {"not": [token(dice)]}}


def _value(schema: JsonObject, dice: Random) -> Json:
    if isinstance(options := schema.get("enum"), list):
        return dice.choice(options)
    match schema["type"]:
        case "integer":
            return dice.randint(1, 50)
        case "number":
            return dice.choice((dice.randint(1, 90), 2.5, 0.25))
        case "boolean":
            return dice.random() < 0.5
        case "array":
            items: Any = schema["items"]
            return [_value(items, dice) for _ in range(dice.randint(0, 2))]
        case "object":
            return arguments(Tool("", "", schema), dice)
        case _:
            return phrase(dice)


_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def fits(schema: JsonObject, value: Json) -> bool:
    """Tell whether a value fits a schema, for the few words that the pool uses."""
    wanted = _TYPES.get(str(schema.get("type", "")), (object,))
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted and object not in wanted):
        return False
    if isinstance(options := schema.get("enum"), list) and value not in options:
        return False
    if isinstance(value, dict):
        return _object_fits(schema, value)
    if isinstance(value, list):
        return all(fits(_inner(schema, "items"), item) for item in value)
    least, most = schema.get("minimum", 0), schema.get("maximum", 10**9)
    return not isinstance(value, int) or (isinstance(least, int) and isinstance(most, int) and least <= value <= most)


def _object_fits(schema: JsonObject, value: JsonObject) -> bool:
    properties, required = _inner(schema, "properties"), schema.get("required", [])
    known = all(key in properties or schema.get("additionalProperties") is not False for key in value)
    needed = isinstance(required, list) and all(key in value for key in required)
    return known and needed and all(fits(_inner(properties, key), item) for key, item in value.items())


def _inner(schema: JsonObject, key: str) -> JsonObject:
    inner = schema.get(key)
    return inner if isinstance(inner, dict) else {}

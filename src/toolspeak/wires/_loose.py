"""Values that may have any type, because others wrote them: what has a wrong one counts as missing."""

from toolspeak.ir.json import Json, JsonObject


def string(value: object) -> str:
    """Read a string; none is an empty one."""
    return value if isinstance(value, str) else ""


def listed(value: Json) -> list[Json]:
    """Read an array; none is an empty one."""
    return value if isinstance(value, list) else []


def mapped(value: Json) -> JsonObject:
    """Read an object; none is an empty one."""
    return value if isinstance(value, dict) else {}


def inner(body: JsonObject, key: str) -> JsonObject:
    """Read an object inside another."""
    return mapped(body.get(key))

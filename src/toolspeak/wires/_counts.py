"""Numbers of tokens, as servers tell them: missing, null or nonsense is none."""

from toolspeak.ir.json import Json, JsonObject


def count(body: JsonObject, key: str) -> int:
    """Read a number of tokens."""
    value = body.get(key)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0


def inner(body: JsonObject, key: str) -> JsonObject:
    """Read an object inside; none is an empty one."""
    value: Json = body.get(key)
    return value if isinstance(value, dict) else {}

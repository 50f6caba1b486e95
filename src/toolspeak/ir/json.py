"""JSON values: their type, and access to values of unknown type, in which a wrong type counts as missing."""

from typing import TypeAlias

Json: TypeAlias = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
JsonObject: TypeAlias = dict[str, Json]


# Vendors, servers and models write the values below; a value of another type than expected counts as missing.


def as_string(value: object) -> str:
    """Return the string; anything else is an empty one."""
    return value if isinstance(value, str) else ""


def as_list(value: Json) -> list[Json]:
    """Return the array; anything else is an empty one."""
    return value if isinstance(value, list) else []


def as_object(value: Json) -> JsonObject:
    """Return the object; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def object_at(body: JsonObject, key: str) -> JsonObject:
    """Return the object at a key of another; anything else is an empty one."""
    return as_object(body.get(key))

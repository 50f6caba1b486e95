"""JSON values: their type, and access to values of unknown type, in which a wrong type counts as missing."""

from typing import TypeAlias

Json: TypeAlias = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
JsonObject: TypeAlias = dict[str, Json]


# These functions read JSON of vendors, servers and models. A value of another type than expected counts as missing, so
# that one odd field does not fail a whole answer.


def as_string(value: object) -> str:
    """Return the value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def as_list(value: Json) -> list[Json]:
    """Return the value if it is an array, else an empty list."""
    return value if isinstance(value, list) else []


def as_object(value: Json) -> JsonObject:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def object_at(body: JsonObject, key: str) -> JsonObject:
    """Return the object at a key, or an empty one if there is none."""
    return as_object(body.get(key))

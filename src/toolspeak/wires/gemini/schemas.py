"""Schemas in Google's own form become JSON Schema.

    {"type": "STRING", "nullable": true, "maxLength": "9"}   ->   {"type": ["string", "null"], "maxLength": 9}

Google's form is a part of OpenAPI 3.0, with types in capitals and counts that may be strings.
"""

from collections.abc import Iterator
from typing import Final

from toolspeak.ir.json import Json, JsonObject

_MAPS: Final = ("properties", "patternProperties", "$defs", "defs", "definitions")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE: Final = ("items", "additionalProperties", "not")
_COUNTS: Final = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_MOST_DIGITS: Final = 18
_NO_TYPE: Final = "type_unspecified"


def json_schema(schema: JsonObject) -> JsonObject:
    """Change a schema in place, at any depth, and return it."""
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        _lower(one)
        _count(one)
        _nullable(one)
        waiting += _inside(one)
    return schema


def _lower(schema: JsonObject) -> None:
    kind = schema.get("type")
    if isinstance(kind, str):
        schema["type"] = kind.lower()
        if kind.lower() == _NO_TYPE:
            del schema["type"]
    elif isinstance(kind, list):
        schema["type"] = [item.lower() if isinstance(item, str) else item for item in kind]


def _count(schema: JsonObject) -> None:
    for key in _COUNTS:
        value = schema.get(key)
        if isinstance(value, str) and value.isdecimal() and len(value) <= _MOST_DIGITS:
            schema[key] = int(value)


def _nullable(schema: JsonObject) -> None:
    if not isinstance(schema.get("nullable"), bool) or schema.pop("nullable") is False:
        return
    kind, choices, values = schema.get("type"), schema.get("anyOf"), schema.get("enum")
    if isinstance(kind, str) and kind != "null":
        schema["type"] = [kind, "null"]
    if isinstance(choices, list):
        schema["anyOf"] = [*choices, {"type": "null"}]
    if isinstance(values, list) and None not in values:
        schema["enum"] = [*values, None]


def _inside(schema: JsonObject) -> Iterator[JsonObject]:
    """Yield the schemas in a schema: not its examples, and not a property that is called `type`."""
    found: list[Json] = [schema.get(key) for key in _SINGLE]
    for key in _MAPS:
        named = schema.get(key)
        found += named.values() if isinstance(named, dict) else ()
    for key in _LISTS:
        listed = schema.get(key)
        found += listed if isinstance(listed, list) else ()
    yield from (value for value in found if isinstance(value, dict))

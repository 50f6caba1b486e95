"""Schemas with one odd feature each, as a grammar must describe them."""

from toolspeak.ir.json import Json, JsonObject


def _with(**properties: Json) -> JsonObject:
    return {"type": "object", "properties": properties, "required": [*properties]}


_NODE: JsonObject = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
    "required": ["value"],
}

_ODD_KEYS: JsonObject = {key: {} for key in ('with "quotes"', "with blank", "ключ", "a-b.c/d", "new\nline")}

ODD: dict[str, JsonObject] = {
    "nothing": {},
    "no properties": {"type": "object", "properties": {}},
    "no type": {"properties": {"a": {"type": "string"}}},
    "string": _with(a={"type": "string"}),
    "number": _with(a={"type": "number"}),
    "integer": _with(a={"type": "integer"}),
    "boolean": _with(a={"type": "boolean"}),
    "null": _with(a={"type": "null"}),
    "anything": _with(a={}),
    "several types": _with(a={"type": ["string", "integer", "null"]}),
    "enum": _with(a={"enum": ["x", 1, 2.5, True, None, 'quote " and \\ and \n', "æøå 🙂"]}),
    "const": _with(a={"const": {"b": [1, "c"]}}),
    "many choices": _with(a={"enum": [f"choice-{number}" for number in range(200)]}),
    "range": _with(a={"type": "integer", "minimum": -3, "maximum": 12}),
    "open range": _with(a={"type": "integer", "exclusiveMinimum": 0}),
    "wide range": _with(a={"type": "integer", "minimum": 0, "maximum": 1_000_000}),
    "short string": _with(a={"type": "string", "minLength": 2, "maxLength": 8}),
    "long string": _with(a={"type": "string", "maxLength": 100_000}),
    "pattern": _with(a={"type": "string", "pattern": "^[a-z]{3}\\d+$"}),
    "format": _with(a={"type": "string", "format": "date-time"}),
    "array": _with(a={"type": "array", "items": {"type": "string"}}),
    "array of any": _with(a={"type": "array"}),
    "bounded array": _with(a={"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 4}),
    "empty array": _with(a={"type": "array", "maxItems": 0}),
    "tuple": _with(a={"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": False}),
    "nested": _with(a=_with(b=_with(c=_with(d={"type": "boolean"})))),
    "optional only": {"type": "object", "properties": {key: {"type": "string"} for key in "abcdef"}},
    "many optional": {
        "type": "object",
        "properties": {f"option_{number}": {"type": "integer"} for number in range(60)},
        "required": ["option_30"],
    },
    "map": _with(a={"type": "object", "additionalProperties": {"type": "integer"}}),
    "free map": _with(a={"type": "object", "additionalProperties": True}),
    "required without property": {"type": "object", "required": ["a", "b"]},
    "any of": _with(a={"anyOf": [{"type": "string"}, _with(b={"type": "integer"})]}),
    "one of, discriminated": _with(
        a={"oneOf": [_with(kind={"const": "x"}, x={"type": "string"}), _with(kind={"const": "y"})]}
    ),
    "any of required": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "all of": _with(a={"allOf": [_with(b={"type": "string"}), _with(c={"type": "integer"})]}),
    "reference": {**_with(a={"$ref": "#/$defs/node"}), "$defs": {"node": _NODE}},
    "circle": {"$ref": "#/$defs/node", "$defs": {"node": _NODE}},
    "circle of nothing": {
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "string"}]}},
        **_with(a={"$ref": "#/$defs/a"}),
    },
    "odd keys": _with(**_ODD_KEYS),
    "false": _with(a=False),
    "not": _with(a={"type": "string", "not": {"const": "x"}}),
}

"""Navigates a JSON Schema: which subschemas apply to a value, and which to its properties and items.

A schema may have any shape here; a keyword of the wrong shape counts as missing. Results are never stricter than the
schema itself, so a value that is refused here is certainly not accepted by the schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from toolspeak.ir.json import Json, JsonObject, as_list, as_object

MAX_DEPTH: Final = 64
TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
NOTHING: Final[JsonObject] = {"enum": []}  # the schema `false` as an object

_MOST_PARTS = 64
_MOST_BRANCHES = 32
_MOST_ALTERNATIONS = 3  # alternatives inside of alternatives: deeper ones say little, and references may be cyclic
_NAMES: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def type_of(value: Json) -> str:
    """Return the JSON type of a value; a float is a number, even if it is whole."""
    return _NAMES.get(type(value)) or next(name for kind, name in _NAMES.items() if isinstance(value, kind))


def pointer_to(path: str, key: str | int) -> str:
    """Return a JSON pointer extended by one step."""
    if isinstance(key, int):
        return f"{path}/{key}"
    return f"{path}/{key.replace('~', '~0').replace('/', '~1') if '~' in key or '/' in key else key}"


def look_up(root: JsonObject, reference: str) -> JsonObject | bool | None:
    """Return the schema that a local `$ref` names; None if there is none, or if it is not local."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    place: Json = root
    for step in reference[2:].split("/"):
        key = _unescaped(step)
        if isinstance(place, dict):
            place = place.get(key)
        elif isinstance(place, list) and key.isascii() and key.isdigit() and int(key[:9]) < len(place):
            place = place[int(key[:9])]
        else:
            return None
    return place if isinstance(place, dict | bool) else None


def _unescaped(step: str) -> str:
    """Undo the escapes of a pointer in a URI: percent first, then tilde."""
    if "%" in step:
        head, *rest = step.split("%")
        encoded = head.encode(errors="replace") + b"".join(map(_percent, rest))
        step = encoded.decode(errors="replace")
    return step.replace("~1", "/").replace("~0", "~")


def _percent(piece: str) -> bytes:
    try:
        return bytes.fromhex(piece[:2]) + piece[2:].encode(errors="replace")
    except ValueError:
        return b"%" + piece.encode(errors="replace")


def levels(value: Json) -> list[list[Json]]:
    """Return the values of each level of nesting; more than MAX_DEPTH + 1 levels mean that the value is too deep."""
    found = [[value]]
    while len(found) <= MAX_DEPTH + 1:
        nested = [item for item in found[-1] if isinstance(item, dict | list)]
        if not nested:
            break
        below = [child for item in nested for child in (item.values() if isinstance(item, dict) else item)]
        if not below:
            break
        found.append(below)
    return found


@dataclass(slots=True)
class StepBudget:
    """The steps that a walk over value and schema may still take; it bounds all recursion (P8)."""

    left: int

    def take(self, count: int = 1) -> bool:
        """Spend steps; return False if the budget is used up."""
        self.left -= count
        return self.left >= 0


@dataclass(frozen=True, slots=True)
class Choices:
    """The values that `enum` or `const` allows, indexed for fast search."""

    scalars: frozenset[tuple[bool, Json]]  # with "is a boolean", because True == 1 in Python
    containers: tuple[Json, ...]
    folded: dict[str, str | None]  # text without case → the one choice that it can mean

    def hold(self, value: Json) -> bool:
        """Return whether the value is one of the choices."""
        if isinstance(value, dict | list):
            return value in self.containers
        return (isinstance(value, bool), value) in self.scalars


def _choices(options: list[Json]) -> Choices:
    folded: dict[str, str | None] = {}
    for option in options:
        if isinstance(option, str):
            key = option.casefold()
            folded[key] = None if folded.get(key, option) != option else option
    scalars = [(isinstance(one, bool), one) for one in options if not isinstance(one, dict | list)]
    containers = [one for one in options if isinstance(one, dict | list)]
    return Choices(frozenset(scalars), tuple(containers), folded)


class Places:
    """Navigates one schema; local references are relative to `root`.

    Results are cached by the identity of a subschema, so every subschema that is passed in must outlive this object.
    """

    def __init__(self, root: JsonObject) -> None:
        """Keep the root; everything else is computed when needed."""
        self._root = root
        self._parts: dict[int, list[JsonObject]] = {}
        self._choices: dict[int, Choices | None] = {}
        self._types: dict[int, frozenset[str] | None] = {}

    def parts(self, schema: Json) -> list[JsonObject]:
        """Return the schemas that all apply: the schema itself, the target of its `$ref`, and its `allOf`."""
        if not isinstance(schema, dict):
            return [NOTHING] if schema is False else []
        if "$ref" not in schema and "allOf" not in schema:
            return [schema]
        if id(schema) not in self._parts:
            self._parts[id(schema)] = self._collected(schema)
        return self._parts[id(schema)]

    def _collected(self, schema: JsonObject) -> list[JsonObject]:
        parts: list[JsonObject] = []
        pending: list[Json] = [schema]
        while pending and len(parts) < _MOST_PARTS:
            one = pending.pop(0)
            if one is False:
                parts.append(NOTHING)
            elif isinstance(one, dict) and not any(one is part for part in parts):
                parts.append(one)
                reference = one.get("$ref")
                if isinstance(reference, str):
                    pending.append(look_up(self._root, reference))
                pending += as_list(one.get("allOf"))
        return parts

    def choices(self, part: JsonObject) -> Choices | None:
        """Return the values that a part's own enum or const allows; None if it has neither."""
        if "enum" not in part and "const" not in part:
            return None
        if id(part) not in self._choices:
            enum = part.get("enum")
            options = [part["const"]] if "const" in part else enum if isinstance(enum, list) else None
            self._choices[id(part)] = None if options is None else _choices(options)
        return self._choices[id(part)]

    def own_types(self, part: JsonObject) -> frozenset[str] | None:
        """Return the types that a part's own keywords allow; None for all. With "number" comes "integer"."""
        if "type" not in part and "enum" not in part and "const" not in part:
            return None
        if id(part) not in self._types:
            self._types[id(part)] = self._read_types(part)
        return self._types[id(part)]

    def _read_types(self, part: JsonObject) -> frozenset[str] | None:
        named = part.get("type")
        names = {name for name in (named if isinstance(named, list) else [named]) if isinstance(name, str)} & TYPES
        choices = None if names else self.choices(part)
        if choices is not None:
            names = {type_of(value) for _, value in choices.scalars} | {type_of(value) for value in choices.containers}
        elif not names:
            return None
        if part.get("nullable") is True:
            names.add("null")
        return frozenset(names | {"integer"} if "number" in names else names)

    def admits(self, value: Json, part: JsonObject, *, whole_floats: bool) -> bool:
        """Return whether type, enum and const of this part accept the value; with `whole_floats`, 3.0 is an integer."""
        if value is None and part.get("nullable") is True:
            return True
        types = self.own_types(part)
        if types is not None and not _has_type(value, types, whole_floats=whole_floats):
            return False
        choices = self.choices(part)
        return choices is None or choices.hold(value)

    def may_hold(self, value: Json, schema: Json) -> bool:
        """Return whether a schema's own types allow a value of this type."""
        kind = type_of(value)
        return all((types := self.own_types(part)) is None or kind in types for part in self.parts(schema))

    def below(self, part: JsonObject, key: str) -> Json:
        """Return the schema that a part has for a property; True if it has none."""
        properties = as_object(part.get("properties"))
        if key in properties:
            return properties[key]
        if "patternProperties" in part:
            return True  # only the validator matches patterns
        return part.get("additionalProperties", True)

    def item(self, part: JsonObject, index: int) -> Json:
        """Return the schema that a part has for an item; True if it has none."""
        items = part.get("items", True)
        first = as_list(part.get("prefixItems", items))
        if index < len(first):
            return first[index]
        return part.get("additionalItems", True) if isinstance(items, list) else items

    def properties(self, schema: Json, depth: int = 0) -> dict[str, list[Json]]:
        """Return the properties that a schema names, in its order, each with all schemas that apply to it."""
        found: dict[str, list[Json]] = {}
        for part in self.parts(schema) if depth < _MOST_ALTERNATIONS else []:
            for key, below in as_object(part.get("properties")).items():
                found.setdefault(key, []).append(below)
            for keyword in ("anyOf", "oneOf"):
                for key, schemas in self._alternative_properties(part, keyword, depth).items():
                    found.setdefault(key, []).append({"anyOf": schemas})
        return found

    def _alternative_properties(self, part: JsonObject, keyword: str, depth: int) -> dict[str, list[Json]]:
        found: dict[str, list[Json]] = {}
        for branch in as_list(part.get(keyword))[:_MOST_BRANCHES]:
            for key, schemas in self.properties(branch, depth + 1).items():
                found.setdefault(key, []).append({"allOf": schemas})
        return found

    def required(self, schema: Json) -> frozenset[str]:
        """Return the properties that a schema requires in all its alternatives."""
        names = [name for part in self.parts(schema) for name in as_list(part.get("required"))]
        return frozenset(name for name in names if isinstance(name, str))

    def types(self, schema: Json, depth: int = 0) -> frozenset[str] | None:
        """Return the types that a schema allows, with references and alternatives; None if it allows all."""
        found: frozenset[str] | None = None
        for part in self.parts(schema) if depth < _MOST_ALTERNATIONS else []:
            for types in (self._hinted(part), *(self._union(part, key, depth) for key in ("anyOf", "oneOf"))):
                found = types if found is None else found if types is None else found & types
        return found

    def _hinted(self, part: JsonObject) -> frozenset[str] | None:
        types = self.own_types(part)
        if types is None and isinstance(part.get("properties"), dict):
            return frozenset({"object"})
        if types is None and ("items" in part or "prefixItems" in part):
            return frozenset({"array"})
        return types

    def _union(self, part: JsonObject, keyword: str, depth: int) -> frozenset[str] | None:
        branches = as_list(part.get(keyword))
        if len(branches) > _MOST_BRANCHES:
            return None
        found = [self.types(branch, depth + 1) for branch in branches]
        known = [types for types in found if types is not None]
        return frozenset[str]().union(*known) if known and len(known) == len(found) else None


def _has_type(value: Json, types: frozenset[str], *, whole_floats: bool) -> bool:
    name = type_of(value)
    if name in types:
        return True
    return whole_floats and isinstance(value, float) and "integer" in types and value.is_integer()

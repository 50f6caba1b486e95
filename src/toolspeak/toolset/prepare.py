"""Rewrites a tool's schema for constrained decoding: each kind of server supports another part of JSON Schema.

References are expanded, because a schema inside of another one has lost its root. Keywords that a server does not know
are left out; demands of the server are added. The answer is still checked against the tool's own schema (CHK-3), so a
keyword that is left out here is only not enforced early.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text.schema import Places

_MOST_NODES: Final = 4_000
_DEEPEST: Final = 16
_LARGEST: Final = 1_000
"""The largest count or length that is sent: a grammar writes it out."""
_WORDS: Final = frozenset(("type", "description", "enum", "const", "properties", "required", "items", "anyOf"))
_COUNTS: Final = frozenset(("minItems", "maxItems"))
_LENGTHS: Final = frozenset(("minLength", "maxLength"))
_RANGES: Final = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))
_TEXT_OF_JSON: Final[JsonObject] = {"type": "string", "description": "a JSON object, as text"}


@dataclass(frozen=True, slots=True)
class _Subset:
    """The part of JSON Schema that one kind of server supports."""

    keywords: frozenset[str]
    closed: bool = False
    """Whether every object must have `additionalProperties: false`."""
    all_required: bool = False
    """Whether every property must be required; optional ones may then be null, which coercion drops again."""


_GRAMMARS: Final = _Subset(_WORDS | _COUNTS | _LENGTHS | _RANGES | {"prefixItems", "additionalProperties"})
_SUBSETS: Final[Mapping[ConstraintForm, _Subset]] = {
    ConstraintForm.STRICT: _Subset(_WORDS | _COUNTS | _RANGES, closed=True, all_required=True),
    ConstraintForm.ANTHROPIC: _Subset(_WORDS, closed=True),
    ConstraintForm.GEMINI: _Subset(
        (_WORDS | _COUNTS | {"minimum", "maximum", "prefixItems", "additionalProperties"}) - {"const"}
    ),
}


def prepare(schema: JsonObject, form: ConstraintForm) -> JsonObject:
    """Return a copy of a schema that servers of this form accept."""
    return _Preparing(schema, _SUBSETS.get(form, _GRAMMARS)).at(schema, 0)


class _Preparing:
    """Copies one schema."""

    def __init__(self, root: JsonObject, subset: _Subset) -> None:
        self._places, self._subset, self._left = Places(root), subset, _MOST_NODES

    def at(self, schema: Json, depth: int) -> JsonObject:
        """Return the copy of one subschema. Too deep, or inside of an endless reference, it is `{}`: any value."""
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            return {}
        merged = _merged(self._places.parts(schema))
        kept: JsonObject = {}
        if "const" in merged and "const" not in self._subset.keywords:
            kept["enum"] = [merged["const"]]
        for key, value in merged.items():
            if key in self._subset.keywords and (copied := self._keyword(key, value, depth)) is not None:
                kept[key] = copied
        return self._finished(kept)

    def _keyword(self, key: str, value: Json, depth: int) -> Json:
        match key:
            case "properties" if isinstance(value, dict):
                return {name: self.at(inner, depth + 1) for name, inner in value.items()}
            case "items":
                return self.at(value, depth + 1)
            case "additionalProperties":
                return self.at(value, depth + 1) if isinstance(value, dict) else value
            case "anyOf" | "prefixItems" if isinstance(value, list):
                return [self.at(inner, depth + 1) for inner in value]
            case "minItems" | "maxItems" | "minLength" | "maxLength":
                return value if isinstance(value, int) and value <= _LARGEST else None
            case _:
                return value

    def _finished(self, kept: JsonObject) -> JsonObject:
        properties = kept.get("properties")
        if kept.get("type") != "object" or not self._subset.closed:
            return kept
        if not isinstance(properties, dict) or not properties:
            return {**_TEXT_OF_JSON} if "properties" not in kept else {**kept, "additionalProperties": False}
        return {
            **(_all_required(kept, properties) if self._subset.all_required else kept),
            "additionalProperties": False,
        }


def _all_required(schema: JsonObject, properties: JsonObject) -> JsonObject:
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    names: list[Json] = [*properties]
    or_null: JsonObject = {
        name: inner if name in needed else {"anyOf": [inner, {"type": "null"}]} for name, inner in properties.items()
    }
    return {**schema, "properties": or_null, "required": names}


def _merged(parts: list[JsonObject]) -> JsonObject:
    """Merge schemas that all apply: the union of their properties, and the first value of any other keyword."""
    if len(parts) == 1 and "oneOf" not in parts[0]:
        return parts[0]
    merged: JsonObject = {}
    for part in parts:
        for key, value in part.items():
            word, known = ("anyOf" if key == "oneOf" else key), merged.get("anyOf" if key == "oneOf" else key)
            if word == "properties" and isinstance(known, dict) and isinstance(value, dict):
                merged[word] = {**value, **known}
            elif word == "required" and isinstance(known, list) and isinstance(value, list):
                merged[word] = list(dict.fromkeys([*known, *value]))
            else:
                merged.setdefault(word, value)
    return merged

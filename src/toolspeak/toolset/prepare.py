"""A tool's schema as an upstream takes it for a constraint: each server knows another part of JSON Schema.

References are written out, because a schema that stands inside another has lost its root. What a server does not know
is left out; what it demands is added. The answer is still checked against the tool's own schema (CHK-3), so that what
was left out here is only not enforced early.
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
"""The largest count that a grammar writes out."""
_WORDS: Final = frozenset(("type", "description", "enum", "const", "properties", "required", "items", "anyOf"))
_COUNTS: Final = frozenset(("minItems", "maxItems"))
_LENGTHS: Final = frozenset(("minLength", "maxLength"))
_RANGES: Final = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))
_TEXT_OF_JSON: Final[JsonObject] = {"type": "string", "description": "a JSON object, as text"}


@dataclass(frozen=True, slots=True)
class _Subset:
    """What one kind of server knows."""

    keywords: frozenset[str]
    closed: bool = False
    """Every object must say that it has no other properties."""
    all_required: bool = False
    """Every property must be required; what is optional may be null instead."""


_GRAMMARS: Final = _Subset(_WORDS | _COUNTS | _LENGTHS | _RANGES | {"prefixItems", "additionalProperties"})
_SUBSETS: Final[Mapping[ConstraintForm, _Subset]] = {
    ConstraintForm.STRICT: _Subset(_WORDS | _COUNTS | _RANGES, closed=True, all_required=True),
    ConstraintForm.ANTHROPIC: _Subset(_WORDS, closed=True),
    ConstraintForm.GEMINI: _Subset(
        (_WORDS | _COUNTS | {"minimum", "maximum", "prefixItems", "additionalProperties"}) - {"const"}
    ),
}


def prepare(schema: JsonObject, form: ConstraintForm) -> JsonObject:
    """Write a schema for one kind of server."""
    return _Preparing(schema, _SUBSETS.get(form, _GRAMMARS)).at(schema, 0)


class _Preparing:
    """Copies one schema."""

    def __init__(self, root: JsonObject, subset: _Subset) -> None:
        self._places, self._subset, self._left = Places(root), subset, _MOST_NODES

    def at(self, schema: Json, depth: int) -> JsonObject:
        """Copy what stands at one place; what is too deep, or refers to itself for ever, may be anything."""
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
    """Make one schema of those that all apply here: their properties together, of all else the first."""
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

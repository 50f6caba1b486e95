"""Converts values to the types that a schema demands, only where it demands them, and without loss (CHK-3).

    coerce({"n": "4", "tags": '["a"]'}, schema) → Coerced({"n": 4, "tags": ["a"]}, (Fix("string to integer", "/n"), …))

A value that the schema accepts is never changed. So text stays text where text is allowed, whatever it looks like: a
client that parsed strings destroyed comments silently (dm.ai #461), and others lost leading zeros (dust #27777). If two
conversions are possible, none is applied, and the validator reports the problem. `typed` is for values that came as
plain text and have no type of their own.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Fix
from toolspeak.ir.json import Json, JsonObject, as_list, as_object
from toolspeak.text._explain import Explainer
from toolspeak.text._places import MAX_DEPTH, Places, StepBudget, levels, pointer_to, type_of
from toolspeak.text.repair import repair
from toolspeak.text.strict import parse

WRAPPERS: Final = frozenset({"input", "arguments", "properties", "parameters", "args"})
"""Keys in which models wrap the arguments by mistake."""

_BRANCHES = ("anyOf", "oneOf")
_EXACT_FLOATS = 2.0**53  # beyond it a float is no exact integer
_FEWEST_STEPS = 5_000
_MOST_STEPS = 1_000_000
_STEPS_PER_VALUE = 8
_STEPS_PER_CHARACTER = 1  # a string may hold JSON
_CHARACTERS_PER_STEP = 16  # to read one
_SOME_TEXT = "\0"  # no enum has it: where it fits, every text does


@dataclass(frozen=True, slots=True)
class Coerced:
    """A value, and the fixes that were applied to it."""

    value: Json
    fixes: tuple[Fix, ...] = ()


def coerce(value: Json, schema: Json, root: JsonObject | None = None, *, wrap_scalars: bool = False) -> Coerced:
    """Coerce a value to this schema; references in it are relative to `root`, or to the schema itself."""
    return Coercer(_places(schema, root), wrap_scalars=wrap_scalars).coerce(value, schema)


def coerce_arguments(value: Json, schema: JsonObject, *, wrap_scalars: bool = False) -> Coerced:
    """Coerce the arguments of a call, after decoding an object that came as a string and removing a wrapper."""
    return Coercer(Places(schema), wrap_scalars=wrap_scalars).arguments(value, schema)


def typed(raw: str, schema: Json, root: JsonObject | None = None) -> Coerced:
    """Return a value that came as plain text, typed by the schema."""
    return Coercer(_places(schema, root)).typed(raw, schema)


def _places(schema: Json, root: JsonObject | None) -> Places:
    return Places(as_object(schema) if root is None else root)


class Coercer:
    """Coerces one value. It holds the fixes and the budget of steps, so each value needs a new one."""

    def __init__(self, places: Places, *, wrap_scalars: bool = False) -> None:
        """Look up schemas in `places`; with `wrap_scalars`, `x` becomes `[x]` where only an array is accepted."""
        self._places, self._wrap_scalars = places, wrap_scalars
        self._fixes: list[Fix] = []
        self._steps = StepBudget(_FEWEST_STEPS)
        self._shape = Explainer(places, self._steps, shape_only=True)

    def coerce(self, value: Json, schema: Json) -> Coerced:
        """Coerce a value to this schema."""
        self._expect(value)
        return Coerced(self._value(value, schema, "", 0), tuple(self._fixes))

    def arguments(self, value: Json, schema: JsonObject) -> Coerced:
        """Coerce the arguments of a call; a value that is not an object after decoding is returned as it is."""
        decoded = self._decoded(value)
        if not isinstance(decoded, dict):
            return Coerced(decoded)
        return self.coerce(self._unwrapped(decoded, schema), schema)

    def typed(self, raw: str, schema: Json) -> Coerced:
        """Return a value that came as plain text, typed by the schema; if nothing fits, it stays text."""
        types = self._places.types(schema)
        if types is None:
            return Coerced(_guessed(raw))
        if "string" in types:
            return self._text(raw, schema, types)
        read = self._read(raw.strip(), types)
        return Coerced(raw) if read is None else self.coerce(read.value, schema)

    def takes_any_text(self, schema: Json) -> bool:
        """Return whether `typed` returns every text as it is, except for `null`."""
        types = self._places.types(schema)
        return types is not None and "string" in types and self._shape.fits(_SOME_TEXT, schema)

    def _expect(self, value: Json) -> None:
        """Set the budget of steps by the size of the value: the work is linear in it, whatever the schema is (P8)."""
        steps = self._steps.left
        for level in levels(value):
            steps += _STEPS_PER_VALUE * len(level)
            steps += sum(_STEPS_PER_CHARACTER * len(item) for item in level if isinstance(item, str))
        self._steps.left = min(steps, _MOST_STEPS)

    def _fix(self, what: str, path: str) -> None:
        self._fixes.append(Fix(what, path))

    def _decoded(self, value: Json) -> Json:
        if value is None or (isinstance(value, str) and value.strip() in {"", "null"}):
            self._fix("no arguments", "")
            return {}
        decoded = _object_in(value)
        if decoded is None:
            return value
        self._fix("string to object", "")
        return decoded

    def _unwrapped(self, value: JsonObject, schema: JsonObject) -> JsonObject:
        """Return the arguments inside of `{"input": {…}}` if the schema certainly does not mean the wrapper."""
        if len(value) != 1 or not WRAPPERS.issuperset(value):
            return value
        known = self._places.properties(schema)
        key, wrapped = next(iter(value.items()))
        self._expect(value)
        inner = wrapped if isinstance(wrapped, dict) else _object_in(wrapped)
        if key in known or inner is None or not known.keys() >= inner.keys() or self._shape.fits(value, schema):
            return value
        self._fix(f"unwrapped from {key}", "")
        return inner

    def _text(self, raw: str, schema: Json, types: frozenset[str]) -> Coerced:
        """Keep a text where text is allowed, except for `null`, and for case and blanks of an enum's values."""
        fits = self._shape.fits(raw, schema)
        if raw == "null" and "null" in types and (not fits or self._shape.fits(_SOME_TEXT, schema)):
            return Coerced(None)
        if fits:
            return Coerced(raw)
        coerced = self.coerce(raw.strip(), schema)
        return coerced if self._shape.fits(coerced.value, schema) else Coerced(raw)

    def _read(self, text: str, types: frozenset[str]) -> Coerced | None:
        for _, value in readings(text, types):
            return Coerced(value)
        if text[:1] not in {"[", "{"}:
            return None
        try:
            repaired = repair(text, closed=True)
        except BadJson:
            return None
        if type_of(repaired.value) not in types:
            return None
        self._fixes += repaired.fixes
        return Coerced(repaired.value)

    def _value(self, value: Json, schema: Json, path: str, depth: int) -> Json:
        if not self._steps.take() or depth > MAX_DEPTH:
            return value
        parts = self._places.parts(schema)
        for part in parts:
            value = self._own(value, part, path)
        for part in parts:
            for keyword in _BRANCHES:
                if keyword in part:
                    value = self._branch(value, as_list(part[keyword]), path, depth)
        if isinstance(value, dict):
            return self._fields(value, parts, path, depth)
        if isinstance(value, list):
            return self._items(value, parts, path, depth)
        return value

    def _own(self, value: Json, part: JsonObject, path: str) -> Json:
        """Return the value converted to the part's own type and enum, or as it is if no conversion fits."""
        if self._places.admits(value, part, whole_floats=False):
            return value
        if isinstance(value, str) and not self._steps.take(len(value) // _CHARACTERS_PER_STEP):
            return value
        for what, candidate in self._candidates(value, part):
            if self._places.admits(candidate, part, whole_floats=False):
                self._fix(what, path)
                return candidate
        return value

    def _candidates(self, value: Json, part: JsonObject) -> Iterator[tuple[str, Json]]:
        types = self._places.own_types(part) or frozenset()
        if isinstance(value, str):
            choices = self._places.choices(part)
            meant = choices.folded.get(value.casefold()) if choices else None
            if meant is not None:
                yield "enum case", meant
            for kind, candidate in readings(value, types):
                yield f"string to {kind}", candidate
        elif isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT_FLOATS:
            yield "float to integer", int(value)
        if self._wrap_scalars and value is not None and not isinstance(value, dict | list):
            yield "wrapped in an array", [value]

    def _branch(self, value: Json, branches: list[Json], path: str, depth: int) -> Json:
        """Return the value converted to an alternative, or as it is.

        It is converted only if no alternative accepts it as it is, and all conversions that fit give the same value.
        """
        if isinstance(value, dict | list):
            branches = [branch for branch in branches if self._places.may_hold(value, branch)]
            if len(branches) == 1:  # in most schemas the other alternative is null
                return self._value(value, branches[0], path, depth + 1)
        if not branches or any(self._shape.fits(value, branch, depth + 1) for branch in branches):
            return value
        found: list[Coerced] = []
        kept = len(self._fixes)
        for branch in branches:
            candidate = self._value(value, branch, path, depth + 1)
            if candidate is not value and self._shape.fits(candidate, branch, depth + 1):
                found.append(Coerced(candidate, tuple(self._fixes[kept:])))
            del self._fixes[kept:]
        if len({repr(one.value) for one in found}) != 1:
            return value
        self._fixes += found[0].fixes
        return found[0].value

    def _fields(self, value: JsonObject, parts: list[JsonObject], path: str, depth: int) -> JsonObject:
        fields: JsonObject = {}
        for key, item in value.items():
            schemas = [below for part in parts if (below := self._places.below(part, key)) is not True]
            if item is None and self._is_surplus(key, schemas, parts, depth):
                self._fix("null dropped", pointer_to(path, key))
                continue
            fields[key] = item
            for schema in schemas:
                fields[key] = self._value(fields[key], schema, pointer_to(path, key), depth + 1)
        is_same = len(fields) == len(value) and all(fields[key] is item for key, item in value.items())
        return value if is_same else fields

    def _is_surplus(self, key: str, schemas: list[Json], parts: list[JsonObject], depth: int) -> bool:
        """Return whether a null only says that an optional property is missing."""
        if any(key in as_list(part.get("required")) for part in parts):
            return False
        if not any(key in as_object(part.get("properties")) for part in parts):
            return False
        return not all(self._shape.fits(None, schema, depth + 1) for schema in schemas)

    def _items(self, value: list[Json], parts: list[JsonObject], path: str, depth: int) -> list[Json]:
        for part in parts:
            if "items" in part or "prefixItems" in part:
                new = [
                    self._value(item, self._places.item(part, index), pointer_to(path, index), depth + 1)
                    for index, item in enumerate(value)
                ]
                value = new if any(one is not other for one, other in zip(new, value, strict=True)) else value
        return value


def _object_in(value: Json) -> JsonObject | None:
    """Return the JSON object that a string contains; None if it does not."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return None
    try:
        decoded = parse(value)
    except BadJson:
        return None
    return decoded if isinstance(decoded, dict) else None


def _guessed(raw: str) -> Json:
    """Return the JSON value of a text without a schema; a text that is not JSON stays text."""
    try:
        value = parse(raw)
    except BadJson:
        return raw
    return raw if isinstance(value, str) else value


_WORDS: Final[Mapping[str, Json]] = {"true": True, "false": False, "null": None, "none": None, "nil": None}
_LONGEST_WORD: Final = 5
_LONGEST_NUMBER: Final = 1000
# There is only one way through each of these patterns, so nothing backtracks. A leading zero is part of a code (a
# postcode, an account) and not of a number.
_WHOLE: Final = re.compile(r"(-?(?:0|[1-9][0-9]*+))(?:\.0++)?+")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+")


def readings(text: str, types: frozenset[str]) -> Iterator[tuple[str, Json]]:
    """Yield the text read as one of the types other than string, with the name of the type; at most one reading."""
    if len(text) <= _LONGEST_WORD and text.lower() in _WORDS:
        value = _WORDS[text.lower()]
        kind = "null" if value is None else "boolean"
        if kind in types:
            yield kind, value
    elif "integer" in types or "number" in types:
        yield from _numbers(text, types)
    if types & {"array", "object"}:
        yield from _containers(text, types)


def _numbers(text: str, types: frozenset[str]) -> Iterator[tuple[str, Json]]:
    if len(text) > _LONGEST_NUMBER:
        return
    whole = _WHOLE.fullmatch(text)
    if whole and ("integer" in types and ("number" not in types or whole[1] == text)):
        yield "integer", int(whole[1])
    elif "number" in types and _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        yield "number", float(text)


def _containers(text: str, types: frozenset[str]) -> Iterator[tuple[str, Json]]:
    first = text.lstrip()[:1]
    kind = {"[": "array", "{": "object"}.get(first)
    if kind is None or kind not in types:
        return
    try:
        yield kind, parse(text)
    except BadJson:
        return

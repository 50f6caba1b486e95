"""Explains why a schema does not accept a value: the field, its value, and what would be accepted.

The validator decides whether a value is accepted (`schema.py`); this module only words the reason. The validator's own
errors contain every failed alternative with a copy of the value, which takes minutes on a recursive schema.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

import jsonschema_rs

from toolspeak.errors import BadJson
from toolspeak.ir.json import Json, JsonObject, as_list, as_object
from toolspeak.text._places import MAX_DEPTH, Places, StepBudget, pointer_to, type_of
from toolspeak.text.strict import dump

MOST_PROBLEMS: Final = 8
PATTERN_OPTIONS: Final = jsonschema_rs.RegexOptions(size_limit=1 << 16)

_LONGEST_VALUE = 60
_LONGEST_ACCEPTED = 300
_MOST_LISTED = 12
_MOST_BRANCHES = 16
_BRANCHES = ("anyOf", "oneOf")
_MISSING: Final = "is missing"


@dataclass(frozen=True, slots=True)
class SchemaProblem:
    """A problem: `path` is a JSON pointer (empty for the whole value), `found` the value, `accepted` the valid ones."""

    path: str
    found: str
    accepted: str

    @property
    def message(self) -> str:
        """The problem as a sentence, with the field."""
        return f"{self.path or 'the value'} {self.found}, but must be {self.accepted}"

    @property
    def is_missing(self) -> bool:
        """Whether something is missing that may still come while the value is being written."""
        return self.found == _MISSING


# For callers that only need to know whether there is a problem: to word one costs more than to find it.
_MISFIT: Final = SchemaProblem("", "does not fit", "something else")


def show_value(value: Json) -> str:
    """Return a value as a short text for a message, however large it is."""
    if isinstance(value, dict):
        return f"an object with {_listed(list(value)) or 'no fields'}"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    try:
        text = dump(value[:_LONGEST_VALUE] if isinstance(value, str) else value)
    except BadJson:  # NaN and infinity
        text = repr(value)
    cut = len(text) > _LONGEST_VALUE or (isinstance(value, str) and len(value) > _LONGEST_VALUE)
    return f"{text[:_LONGEST_VALUE]}…" if cut else text


def _listed(values: list[str] | list[Json]) -> str:
    more = f" and {len(values) - _MOST_LISTED} more" if len(values) > _MOST_LISTED else ""
    return ", ".join(show_value(value) for value in values[:_MOST_LISTED]) + more


_Bound: TypeAlias = tuple[Callable[[float, float], bool], str]
_OF_NUMBERS: Final[Mapping[str, _Bound]] = {
    "minimum": (operator.ge, "at least {}"),
    "maximum": (operator.le, "at most {}"),
    "exclusiveMinimum": (operator.gt, "more than {}"),
    "exclusiveMaximum": (operator.lt, "less than {}"),
}
_OF_SIZES: Final[Mapping[str, Mapping[str, _Bound]]] = {
    "string": {
        "minLength": (operator.ge, "at least {} characters"),
        "maxLength": (operator.le, "at most {} characters"),
    },
    "array": {"minItems": (operator.ge, "at least {} items"), "maxItems": (operator.le, "at most {} items")},
    "object": {
        "minProperties": (operator.ge, "at least {} fields"),
        "maxProperties": (operator.le, "at most {} fields"),
    },
}
# Keywords that only the validator can check, with the type that they apply to and their words.
_ASKED: Final[Mapping[str, tuple[str, str]]] = {
    "pattern": ("string", "text that matches {}"),
    "multipleOf": ("number", "a multiple of {}"),
    "uniqueItems": ("array", "an array without repeated items"),
}
_COST_OF_ASKING = 20


class Explainer:
    """Finds the problems of values within a budget of steps.

    With `shape_only`, only types, enums and fields count, and 3.0 is not an integer: coercion asks in this way.
    """

    def __init__(self, places: Places, steps: StepBudget, *, shape_only: bool = False) -> None:
        """Look up schemas in `places`; when no steps are left, every value counts as accepted."""
        self._places, self._steps, self._shape_only = places, steps, shape_only

    def fits(self, value: Json, schema: Json, depth: int = 0) -> bool:
        """Return whether no problem is found."""
        return next(self.problems(value, schema, "", depth), None) is None

    def problems(self, value: Json, schema: Json, path: str = "", depth: int = 0) -> Iterator[SchemaProblem]:
        """Yield the problems of a value that can be found cheaply."""
        if not self._steps.take() or depth > MAX_DEPTH:
            return
        for part in self._places.parts(schema):
            if not self._places.admits(value, part, whole_floats=not self._shape_only):
                yield (
                    _MISFIT if self._shape_only else SchemaProblem(path, f"is {show_value(value)}", self.accepted(part))
                )
                continue
            yield from self._alternatives(value, part, path, depth)
            if isinstance(value, dict):
                yield from self._fields(value, part, path, depth)
            elif isinstance(value, list):
                yield from self._items(value, part, path, depth)
            if not self._shape_only:
                yield from self._bounds(value, part, path)

    def accepted(self, schema: Json, depth: int = 0) -> str:
        """Return in a few words what a schema accepts."""
        for part in self._places.parts(schema) if depth < MOST_PROBLEMS else []:
            choices = self._places.choices(part)
            if choices is not None:
                options = as_list(part["enum"]) if "enum" in part else [part["const"]]
                return f"one of {_listed(options)}" if len(options) > 1 else _listed(options) or "left out"
            types = self._places.own_types(part)
            if types is not None:
                return " or ".join(sorted(types - {"integer"} if "number" in types else types))
            for keyword in _BRANCHES:
                if branches := as_list(part.get(keyword)):
                    return _joined([self.accepted(branch, depth + 1) for branch in branches[:_MOST_BRANCHES]])
        return "a value that the schema accepts"

    def _alternatives(self, value: Json, part: JsonObject, path: str, depth: int) -> Iterator[SchemaProblem]:
        for keyword in _BRANCHES:
            branches = as_list(part.get(keyword))
            if not branches or any(self.fits(value, branch, depth + 1) for branch in branches):
                continue
            if self._shape_only:
                yield _MISFIT
            else:
                yield from self._nearest(value, branches[:_MOST_BRANCHES], path, depth)

    def _nearest(self, value: Json, branches: list[Json], path: str, depth: int) -> list[SchemaProblem]:
        """Return the problems of the nearest alternative: the value has its type, and the fewest problems inside."""
        found = [list(islice(self.problems(value, branch, path, depth + 1), MOST_PROBLEMS)) for branch in branches]
        almost = [problems for problems in found if problems and all(one.path != path for one in problems)]
        if almost:
            return min(almost, key=len)
        accepted = _joined([problem.accepted for problems in found for problem in problems])
        return [SchemaProblem(path, f"is {show_value(value)}", accepted or self.accepted({"anyOf": branches}))]

    def _fields(self, value: JsonObject, part: JsonObject, path: str, depth: int) -> Iterator[SchemaProblem]:
        properties = as_object(part.get("properties"))
        for key in as_list(part.get("required")):
            if isinstance(key, str) and key not in value:
                if self._shape_only:
                    yield _MISFIT
                    continue
                accepted = self.accepted(properties[key]) if key in properties else "there"
                yield SchemaProblem(pointer_to(path, key), _MISSING, accepted)
        for key, item in value.items():
            schema = self._places.below(part, key)
            if schema is False and key not in properties:
                accepted = f"one of the known fields ({_listed(list(properties)) or 'there are none'})"
                yield SchemaProblem(pointer_to(path, key), "is not a known field", accepted)
            elif schema is not True:
                yield from self.problems(item, schema, pointer_to(path, key), depth + 1)

    def _items(self, value: list[Json], part: JsonObject, path: str, depth: int) -> Iterator[SchemaProblem]:
        if "items" not in part and "prefixItems" not in part:
            return
        for index, item in enumerate(value):
            schema = self._places.item(part, index)
            if schema is not True:
                yield from self.problems(item, schema, pointer_to(path, index), depth + 1)

    def _bounds(self, value: Json, part: JsonObject, path: str) -> Iterator[SchemaProblem]:
        kind = type_of(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield from _broken(value, value, part, path, _OF_NUMBERS)
            kind = "number"
        elif isinstance(value, str | list | dict):
            yield from _broken(value, len(value), part, path, _OF_SIZES[kind])
        for keyword, (applies_to, words) in _ASKED.items():
            if keyword in part and kind == applies_to and not self._holds(keyword, part[keyword], value):
                yield SchemaProblem(path, f"is {show_value(value)}", words.format(show_value(part[keyword])))

    def _holds(self, keyword: str, operand: Json, value: Json) -> bool:
        if not self._steps.take(_COST_OF_ASKING):
            return True
        try:
            return jsonschema_rs.is_valid({keyword: operand}, value, offline=True, pattern_options=PATTERN_OPTIONS)
        except ValueError:  # an operand that cannot be used was dropped from the validator too
            return True


def _joined(accepted: list[str]) -> str:
    text = " or ".join(dict.fromkeys(accepted))
    return text if len(text) <= _LONGEST_ACCEPTED else f"{text[:_LONGEST_ACCEPTED]}…"


def _broken(
    value: Json, size: float, part: JsonObject, path: str, bounds: Mapping[str, _Bound]
) -> Iterator[SchemaProblem]:
    for keyword in bounds.keys() & part.keys():
        holds, words = bounds[keyword]
        limit = part[keyword]
        if isinstance(limit, int | float) and not holds(size, limit):
            yield SchemaProblem(path, f"is {show_value(value)}", words.format(show_value(limit)))

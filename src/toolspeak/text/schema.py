"""Checks values against a JSON Schema, offline and in bounded time.

    compile_schema({"type": "object", "properties": {"n": {"type": "integer"}}}).problems({"n": "x"})
    → (SchemaProblem(path="/n", found='is "x"', accepted="integer"),)

Schemas come from clients and MCP servers, so they are hostile input. Nothing is ever fetched, and patterns run on an
engine that does not backtrack. Parts of a schema that cannot be used are left out and noted (`Validator.notes`): a bad
`pattern` in a tool's schema killed vLLM workers (CVE-2025-48944). Only a schema over a limit is refused, as BadSchema.

The validator gets a copy of the schema. Sizes are checked before anything else is read; then `Cleaner` copies the
usable keywords. Nodes are counted as the validator walks them, with every reference replaced by its target. Without
that, ten references that each name the next one twice would be a thousand nodes, and thirty a billion. Other gateways
fail here: a cyclic `$ref` kept LiteLLM at 100 % CPU (#13151), and a tool schema of 1,000 levels broke five parsers
(Rapid-MLX #798).

The copy accepts more than the original where a keyword cannot be used, never less: a valid call must not be rejected
because of a keyword that we do not understand. So keywords that turn strict when their content is loosened are dropped
with it (`_TURN_STRICT`).
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Final

import jsonschema_rs

from toolspeak.errors import BadSchema
from toolspeak.ir.json import Json, JsonObject, as_list, as_object
from toolspeak.text._explain import MOST_PROBLEMS, PATTERN_OPTIONS, Explainer, SchemaProblem, show_value
from toolspeak.text._places import MAX_DEPTH, TYPES, Places, StepBudget, levels, look_up
from toolspeak.text.strict import brackets

_MOST_NOTES = 32
_LONGEST_PATTERN = 1024
_MOST_SLOW_CHOICES = 32  # values of an enum that the validator compares one by one: floats, containers, mixtures
_TURN_STRICT = frozenset({"not", "if", "contains"})  # these may refuse more if the schema inside accepts more
_ONE_SCHEMA = (
    *("items", "additionalProperties", "not", "if", "then", "else"),
    *("contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties"),
)
# Names of types from other languages, which clients write in hand-made schemas.
_ALIASES: Final[Mapping[str, str]] = {
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "str": "string",
    "bool": "boolean",
    "list": "array",
    "tuple": "array",
    "dict": "object",
    "none": "null",
}


def _is_number(operand: Json) -> bool:
    return isinstance(operand, int | float) and not isinstance(operand, bool) and math.isfinite(operand)


def _is_positive(operand: Json) -> bool:
    return isinstance(operand, int | float) and _is_number(operand) and operand > 0


def _is_count(operand: Json) -> bool:
    return isinstance(operand, int) and not isinstance(operand, bool) and 0 <= operand < 1 << 53


def _is_flag(operand: Json) -> bool:
    return isinstance(operand, bool)


def _is_anything(_operand: Json) -> bool:
    return True


_ASSERTIONS: Final[Mapping[str, Callable[[Json], bool]]] = {
    "const": _is_anything,
    "multipleOf": _is_positive,
    "uniqueItems": _is_flag,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), _is_count),
}


@dataclass(slots=True)
class _Copy:
    """A schema that is being copied; the schemas in `beside` must hold too."""

    keywords: JsonObject = field(default_factory=dict[str, Json])
    beside: list[Json] = field(default_factory=list[Json])

    def finished(self) -> JsonObject:
        if self.beside:
            self.keywords["allOf"] = [*as_list(self.keywords.get("allOf")), *self.beside]
        return self.keywords


class Cleaner:
    """Copies one schema. Each target of a reference becomes an entry of the copy's `$defs`.

    Targets are named by their reference, the whole schema by `#`. `nodes` counts the subschemas of each target,
    `references` lists the references in it.
    """

    def __init__(
        self, root: JsonObject, most_nodes: int, patterns: int | None, cut: frozenset[str] = frozenset()
    ) -> None:
        """Copy `root`. At most `patterns` patterns are tested (None: none are); references within `cut` are dropped."""
        self._root, self._most_nodes, self._patterns_left, self._cut = root, most_nodes, patterns, cut
        self.notes: list[str] = []
        self.references: dict[str, list[str]] = {"#": []}
        self.nodes: dict[str, int] = {"#": 0}
        self._names: dict[str, str] = {"#": "#"}
        self._pending: list[str] = []
        self._at = "#"
        self._loosened = 0
        self._readers: Mapping[str, Callable[[str, Json, _Copy], None]] = {
            "$ref": self._reference,
            "dependentRequired": self._dependent_required,
            "enum": self._enum,
            "pattern": self._pattern,
            "required": self._required,
            "type": self._type,
            **dict.fromkeys(_ASSERTIONS, self._assertion),
            **dict.fromkeys(_ONE_SCHEMA, self._one),
            **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), self._list),
            **dict.fromkeys(("properties", "patternProperties", "dependentSchemas"), self._map),
        }

    def clean(self) -> JsonObject:
        """Return the copy: the whole schema, then every target of a reference. Raises BadSchema over the limit."""
        cleaned = as_object(self._schema(self._root))
        definitions: JsonObject = {}
        while self._pending:
            self._at = self._pending.pop()
            definitions[self._names[self._at].rpartition("/")[2]] = self._schema(look_up(self._root, self._at))
        return {**cleaned, "$defs": definitions} if definitions else cleaned

    def _schema(self, schema: Json) -> Json:
        self.nodes[self._at] += 1
        if self.nodes[self._at] > self._most_nodes:
            raise BadSchema(f"the schema has over {self._most_nodes} nodes, at most {self._most_nodes} are accepted")
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            self._drop(f"{show_value(schema)} is no schema")
            return True
        cleaned = self._object(_with_prefix_items(schema))
        return {"anyOf": [cleaned, {"type": "null"}]} if schema.get("nullable") is True else cleaned

    def _object(self, schema: JsonObject) -> JsonObject:
        copy, before = _Copy(), self._loosened
        for keyword, operand in schema.items():
            reader = self._readers.get(keyword)
            if reader is not None:
                reader(keyword, operand, copy)
        if self._loosened > before:  # a keyword that was dropped may have named fields that would now be "unevaluated"
            copy.keywords.pop("unevaluatedProperties", None)
            copy.keywords.pop("unevaluatedItems", None)
        if len(as_object(copy.keywords.get("patternProperties"))) < len(as_object(schema.get("patternProperties"))):
            copy.keywords.pop("additionalProperties", None)
        return copy.finished()

    def _drop(self, why: str) -> None:
        self._loosened += 1
        note = f"{why}: not checked"
        if len(self.notes) < _MOST_NOTES and note not in self.notes:
            self.notes.append(note)

    def _assertion(self, keyword: str, operand: Json, into: _Copy) -> None:
        if _ASSERTIONS[keyword](operand):
            into.keywords[keyword] = operand
        else:
            self._drop(f"{keyword} {show_value(operand)} cannot be used")

    def _type(self, keyword: str, operand: Json, into: _Copy) -> None:
        named = operand if isinstance(operand, list) else [operand]
        names = [_ALIASES.get(name.lower(), name.lower()) for name in named if isinstance(name, str)]
        if not names or len(names) < len(named) or not TYPES.issuperset(names):
            self._drop(f"{keyword} {show_value(operand)} is not one of {', '.join(sorted(TYPES))}")
        else:
            into.keywords[keyword] = list[Json](dict.fromkeys(names)) if isinstance(operand, list) else names[0]

    def _required(self, keyword: str, operand: Json, into: _Copy) -> None:
        names = [name for name in as_list(operand) if isinstance(name, str)]
        if not isinstance(operand, list) or len(names) < len(operand):
            self._drop(f"{keyword} {show_value(operand)} is not a list of names")
        else:
            into.keywords[keyword] = list[Json](dict.fromkeys(names))

    def _dependent_required(self, keyword: str, operand: Json, into: _Copy) -> None:
        lists = _Copy()
        for key, names in as_object(operand).items():
            self._required(key, names, lists)
        into.keywords[keyword] = lists.keywords

    def _enum(self, keyword: str, operand: Json, into: _Copy) -> None:
        """Keep the values, in groups of one type: the validator searches such a group fast, and a mixture slowly."""
        options = as_list(operand)
        texts: list[Json] = [option for option in options if isinstance(option, str)]
        integers: list[Json] = [one for one in options if isinstance(one, int) and not isinstance(one, bool)]
        rest: list[Json] = [one for one in options if not isinstance(one, str | int) or isinstance(one, bool)]
        if not options or len(rest) > _MOST_SLOW_CHOICES:
            self._drop(f"{keyword} {show_value(operand)} is not a list of texts or integers")
        elif len(options) <= _MOST_SLOW_CHOICES:
            into.keywords[keyword] = options
        else:
            groups: list[Json] = [{"enum": group} for group in (texts, integers, rest) if group]
            into.beside.append({"anyOf": groups})

    def _pattern(self, keyword: str, operand: Json, into: _Copy) -> None:
        if isinstance(operand, str) and self._is_usable(operand):
            into.keywords[keyword] = operand
        else:
            self._drop(f"{keyword} {show_value(operand)} cannot be used")

    def _is_usable(self, pattern: str) -> bool:
        if self._patterns_left is None:
            return True
        self._patterns_left -= 1
        if self._patterns_left < 0 or len(pattern) > _LONGEST_PATTERN:
            return False
        try:
            jsonschema_rs.validator_for({"pattern": pattern}, offline=True, pattern_options=PATTERN_OPTIONS)
        except ValueError:
            return False
        return True

    def _reference(self, keyword: str, operand: Json, into: _Copy) -> None:
        if not isinstance(operand, str) or look_up(self._root, operand) is None:
            self._drop(f"{keyword} {show_value(operand)} is not inside the schema")
            return
        if self._at in self._cut and operand in self._cut:
            self._drop(f"{keyword} {show_value(operand)} is one of too many circles")
            return
        if operand not in self._names:
            self._names[operand] = f"#/$defs/{len(self._names)}"
            self.references[operand], self.nodes[operand] = [], 0
            self._pending.append(operand)
        self.references[self._at].append(operand)
        into.keywords[keyword] = self._names[operand]

    def _one(self, keyword: str, operand: Json, into: _Copy) -> None:
        before = self._loosened
        schema = self._schema(operand)
        if keyword not in _TURN_STRICT or self._loosened == before:
            into.keywords[keyword] = schema

    def _list(self, keyword: str, operand: Json, into: _Copy) -> None:
        before = self._loosened
        schemas = [self._schema(schema) for schema in as_list(operand)]
        if not schemas:
            self._drop(f"{keyword} {show_value(operand)} is not a list of schemas")
        elif keyword == "oneOf" and self._loosened > before:  # several loosened alternatives may match one value
            into.beside.append({"anyOf": schemas})
        else:
            into.keywords[keyword] = schemas

    def _map(self, keyword: str, operand: Json, into: _Copy) -> None:
        if not isinstance(operand, dict):
            self._drop(f"{keyword} {show_value(operand)} is not an object of schemas")
            return
        schemas: JsonObject = {}
        for key, schema in operand.items():
            if keyword != "patternProperties" or self._is_usable(key):
                schemas[key] = self._schema(schema)
            else:
                self._drop(f"{keyword} {show_value(key)} cannot be used")
        into.keywords[keyword] = schemas


def _with_prefix_items(schema: JsonObject) -> JsonObject:
    """Return the schema with a list in `items` as `prefixItems`, its name since draft 2020-12."""
    if not isinstance(schema.get("items"), list):
        return schema
    others = {key: operand for key, operand in schema.items() if key != "items"}
    rest = {"items": schema["additionalItems"]} if "additionalItems" in schema else {}
    return {**others, "prefixItems": schema["items"], **rest}


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """Limits of one schema (P7)."""

    size: int = 256 * 1024
    """Bytes of its JSON text."""
    depth: int = 32
    """Levels of nesting of its JSON text."""
    nodes: int = 10_000
    """Subschemas, with every reference replaced by its target; a cycle is followed once."""
    patterns: int = 32
    """Regular expressions that are checked; one may take half a second for 100 KB of hostile text."""


LIMITS: Final = SchemaLimits()

_LONGEST_CHAIN = 64  # references that lead to references
_BYTES_PER_NODE = 2  # the smallest node is {}
_MOST_BYTES = 4  # of a character


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The usable copy of a schema, and notes about the parts that were left out."""

    schema: JsonObject
    notes: tuple[str, ...]


def check(schema: Json, limits: SchemaLimits, text: str = "") -> bool:
    """Raise BadSchema if the schema is too large; return whether cleaning could still raise it.

    Most schemas are small and have no references. For them this returns False, and cleaning waits for the first call.
    `text` is the schema's JSON, if the caller has written it: a walk takes longer than a search in it.
    """
    if not isinstance(schema, dict):
        raise BadSchema(f"the schema is {show_value(schema)}, an object is accepted")
    if text and len(text) * _MOST_BYTES <= limits.size and brackets(text) <= limits.depth:
        refers, size = '"$ref"' in text, len(text) * _MOST_BYTES
    else:
        refers, size = _check_size(schema, limits)
    return refers or size > limits.nodes * _BYTES_PER_NODE


def clean_schema(schema: Json, limits: SchemaLimits, *, test_patterns: bool) -> Cleaned:
    """Return the usable copy of a schema; raises BadSchema if the schema is over a limit or not an object."""
    if not isinstance(schema, dict):
        raise BadSchema(f"the schema is {show_value(schema)}, an object is accepted")
    _check_size(schema, limits)
    patterns = limits.patterns if test_patterns else None
    cleaner = Cleaner(schema, limits.nodes, patterns)
    cleaned = cleaner.clean()
    if _is_too_wide(cleaner.references, cleaner.nodes, limits.nodes):
        # There are too many paths through the references. If cycles are the reason, the schema is usable without them.
        cleaner = Cleaner(schema, limits.nodes, patterns, cut=_on_cycles(cleaner.references))
        cleaned = cleaner.clean()
    if _is_too_wide(cleaner.references, cleaner.nodes, limits.nodes):
        raise BadSchema(
            f"the schema has over {limits.nodes} nodes, or references over {_LONGEST_CHAIN} deep, "
            f"once they are expanded; at most {limits.nodes} and {_LONGEST_CHAIN} are accepted"
        )
    return Cleaned(cleaned, tuple(cleaner.notes))


def _check_size(schema: JsonObject, limits: SchemaLimits) -> tuple[bool, int]:
    """Return whether the schema has references, and the bytes of its JSON text; raises BadSchema over a limit.

    It walks level by level, so that neither depth nor a loop in the object costs stack.
    """
    level: list[Json] = [schema]
    depth = values = 0
    refers = False
    while level:
        depth, values = depth + 1, values + len(level)
        if depth > limits.depth:
            raise BadSchema(f"the schema is nested {depth} levels deep or more, at most {limits.depth} are accepted")
        if values > limits.size:
            raise BadSchema(f"the schema has over {values} bytes, at most {limits.size} are accepted")
        refers = refers or any("$ref" in item for item in level if isinstance(item, dict))
        nested = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level = [value for below in nested for value in below if isinstance(value, dict | list)]
    size = len(_bytes(schema))
    if size > limits.size:
        raise BadSchema(f"the schema has {size} bytes, at most {limits.size} are accepted")
    return refers, size


def _bytes(schema: JsonObject) -> bytes:
    try:
        return json.dumps(schema, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, TypeError) as error:  # NaN, lone surrogates
        raise BadSchema(f"the schema is not a JSON value: {error}") from None


def _is_too_wide(references: Mapping[str, Sequence[str]], nodes: Mapping[str, int], most: int) -> bool:
    """Return whether the expanded schema is over a limit. References are followed as the validator follows them."""
    total, path, ahead = nodes["#"], ["#"], [iter(references["#"])]
    while ahead and total <= most and len(path) <= _LONGEST_CHAIN:
        target = next(ahead[-1], None)
        if target is None:
            ahead.pop()
            path.pop()
        elif target in path:
            total += 1
        else:
            total += nodes[target]
            path.append(target)
            ahead.append(iter(references[target]))
    return total > most or len(path) > _LONGEST_CHAIN


def _on_cycles(references: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return the targets that are on a cycle of references, or between two cycles."""
    forward = {place: set(targets) for place, targets in references.items()}
    backward: dict[str, set[str]] = {place: set() for place in references}
    for place, targets in forward.items():
        for target in targets:
            backward[target].add(place)
    return frozenset(_endless(forward, backward) & _endless(backward, forward))


def _endless(ahead: Mapping[str, set[str]], back: Mapping[str, set[str]]) -> set[str]:
    """Return the targets that lead to a cycle: all that remain after those without a way onward are removed."""
    ways = {place: len(targets) for place, targets in ahead.items()}
    ends = [place for place, count in ways.items() if not count]
    while ends:
        for place in back[ends.pop()]:
            ways[place] -= 1
            if not ways[place]:
                ends.append(place)
    return {place for place, count in ways.items() if count}


__all__ = ["LIMITS", "Places", "SchemaLimits", "SchemaProblem", "Validator", "compile_schema", "has_floats"]

_FEWEST_STEPS: Final = 10_000
_STEPS_PER_VALUE: Final = 8


def compile_schema(schema: Json, limits: SchemaLimits = LIMITS) -> "Validator":
    """Return a validator; raises BadSchema if the schema is over a limit or not an object."""
    return Validator(schema, limits)


def has_floats(value: Json) -> bool:
    """Return whether a value contains a float at any depth."""
    return any(isinstance(item, float) for level in levels(value) for item in level)


class Validator:
    """A schema, compiled when the first value is checked."""

    def __init__(self, schema: Json, limits: SchemaLimits = LIMITS, text: str = "") -> None:
        """Check the limits now; everything else waits for a value, because most tools are never called.

        `text` is the schema's JSON, if the caller has written it.
        """
        self._source, self._limits = schema, limits
        if check(schema, limits, text):
            self.schema  # noqa: B018 # cleaning it may raise BadSchema
        self._compiled: tuple[jsonschema_rs.Draft202012Validator, tuple[str, ...]] | None = None

    @cached_property
    def schema(self) -> JsonObject:
        """The usable part of the schema, with local references only."""
        return clean_schema(self._source, self._limits, test_patterns=False).schema

    @cached_property
    def places(self) -> Places:
        """The navigation over `schema`."""
        return Places(self.schema)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the parts of the schema that cannot be used, and are therefore not checked."""
        return self._ready()[1]

    def accepts(self, value: Json) -> bool:
        """Return whether the schema accepts the value. A value that is too deep, or not JSON, is never accepted."""
        if len(levels(value)) > MAX_DEPTH + 1:  # the validator recurses in native code: its stack must not overflow
            return False
        try:
            return self._ready()[0].is_valid(value)
        except ValueError:  # a lone surrogate
            return False

    def problems(self, value: Json) -> tuple[SchemaProblem, ...]:
        """Return at most 8 reasons why the schema does not accept the value; none if it does."""
        if self.accepts(value):
            return ()
        found = levels(value)
        if len(found) > MAX_DEPTH + 1:
            return (SchemaProblem("", "is nested too deep", f"at most {MAX_DEPTH} levels deep"),)
        steps = StepBudget(_FEWEST_STEPS + _STEPS_PER_VALUE * sum(map(len, found)))
        problems = tuple(islice(Explainer(self.places, steps).problems(value, self.schema), MOST_PROBLEMS))
        return problems or (SchemaProblem("", f"is {show_value(value)}", "what the schema as a whole accepts"),)

    def _ready(self) -> tuple[jsonschema_rs.Draft202012Validator, tuple[str, ...]]:
        if self._compiled is None:
            cleaned = clean_schema(self._source, self._limits, test_patterns=True)
            try:
                validator = jsonschema_rs.Draft202012Validator(
                    cleaned.schema, offline=True, pattern_options=PATTERN_OPTIONS, validate_formats=False
                )
            except ValueError as error:
                raise BadSchema(f"the schema cannot be used: {str(error)[:200]}") from None
            self._compiled = validator, cleaned.notes
        return self._compiled

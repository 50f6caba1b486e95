"""Checks values against a JSON Schema, offline and in bounded time.

    compile_schema({"type": "object", "properties": {"n": {"type": "integer"}}}).problems({"n": "x"})
    → (SchemaProblem(path="/n", found='is "x"', accepted="integer"),)

Schemas come from clients and MCP servers, so they are hostile input. Nothing is ever fetched, and patterns run on an
engine that does not backtrack. Parts of a schema that cannot be used are left out and noted (`Validator.notes`): a bad
`pattern` in a tool's schema killed vLLM workers (CVE-2025-48944). Only a schema over a limit is refused, as BadSchema.
"""

from functools import cached_property
from itertools import islice
from typing import Final

import jsonschema_rs

from toolspeak.errors import BadSchema
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text._clean import LIMITS, SchemaLimits, check, clean_schema
from toolspeak.text._explain import MOST_PROBLEMS, PATTERN_OPTIONS, Explainer, SchemaProblem, show_value
from toolspeak.text._places import MAX_DEPTH, Places, StepBudget, levels

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

    def __init__(self, schema: Json, limits: SchemaLimits = LIMITS) -> None:
        """Check the limits now; everything else waits for a value, because most tools are never called."""
        self._source, self._limits = schema, limits
        if check(schema, limits):
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

"""From a schema that somebody sent to one that the validator can use without harm.

Sizes are bounded before anything else is looked at; then `_keywords.py` copies what can be used. What is counted is
what the validator would walk: every reference replaced by what it refers to.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from toolspeak.errors import BadSchema
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text._explain import shown
from toolspeak.text._keywords import Cleaner


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """What one schema may cost."""

    size: int = 256 * 1024
    """Bytes of its JSON text."""
    depth: int = 32
    """Levels of nesting of its JSON text."""
    nodes: int = 10_000
    """Schemas in it, once every reference is replaced by what it refers to; a cycle is followed once."""
    patterns: int = 32
    """Regular expressions that are checked: one may take half a second for 100 KB of hostile text."""


LIMITS: Final = SchemaLimits()

_LONGEST_CHAIN = 64  # references that lead to references
_BYTES_PER_NODE = 2  # at least: {} and its comma


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The usable copy, and what was left out of it."""

    schema: JsonObject
    notes: tuple[str, ...]


def check(schema: Json, limits: SchemaLimits) -> bool:
    """Refuse what is over a limit of size; tell whether cleaning could still refuse it.

    Most schemas refer to nothing and are small: to clean them can wait until a value comes.
    """
    if not isinstance(schema, dict):
        raise BadSchema(f"the schema is {shown(schema)}, an object is accepted")
    refers, size = _check_size(schema, limits)
    return refers or size > limits.nodes * _BYTES_PER_NODE


def clean(schema: Json, limits: SchemaLimits, *, test_patterns: bool) -> Cleaned:
    """Copy what can be used; BadSchema if the schema is over a limit or no object."""
    if not isinstance(schema, dict):
        raise BadSchema(f"the schema is {shown(schema)}, an object is accepted")
    _check_size(schema, limits)
    patterns = limits.patterns if test_patterns else None
    cleaner = Cleaner(schema, limits.nodes, patterns)
    cleaned = cleaner.clean()
    if _is_too_wide(cleaner.references, cleaner.nodes, limits.nodes):
        # Too many ways through the references. If that is because they run in circles, the circles are cut.
        cleaner = Cleaner(schema, limits.nodes, patterns, cut=_on_cycles(cleaner.references))
        cleaned = cleaner.clean()
    if _is_too_wide(cleaner.references, cleaner.nodes, limits.nodes):
        raise BadSchema(
            f"the schema has over {limits.nodes} nodes, or references over {_LONGEST_CHAIN} deep, "
            f"once they are expanded; at most {limits.nodes} and {_LONGEST_CHAIN} are accepted"
        )
    return Cleaned(cleaned, tuple(cleaner.notes))


def _check_size(schema: JsonObject, limits: SchemaLimits) -> tuple[bool, int]:
    """Level by level, so that neither depth nor a loop in the object costs us a stack.

    Return whether something in it refers to something, and the bytes of its JSON text.
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
    """Follow every reference that is not inside itself, as the validator does, and stop at the limit."""
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
    """Find the places on a circle of references, or between two circles."""
    forward = {place: set(targets) for place, targets in references.items()}
    backward: dict[str, set[str]] = {place: set() for place in references}
    for place, targets in forward.items():
        for target in targets:
            backward[target].add(place)
    return frozenset(_endless(forward, backward) & _endless(backward, forward))


def _endless(ahead: Mapping[str, set[str]], back: Mapping[str, set[str]]) -> set[str]:
    """Take away, again and again, every place from which nothing leads on; what is left leads to a circle."""
    ways = {place: len(targets) for place, targets in ahead.items()}
    ends = [place for place, count in ways.items() if not count]
    while ends:
        for place in back[ends.pop()]:
            ways[place] -= 1
            if not ways[place]:
                ends.append(place)
    return {place for place, count in ways.items() if count}

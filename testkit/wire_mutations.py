"""Hostile bodies: one field of a real request made wrong, in every way.

Each must be decoded (and then written again without an exception), or refused with the protocol's own 400 that names
the field: never an exception of another kind, never a hang.
"""

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from testkit.matrix import STAMP, WIRES, message_of
from testkit.wire_requests import Golden, goldens
from toolspeak import wires
from toolspeak.errors import BadField, BadRequest
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import Json
from toolspeak.ir.quirks import QUIRKS

Path = tuple[str | int, ...]

DEPTH = 20_000


@dataclass(frozen=True)
class Mutation:
    """A real request whose field at `path` is something else."""

    wire: str
    target: str
    path: Path
    what: str
    body: bytes


VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "minus one": -1,
    "fraction": 0.5,
    "huge integer": 10**40,
    "huge float": 1e308,
    "empty text": "",
    "text": "x",
    "text with a null byte": "a\0b",
    "lone surrogate": "\ud83d",
    "long text": "x" * 70_000,
    "empty list": [],
    "list of null": [None],
    "list of numbers": [1, 2],
    "list of lists": [[[]]],
    "list of texts": ["a", ""],
    "empty object": {},
    "object of objects": {"a": {"b": {"type": "x"}}},
    "object with a type": {"type": 5},
    "unknown type": {"type": "no_such_type", "x": 1},
}


def places(value: Json, path: Path = ()) -> Iterator[Path]:
    """Yield the place of every field and item."""
    items: Iterator[tuple[str | int, Json]] = iter(())
    if isinstance(value, dict):
        items = iter(value.items())
    elif isinstance(value, list):
        items = iter(enumerate(value))
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def changed(body: dict[str, Any], path: Path, new: object) -> dict[str, Any]:
    """Return a copy with another value at this place."""
    copy = deepcopy(body)
    holder: Any = copy
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = new
    return copy


def mutations(seed: int, most: int) -> Iterator[Mutation]:
    """Yield this many, spread over the wires, and over all fields of their requests."""
    chance = random.Random(seed)
    by_wire = {wire: [golden for golden in goldens() if golden.wire == wire] for wire in WIRES}
    spots = {wire: [spot for golden in by_wire[wire] for spot in _spots(golden)] for wire in WIRES}
    for number in range(most):
        wire = WIRES[number % len(WIRES)]
        golden, path = chance.choice(spots[wire])
        yield _mutation(golden, path, chance)


def _spots(golden: Golden) -> list[tuple[Golden, Path]]:
    """List the fields of one request, one of each kind: the thousandth schema property shows nothing new."""
    kinds: dict[tuple[str | int, ...], Path] = {}
    for path in places(golden.body):
        kinds.setdefault(tuple("#" if isinstance(key, int) else key for key in path), path)
    return [(golden, path) for path in kinds.values()]


def _mutation(golden: Golden, path: Path, chance: random.Random) -> Mutation:
    what = chance.choice([*VALUES, "deep", "cut", "doubled"])
    if what == "deep":
        text = json.dumps(changed(golden.body, path, "@@")).replace('"@@"', "[" * DEPTH + "]" * DEPTH)
        return Mutation(golden.wire, golden.path, path, what, text.encode())
    text = json.dumps(golden.body)
    if what == "cut":
        return Mutation(golden.wire, golden.path, path, what, text[: chance.randrange(len(text))].encode())
    if what == "doubled":
        return Mutation(golden.wire, golden.path, path, what, (text + text).encode())
    body = json.dumps(changed(golden.body, path, VALUES[what]))
    return Mutation(golden.wire, golden.path, path, what, body.encode())


def check(mutation: Mutation) -> str:
    """Return `decoded`, `refused`, or what is wrong."""
    wire = wires.load(mutation.wire)
    try:
        request = wire.decode_request(mutation.body, mutation.target)
    except BadField as error:
        return _refusal(mutation, error)
    except BadRequest as error:
        return f"a {type(error).__name__} that names no field: {error}"
    try:
        for other in WIRES:
            wires.load(other).encode_request(request, QUIRKS)
    except BadField:
        return "refused"
    return "decoded"


def _refusal(mutation: Mutation, error: BadField) -> str:
    failure = Failure(FailureKind.INVALID_REQUEST, str(error), error.status, error.field)
    said = wires.load(mutation.wire).encode_failure(failure, STAMP)
    names = {str(key) for key in mutation.path if isinstance(key, str)}
    whole = mutation.what in ("deep", "cut", "doubled")
    if said.status != 400 or not message_of(said.body):
        return f"status {said.status}: {said.body!r}"
    if not whole and not any(name in error.field for name in names):
        return f"names {error.field!r}"
    return "refused"

"""Requests of real clients, decoded and written again on the same wire: the meaning must not change.

Every scalar of a body is a leaf: its key and its value, in order. A leaf that is lost or new must be listed here
with the reason; all others must come back in the same order.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from testkit.golden import GOLDEN
from toolspeak import wires
from toolspeak.ir.json import Json
from toolspeak.ir.quirks import QUIRKS

REQUESTS = GOLDEN / "requests.jsonl"

Leaf = tuple[str, str]

TEXTS = frozenset(("content", "text", "input", "output", "system", "systemInstruction", "instructions"))
"""A string under one of these keys is the same as a list with one text part."""
PLAIN_TYPES = frozenset(("text", "input_text", "output_text", "message", "function", "custom", "object"))

ANY = "*"
LOST = {
    ("toolChoice", '"auto"'): "the default",
    ("type", '"auto"'): "the default of tool_choice",
    ("mode", '"AUTO"'): "the default of functionCallingConfig",
    ("parallelToolCalls", "true"): "the default",
    ("stream", "false"): "the default",
    ("strict", "null"): "null and a missing field mean the same",
    ("content", "null"): "null and a missing field mean the same",
    ("strict", "false"): "the default",
    ("isError", "false"): "the default",
    ("candidateCount", "1"): "the default",
    ("text", ""): "an empty text says nothing, and vendors refuse it",
    ("role", '"user"'): "two messages of the user behind each other are one",
    ("type", '"STRING"'): "a schema's types are written in lower case",
    ("type", '"OBJECT"'): "a schema's types are written in lower case",
    ("name", ANY): "a result carries its tool's name, not an id in place of it",
}
NEW = {
    ("content", "null"): "a message that only calls has no text",
    ("includeUsage", "true"): "a streaming upstream is always asked for its token counts",
    ("text", ""): "a message that only calls has no text",
    ("type", '"string"'): "a schema's types are written in lower case",
    ("role", '"user"'): "an input that is just a text is a message of the user",
    ("id", ANY): "ids that the client left out are filled in",
    ("toolCallId", ANY): "ids that the client left out are filled in",
    ("toolName", ANY): "names that the client left out are filled in",
    ("name", ANY): "a result carries its tool's name, not an id in place of it",
}


@dataclass(frozen=True)
class Golden:
    """A request that a client sent."""

    id: str
    wire: str
    path: str
    body: dict[str, Any]


@cache
def goldens() -> tuple[Golden, ...]:
    """Return all of them."""
    rows = map(json.loads, REQUESTS.read_text().splitlines())
    return tuple(Golden(row["id"], row["wire"], row["path"], row["body"]) for row in rows)


def leaves(value: Json, key: str = "") -> Iterator[Leaf]:
    """Yield the scalars of a body; the order of keys does not count."""
    if isinstance(value, dict):
        for inner in sorted(value):
            yield from leaves(value[inner], camel(inner))
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, key)
    elif isinstance(value, str) and key in TEXTS:
        yield ("text", value)
    elif not (key == "type" and value in PLAIN_TYPES):
        yield (key, json.dumps(value, ensure_ascii=False))


def camel(key: str) -> str:
    """Spell a key in one way."""
    head, *rest = key.split("_")
    return head + "".join(word.capitalize() for word in rest)


def again(golden: Golden) -> dict[str, Any]:
    """Decode a request and write it on its own wire."""
    wire = wires.load(golden.wire)
    body = json.dumps(golden.body, ensure_ascii=False).encode()
    sent = wire.encode_request(wire.decode_request(body, golden.path), QUIRKS)
    return json.loads(sent.body)


def changes(golden: Golden) -> tuple[Counter[Leaf], Counter[Leaf], bool]:
    """Return the leaves that did not come back, those that are new, and whether the rest kept its order."""
    before, after = list(leaves(golden.body)), list(leaves(again(golden)))
    lost, new = Counter(before) - Counter(after), Counter(after) - Counter(before)
    touched = {*lost, *new}
    kept = [[leaf for leaf in row if leaf not in touched] for row in (before, after)]
    return lost, new, kept[0] == kept[1]


def reason(leaf: Leaf, reasons: dict[Leaf, str]) -> str:
    """Return why a leaf may be lost or new; empty if nothing excuses it."""
    return reasons.get(leaf) or reasons.get((leaf[0], ANY), "")


def faults(golden: Golden) -> list[str]:
    """Return what a request lost or gained without a reason."""
    lost, new, ordered = changes(golden)
    wrong = [f"{golden.id} lost {leaf}" for leaf in lost if not reason(leaf, LOST)]
    wrong += [f"{golden.id} has the new {leaf}" for leaf in new if not reason(leaf, NEW)]
    return wrong if ordered else [*wrong, f"{golden.id} changed its order"]


def report() -> Iterator[str]:
    """Yield a line for each field that some request loses or gains, with the reason."""
    rows: Counter[tuple[str, str, str, str]] = Counter()
    for golden in goldens():
        lost, new, _ = changes(golden)
        for sign, leaves_, reasons in (("-", lost, LOST), ("+", new, NEW)):
            for leaf in leaves_:
                shown = leaf[1] if leaf in reasons else "…"
                rows[golden.wire, sign, f"{leaf[0]}: {shown}", reason(leaf, reasons) or "NO REASON"] += 1
    for (wire, sign, field, why), times in sorted(rows.items()):
        yield f"{wire:<17} {sign} {field:<28} {times:>3} requests  {why}"

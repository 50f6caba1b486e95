"""Shows what toolspeak added to a client's request, and what it removed.

Both requests are compared as they would be sent to the upstream, in its protocol. JSON is written with one value on a
line, and a text of several lines as several lines, so that a prompt is compared line by line.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from toolspeak.ir.json import Json
from toolspeak.text.strict import dump

_INDENT: Final = "  "
_CONTEXT: Final = 2
"""Lines around a change."""
_MOST_COMPARED: Final = 1200
"""Lines that differ on each side. The time of a comparison grows with their product."""
_MOST_SHOWN: Final = 400
_LONGEST_LINE: Final = 400


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of the comparison."""

    kind: str
    """`same`, `added`, `removed` or `gap`."""
    text: str


@dataclass(frozen=True, slots=True)
class PromptDiff:
    """A comparison, and how much of it is left out."""

    lines: list[DiffLine]
    added: int
    removed: int
    left: int = 0


def compare_json(old: Json, new: Json) -> PromptDiff:
    """Return what is in one value and not in the other."""
    was, now = [*json_lines(old)], [*json_lines(new)]
    head = _common(was, now)
    tail = _common(was[head:][::-1], now[head:][::-1])
    mid_was, mid_now = was[head : len(was) - tail], now[head : len(now) - tail]
    if max(len(mid_was), len(mid_now)) > _MOST_COMPARED:  # too long to align: all of it is removed and added
        middle = [DiffLine("removed", line) for line in mid_was] + [DiffLine("added", line) for line in mid_now]
    else:
        middle = [*_compare(mid_was, mid_now)]
    same_head = [DiffLine("same", line) for line in was[:head]]
    same_tail = [DiffLine("same", line) for line in was[len(was) - tail :]]
    lines = [*_folded(same_head + middle + same_tail)]
    added, removed = (sum(line.kind == kind for line in middle) for kind in ("added", "removed"))
    shown = [DiffLine(line.kind, _short(line.text)) for line in lines[:_MOST_SHOWN]]
    return PromptDiff(shown, added, removed, max(0, len(lines) - _MOST_SHOWN))


def json_lines(value: Json, indent: str = "", key: str = "", end: str = "") -> Iterator[str]:
    """Yield a JSON value as lines for people; a text of several lines is several lines, without escapes."""
    name = f"{dump(key)}: " if key else ""
    if isinstance(value, dict) and value:
        yield f"{indent}{name}{{"
        for number, (inner, item) in enumerate(value.items(), 1):
            yield from json_lines(item, indent + _INDENT, inner, "," if number < len(value) else "")
        yield f"{indent}}}{end}"
    elif isinstance(value, list) and value:
        yield f"{indent}{name}["
        for number, item in enumerate(value, 1):
            yield from json_lines(item, indent + _INDENT, "", "," if number < len(value) else "")
        yield f"{indent}]{end}"
    elif isinstance(value, str) and "\n" in value:
        first, *others = value.split("\n")
        yield f'{indent}{name}"{first}'
        yield from (f"{indent}{_INDENT}{line}" for line in others[:-1])
        yield f'{indent}{_INDENT}{others[-1]}"{end}'
    else:
        yield f"{indent}{name}{dump(value)}{end}"


def _common(left: list[str], right: list[str]) -> int:
    """Return how many lines both begin with."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(left), len(right)))


def _compare(was: list[str], now: list[str]) -> Iterator[DiffLine]:
    for what, start, end, new_start, new_end in SequenceMatcher(None, was, now).get_opcodes():
        if what == "equal":
            yield from (DiffLine("same", line) for line in was[start:end])
        else:
            yield from (DiffLine("removed", line) for line in was[start:end])
            yield from (DiffLine("added", line) for line in now[new_start:new_end])


def _folded(lines: list[DiffLine]) -> Iterator[DiffLine]:
    """Yield the lines, with a note instead of long stretches that are the same."""
    start = 0
    while start < len(lines):
        if lines[start].kind != "same":
            yield lines[start]
            start += 1
            continue
        end = start
        while end < len(lines) and lines[end].kind == "same":
            end += 1
        before, after = (_CONTEXT if start else 0), (_CONTEXT if end < len(lines) else 0)
        hidden = end - start - before - after
        if hidden <= 1:
            yield from lines[start:end]
        else:
            yield from lines[start : start + before]
            yield DiffLine("gap", f"{hidden} lines are the same")
            yield from lines[end - after : end]
        start = end


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}… {len(line) - _LONGEST_LINE} more"

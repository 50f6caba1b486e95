"""Rounds of tools on a line each, or opened.

✓ read_file(path="a.txt"), list_files()  0.1 s
✗ shell(command="false")  2.4 s
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from toolspeak.cli.json_output import arguments_text, indented
from toolspeak.cli.terminal import Paint, below, cut, sign, took, visible

_INDENT: Final = "    "
_WIDE: Final = 100
"""Cells of a line where lines have no end."""
_LONGEST: Final = 4096
"""Characters of arguments that are looked at for one line."""


@dataclass(frozen=True, slots=True)
class Did:
    """A call and what came of it; no seconds: nobody knows how long it took."""

    name: str
    arguments: str
    text: str = ""
    is_error: bool = False
    seconds: float | None = None


def round_lines(did: Sequence[Did], paint: Paint, *, expand: bool) -> Iterator[str]:
    """Write a round: its calls on one line, or each on its own with what it got and gave."""
    for calls in [[each] for each in did] if expand else [did]:
        yield _line(calls, paint)
        for each in calls if expand else ():
            yield from below(indented(visible(each.arguments), (paint.width or _WIDE) - len(_INDENT)), paint)
            yield from below(visible(each.text).split("\n"), paint, "red" if each.is_error else "", dim=True)


def call_text(name: str, arguments: str) -> str:
    """Write a call on one line, as people do."""
    short = arguments if len(arguments) <= _LONGEST else arguments[:_LONGEST]
    return f"{visible(name)}({arguments_text(short)})".replace("\n", " ").replace("\t", " ")


def _line(calls: Sequence[Did], paint: Paint) -> str:
    bad = any(each.is_error for each in calls)
    mark = sign("✗", "x") if bad else sign("✓", "+")
    times = [each.seconds for each in calls if each.seconds is not None]
    time = f"  {took(sum(times))}" if times else ""
    said = ", ".join(call_text(each.name, each.arguments) for each in calls)
    room = max((paint.width or _WIDE) - len(mark) - 1 - len(time), 1)
    return f"{paint.ink(mark, 'red' if bad else 'green')} {cut(said, room)}{paint.ink(time, dim=True)}"

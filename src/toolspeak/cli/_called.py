"""A tool call on one line, or opened.

▸ get_weather(city="Oslo", days=3)  1 fix
"""

from collections.abc import Iterator
from typing import Final

from toolspeak.cli.json_output import arguments_text, indented
from toolspeak.cli.terminal import Paint, below, counted, cut, sign, visible
from toolspeak.ir.event import CallRejected
from toolspeak.ir.message import Call

_INDENT: Final = "    "
_WIDE: Final = 100
"""Cells of a line where lines have no end."""


def call_lines(call: Call, paint: Paint, *, expand: bool) -> Iterator[str]:
    """Write a call that may run."""
    name, said, fixed = visible(call.name), arguments_text(call.arguments), _fixed(call)
    mark = sign("▸", ">")
    room = max(paint.width - len(f"{mark} {name}()  {fixed}"), 1) if paint.width else 0
    head = f"{paint.ink(mark, 'green')} {paint.ink(name, bold=True)}({cut(said, room)})"
    yield f"{head}  {paint.ink(fixed, 'yellow')}".rstrip(" ")
    if expand:
        yield from below(indented(visible(call.arguments), (paint.width or _WIDE) - len(_INDENT)), paint)
        yield from below((f"fixed: {fix.what.replace('_', ' ')} {fix.path}" for fix in call.fixes), paint, "yellow")
        yield from _raw(call.raw, paint)


def rejected_lines(event: CallRejected, paint: Paint, *, expand: bool) -> Iterator[str]:
    """Write an attempt that may not run, and why."""
    complaint = event.complaint
    mark, name = sign("✗", "x"), visible(complaint.name or "a call").replace("\n", " ")
    why = str(complaint.problem).replace("_", " ")
    yield f"{paint.ink(mark, 'red')} {paint.ink(name, bold=True)}  {paint.ink(why, 'red')}"
    if expand:
        yield from below(filter(None, [visible(complaint.detail)]), paint)
        yield from _raw(event.raw, paint)


def _fixed(call: Call) -> str:
    return counted(len(call.fixes), "fix") if call.fixes else ""


def _raw(raw: str, paint: Paint) -> Iterator[str]:
    return below(filter(None, visible(raw).strip("\n").split("\n")), paint, dim=True)

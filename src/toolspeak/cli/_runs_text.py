"""Runs for people: a list of them, and one with its rounds collapsed.

1a2b3c4d  done       3 rounds  2 min ago   Which tests are slow?
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from toolspeak.cli._run_lines import Did, call_text, round_lines
from toolspeak.cli._run_named import SHORT, short
from toolspeak.cli.terminal import Paint, below, counted, cut, sign, took, visible
from toolspeak.engine.agent import Status
from toolspeak.ir.message import Text, result_text
from toolspeak.ir.round import Round
from toolspeak.runs.runs import Line, Runs, View
from toolspeak.runs.watch import CallEnded

_COLORS: Final = {
    Status.RUNNING: "green",
    Status.WAITING: "yellow",
    Status.SUMMED_UP: "yellow",
    Status.CANCELLED: "yellow",
    Status.FAILED: "red",
    Status.DONE: "",
}
_STATUS, _ROUNDS, _AGO = 9, 9, 10
_WIDE: Final = 100
_GAP: Final = "  "
_LONG: Final = 128
_LEAST: Final = 16
"""Cells that a task has, however narrow the terminal is."""
_AGES: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_PATIENCE: Final = 2.0
"""Seconds in which the times of calls must come: all of them were seen already."""

Times = dict[tuple[int, str], float]


def list_lines(lines: Sequence[Line], now: float, paint: Paint) -> Iterator[str]:
    """Write runs, a line each."""
    size = _needed([short(line.id, _LONG) for line in lines])
    for line in lines:
        status = paint.ink(f"{line.status.value.replace('_', ' '):{_STATUS}}", _COLORS[line.status])
        rounds, ago = f"{counted(line.rounds, 'round'):{_ROUNDS}}", f"{_ago(line, now):{_AGO}}"
        room = (paint.width or _WIDE) - size - _STATUS - _ROUNDS - _AGO - 4 * len(_GAP)
        task = visible(line.task).replace("\n", " ").replace("\t", " ")
        yield _GAP.join((f"{short(line.id, size):{size}}", status, rounds, ago, cut(task, max(room, _LEAST))))


def view_lines(view: View, times: Times, paint: Paint, *, expand: bool) -> Iterator[str]:
    """Write a run: its task, its rounds, what waits, how it ended."""
    line, ink = view.line, paint.ink
    yield ink(visible(view.spec.task), bold=True)
    for number, each in enumerate(view.kept.rounds):
        if each.text.strip():
            yield from visible(each.text).strip("\n").split("\n")
        yield from round_lines(_did(number, each, times), paint, expand=expand)
    for call in view.asked:
        yield f"{ink(sign('▸', '>'), 'yellow')} {cut(call_text(call.name, call.arguments), (paint.width or _WIDE) - 2)}"
        yield from below([f"waits for your word: toolspeak runs resume {short(line.id)}"], paint, dim=True)
    text = "".join(part.text for part in view.kept.message.parts if isinstance(part, Text)).strip("\n")
    if text:
        yield visible(text)
    yield from _ending(view, paint)


def _ending(view: View, paint: Paint) -> Iterator[str]:
    line = view.line
    said = [line.status.value.replace("_", " "), counted(line.rounds, "round"), visible(line.model)]
    if line.ended:
        said.append(took(line.ended - line.began))
    yield paint.ink(f" {sign('·', '|')} ".join(filter(None, [*said, f"run {line.id}"])), dim=True)
    if view.reason:
        yield paint.ink(visible(view.reason), _COLORS[line.status] or "yellow")


def _did(number: int, each: Round, times: Times) -> list[Did]:
    results = zip(each.calls, each.results, strict=True)
    return [
        Did(
            call.name,
            call.arguments,
            result_text(result),
            result.is_error,
            times.get((number, result.call_id)),
        )
        for call, result in results
    ]


async def times_of(runs: Runs, view: View) -> Times:
    """Look up how long calls took: in the events, up to the last round that is whole."""
    wanted = {(number, result.call_id) for number, each in enumerate(view.kept.rounds) for result in each.results}
    times: Times = {}
    if not wanted:
        return times
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            async for each in runs.events(view.line.id):
                if isinstance(each.event, CallEnded):
                    times[each.event.round, each.event.id] = each.event.seconds
                if wanted <= times.keys():
                    break
    return times


def _needed(ids: Sequence[str]) -> int:
    """Return how much of the ids tells them apart."""
    longest = max((len(id) for id in ids), default=SHORT)
    return next((size for size in range(SHORT, longest) if len({id[:size] for id in ids}) == len(ids)), longest)


def _ago(line: Line, now: float) -> str:
    age = max(now - line.began, 0.0)
    size, unit = next((each for each in _AGES if age >= each[0]), _AGES[-1])
    return f"{int(age // size)} {unit} ago"

"""Formats stored runs, as a list or one with its rounds, and finds a run by a prefix of its id.

1a2b3c4d  done       3 rounds  2 min ago   Which tests are slow?
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from toolspeak.agent.runs.events import ToolCallEnded
from toolspeak.agent.runs.runs import Runs, RunSummary, RunView
from toolspeak.cli.run.screen import ShownCall, call_text, round_lines
from toolspeak.cli.terminal import (
    UNLIMITED,
    Paint,
    count_noun,
    duration_text,
    indent_below,
    join_dotted,
    shorten,
    sign,
    visible,
)
from toolspeak.engine.agent import Status
from toolspeak.errors import BadRequest, UnknownRun
from toolspeak.ir.message import Text, result_text
from toolspeak.ir.round import Round

SHORT: Final = 8
"""Characters of an id that are shown, if they identify it."""
_COLORS: Final = {
    Status.RUNNING: "green",
    Status.WAITING: "yellow",
    Status.SUMMED_UP: "yellow",
    Status.CANCELLED: "yellow",
    Status.FAILED: "red",
    Status.DONE: "",
}
_STATUS, _ROUNDS, _AGO = 9, 9, 10
_GAP: Final = "  "
_LONG: Final = 128
_LEAST: Final = 16
"""Columns for the task, even on a narrower terminal."""
_AGES: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_TIMES_TIMEOUT_S: Final = 2.0
"""Limit for reading the durations of calls. Their events are stored already; only a broken store takes longer."""
_SEARCHED: Final = 1000
"""The latest runs, among which a prefix is looked up."""
_EXAMPLES: Final = 3
_PREFIX: Final = "run_"

Times = dict[tuple[int, str], float]


# ---------------------------------------------------------------- ids


def short_id(id: str, size: int = SHORT) -> str:
    """Return the part of an id that users need to type."""
    return id.removeprefix(_PREFIX)[:size]


async def find_run(runs: Runs, prefix: str) -> str:
    """Return the id that starts with a prefix. Raises `BadRequest` if several do, `UnknownRun` if none does."""
    ids = [line.id for line in await runs.list(limit=_SEARCHED)]
    found = [id for id in ids if id.startswith((prefix, _PREFIX + prefix))]
    if prefix in found or not found:
        return (await runs.show(prefix)).line.id  # a run that is older than the searched ones needs its whole id
    if not prefix:
        raise UnknownRun("the run id is empty; `toolspeak runs` lists the ids")
    if len(found) > 1:
        examples = ", ".join(found[:_EXAMPLES])
        raise BadRequest(f"{len(found)} runs start with {prefix!r}: {examples}; type more of the id")
    return found[0]


def status_text(status: Status) -> str:
    """Write a status for people."""
    return status.value.replace("_", " ")


# ---------------------------------------------------------------- the list


def list_lines(lines: Sequence[RunSummary], now: float, paint: Paint) -> Iterator[str]:
    """Write one line for each run."""
    size = _id_size([short_id(line.id, _LONG) for line in lines])
    for line in lines:
        status = paint.ink(f"{status_text(line.status):{_STATUS}}", _COLORS[line.status])
        rounds, ago = f"{count_noun(line.rounds, 'round'):{_ROUNDS}}", f"{_ago(line, now):{_AGO}}"
        room = (paint.width or UNLIMITED) - size - _STATUS - _ROUNDS - _AGO - 4 * len(_GAP)
        task = visible(line.task).replace("\n", " ").replace("\t", " ")
        yield _GAP.join((f"{short_id(line.id, size):{size}}", status, rounds, ago, shorten(task, max(room, _LEAST))))


def _id_size(ids: Sequence[str]) -> int:
    """Return the number of characters that distinguish all ids, at least `SHORT`."""
    longest = max((len(id) for id in ids), default=SHORT)
    return next((size for size in range(SHORT, longest) if len({id[:size] for id in ids}) == len(ids)), longest)


def _ago(line: RunSummary, now: float) -> str:
    age = max(now - line.began, 0.0)
    size, unit = next((each for each in _AGES if age >= each[0]), _AGES[-1])
    return f"{int(age // size)} {unit} ago"


# ---------------------------------------------------------------- one run


def view_lines(view: RunView, times: Times, paint: Paint, *, expand: bool) -> Iterator[str]:
    """Write a run: its task, its rounds, the calls that wait for approval, its text, and how it ended."""
    line, ink = view.line, paint.ink
    yield ink(visible(view.spec.task), bold=True)
    for number, each in enumerate(view.kept.rounds):
        if each.text.strip():
            yield from visible(each.text).strip("\n").split("\n")
        yield from round_lines(_shown_calls(number, each, times), paint, expand=expand)
    for call in view.asked:
        text = shorten(call_text(call.name, call.arguments), (paint.width or UNLIMITED) - 2)
        yield f"{ink(sign('▸', '>'), 'yellow')} {text}"
        yield from indent_below(
            [f"waits for your approval: toolspeak runs resume {short_id(line.id)}"], paint, dim=True
        )
    text = "".join(part.text for part in view.kept.message.parts if isinstance(part, Text)).strip("\n")
    if text:
        yield visible(text)
    yield from _ending(view, paint)


def _ending(view: RunView, paint: Paint) -> Iterator[str]:
    line = view.line
    words = [status_text(line.status), count_noun(line.rounds, "round"), visible(line.model)]
    if line.ended:
        words.append(duration_text(line.ended - line.began))
    yield paint.ink(join_dotted(*filter(None, [*words, f"run {line.id}"])), dim=True)
    if view.reason:
        yield paint.ink(visible(view.reason), _COLORS[line.status] or "yellow")


def _shown_calls(number: int, each: Round, times: Times) -> list[ShownCall]:
    return [
        ShownCall(
            call.name,
            call.arguments,
            result_text(result),
            result.is_error,
            times.get((number, result.call_id)),
        )
        for call, result in zip(each.calls, each.results, strict=True)
    ]


async def times_of(runs: Runs, view: RunView) -> Times:
    """Return the duration of each call of the finished rounds, from the events of the run."""
    wanted = {(number, result.call_id) for number, each in enumerate(view.kept.rounds) for result in each.results}
    times: Times = {}
    if not wanted:
        return times
    with suppress(TimeoutError):
        async with asyncio.timeout(_TIMES_TIMEOUT_S):
            async for each in runs.events(view.line.id):
                if isinstance(each.event, ToolCallEnded):
                    times[each.event.round, each.event.id] = each.event.seconds
                if wanted <= times.keys():
                    break
    return times

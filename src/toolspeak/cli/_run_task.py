"""A run from its beginning, or from where it stood, to what is printed of its end."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import click

from toolspeak.cli._run_ask import Asker, typed_line
from toolspeak.cli._run_follow import INTERRUPTED, Follow
from toolspeak.cli._run_named import named, short
from toolspeak.cli._run_screen import screen_here
from toolspeak.cli.json_output import safe_json
from toolspeak.cli.terminal import Paint, counted, sign, took, visible
from toolspeak.config.shape import Config
from toolspeak.engine.agent import Status
from toolspeak.runs.opened import Opened, opened_runs
from toolspeak.runs.runs import Numbered, View
from toolspeak.runs.shown import event_json, view_json
from toolspeak.runs.spec import Spec
from toolspeak.runs.watch import RunEnded

STATUSES: Final = {Status.DONE: 0, Status.SUMMED_UP: 1, Status.FAILED: 1, Status.CANCELLED: INTERRUPTED}
NOT_KEPT: Final = "this run is not kept: with toolspeak[runs] runs are, and can go on"


@dataclass(frozen=True, slots=True)
class Manner:
    """How a run is shown: to people on standard error, and on standard output its text, an object or its events."""

    paint: Paint
    expand: bool = False
    as_json: bool = False
    as_events: bool = False
    asks: bool = False
    """A person is there."""


async def begin(config: Config, spec: Spec, manner: Manner) -> int:
    """Work on a task; return the status of the process."""
    async with opened_runs(config) as opened:
        return await _followed(opened, await opened.runs.start(spec), -1, manner)


async def go_on(config: Config, beginning: str, manner: Manner) -> int:
    """Take up a run that was stopped, or watch one that goes on; return the status of the process."""
    async with opened_runs(config) as opened:
        runs = opened.runs
        id = await named(runs, beginning)
        last = -1
        if (await runs.show(id)).line.ended:
            last = max([each.number async for each in runs.events(id)], default=-1)
        await runs.resume(id)
        return await _followed(opened, id, last, manner)


async def _followed(opened: Opened, id: str, after: int, manner: Manner) -> int:
    view = await opened.runs.show(id)
    screen = screen_here(manner.paint, view.spec.rounds, expand=manner.expand, quiet=manner.as_events)
    if not manner.as_events:
        screen.note(manner.paint.ink(_head(view), dim=True))
    asker = Asker(manner.paint, typed_line) if manner.asks else None
    tell = _echo_event if manner.as_events else _tell_nobody
    ended = await Follow(opened.runs, id, screen, asker, tell).to_end(after)
    view = await opened.runs.show(id)
    if manner.as_json:
        click.echo(safe_json(view_json(view)))
    elif ended.text and not manner.as_events:
        click.echo(visible(ended.text).strip("\n"))
    for line in _last_lines(view, ended, manner, opened):
        click.echo(line, err=True)
    return STATUSES[ended.status]


def _echo_event(each: Numbered) -> None:
    click.echo(json.dumps(event_json(each)))  # in ASCII: nothing in it can steer a terminal


def _tell_nobody(each: Numbered) -> None:
    del each


def _head(view: View) -> str:
    where = [visible(view.spec.folder)] if view.spec.folder else []
    return _dotted(f"run {short(view.line.id)}", *where, f"approval {view.spec.approval}")


def _last_lines(view: View, ended: RunEnded, manner: Manner, opened: Opened) -> Iterator[str]:
    """Say how it ended, and how it can go on."""
    ink, line = manner.paint.ink, view.line
    if ended.reason:
        bad = ended.status is Status.FAILED
        yield ink(f"{_words(ended.status)}: {visible(ended.reason)}", "red" if bad else "yellow")
    elif not manner.as_events:
        yield ink(_dotted(_words(ended.status), counted(line.rounds, "round"), took(line.ended - line.began)), dim=True)
    if ended.status in (Status.CANCELLED, Status.FAILED):
        yield ink(f"toolspeak runs resume {short(line.id)} goes on from there" if opened.lasts else NOT_KEPT, dim=True)


def _words(status: Status) -> str:
    return status.value.replace("_", " ")


def _dotted(*words: str) -> str:
    return f" {sign('·', '|')} ".join(words)

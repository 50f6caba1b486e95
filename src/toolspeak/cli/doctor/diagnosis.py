"""Runs the doctor on one model, with progress on standard error, and prints what it found, as text or as JSON.

    form            one pick types text none result two steps right score req tok
    hermes          3/3  3/3   2/3  2/3  2/3    3/3 1/3   2/3 18/24  75 % 1.2 310

With --sandbox:

    bwrap     works; isolates the shell of runs
    sandlock  not available: it leaves root root: run as an ordinary user
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Final

import click

from toolspeak.cli.output import safe_json, with_hint
from toolspeak.cli.terminal import UNLIMITED, Paint, count_noun, join_dotted, shorten, visible
from toolspeak.config.assemble import assemble
from toolspeak.config.shape import Config
from toolspeak.doctor.call_forms import DoctorForm, candidates, forms_by_name
from toolspeak.doctor.examination import ServerFact, ServerFacts, TaskProgress, examine, gather_facts
from toolspeak.doctor.report import DoctorReport
from toolspeak.doctor.suite import PARTS
from toolspeak.doctor.task import DoctorTask, TaskKind, TaskResult
from toolspeak.doctor.tournament import NextTask, Tally
from toolspeak.engine.settings import Mode
from toolspeak.errors import UpstreamFailed
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Text
from toolspeak.runtime.clock import CLOCK
from toolspeak.runtime.directory import Route
from toolspeak.runtime.profiles import settings_said
from toolspeak.runtime.transport import HttpTransport

if TYPE_CHECKING:  # the sandbox does not load on Windows
    from toolspeak.agent.sandbox.journal import LeftoverReport as LeftBehind
    from toolspeak.agent.sandbox.selection import SandboxSearch

_HEADS: Final = ("form", *TaskKind, "right", "score", "req", "tok")
_LEAST: Final = 3
_INDENT: Final = 11


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The facts about a model, the report on its forms, and where the profile is saved or why it is not."""

    looked: ServerFacts
    report: DoctorReport
    saved: Path | None = None
    not_saved: str = ""
    """The reason, if `saved` is None."""
    overridden: tuple[str, ...] = ()
    """Settings of the user that override the profile."""


def echo_diagnosis(found: Diagnosis, paint: Paint, *, as_json: bool) -> None:
    """Print the result on standard output."""
    if as_json:
        click.echo(safe_json(_diagnosis_object(found)))
        return
    for line in (*table(found.report, paint), "", *_last_lines(found, paint)):
        click.echo(line)


# ---------------------------------------------------------------- before the first task


def first_lines(
    route: Route,
    findings: Sequence[ServerFact],
    forms: Sequence[DoctorForm],
    parts: Sequence[Sequence[DoctorTask]],
    paint: Paint,
) -> Iterator[str]:
    """Write which model is examined, what is known about it, and how many tasks it will get."""
    model, where = visible(route.model or "the model"), visible(route.profiles.endpoint)
    yield f"{paint.ink(model, bold=True)} on {visible(route.place)}  {paint.ink(where, dim=True)}".rstrip()
    for finding in findings:
        yield from _finding_lines(finding, paint)
    most = sum(map(len, parts))
    yield f"  {'asks':8} {len(parts[0])} tasks in {count_noun(len(forms), 'form')}" + (
        f", {most} in the best of them" if most > len(parts[0]) else ""
    )
    yield ""


def _finding_lines(finding: ServerFact, paint: Paint) -> list[str]:
    source = f" ({visible(finding.source)})" if finding.source else ""
    line = f"  {finding.about:8} {visible(finding.says)}{source}"
    return wrap(line, paint.width - 1, subsequent_indent=" " * _INDENT) if paint.width > _INDENT + 1 else [line]


# ---------------------------------------------------------------- the table


def table(report: DoctorReport, paint: Paint) -> Iterator[str]:
    """Write one row for each form, the winner first: right answers of each kind, requests and tokens per task."""
    rows = [_cells(tally) for tally in report.tallies]
    widths = [max(map(len, column)) for column in zip(_HEADS, *rows, strict=True)]
    yield paint.ink(_row(_HEADS, widths), dim=True)
    for tally, row in zip(report.tallies, rows, strict=True):
        won = tally is report.winner and report.helped
        yield paint.ink(_row(row, widths), "green" if won else "", bold=won)


def _cells(tally: Tally) -> tuple[str, ...]:
    kinds = (tally.of(kind) for kind in TaskKind)
    return (
        tally.form.name,
        *(f"{sum(mark.right for mark in marks)}/{len(marks)}" if marks else "-" for marks in kinds),
        f"{tally.right}/{tally.asked}",
        f"{tally.score * 100:.0f} %",
        f"{tally.requests:.1f}",
        f"{tally.tokens:.0f}",
    )


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(cells, widths, strict=True)
    return " ".join([f"{first[0]:{first[1]}}", *(f"{cell:>{max(width, _LEAST)}}" for cell, width in rest)])


# ---------------------------------------------------------------- the verdict


def _last_lines(found: Diagnosis, paint: Paint) -> Iterator[str]:
    color = "green" if found.report.helped else "red"
    for line in _wrapped(visible(found.report.verdict), paint):
        yield paint.ink(line, color)
    if found.saved is not None:
        yield "Saved. serve, chat and Client use it from now on."
        yield paint.ink(visible(str(found.saved)), dim=True)
    else:
        yield paint.ink(f"Not saved: {found.not_saved}.", dim=True)
    if found.overridden:
        yield paint.ink(f"Your configuration overrides it: {visible(', '.join(found.overridden))}.", "yellow")


def _wrapped(text: str, paint: Paint) -> list[str]:
    width = min(paint.width or UNLIMITED, UNLIMITED)
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _diagnosis_object(found: Diagnosis) -> JsonObject:
    report, form = found.report, found.report.winner.form
    settings: dict[str, Json] = {**settings_said(form.profile)}
    return {
        "model": report.model,
        "endpoint": report.endpoint,
        "helped": report.helped,
        "verdict": report.verdict,
        "winner": form.name,
        "settings": settings,
        "upstream_tools": None if form.tools is None else str(form.tools),
        "saved": None if found.saved is None else str(found.saved),
        "not_saved": found.not_saved or None,
        "findings": [{"about": one.about, "says": one.says, "source": one.source} for one in found.looked.findings],
        "forms": [_form_object(tally) for tally in report.tallies],
        "seconds": round(report.seconds, 1),
    }


def _form_object(tally: Tally) -> JsonObject:
    return {
        "name": tally.form.name,
        "right": tally.right,
        "asked": tally.asked,
        "score": round(tally.score, 3),
        "spurious": tally.spurious,
        "valid": round(tally.valid, 3),
        "requests": round(tally.requests, 2),
        "tokens": round(tally.tokens, 1),
        "tasks": [_task_object(tally, task) for task in tally.tasks],
    }


def _task_object(tally: Tally, task: DoctorTask) -> JsonObject:
    mark = tally.marks[task.name]
    return {"name": task.name, "kind": str(task.kind), "right": mark.right, "problem": mark.problem}


# ---------------------------------------------------------------- the sandbox


def echo_sandbox(found: "SandboxSearch", left: "Sequence[LeftBehind]", paint: Paint, *, as_json: bool) -> None:
    """Print which sandboxes work, and which files commands changed that outlived a crash."""
    for line in (safe_json(_sandbox_object(found, left)),) if as_json else _sandbox_lines(found, left, paint):
        click.echo(line)


def _sandbox_lines(found: "SandboxSearch", left: "Sequence[LeftBehind]", paint: Paint) -> Iterator[str]:
    chosen = found.sandbox.name if found.sandbox else ""
    for each in found.tried:
        says = f"not available: {visible(each.problem)}" if each.problem else "works"
        says += "; isolates the shell of runs" if each.name == chosen else ""
        yield f"{each.name:9} {paint.ink(says, 'yellow' if each.problem else 'green')}"
    if not chosen:
        yield paint.ink(f"The shell of runs is turned off: {visible(found.refusal)}.", "red")
    for report in left:
        for note in report.notes:
            yield paint.ink(
                f"A command that was running when toolspeak crashed has changed {report.folder}: {note}", "yellow"
            )


def _sandbox_object(found: "SandboxSearch", left: "Sequence[LeftBehind]") -> JsonObject:
    return {
        "sandbox": found.sandbox.name if found.sandbox else None,
        "tried": [{"name": each.name, "works": not each.problem, "problem": each.problem} for each in found.tried],
        "left": [{"folder": str(each.folder), "notes": [*each.notes]} for each in left],
    }


# ---------------------------------------------------------------- the examination

_MINUTE: Final = 60
_NAME: Final = 15


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """What to test. An empty model means the default one; no forms means those that suit the model."""

    model: str = ""
    forms: tuple[str, ...] = ()
    quick: bool = False
    save: bool = True


async def diagnose(config: Config, options: DoctorOptions, paint: Paint, *, quiet: bool = False) -> Diagnosis:
    """Examine one model, and save its profile. Raises `UpstreamFailed` with a hint in its message."""
    transport = HttpTransport()
    try:
        directory = assemble(config, transport)
        route = await (directory.exactly(options.model) if options.model else directory.find(""))
        return await _diagnosed(route, options, Progress(paint, is_shown=not quiet))
    except UpstreamFailed as error:
        raise with_hint(error) from None
    finally:
        await transport.close()


async def _diagnosed(route: Route, options: DoctorOptions, progress: "Progress") -> Diagnosis:
    wanted = forms_by_name(options.forms, candidates(route.facts))
    looked = await gather_facts(route)
    forms = wanted or candidates(looked.facts, quick=options.quick)
    parts = PARTS[:1] if options.quick else PARTS
    if progress.is_shown:
        for line in first_lines(route, looked.findings, forms, parts, progress.paint):
            click.echo(line, err=True)
    try:
        report = await examine(replace(route, facts=looked.facts), forms, parts, progress.update)
    finally:
        progress.end()
    return _saved(route, Diagnosis(looked, report), options)


def _saved(route: Route, found: Diagnosis, options: DoctorOptions) -> Diagnosis:
    """Save the profile; return the diagnosis with its path, or with the reason why it is not saved."""
    if not found.report.worth_keeping:
        return replace(found, not_saved="there is nothing to save")
    if not options.save:
        return replace(found, not_saved="--no-save")
    if not route.profiles.on:
        return replace(found, not_saved="your configuration turns profiles off, or has settings for this model")
    today = datetime.fromtimestamp(CLOCK.seconds(), UTC).date().isoformat()
    profile = found.report.profile(today, version("toolspeak"), found.looked.fingerprint)
    try:
        return replace(found, saved=route.profiles.keep(profile), overridden=_overridden(route, found.report))
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        return replace(found, not_saved=f"cannot write{where}: {error.strerror or error}")


def _overridden(route: Route, report: DoctorReport) -> tuple[str, ...]:
    """Return the user's settings that differ from the profile, and so override it."""
    said, profile = settings_said(route.settings), settings_said(report.winner.form.profile)
    other = {name: value for name, value in said.items() if name in profile and profile[name] != value}
    return tuple(f"{name} = {value}" for name, value in other.items() if value != Mode.AUTO)


class Progress:
    """Progress on standard error: on a terminal one line that is rewritten, otherwise one line for each task."""

    def __init__(self, paint: Paint, *, is_shown: bool = True) -> None:
        """Take the style; nothing is printed until the first task."""
        self.paint: Final = paint
        self.is_shown: Final = is_shown
        self._rewrites: Final = bool(paint.width) and sys.stderr.isatty()
        self._shown = 0
        self._form = ""
        self._counts: Final[dict[str, tuple[int, int]]] = {}
        """For each form, the right answers and all answers. A good form returns in later parts, so they are kept."""
        self._seconds: Final[list[float]] = []
        """The duration of each task so far, for the estimate of the time left."""

    def update(self, news: TaskProgress) -> None:
        """Show that a task was sent, or how it was answered."""
        if not self.is_shown:
            return
        if news.step.form.name != self._form:
            self._finish_form()
            self._form = news.step.form.name
        if news.mark is None:
            self._sent(news.step)
        else:
            self._answered(news.step, news.mark)

    def end(self) -> None:
        """Leave the last line in place, with an empty line after it."""
        self._finish_form()
        if self.is_shown:
            click.echo(err=True)

    def _finish_form(self) -> None:
        """Replace the moving line by the result of the form."""
        if self._rewrites and self._form:
            self._rewrite("")
            click.echo(f"\r  {self._result()}", err=True)
        self._form = ""

    def _result(self) -> str:
        right, asked = self._counts.get(self._form, (0, 0))
        return f"{self._form:{_NAME}} {f'{right} of {asked}' if asked else ''}".rstrip()

    def _sent(self, step: NextTask) -> None:
        if self._rewrites:
            self._rewrite(f"  {join_dotted(*filter(None, [self._result(), self._time_left(step), _question(step)]))}")

    def _answered(self, step: NextTask, mark: TaskResult) -> None:
        right, asked = self._counts.get(self._form, (0, 0))
        self._counts[self._form] = (right + mark.right, asked + 1)
        self._seconds.append(mark.seconds)
        if not self._rewrites:
            problem = visible(mark.problem).replace("\n", " ")
            result = "right" if mark.right else f"wrong: {problem}"
            click.echo(f"  {step.form.name:{_NAME}} {step.task.name:14} {mark.seconds:5.1f} s  {result}", err=True)

    def _time_left(self, step: NextTask) -> str:
        if not self._seconds:
            return ""
        seconds = (step.left + 1) * sum(self._seconds) / len(self._seconds)
        return f"about {seconds / _MINUTE:.0f} min left" if seconds > _MINUTE else f"about {seconds:.0f} s left"

    def _rewrite(self, line: str) -> None:
        """Write over the current line; blanks clear the rest of a longer one."""
        shown = shorten(line, self.paint.width - 1)
        click.echo(f"\r{shown}{' ' * max(self._shown - len(shown), 0)}", err=True, nl=False)
        self._shown = len(shown)


def _question(step: NextTask) -> str:
    """Return the last message of the task on one line."""
    texts = [part.text for message in step.task.messages for part in message.parts if isinstance(part, Text)]
    return visible(texts[-1] if texts else step.task.name).replace("\n", " ")

"""Runs the doctor on one model, with progress on standard error, and prints what it found, as text or as JSON.

    form            plain one pick types text none result two steps right req tok
    hermes          16/24 3/3  3/3   2/3  2/3  2/3    3/3 1/3   2/3 34/48 1.2 310

With --sandbox:

    bwrap     works; isolates the shell of runs
    sandlock  not available: it leaves root root: run as an ordinary user
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Final

import click

from toolspeak.cli.output import safe_json, with_hint
from toolspeak.cli.terminal import UNLIMITED, Paint, count_noun, join_dotted, shorten, visible
from toolspeak.config.assemble import assemble, outbound_of
from toolspeak.config.shape import Config
from toolspeak.doctor.call_forms import WITH_TOOLS
from toolspeak.doctor.diagnosis import Checkup, Diagnosis, DoctorOptions, prepare_checkup, results_folder
from toolspeak.doctor.examination import ServerFact, TaskProgress
from toolspeak.doctor.report import DoctorReport
from toolspeak.doctor.task import DoctorTask, TaskKind, TaskResult
from toolspeak.doctor.tournament import NextTask, Tally
from toolspeak.errors import UpstreamFailed
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Text
from toolspeak.runtime.clock import CLOCK
from toolspeak.runtime.http_transport import HttpTransport
from toolspeak.runtime.profiles import settings_said

if TYPE_CHECKING:  # the sandbox does not load on Windows
    from toolspeak.agent.sandbox.journal import LeftoverReport as LeftBehind
    from toolspeak.agent.sandbox.selection import SandboxSearch

_HEADS: Final = ("form", *TaskKind, "right", "req", "tok")
_LEAST: Final = 3
_INDENT: Final = 11


def echo_diagnosis(found: Diagnosis, paint: Paint, *, as_json: bool) -> None:
    """Print the result on standard output."""
    if as_json:
        click.echo(safe_json(_diagnosis_object(found)))
        return
    for line in (*table(found.report, paint), "", *_last_lines(found, paint)):
        click.echo(line)


# ---------------------------------------------------------------- before the first task


def first_lines(checkup: Checkup, paint: Paint) -> Iterator[str]:
    """Write which model is examined, what is known about it, and how many tasks it will get."""
    route, forms, trial = checkup.route, checkup.forms, checkup.trial
    model, where = visible(route.model or "the model"), visible(route.profiles.endpoint)
    yield f"{paint.ink(model, bold=True)} on {visible(route.place)}  {paint.ink(where, dim=True)}".rstrip()
    select, confirm = len(trial.selection) if len(forms) > 1 else 0, len(trial.confirmation)
    first = f"up to {select} tasks in each of {count_noun(len(forms), 'form')} and today's, then " if select else ""
    asks = f"{first}{confirm} others to compare the best form with today's"
    facts = [*checkup.looked.findings, ServerFact("today", route.plan(WITH_TOOLS).line), ServerFact("asks", asks)]
    if checkup.known:
        known = f"{count_noun(checkup.known, 'answer')} of an unfinished trial"
        facts.append(ServerFact("known", known, "--fresh asks again"))
    for fact in facts:
        yield from _finding_lines(fact, paint)
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
        won = tally is report.winner
        yield paint.ink(_row(row, widths), "green" if won else "", bold=won)


def _cells(tally: Tally) -> tuple[str, ...]:
    kinds = (tally.of(kind) for kind in TaskKind)
    return (
        tally.form.name,
        *(f"{sum(mark.right for mark in marks)}/{len(marks)}" if marks else "-" for marks in kinds),
        f"{tally.right}/{tally.asked}",
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
    if found.removed:
        yield "The saved profile is deleted. serve, chat and Client continue without it."
    elif found.saved is not None:
        yield "Saved. serve, chat and Client use it from now on."
        yield paint.ink(visible(str(found.saved)), dim=True)
    elif found.not_saved:
        yield paint.ink(f"Not saved: {found.not_saved}.", dim=True)
    if not found.report.decided:
        yield from _wrapped(CONTINUE, paint)
    if found.overridden:
        yield paint.ink(f"Your configuration overrides it: {visible(', '.join(found.overridden))}.", "yellow")


CONTINUE: Final = (
    "What is known is kept: run toolspeak doctor again to continue, with --quick for 3 minutes more, or with --fresh "
    "to begin anew. Nothing was changed."
)


def _wrapped(text: str, paint: Paint) -> list[str]:
    width = min(paint.width or UNLIMITED, UNLIMITED)
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _diagnosis_object(found: Diagnosis) -> JsonObject:
    report, standing = found.report, found.report.standing
    form = report.winner.form if report.winner else None
    settings: dict[str, Json] = {**settings_said(form.settings)} if form else {}
    return {
        "model": report.model,
        "endpoint": report.endpoint,
        "helped": report.helped,
        "verdict": report.verdict,
        "decided": report.decided,
        "why": str(standing.end),
        "winner": form.name if form else None,
        "best": standing.challenger.form.name if standing.challenger else None,
        "better": standing.comparison.better,
        "worse": standing.comparison.worse,
        "chance": standing.comparison.chance,
        "settings": settings,
        "upstream_tools": None if form is None or form.tools is None else str(form.tools),
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


async def diagnose(config: Config, options: DoctorOptions, paint: Paint, *, quiet: bool = False) -> Diagnosis:
    """Examine one model, and save its profile. Raises `UpstreamFailed` with a hint in its message."""
    until = options.deadline(CLOCK.monotonic())
    transport = HttpTransport(outbound_of(config))
    try:
        directory = assemble(config, transport)
        route = await (directory.exactly(options.model) if options.model else directory.find(""))
        checkup = await prepare_checkup(route, options, results_folder(config.profiles))
        await _examine(checkup, Progress(paint, is_shown=not quiet), until)
        return checkup.finish()
    except UpstreamFailed as error:
        raise with_hint(error) from None
    finally:
        await transport.close()


async def _examine(checkup: Checkup, progress: "Progress", until: float) -> None:
    """Ask the tasks, with progress on standard error. After Ctrl-C, say what is known so far."""
    if progress.is_shown:
        for line in first_lines(checkup, progress.paint):
            click.echo(line, err=True)
    try:
        await checkup.examination.run(progress.update, until)
    except asyncio.CancelledError:
        progress.end()
        for line in (checkup.examination.report.verdict, CONTINUE):
            click.echo("\n".join(_wrapped(visible(line), progress.paint)), err=True)
        raise
    except BaseException:
        progress.end()
        raise
    progress.end()


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
        """For each form, the right answers and all answers. Forms take turns, so they are kept."""
        self._seconds: Final[list[float]] = []
        """The duration of each task so far, for the estimate of the time left."""

    def update(self, news: TaskProgress) -> None:
        """Show that a task was sent, or how it was answered."""
        if not self.is_shown:
            return
        self._form = news.step.form.name
        if news.mark is None:
            self._sent(news.step)
        else:
            self._answered(news.step, news.mark, known=news.known)

    def end(self) -> None:
        """Clear the moving line: the table that follows has the results."""
        if self._rewrites and self._form:
            self._rewrite("")
        if self.is_shown:
            click.echo(err=True)

    def _result(self) -> str:
        right, asked = self._counts.get(self._form, (0, 0))
        return f"{self._form:{_NAME}} {f'{right} of {asked}' if asked else ''}".rstrip()

    def _sent(self, step: NextTask) -> None:
        if self._rewrites:
            self._rewrite(f"  {join_dotted(*filter(None, [self._result(), self._time_left(step), _question(step)]))}")

    def _answered(self, step: NextTask, mark: TaskResult, *, known: bool) -> None:
        right, asked = self._counts.get(self._form, (0, 0))
        self._counts[self._form] = (right + mark.right, asked + 1)
        if known:
            return
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

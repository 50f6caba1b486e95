"""What the doctor found, as text for people and as an object for programs.

form            one pick types text none result two steps right score req tok
hermes          3/3  3/3   2/3  2/3  2/3    3/3 1/3   2/3 18/24  75 % 1.2 310

With --sandbox:

bwrap     works; isolates the shell of runs
sandlock  not available: it leaves root root: run as an ordinary user
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Final

import click

from toolspeak.cli.json_output import safe_json
from toolspeak.cli.terminal import UNLIMITED, Paint, counted, visible
from toolspeak.doctor.forms import Form
from toolspeak.doctor.look import Finding, Looked
from toolspeak.doctor.task import Kind, Task
from toolspeak.doctor.trial import Tally
from toolspeak.doctor.verdict import Report
from toolspeak.ir.json import Json, JsonObject
from toolspeak.runtime.directory import Route
from toolspeak.runtime.profiles import settings_said

if TYPE_CHECKING:  # the sandbox does not load on Windows
    from toolspeak.runtime.sandbox.find import Found
    from toolspeak.runtime.sandbox.journal import Report as LeftBehind

_HEADS: Final = ("form", *Kind, "right", "score", "req", "tok")
_LEAST: Final = 3
_INDENT: Final = 11


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The facts about a model, the result of the trial, and where the profile is saved or why it is not."""

    looked: Looked
    report: Report
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


# ---------------------------------------------------------------- before the trial


def first_lines(
    route: Route, findings: Sequence[Finding], forms: Sequence[Form], parts: Sequence[Sequence[Task]], paint: Paint
) -> Iterator[str]:
    """Write which model is examined, what is known about it, and how many tasks it will get."""
    model, where = visible(route.model or "the model"), visible(route.profiles.endpoint)
    yield f"{paint.ink(model, bold=True)} on {visible(route.place)}  {paint.ink(where, dim=True)}".rstrip()
    for finding in findings:
        yield from _finding_lines(finding, paint)
    most = sum(map(len, parts))
    yield f"  {'asks':8} {len(parts[0])} tasks in {counted(len(forms), 'form')}" + (
        f", {most} in the best of them" if most > len(parts[0]) else ""
    )
    yield ""


def _finding_lines(finding: Finding, paint: Paint) -> list[str]:
    source = f" ({visible(finding.source)})" if finding.source else ""
    line = f"  {finding.about:8} {visible(finding.says)}{source}"
    return wrap(line, paint.width - 1, subsequent_indent=" " * _INDENT) if paint.width > _INDENT + 1 else [line]


# ---------------------------------------------------------------- the table


def table(report: Report, paint: Paint) -> Iterator[str]:
    """Write one row for each form, the winner first: right answers of each kind, requests and tokens per task."""
    rows = [_cells(tally) for tally in report.tallies]
    widths = [max(map(len, column)) for column in zip(_HEADS, *rows, strict=True)]
    yield paint.ink(_row(_HEADS, widths), dim=True)
    for tally, row in zip(report.tallies, rows, strict=True):
        won = tally is report.winner and report.helped
        yield paint.ink(_row(row, widths), "green" if won else "", bold=won)


def _cells(tally: Tally) -> tuple[str, ...]:
    kinds = (tally.of(kind) for kind in Kind)
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


def _task_object(tally: Tally, task: Task) -> JsonObject:
    mark = tally.marks[task.name]
    return {"name": task.name, "kind": str(task.kind), "right": mark.right, "problem": mark.problem}


# ---------------------------------------------------------------- the sandbox


def echo_sandbox(found: "Found", left: "Sequence[LeftBehind]", paint: Paint, *, as_json: bool) -> None:
    """Print which sandboxes work, and which files commands changed that outlived a crash."""
    for line in (safe_json(_sandbox_object(found, left)),) if as_json else _sandbox_lines(found, left, paint):
        click.echo(line)


def _sandbox_lines(found: "Found", left: "Sequence[LeftBehind]", paint: Paint) -> Iterator[str]:
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


def _sandbox_object(found: "Found", left: "Sequence[LeftBehind]") -> JsonObject:
    return {
        "sandbox": found.sandbox.name if found.sandbox else None,
        "tried": [{"name": each.name, "works": not each.problem, "problem": each.problem} for each in found.tried],
        "left": [{"folder": str(each.folder), "notes": [*each.notes]} for each in left],
    }

"""What the doctor found, for people and for programs.

form            one pick types text none result two steps right score req tok
hermes          3/3  3/3   2/3  2/3  2/3    3/3 1/3   2/3 18/24  75 % 1.2 310
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from toolspeak.cli.terminal import Paint, counted, visible
from toolspeak.doctor.forms import Form
from toolspeak.doctor.look import Finding
from toolspeak.doctor.task import Kind, Task
from toolspeak.doctor.trial import Tally
from toolspeak.doctor.verdict import Report
from toolspeak.ir.json import Json, JsonObject
from toolspeak.runtime.directory import Route
from toolspeak.runtime.profiles import settings_said

if TYPE_CHECKING:  # who runs the doctor also shows how it begins
    from toolspeak.cli._doctoring import Diagnosis

_HEADS: Final = ("form", *Kind, "right", "score", "req", "tok")
_WIDE: Final = 100
_LEAST: Final = 3
_INDENT: Final = 11


def first_lines(
    route: Route, findings: Sequence[Finding], forms: Sequence[Form], parts: Sequence[Sequence[Task]], paint: Paint
) -> Iterator[str]:
    """Say which model it is, what is known of it, and what will be asked."""
    model, where = visible(route.model or "the model"), visible(route.profiles.endpoint)
    yield f"{paint.ink(model, bold=True)} on {visible(route.place)}  {paint.ink(where, dim=True)}".rstrip()
    for finding in findings:
        yield from _found(finding, paint)
    most = sum(map(len, parts))
    yield f"  {'asks':8} {len(parts[0])} tasks in {counted(len(forms), 'form')}" + (
        f", {most} in the best of them" if most > len(parts[0]) else ""
    )
    yield ""


def _found(finding: Finding, paint: Paint) -> list[str]:
    """Write a finding; on a terminal it may need several lines."""
    source = f" ({visible(finding.source)})" if finding.source else ""
    line = f"  {finding.about:8} {visible(finding.says)}{source}"
    return wrap(line, paint.width - 1, subsequent_indent=" " * _INDENT) if paint.width > _INDENT + 1 else [line]


# ---------------------------------------------------------------- the table


def table(report: Report, paint: Paint) -> Iterator[str]:
    """Write the forms, the winner first: right answers of each kind, requests and tokens for each task."""
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


def last_lines(found: "Diagnosis", paint: Paint) -> Iterator[str]:
    """Say what it means, and what becomes of it."""
    color = "green" if found.report.helped else "red"
    for line in _wrapped(visible(found.report.verdict), paint):
        yield paint.ink(line, color)
    if found.kept is not None:
        yield "Saved; serve, chat and Client use it from now on."
        yield paint.ink(visible(str(found.kept)), dim=True)
    else:
        yield paint.ink(f"Not saved: {found.why_not}.", dim=True)
    if found.stronger:
        yield paint.ink(f"But your configuration goes before it: {visible(', '.join(found.stronger))}.", "yellow")


def _wrapped(text: str, paint: Paint) -> list[str]:
    return wrap(text, min(paint.width or _WIDE, _WIDE), break_long_words=False, break_on_hyphens=False)


# ---------------------------------------------------------------- for programs


def as_object(found: "Diagnosis") -> JsonObject:
    """Say it for programs."""
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
        "saved": None if found.kept is None else str(found.kept),
        "not_saved": found.why_not or None,
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

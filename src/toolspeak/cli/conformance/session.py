"""Runs one trial with progress on standard error, and prints its report as a table or as JSON."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

import click

from toolspeak.cli.output import safe_json
from toolspeak.cli.terminal import INDENT, UNLIMITED, Paint, count_noun, shorten, visible
from toolspeak.conformance.cases import CaseVerdict, ConformanceCase, conformance_cases
from toolspeak.conformance.live import ask_live, first_model
from toolspeak.conformance.report import VERDICTS, ConformanceReport, KindRow
from toolspeak.conformance.trial import ChatClient, GatewayTrial, TrialResult, TrialTarget
from toolspeak.conformance.upstream import MODEL, ScriptedModel, serve_scripted
from toolspeak.errors import BadConfig, BadRequest
from toolspeak.ir.json import Json
from toolspeak.text.strict import dump

_COLUMNS: Final = {
    CaseVerdict.RIGHT: "right",
    CaseVerdict.REFUSED: "asked again",
    CaseVerdict.SHOWN: "text wrong",
    CaseVerdict.MISSED: "missed",
    CaseVerdict.WRONG: "wrong",
    CaseVerdict.FALSE: "false",
}
_LEGEND: Final = (
    "right: the calls, their arguments and the text are as they must be",
    "asked again: no call, but the gateway asked the model again or answered with an error",
    "text wrong: the calls are right, but text is lost or markup is shown",
    "missed: a call is missing; wrong: another call or other arguments; false: a call where there is none",
    "protocol: responses whose form clients refuse or misread, whatever the calls are",
)
_EVERY: Final = 50
"""Without a terminal, progress is a line after so many responses."""


@dataclass(frozen=True, slots=True)
class ConformanceOptions:
    """What the user asked for."""

    target: TrialTarget
    host: str = "127.0.0.1"
    port: int = 0
    wait: float = 120.0
    names_models: bool = False
    only: tuple[str, ...] = ()
    cuts: int = 1


def target_of(  # noqa: PLR0913 - one for each option
    url: str, model: str | None, key: str | None, headers: Sequence[str], *, timeout: float, parallel: int
) -> TrialTarget:
    """Return the server on trial. Raises `BadConfig` for a URL or a header that is none."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadConfig(f"{url!r} is not a URL such as http://127.0.0.1:4141/v1. Pass the base URL of the server.")
    base = url.rstrip("/").removesuffix("/chat/completions")
    sent = [("authorization", f"Bearer {key}")] if key else []
    for header in headers:
        name, colon, value = header.partition(":")
        if not colon or not name.strip() or not header.isascii() or not header.isprintable():
            raise BadConfig(f"--header: {header!r} is not a header. Write it as 'name: value'.")
        sent.append((name.strip(), value.strip()))
    base = base if urlsplit(base).path.strip("/") else f"{base}/v1"
    return TrialTarget(base, model or "", tuple(sent), timeout, parallel)


def judge_server(asked: ConformanceOptions, *, live: bool, quiet: bool) -> ConformanceReport:
    """Run the trial that was asked for. Raises `NotReached`, `BadConfig` and `BadRequest`."""
    progress = _ProgressLine(is_shown=not quiet)
    try:
        if live:
            return asyncio.run(_live(asked, progress))
        return _scripted(asked, progress)
    finally:
        progress.end()


def _scripted(asked: ConformanceOptions, progress: "_ProgressLine") -> ConformanceReport:
    cases = _chosen(asked.only)
    model = ScriptedModel(conformance_cases())
    target = replace(asked.target, model=asked.target.model or MODEL)
    with serve_scripted(model, asked.host, asked.port) as upstream:
        progress.say(
            f"The scripted model {MODEL!r} is at {upstream}: let the gateway at {target.url} use it as an "
            "OpenAI-compatible upstream."
        )
        results = asyncio.run(_run(replace(asked, target=target), model, cases, progress))
    return ConformanceReport(target.url, target.model, tuple(results))


def _chosen(only: Sequence[str]) -> tuple[ConformanceCase, ...]:
    cases = conformance_cases()
    if not only:
        return cases
    for name in only:
        if not any(_is_named(case, name) for case in cases):
            kinds = ", ".join(dict.fromkeys(case.kind for case in cases))
            raise BadRequest(f"--only {name}: no case has such an id or kind. The kinds are: {kinds}.")
    return tuple(case for case in cases if any(_is_named(case, name) for name in only))


def _is_named(case: ConformanceCase, name: str) -> bool:
    return case.id.startswith(name) or case.kind.startswith(name)


async def _run(
    asked: ConformanceOptions, model: ScriptedModel, cases: Sequence[ConformanceCase], progress: "_ProgressLine"
) -> list[TrialResult]:
    trial = GatewayTrial(ChatClient(asked.target), model, names_models=asked.names_models)
    await trial.wait_until_connected(asked.wait)
    return await trial.run(cases, progress.update, asked.cuts)


async def _live(asked: ConformanceOptions, progress: "_ProgressLine") -> ConformanceReport:
    client = ChatClient(asked.target)
    if not asked.target.model:
        client = ChatClient(replace(asked.target, model=await first_model(client)))
    results = await ask_live(client, progress.update)
    return ConformanceReport(client.target.url, client.target.model, tuple(results))


class _ProgressLine:
    """Progress on standard error: one line that is rewritten on a terminal, a line now and then elsewhere."""

    def __init__(self, *, is_shown: bool) -> None:
        self._is_shown: Final = is_shown
        self._is_terminal: Final = sys.stderr.isatty()
        self._is_open = False

    def say(self, line: str) -> None:
        """Print a line, also with --json: without it a user does not know what to point the gateway at."""
        click.echo(line, err=True)

    def update(self, done: int, of: int) -> None:
        """Show how many responses were judged."""
        if not self._is_shown or not (self._is_terminal or done == of or done % _EVERY == 0):
            return
        line = f"{done} of {of} responses judged"
        click.echo(f"\r{line}" if self._is_terminal else line, err=True, nl=not self._is_terminal)
        self._is_open = self._is_terminal

    def end(self) -> None:
        """End the line."""
        if self._is_open:
            click.echo("", err=True)
            self._is_open = False


# ---------------------------------------------------------------- the report


def echo_report(report: ConformanceReport, paint: Paint, *, worst: int, as_json: bool) -> None:
    """Print the report on standard output."""
    if as_json:
        click.echo(safe_json(report.as_object()))
        return
    for line in (*_table(report, paint), *_worst_lines(report, paint, worst), *_last_lines(report, paint)):
        click.echo(line)


def _table(report: ConformanceReport, paint: Paint) -> Iterator[str]:
    head = ("kind", "sent", *_COLUMNS.values(), "protocol")
    rows = [_cells(row) for row in (*report.rows(), report.total)]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    yield paint.ink(_line(head, widths), bold=True)
    for row in rows[:-1]:
        yield _line(row, widths)
    yield paint.ink(_line(rows[-1], widths), bold=True)


def _cells(row: KindRow) -> tuple[str, ...]:
    verdicts = (str(row.verdicts[verdict] or "-") for verdict in VERDICTS)
    return (row.kind, str(row.sent), *verdicts, str(row.protocol_errors or "-"))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.rjust(width) if place else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join((first, *others)).rstrip()


def _worst_lines(report: ConformanceReport, paint: Paint, most: int) -> Iterator[str]:
    wrong = report.worst()
    width = paint.width or UNLIMITED
    if wrong and most:
        yield ""
    for result in wrong[:most]:
        case, answer = result.case, result.answer
        yield (
            paint.ink(f"{case.id} ({result.way}): {result.verdict.value}", bold=True) + f"  {case.kind}; {case.source}"
        )
        if result.verdict is not CaseVerdict.RIGHT:
            yield shorten(f"{INDENT}expected {_shown(case.accepted[0])}", width)
            yield shorten(f"{INDENT}got      {_got(result)}", width)
        for problem in answer.problems:
            yield shorten(f"{INDENT}protocol: {visible(problem)}", width)
    if len(wrong) > most:
        yield f"{len(wrong) - most} more are not right: --worst {len(wrong)} shows all, --json with every detail."


def _shown(calls: Sequence[Json]) -> str:
    return visible(dump(list(calls))) if calls else "no call"


def _got(result: TrialResult) -> str:
    answer = result.answer
    if answer.error:
        return f"the error {visible(answer.error)!r}"
    text = f", text {visible(answer.text)!r}" if answer.text else ""
    return f"{_shown(answer.calls)}{text}".replace("\n", " ")


def _last_lines(report: ConformanceReport, paint: Paint) -> Iterator[str]:
    total = report.total
    yield ""
    if not report.is_right:
        yield from (paint.ink(line, dim=True) for line in _LEGEND)
        yield ""
    share = f"{total.right} of {count_noun(total.sent, 'response')} right in content and form"
    yield f"{report.url} ({report.model}): {share}"

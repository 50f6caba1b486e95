"""Run the doctor on one model: collect facts, try all forms with progress on standard error, save the winner."""

import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final

import click

from toolspeak.cli.doctor.report import Diagnosis, first_lines
from toolspeak.cli.failure_hints import hinted
from toolspeak.cli.terminal import Paint, cut, dotted, visible
from toolspeak.config.assemble import assemble
from toolspeak.config.shape import Config
from toolspeak.doctor.examine import Tried, examine
from toolspeak.doctor.forms import candidates, named
from toolspeak.doctor.look import look
from toolspeak.doctor.suite import PARTS
from toolspeak.doctor.task import Mark
from toolspeak.doctor.trial import Try
from toolspeak.doctor.verdict import Report
from toolspeak.engine.plan import Mode
from toolspeak.errors import UpstreamFailed
from toolspeak.ir.message import Text
from toolspeak.runtime.clock import CLOCK
from toolspeak.runtime.directory import Route
from toolspeak.runtime.profiles import settings_said
from toolspeak.runtime.transport import HttpTransport

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
        raise hinted(error) from None
    finally:
        await transport.close()


async def _diagnosed(route: Route, options: DoctorOptions, progress: "Progress") -> Diagnosis:
    wanted = named(options.forms, candidates(route.facts))
    looked = await look(route)
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
    """Save the profile, or say why it is not saved."""
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


def _overridden(route: Route, report: Report) -> tuple[str, ...]:
    """Return the user's settings that differ from the profile, and so override it."""
    said, profile = settings_said(route.settings), settings_said(report.winner.form.profile)
    other = {name: value for name, value in said.items() if name in profile and profile[name] != value}
    return tuple(f"{name} = {value}" for name, value in other.items() if value != Mode.AUTO)


class Progress:
    """Progress on standard error: on a terminal one line that is rewritten, otherwise one line for each task."""

    def __init__(self, paint: Paint, *, is_shown: bool = True) -> None:
        """Print nothing yet."""
        self.paint: Final = paint
        self.is_shown: Final = is_shown
        self._rewrites: Final = bool(paint.width) and sys.stderr.isatty()
        self._shown = 0
        self._form = ""
        self._counts: Final[dict[str, tuple[int, int]]] = {}
        """For each form, how many answers were right, and of how many. A good form comes back in later parts."""
        self._seconds: Final[list[float]] = []

    def update(self, news: Tried) -> None:
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

    def _sent(self, step: Try) -> None:
        if self._rewrites:
            self._rewrite(f"  {dotted(*filter(None, [self._result(), self._time_left(step), _question(step)]))}")

    def _answered(self, step: Try, mark: Mark) -> None:
        right, asked = self._counts.get(self._form, (0, 0))
        self._counts[self._form] = (right + mark.right, asked + 1)
        self._seconds.append(mark.seconds)
        if not self._rewrites:
            problem = visible(mark.problem).replace("\n", " ")
            result = "right" if mark.right else f"wrong: {problem}"
            click.echo(f"  {step.form.name:{_NAME}} {step.task.name:14} {mark.seconds:5.1f} s  {result}", err=True)

    def _time_left(self, step: Try) -> str:
        if not self._seconds:
            return ""
        seconds = (step.left + 1) * sum(self._seconds) / len(self._seconds)
        return f"about {seconds / _MINUTE:.0f} min left" if seconds > _MINUTE else f"about {seconds:.0f} s left"

    def _rewrite(self, line: str) -> None:
        """Write over the current line; blanks clear the rest of a longer one."""
        shown = cut(line, self.paint.width - 1)
        click.echo(f"\r{shown}{' ' * max(self._shown - len(shown), 0)}", err=True, nl=False)
        self._shown = len(shown)


def _question(step: Try) -> str:
    """Return the last message of the task on one line."""
    texts = [part.text for message in step.task.messages for part in message.parts if isinstance(part, Text)]
    return visible(texts[-1] if texts else step.task.name).replace("\n", " ")

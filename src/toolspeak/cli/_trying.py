"""The trial while it runs: on a terminal one line that is rewritten, else a line for each task. On standard error."""

import sys
from typing import Final

import click

from toolspeak.cli.terminal import Paint, cut, sign, visible
from toolspeak.doctor.examine import Tried
from toolspeak.doctor.task import Mark
from toolspeak.doctor.trial import Try
from toolspeak.ir.message import Text

_MINUTE: Final = 60
_NAME: Final = 15


class Trying:
    """Shows what is asked, what came of it, and how long it may still take."""

    def __init__(self, paint: Paint, *, sees: bool = True) -> None:
        """Show nothing yet."""
        self.paint: Final = paint
        self.sees: Final = sees
        self._rewrites: Final = bool(paint.width) and sys.stderr.isatty()
        self._shown = 0
        self._form = ""
        self._counts: Final[dict[str, tuple[int, int]]] = {}
        """Of each form, what was right and what was asked: a form comes back if it is good."""
        self._seconds: Final[list[float]] = []

    def tell(self, news: Tried) -> None:
        """Show one more."""
        if not self.sees:
            return
        if news.step.form.name != self._form:
            self._leave()
            self._form = news.step.form.name
        if news.mark is None:
            self._asks(news.step)
        else:
            self._got(news.step, news.mark)

    def end(self) -> None:
        """Leave what is there, and some room."""
        self._leave()
        if self.sees:
            click.echo(err=True)

    def _leave(self) -> None:
        """Leave what a form came to."""
        if self._rewrites and self._form:
            self._rewrite("")
            click.echo(f"\r  {self._came()}", err=True)
        self._form = ""

    def _came(self) -> str:
        right, asked = self._counts.get(self._form, (0, 0))
        return f"{self._form:{_NAME}} {f'{right} of {asked}' if asked else ''}".rstrip()

    def _asks(self, step: Try) -> None:
        if not self._rewrites:
            return
        dot = sign("·", "|")
        parts = [self._came(), self._left(step), _question(step)]
        self._rewrite(f"  {f' {dot} '.join(filter(None, parts))}")

    def _got(self, step: Try, mark: Mark) -> None:
        right, asked = self._counts.get(self._form, (0, 0))
        self._counts[self._form] = (right + mark.right, asked + 1)
        self._seconds.append(mark.seconds)
        if not self._rewrites:
            problem = visible(mark.problem).replace("\n", " ")
            came = "right" if mark.right else f"wrong: {problem}"
            click.echo(f"  {step.form.name:{_NAME}} {step.task.name:14} {mark.seconds:5.1f} s  {came}", err=True)

    def _left(self, step: Try) -> str:
        if not self._seconds:
            return ""
        seconds = (step.left + 1) * sum(self._seconds) / len(self._seconds)
        return f"about {seconds / _MINUTE:.0f} min left" if seconds > _MINUTE else f"about {seconds:.0f} s left"

    def _rewrite(self, line: str) -> None:
        """Write over the line that is there; blanks take away what was longer."""
        shown = cut(line, self.paint.width - 1)
        click.echo(f"\r{shown}{' ' * max(self._shown - len(shown), 0)}", err=True, nl=False)
        self._shown = len(shown)


def _question(step: Try) -> str:
    """Return the end of the conversation, in one line."""
    texts = [part.text for message in step.task.messages for part in message.parts if isinstance(part, Text)]
    return visible(texts[-1] if texts else step.task.name).replace("\n", " ")

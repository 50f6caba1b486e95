"""What the person types: one line at a time, with the editing and the history of readline where there is one."""

import io
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Final

import click

from toolspeak.cli.terminal import Paint, sign

_READLINE: Final = "readline"
_UNSEEN, _SEEN = "\001", "\002"
"""What stands between them takes no cells, as readline counts."""


class Person:
    """Who sits at the terminal."""

    def __init__(self, paint: Paint) -> None:
        """Prepare standard input."""
        self._paint: Final = paint
        self._edits: Final = bool(paint.width) and find_spec(_READLINE) is not None
        if self._edits:
            import_module(_READLINE)  # it takes the place of the plain `input` by itself
        stdin: object = sys.stdin
        if isinstance(stdin, io.TextIOWrapper):
            stdin.reconfigure(errors="replace")

    def line(self, asked: str = "") -> str:
        """Ask for a line. Ctrl-D is an EOFError, Ctrl-C a KeyboardInterrupt; both leave the line."""
        try:
            return input(self._prompt(asked, sign("›", ">")))  # noqa: RUF001 - a sign for people
        except (EOFError, KeyboardInterrupt):
            click.echo(err=True)
            raise

    def _prompt(self, asked: str, mark: str) -> str:
        """Write it; where standard output is no terminal, it gets answers only."""
        if not self._paint.width:
            click.echo(f"{asked}{mark} ", err=True, nl=False)
            return ""
        inked = self._paint.ink(mark, "green", bold=True)
        before, _, after = inked.partition(mark)
        if before and self._edits:
            inked = f"{_UNSEEN}{before}{_SEEN}{mark}{_UNSEEN}{after}{_SEEN}"
        return f"{asked}{inked} "

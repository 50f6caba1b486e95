"""Where a run is shown: on standard error, for its final text goes to standard output.

A terminal gets a line that moves (`_run_live.py`, where rich is installed); a file or a pipe gets the lines that stay.
"""

import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import Final, Protocol

import click

from toolspeak.cli._run_story import Story
from toolspeak.cli.terminal import Paint
from toolspeak.runs.watch import RunEvent


class RunScreen(Protocol):
    """Shows one run."""

    def show(self, event: RunEvent) -> None:
        """Show one more event."""
        ...

    def note(self, line: str) -> None:
        """Write a line of our own."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """Stand still while a person is asked."""
        ...

    def end(self) -> None:
        """Leave the terminal as it was."""
        ...


class PlainScreen:
    """Writes what stays."""

    def __init__(self, paint: Paint, *, expand: bool = False, quiet: bool = False) -> None:
        """Show a run; a quiet screen shows only our notes."""
        self._story: Final = Story(paint, expand=expand)
        self._quiet: Final = quiet

    def show(self, event: RunEvent) -> None:
        """Show one more event."""
        for line in self._story.feed(event):
            if not self._quiet:
                self.note(line)

    def note(self, line: str) -> None:
        """Write a line of our own."""
        click.echo(line, err=True)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stand still; nothing moves here."""
        yield

    def end(self) -> None:
        """Leave nothing open."""


def screen_here(paint: Paint, rounds: int, *, expand: bool, quiet: bool) -> RunScreen:
    """Choose the screen that standard error can show."""
    if quiet or not sys.stderr.isatty() or find_spec("rich") is None:
        return PlainScreen(paint, expand=expand, quiet=quiet)
    # rich is an extra, and takes long to load.
    from toolspeak.cli._run_live import LiveScreen, moves  # noqa: PLC0415

    return LiveScreen(paint, rounds, expand=expand) if moves() else PlainScreen(paint, expand=expand)

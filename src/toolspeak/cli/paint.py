"""Colours, and text that is safe to show.

Text from models, upstreams and users may hold what moves the cursor, writes backwards or cannot be seen: `visible`
writes such characters as escapes. Colours are the sixteen of the terminal's own theme, and only where they are wanted:
on a terminal, unless `--color never` or NO_COLOR say no.
"""

# click is used by overriding, and `typing.override` is not there before Python 3.12:
# pyright: reportImplicitOverride=false

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TextIO, TypeVar
from unicodedata import combining, east_asian_width

import click

from toolspeak.text.visible import visible

__all__ = ["ColorOption", "Paint", "color_option", "visible", "wrapped"]

Decorated = TypeVar("Decorated", bound=Callable[..., Any] | click.Command)

_WIDE: Final = ("W", "F")
_NARROWEST: Final = 20
_WHEN: Final = {"auto": None, "always": True, "never": False}


class ColorOption(click.Option):
    """`--color`: what NO_COLOR says, if it is set to anything, is `never`."""

    def value_from_envvar(self, ctx: click.Context) -> str | None:
        """Take any value but an empty one for a no."""
        return "never" if self.resolve_envvar_value(ctx) else None


def _decide(ctx: click.Context, _: click.Parameter, when: str) -> None:
    ctx.color = _WHEN[when]


def color_option(command: Decorated) -> Decorated:
    """Give a command the option `--color`; what it decides is in the context, for `Paint.here` and `click.echo`."""
    option = click.option(
        "--color",
        cls=ColorOption,
        type=click.Choice(list(_WHEN)),
        default="auto",
        show_default=True,
        envvar="NO_COLOR",
        expose_value=False,
        callback=_decide,
        help="When to use colours. With NO_COLOR in the environment: never.",
    )
    return option(command)


@dataclass(frozen=True, slots=True)
class Paint:
    """Colours or none, and the cells of a line, 0 where lines have no end."""

    on: bool = False
    width: int = 0

    @staticmethod
    def here(stream: TextIO | None = None) -> "Paint":
        """Look at standard output, or another stream, and at what `--color` says."""
        ctx = click.get_current_context(silent=True)
        wanted = ctx.color if ctx is not None else None
        terminal = (stream or sys.stdout).isatty()
        width = max(shutil.get_terminal_size().columns, _NARROWEST) if terminal else 0
        return Paint(terminal if wanted is None else wanted, width)

    def ink(self, text: str, color: str = "", *, bold: bool = False, dim: bool = False) -> str:
        """Colour a text, without its line ends."""
        if not self.on or not text or not (color or bold or dim):
            return text
        return click.style(text, fg=color or None, bold=bold or None, dim=dim or None)


def wrapped(line: str, width: int) -> Iterator[str]:
    """Cut a line in pieces of at most `width` cells; 0 leaves it whole."""
    if not width or (line.isascii() and len(line) <= width):
        yield line
        return
    start = cells = 0
    for index, char in enumerate(line):
        cells += (taken := _cells(char))
        if cells > width:
            yield line[start:index]
            start, cells = index, taken
    yield line[start:]


def _cells(char: str) -> int:
    if char.isascii():
        return 1
    return 0 if combining(char) else 1 + (east_asian_width(char) in _WIDE)

"""Formats text for a terminal: colours, widths, symbols, and escapes for characters that are unsafe to print.

Text from models, upstreams and users can contain control characters, bidirectional overrides and invisible characters;
`visible` replaces them with escapes. Colours are the sixteen of the terminal's own theme. They are used on a terminal
only, unless `--color` says otherwise; NO_COLOR turns them off.
"""

# click is used by overriding, and `typing.override` is not there before Python 3.12:
# pyright: reportImplicitOverride=false

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TextIO, TypeVar
from unicodedata import combining, east_asian_width

import click

from toolspeak.text.display import visible

__all__ = [
    "INDENT",
    "UNLIMITED",
    "ColorOption",
    "Paint",
    "color_option",
    "count_noun",
    "duration_text",
    "indent_below",
    "join_dotted",
    "shorten",
    "sign",
    "visible",
    "wrap_columns",
]

Decorated = TypeVar("Decorated", bound=Callable[..., Any] | click.Command)

INDENT: Final = "    "
UNLIMITED: Final = 100
"""Columns to lay text out for when the output is a file or a pipe, which have no width."""
_WIDE: Final = ("W", "F")
_NARROWEST: Final = 20
"""Columns that are assumed at least: layouts subtract margins, and a width of 0 would mean no limit."""
_MINUTE: Final = 60
_WHEN: Final = {"auto": None, "always": True, "never": False}


class ColorOption(click.Option):
    """`--color`. Any non-empty NO_COLOR in the environment means `never`."""

    def value_from_envvar(self, ctx: click.Context) -> str | None:
        """Return `never` if NO_COLOR is set and not empty."""
        return "never" if self.resolve_envvar_value(ctx) else None


def _decide(ctx: click.Context, _: click.Parameter, when: str) -> None:
    ctx.color = _WHEN[when]


def color_option(command: Decorated) -> Decorated:
    """Add `--color`. The choice is stored in click's context, where `Paint.here` and `click.echo` read it."""
    option = click.option(
        "--color",
        cls=ColorOption,
        type=click.Choice(list(_WHEN)),
        default="auto",
        show_default=True,
        envvar="NO_COLOR",
        expose_value=False,
        callback=_decide,
        help="When to use colours; auto uses them on a terminal. NO_COLOR in the environment means never.",
    )
    return option(command)


@dataclass(frozen=True, slots=True)
class Paint:
    """Whether to use colours, and the width of the output in columns; 0 means that lines have no limit."""

    on: bool = False
    width: int = 0

    @staticmethod
    def here(stream: TextIO | None = None) -> "Paint":
        """Inspect a stream (standard output by default), and apply `--color`."""
        ctx = click.get_current_context(silent=True)
        wanted = ctx.color if ctx is not None else None
        terminal = (stream or sys.stdout).isatty()
        width = max(shutil.get_terminal_size().columns, _NARROWEST) if terminal else 0
        return Paint(terminal if wanted is None else wanted, width)

    def ink(self, text: str, color: str = "", *, bold: bool = False, dim: bool = False) -> str:
        """Return the text in a colour or weight; unchanged if colours are off."""
        if not self.on or not text or not (color or bold or dim):
            return text
        return click.style(text, fg=color or None, bold=bold or None, dim=dim or None)


# ---------------------------------------------------------------- fitting text into columns


def wrap_columns(line: str, width: int) -> Iterator[str]:
    """Split a line into rows of at most `width` columns; 0 leaves it whole."""
    if not width or (line.isascii() and len(line) <= width):
        yield line
        return
    start = cells = 0
    # Columns, not characters: CJK characters take two and combining marks none, and a line that is too long would wrap
    # on the terminal and break the lines that are rewritten.
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


def shorten(line: str, width: int) -> str:
    """Shorten a line to at most `width` columns, with an ellipsis; 0 leaves it whole."""
    if next(wrap_columns(line, width)) == line:
        return line
    more = sign("…", "...")
    return next(wrap_columns(line, max(width - len(more), 1))) + more


def indent_below(lines: Iterable[str], paint: Paint, color: str = "", *, dim: bool = False) -> Iterator[str]:
    """Indent lines that belong to the line above them, wrapped to the width."""
    room = paint.width and max(paint.width - len(INDENT), 1)
    for line in lines:
        for row in wrap_columns(line.expandtabs(2), room):
            yield INDENT + paint.ink(row, color, dim=dim)


# ---------------------------------------------------------------- words and symbols


def count_noun(number: int, what: str) -> str:
    """Write a number with its noun: `1 fix`, `2 fixes`, `no calls`."""
    plural = f"{what}es" if what.endswith("x") else f"{what}s"
    return f"{number or 'no'} {what if number == 1 else plural}"


def duration_text(seconds: float) -> str:
    """Write a duration: `3.2 s`, `2 min 5 s`."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _MINUTE)
    return f"{minutes} min {rest} s"


def join_dotted(*words: str) -> str:
    """Join words into one status line: `done · 3 rounds · 1.2 s`."""
    return f" {sign('·', '|')} ".join(words)


def sign(wanted: str, instead: str) -> str:
    """Return a symbol, or its replacement if the encoding of standard output lacks it."""
    try:
        wanted.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return instead
    return wanted

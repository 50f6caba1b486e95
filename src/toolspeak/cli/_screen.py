"""A turn as it comes: what the model says goes to standard output, what it thinks to standard error.

The user asks for the weather.        dim
▸ get_weather(city="Oslo")  1 fix

A line that the model ends is ended only when more comes, so that an answer has no empty lines around it.
"""

import sys
from collections.abc import Iterator
from typing import Final, assert_never

import click

from toolspeak.cli._called import call_lines, rejected_lines
from toolspeak.cli.terminal import Paint, sign, visible
from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallRejected,
    CallStarted,
    Discarded,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    TextDelta,
)
from toolspeak.ir.turn import fold


class Screen:
    """Shows the events of one turn."""

    def __init__(self, paint: Paint, *, expand: bool) -> None:
        """Show a sign while nothing has come, where somebody can see it go."""
        self._paint: Final = paint
        self._expand: Final = expand
        self._said: Final = _Block(paint)
        self._thought: Final = _Block(paint, thought=True)
        self._open: Final[dict[str, list[Event]]] = {}
        self._waits = bool(paint.width) and sys.stderr.isatty()
        if self._waits:
            click.echo(paint.ink(sign("…", "."), dim=True), err=True, nl=False)

    def feed(self, event: Event) -> None:
        """Show one more."""
        match event:
            case TextDelta(text):
                self._write(self._said, text)
            case ReasoningDelta(text):
                self._write(self._thought, text)
            case CallStarted(id):
                self._open[id] = [event]
            case ArgsDelta(id):
                self._open[id].append(event)
            case CallEnded(id):
                whole = fold((*self._open.pop(id), event)).calls[0]
                self._lines(call_lines(whole, self._paint, expand=self._expand))
            case CallRejected():
                self._lines(rejected_lines(event, self._paint, expand=self._expand))
            case Discarded() | Finished() | Failed():
                pass
            case _:
                assert_never(event)

    def finish(self) -> None:
        """End the line that is open."""
        self._uncover()
        self._thought.end()
        self._said.end()

    def _write(self, block: "_Block", text: str) -> None:
        other = self._said if block is self._thought else self._thought
        if text.strip("\n"):
            self._uncover()
            other.end()
        block.write(text)

    def _lines(self, lines: Iterator[str]) -> None:
        self.finish()
        for line in lines:
            click.echo(line)

    def _uncover(self) -> None:
        """Take the waiting sign away; one cell, and no terminal is too old for that."""
        if self._waits:
            self._waits = False
            click.echo("\r \r", err=True, nl=False)


class _Block:
    """A stretch of text on one of the two streams."""

    def __init__(self, paint: Paint, *, thought: bool = False) -> None:
        self._paint: Final = paint
        self._thought: Final = thought
        self._begun = False
        self._held = ""
        """Line ends that are written with what follows them."""

    def write(self, text: str) -> None:
        shown = visible(self._held + text)
        kept = shown.rstrip("\n")
        self._held = shown[len(kept) :] if self._begun or kept else ""
        if kept:
            self._echo(kept if self._begun else self._first(kept.lstrip("\n")))
            self._begun = True

    def end(self) -> None:
        if self._begun:  # an empty line after thoughts
            click.echo("\n" if self._thought else "", err=self._thought)
        self._begun, self._held = False, ""

    def _first(self, text: str) -> str:
        """Mark thoughts where they cannot be dim."""
        return f"[reasoning] {text}" if self._thought and not self._paint.on else text

    def _echo(self, text: str) -> None:
        click.echo(self._paint.ink(text, dim=self._thought), err=self._thought, nl=False)

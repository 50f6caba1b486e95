"""Shows a run on standard error as its events happen: the lines that stay, and the current activity.

I read the file first.                                    text of the model before its calls
✓ read_file(path="a.txt"), list_files()  0.1 s            a round of calls
✗ shell(command="false")  2.4 s
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias, assert_never

import click

from toolspeak.agent.runs.events import (
    RunEnded,
    RunEvent,
    ToolCallAsked,
    ToolCallBegan,
    ToolCallEnded,
    ToolCallRejected,
    TurnBegan,
    TurnEnded,
    Wrote,
)
from toolspeak.cli.output import indented, keyword_arguments
from toolspeak.cli.terminal import (
    INDENT,
    UNLIMITED,
    Paint,
    duration_text,
    indent_below,
    shorten,
    sign,
    visible,
    wrap_columns,
)

_LONGEST: Final = 4096
"""Characters of arguments that are formatted for one line; arguments can be megabytes."""


# ---------------------------------------------------------------- rounds of calls as lines


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call and its result. `seconds` is None if the duration is unknown."""

    name: str
    arguments: str
    text: str = ""
    is_error: bool = False
    seconds: float | None = None


ShownRounds: TypeAlias = list[Sequence[ShownCall]]


def round_lines(calls: Sequence[ShownCall], paint: Paint, *, expand: bool, number: int = 0) -> Iterator[str]:
    """Write a round: all calls on one line; expanded, each on its own line with its arguments and result.

    A number is written before the calls; 0 is not.
    """
    if not expand:
        yield _line(calls, paint, number)
        return
    for call in calls:
        yield _line([call], paint, number)
        yield from indent_below(indented(visible(call.arguments), (paint.width or UNLIMITED) - len(INDENT)), paint)
        yield from indent_below(visible(call.text).split("\n"), paint, "red" if call.is_error else "", dim=True)


def call_text(name: str, arguments: str) -> str:
    """Write a call on one line: `read_file(path="a.txt")`."""
    short = arguments if len(arguments) <= _LONGEST else arguments[:_LONGEST]
    return f"{visible(name)}({keyword_arguments(short)})".replace("\n", " ").replace("\t", " ")


def _line(calls: Sequence[ShownCall], paint: Paint, number: int) -> str:
    failed = any(call.is_error for call in calls)
    mark = sign("✗", "x") if failed else sign("✓", "+")
    which = f"{number} " if number else ""
    times = [call.seconds for call in calls if call.seconds is not None]
    time = f"  {duration_text(sum(times))}" if times else ""
    text = ", ".join(call_text(call.name, call.arguments) for call in calls)
    room = max((paint.width or UNLIMITED) - len(mark) - 1 - len(which) - len(time), 1)
    inked = f"{paint.ink(mark, 'red' if failed else 'green')} {paint.ink(which, dim=True)}"
    return f"{inked}{shorten(text, room)}{paint.ink(time, dim=True)}"


# ---------------------------------------------------------------- events as lines


class Transcript:
    """Turns events into the lines that stay, and keeps track of the current activity."""

    def __init__(self, paint: Paint, *, expand: bool, rounds: ShownRounds | None = None) -> None:
        """Take the style; the transcript is empty. Rounds are added to `rounds`, and numbered by their place there."""
        self._paint: Final = paint
        self._expand: Final = expand
        self._rounds: Final = rounds
        self._calls: dict[str, ShownCall] = {}
        self._expected = 0
        """Number of calls in the current turn: its line is complete when all of them have ended."""
        self._done = 0
        self.round = 0
        self.doing = "starting"
        self.writing = ""
        """Text of the model in this turn."""
        self.is_reasoning: bool = False
        """Whether `writing` is reasoning."""

    def feed(self, event: RunEvent) -> Iterator[str]:
        """Take one event, and yield the lines that it completes."""
        self.round = event.round
        match event:
            case TurnBegan():
                self._begin("waiting for the model")
            case Wrote(text=text, thought=thought):
                self._wrote(text, is_reasoning=thought)
            case TurnEnded(text=text, calls=calls):
                self._begin("")
                self._expected = calls
                # The text of a turn without calls is the result, which the command prints on standard output.
                yield from self._text_lines(text) if calls else ()
            case ToolCallBegan() | ToolCallAsked():
                self._calls[event.id] = ShownCall(event.name, event.arguments)
                self.doing = call_text(event.name, event.arguments)
            case ToolCallEnded():
                yield from self._ended(event)
            case ToolCallRejected(name=name, arguments=arguments, text=text):
                # It never ran, so it is in no round: its line comes at once, with the reason.
                rejected = ShownCall(name, arguments, text=text, is_error=True)
                yield from round_lines([rejected], self._paint, expand=self._expand)
                yield from () if self._expand else indent_below([visible(text).replace("\n", " ")], self._paint, "red")
            case RunEnded():
                yield from self._round()
                self.doing = ""
            case _:
                assert_never(event)

    def _begin(self, doing: str) -> None:
        self.doing, self.writing, self.is_reasoning = doing, "", False

    def _wrote(self, text: str, *, is_reasoning: bool) -> None:
        if is_reasoning is not self.is_reasoning:
            self.writing, self.is_reasoning = "", is_reasoning
        self.writing += text
        self.doing = "thinking" if is_reasoning else "writing"

    def _ended(self, event: ToolCallEnded) -> Iterator[str]:
        # A call that was denied ends without having begun.
        known = self._calls.get(event.id) or ShownCall(event.name, "{}")
        self._calls[event.id] = replace(known, text=event.text, is_error=event.is_error, seconds=event.seconds)
        self._done += 1
        self.doing = ""
        if self._done >= self._expected:
            yield from self._round()

    def _round(self) -> Iterator[str]:
        if self._calls:
            calls = [*self._calls.values()]
            if self._rounds is not None:
                self._rounds.append(calls)
            number = len(self._rounds or ())
            yield from round_lines(calls, self._paint, expand=self._expand, number=number)
        self._calls, self._done = {}, 0

    def _text_lines(self, text: str) -> Iterator[str]:
        for line in visible(text).strip("\n").split("\n") if text.strip() else ():
            yield from wrap_columns(line.expandtabs(2), self._paint.width)


# ---------------------------------------------------------------- screens


class RunScreen(Protocol):
    """Shows one run. `LiveScreen` rewrites lines on a terminal; `PlainScreen` only adds lines."""

    def show(self, event: RunEvent) -> None:
        """Show one more event."""
        ...

    def note(self, line: str) -> None:
        """Print a line that is not part of the transcript."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """Stop rewriting lines while the user is asked."""
        ...

    def end(self) -> None:
        """Leave the terminal as it was."""
        ...


class PlainScreen:
    """Prints the lines that stay; for files, pipes and dumb terminals."""

    def __init__(self, transcript: Transcript, *, quiet: bool = False) -> None:
        """Show a run; a quiet screen prints notes only."""
        self._transcript: Final = transcript
        self._quiet: Final = quiet

    def show(self, event: RunEvent) -> None:
        """Show one more event."""
        for line in self._transcript.feed(event):
            if not self._quiet:
                self.note(line)

    def note(self, line: str) -> None:
        """Print a line that is not part of the transcript."""
        click.echo(line, err=True)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Do nothing: this screen never rewrites lines."""
        yield

    def end(self) -> None:
        """Do nothing: no line is open."""

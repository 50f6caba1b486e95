"""A run on a terminal: below the lines that stay, the text as the model writes it and what is going on.

✓ read_file(path="a.txt")  0.1 s
The file says that                                        the end of what is being written
⠋ writes  3 s · round 2 of 50
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from toolspeak.cli._run_story import Story
from toolspeak.cli.terminal import Paint, cut, sign, visible, wrapped
from toolspeak.runs.watch import RunEvent
from toolspeak.runtime.clock import CLOCK, Clock

_TIMES_A_SECOND: Final = 8
_LATELY: Final = 20_000
"""Characters at the end of a text of which some lines are shown."""


def moves() -> bool:
    """Tell whether the terminal can rewrite lines."""
    return not Console(stderr=True).is_dumb_terminal


class LiveScreen:
    """Shows one run; what moves is drawn by a thread of rich, which only reads the story."""

    def __init__(self, paint: Paint, rounds: int, *, expand: bool, console: Console | None = None) -> None:
        """Begin to move."""
        self._paint: Final = paint
        self._rounds: Final = rounds
        self._story: Final = Story(paint, expand=expand)
        self._console: Final = console or Console(stderr=True, highlight=False, no_color=not paint.on)
        self._spinner: Final = Spinner(sign("dots", "line") if sign("⠋", "") else "line")
        self._clock: Final[Clock] = CLOCK
        self._doing, self._since = self._story.doing, self._clock.monotonic()
        self._live: Live | None = None
        self._begin()

    def show(self, event: RunEvent) -> None:
        """Show one more event."""
        lines = list(self._story.feed(event))
        if self._story.doing != self._doing:
            self._doing, self._since = self._story.doing, self._clock.monotonic()
        for line in lines:
            self.note(line)

    def note(self, line: str) -> None:
        """Write a line above what moves."""
        self._console.print(Text.from_ansi(line), soft_wrap=True)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Take away what moves while a person is asked."""
        self.end()
        try:
            yield
        finally:
            self._begin()

    def end(self) -> None:
        """Take away what moves, for good."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _begin(self) -> None:
        self._live = Live(
            console=self._console,
            get_renderable=self.now,
            refresh_per_second=_TIMES_A_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def now(self) -> Group:
        """Draw what moves."""
        width, story = self._console.width, self._story
        dim = "dim" if self._paint.on else ""
        rows = [row for line in _lately(story.writing) for row in wrapped(line.expandtabs(2), width)]
        written = [Text(row, dim if story.thought else "") for row in rows[-max(self._console.height // 2, 1) :]]
        seconds = self._clock.monotonic() - self._since
        rest = f"  {seconds:.0f} s {sign('·', '|')} round {min(story.round + 1, self._rounds)} of {self._rounds}"
        self._spinner.text = Text.assemble(cut(self._doing, max(width - len(rest) - 3, 1)), (rest, dim))
        return Group(*written, self._spinner)


def _lately(text: str) -> list[str]:
    shown = visible(text[-_LATELY:]).strip("\n")
    return shown.split("\n") if shown else []

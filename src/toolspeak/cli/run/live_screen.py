"""Shows a run on a terminal: below the lines that stay, the text that the model is writing and the current activity.

✓ read_file(path="a.txt")  0.1 s
The file says that                                        the last lines of the text so far
⠋ writing  3 s · round 2 of 50

rich is an extra and slow to import, so only `session.choose_screen` imports this module, and only on a terminal.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from toolspeak.agent.runs.events import RunEvent
from toolspeak.cli.run.screen import Transcript
from toolspeak.cli.terminal import Paint, shorten, sign, visible, wrap_columns
from toolspeak.runtime.clock import CLOCK, Clock

_REFRESH_PER_SECOND: Final = 8
_TAIL: Final = 20_000
"""Characters at the end of the text that are wrapped for each refresh; only some of their lines fit."""


def can_rewrite() -> bool:
    """Whether the terminal can rewrite lines."""
    return not Console(stderr=True).is_dumb_terminal


class LiveScreen:
    """Shows one run. A thread of rich redraws the moving part; it only reads the transcript."""

    def __init__(self, transcript: Transcript, paint: Paint, rounds: int, console: Console | None = None) -> None:
        """Start to redraw the moving part."""
        self._paint: Final = paint
        self._rounds: Final = rounds
        self._transcript: Final = transcript
        self._console: Final = console or Console(stderr=True, highlight=False, no_color=not paint.on)
        self._spinner: Final = Spinner(sign("dots", "line") if sign("⠋", "") else "line")
        self._clock: Final[Clock] = CLOCK
        self._doing, self._since = self._transcript.doing, self._clock.monotonic()
        self._live: Live | None = None
        self._begin()

    def show(self, event: RunEvent) -> None:
        """Show one more event."""
        lines = list(self._transcript.feed(event))
        if self._transcript.doing != self._doing:
            self._doing, self._since = self._transcript.doing, self._clock.monotonic()
        for line in lines:
            self.note(line)

    def note(self, line: str) -> None:
        """Print a line above the moving part."""
        # `Text`, not a string: rich would read `[…]` in a model's text as markup.
        self._console.print(Text.from_ansi(line), soft_wrap=True)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Remove the moving part while the user is asked."""
        self.end()
        try:
            yield
        finally:
            self._begin()

    def end(self) -> None:
        """Remove the moving part."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _begin(self) -> None:
        self._live = Live(
            console=self._console,
            get_renderable=self.now,
            refresh_per_second=_REFRESH_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def now(self) -> Group:
        """Return the moving part as it is now."""
        width, transcript = self._console.width, self._transcript
        dim = "dim" if self._paint.on else ""
        rows = [row for line in _tail(transcript.writing) for row in wrap_columns(line.expandtabs(2), width)]
        written = [
            Text(row, dim if transcript.is_reasoning else "") for row in rows[-max(self._console.height // 2, 1) :]
        ]
        seconds = self._clock.monotonic() - self._since
        rest = f"  {seconds:.0f} s {sign('·', '|')} round {min(transcript.round + 1, self._rounds)} of {self._rounds}"
        self._spinner.text = Text.assemble(shorten(self._doing, max(width - len(rest) - 3, 1)), (rest, dim))
        return Group(*written, self._spinner)


def _tail(text: str) -> list[str]:
    shown = visible(text[-_TAIL:]).strip("\n")
    return shown.split("\n") if shown else []

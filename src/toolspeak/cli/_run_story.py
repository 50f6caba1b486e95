"""A run as it is told: what stays on the screen, and what is going on.

I read the file first.                                    what the model says before its calls
✓ read_file(path="a.txt"), list_files()  0.1 s            a round
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, assert_never

from toolspeak.cli._run_lines import Did, call_text, round_lines
from toolspeak.cli.terminal import Paint, visible, wrapped
from toolspeak.runs.watch import CallAsked, CallBegan, CallEnded, RunEnded, RunEvent, TurnBegan, TurnEnded, Wrote


class Story:
    """Takes events, and gives the lines that stay."""

    def __init__(self, paint: Paint, *, expand: bool) -> None:
        """Begin with nothing."""
        self._paint: Final = paint
        self._expand: Final = expand
        self._calls: dict[str, Did] = {}
        self._expected = 0
        """How many calls the turn made."""
        self._done = 0
        self.round = 0
        self.doing = "begins"
        self.writing = ""
        """What the model has written in this turn."""
        self.thought: bool = False
        """That is reasoning."""

    def feed(self, event: RunEvent) -> Iterator[str]:
        """Take one more."""
        self.round = event.round
        match event:
            case TurnBegan():
                self._begin("waits for the model")
            case Wrote(text=text, thought=thought):
                self._wrote(text, thought=thought)
            case TurnEnded(text=text, calls=calls):
                self._begin("")
                self._expected = calls
                yield from self._narrated(text) if calls else ()
            case CallBegan() | CallAsked():
                self._calls[event.id] = Did(event.name, event.arguments)
                self.doing = call_text(event.name, event.arguments)
            case CallEnded():
                yield from self._ended(event)
            case RunEnded():
                yield from self._round()
                self.doing = ""
            case _:
                assert_never(event)

    def _begin(self, doing: str) -> None:
        self.doing, self.writing, self.thought = doing, "", False

    def _wrote(self, text: str, *, thought: bool) -> None:
        if thought is not self.thought:
            self.writing, self.thought = "", thought
        self.writing += text
        self.doing = "thinks" if thought else "writes"

    def _ended(self, event: CallEnded) -> Iterator[str]:
        known = self._calls.get(event.id) or Did(event.name, "{}")  # it was refused before it began
        self._calls[event.id] = replace(known, text=event.text, is_error=event.is_error, seconds=event.seconds)
        self._done += 1
        self.doing = ""
        if self._done >= self._expected:
            yield from self._round()

    def _round(self) -> Iterator[str]:
        if self._calls:
            yield from round_lines([*self._calls.values()], self._paint, expand=self._expand)
        self._calls, self._done = {}, 0

    def _narrated(self, text: str) -> Iterator[str]:
        for line in visible(text).strip("\n").split("\n") if text.strip() else ():
            yield from wrapped(line.expandtabs(2), self._paint.width)

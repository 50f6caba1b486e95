"""Splits the reasoning at the beginning of an output from the rest, which another parser reads.

    reader = ReasoningReader(load("hermes"))
    reader.feed("<think>Easy.</thi")     Split("Easy.", "")
    reader.feed("nk>It is 5.")            Split("", "It is 5.")
    reader.has_ended                      True

vLLM and SGLang read an output in two steps: the reasoning first, and then content and calls in what follows. So this
reader ends with the first block of reasoning, or with the first text that is none; all further text is content as it
is, and a second block is left to the reader of calls. A call in reasoning that is never closed stays reasoning (P5).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolspeak.dialects import Dialect, ReadOptions, TextReader
from toolspeak.ir.event import CallEnded, CallRejected, Discarded, Event, ReasoningDelta, TextDelta, raw_of
from toolspeak.ir.tool import Tool
from toolspeak.text.scan import Markers
from toolspeak.toolset.toolset import ToolSet


@dataclass(frozen=True, slots=True)
class Split:
    """More reasoning, and the content after it."""

    reasoning: str = ""
    content: str = ""


NOTHING = Split()


class ReasoningReader:
    """Reads the beginning of one output. Made new for each output, never reset."""

    def __init__(self, dialect: Dialect, *, is_open: bool = False) -> None:
        """Read the reasoning of a dialect; `is_open` says that the prompt has opened it."""
        self._grammar = dialect.grammar
        # A model that opens its reasoning again after its template did (DeepSeek's distilled ones) decides that itself.
        self._openers = Markers((marks.opener for marks in dialect.grammar.reasoning if is_open), ignore_case=True)
        self._reader: TextReader | None = None if is_open else self._new_reader(is_open=False)
        self.has_begun = False
        """Whether there is reasoning."""
        self.has_ended = False
        """Whether what follows is content."""
        self._rest = ""  # the text from the first character on that is not known to be reasoning or its markup
        self._blanks = 0  # at the start of `_rest`, before an opener or before content

    def feed(self, text: str) -> Split:
        """Take more text; return what it decides."""
        if self.has_ended:
            return Split(content=text)
        self._rest += text
        if self._reader is None:
            reader = self._opened_reader(is_final=False)
            return NOTHING if reader is None else self._split(reader.feed(self._rest))
        return self._split(self._reader.feed(text))

    def finish(self) -> Split:
        """Take the end of the output; return the rest."""
        if self.has_ended:
            return NOTHING
        opened = self._opened_reader(is_final=True) if self._reader is None else None
        events = opened.feed(self._rest) if opened is not None else []
        reader = opened or self._reader
        split = self._split([*events, *(reader.finish() if reader is not None else ())])
        return Split(split.reasoning, split.content or self._rest)

    def _new_reader(self, *, is_open: bool) -> TextReader:
        return TextReader(self._grammar, ToolSet(), options=ReadOptions(starts_in_reasoning=is_open))

    def _opened_reader(self, *, is_final: bool) -> TextReader | None:
        """Return the reader of an output whose prompt has opened the reasoning; None before the text decides on it."""
        at = len(self._rest) - len(self._rest.lstrip())
        opener = self._openers.match(self._rest, at, final=is_final) if self._rest[at:] else ""
        if opener == "":
            return None
        self.has_begun = opener is None
        self._reader = self._new_reader(is_open=opener is None)
        return self._reader

    def _split(self, events: list[Event]) -> Split:
        reasoning = ""
        for event in events:
            if isinstance(event, ReasoningDelta):
                reasoning += event.text
            self._take(event)
            if self.has_ended:
                content, self._rest = self._rest, ""
                return Split(reasoning, content)
        return Split(reasoning)

    def _take(self, event: Event) -> None:
        """Move on by one event. Events tell of every character, in order, so that their lengths are places."""
        size = len(raw_of(event))
        if isinstance(event, TextDelta):
            if event.text.isspace() and not self.has_begun:
                self._blanks += size
            else:
                self.has_ended = True  # content without reasoning before it, or after reasoning without a closer
            return
        self._rest, self._blanks = self._rest[self._blanks + size :], 0
        is_markup = isinstance(event, Discarded) and not event.raw.isspace()
        self.has_ended = self.has_begun and is_markup  # the closer; one before is the opener
        self.has_begun = self.has_begun or is_markup


def read_reasoning(dialect: Dialect, text: str, *, is_open: bool) -> Split:
    """Split a whole output."""
    reader = ReasoningReader(dialect, is_open=is_open)
    first, last = reader.feed(text), reader.finish()
    return Split(first.reasoning + last.reasoning, first.content + last.content)


def is_opened_by_prompt(dialect: Dialect, text: str, tools: Sequence[Tool]) -> bool:
    """Return whether a whole output begins inside of reasoning, where nothing but the text tells it.

    It does if it closes reasoning that it has not opened. A closer in an argument of a call does not count. A call
    before the closer does not count either: it is in the reasoning, and must not run (P5).
    """
    closers = Markers((closer for marks in dialect.grammar.reasoning for closer in marks.closers), ignore_case=True)
    reader = ReasoningReader(dialect)
    reader.feed(text)
    if reader.has_begun or closers.search(text, 0, final=True) is None:
        return False
    calls = dialect.reader(tools)
    outside = (raw_of(event) for event in (*calls.feed(text), *calls.finish()) if not isinstance(event, _OF_CALLS))
    return closers.search("".join(outside), 0, final=True) is not None


_OF_CALLS: Final = (CallEnded, CallRejected)

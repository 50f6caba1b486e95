"""A dialect's markup as data: wrappers around calls, closers, reasoning marks, labels, tool results.

Grammars are joined with `|`; the reader compiles the result once (`lookup.marker_tables`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import cached_property
from typing import Protocol, TypeVar

from typing_extensions import override

from toolspeak.dialects.core.form import NO_ENDERS, BodyForm, BodyOutcome, Scope
from toolspeak.text.scan import Markers
from toolspeak.toolset.toolset import ToolSet

T = TypeVar("T")
_EMPTY_THINK = ("<think>", "</think>")


class OpenerPosition(IntEnum):
    """Where an opener counts. The start of the message is the start of a line too."""

    START = 0
    """Only as the first thing of the message that is not blank."""
    LINE = 1
    """Only at the start of a line."""
    ANYWHERE = 2


class BlockReader(Protocol):
    """Reads from an opener on. `ended` says, after an outcome, whether it is over."""

    ended: bool

    def feed(self, text: str, *, final: bool) -> tuple[int, BodyOutcome]:
        """Consume from the start of `text`; return how much, and what came of it."""
        ...


class BlockForm(Protocol):
    """Makes a block for one tool set, for dialects that wrappers do not fit."""

    def new_block(self, tools: ToolSet, stop: tuple[str, ...]) -> BlockReader:
        """Make a block that is fed the text after the opener."""
        ...


@dataclass(frozen=True)
class Wrapper:
    """The markup around calls. Without openers, it begins where one of its forms starts."""

    openers: tuple[str, ...]
    closers: tuple[str, ...]
    forms: tuple[BodyForm, ...]
    where: OpenerPosition = OpenerPosition.ANYWHERE
    sure: bool = True
    """The opener leaves no doubt that a call is meant."""
    tail: bool = False
    """Counts only if nothing but more calls and blanks follow, to the end of the message.

    Bare JSON in the middle of an answer is an example or data more often than a call (D41).
    """
    needs_closer: bool = False
    single: bool = False
    """Each opener has one body; the text after that body does not belong to the wrapper."""
    fence: bool = False
    """The openers are info strings of a Markdown fence."""
    no_calls_is_answer: bool = False
    keep_opener: bool = False
    """The form reads the opener too: it is part of the call, as in `<function=name>`."""

    @cached_property
    def enders(self) -> Markers:
        """Return the markers that end a broken body."""
        return Markers((*self.closers, *(() if self.fence else self.openers)), ignore_case=True)

    @cached_property
    def opening(self) -> Markers:
        """Return the markers that open it."""
        return Markers(self.openers, ignore_case=True)

    @cached_property
    def closing(self) -> Markers:
        """Return the markers that close it."""
        return Markers(self.closers, ignore_case=True)

    @cached_property
    def skipped(self) -> Markers:
        """Return the markers that mean nothing inside: its own openers, and reasoning tags left by templates."""
        return Markers((*(() if self.fence or self.keep_opener else self.openers), *_EMPTY_THINK), ignore_case=True)

    def scope(self, tools: ToolSet, stop: tuple[str, ...], results: Markers = NO_ENDERS) -> Scope:
        """Tell the forms what they may know."""
        opening = NO_ENDERS if self.fence else self.opening
        return Scope(tools, self.sure, self.enders, stop, opening, results, no_calls_is_answer=self.no_calls_is_answer)


@dataclass(frozen=True)
class ReasoningMarks:
    """Marks around reasoning. `stops` end it too, but are not consumed; they begin with their newline."""

    opener: str
    closers: tuple[str, ...]
    stops: tuple[str, ...] = ()
    where: OpenerPosition = OpenerPosition.LINE


@dataclass(frozen=True)
class Label:
    """Markup that is dropped, such as `Final Answer:`; the text after it is visible text."""

    literal: str
    where: OpenerPosition = OpenerPosition.LINE


@dataclass(frozen=True)
class Special:
    """An opener whose block is no wrapper."""

    literal: str
    kind: BlockForm
    where: OpenerPosition = OpenerPosition.ANYWHERE
    reasoning: tuple[ReasoningMarks, ...] = ()
    """The reasoning that begins after such a block if its outcome is `NonCall.THINKING`; the first one is meant."""
    answer_ends: tuple[str, ...] = ()
    """What ends the text that begins after such a block if its outcome is `NonCall.ANSWER`."""


THINK_TAGS = (
    ReasoningMarks("<think>", ("</think>",)),
    ReasoningMarks("<thinking>", ("</thinking>",)),
    ReasoningMarks("<seed:think>", ("</seed:think>",)),
    ReasoningMarks("<mm:think>", ("</mm:think>",)),  # MiniMax M3
    ReasoningMarks("[THINK]", ("[/THINK]",)),
    ReasoningMarks("<|START_THINKING|>", ("<|END_THINKING|>",)),
    ReasoningMarks("<|channel>thought", ("<channel|>",)),
    ReasoningMarks("<|inner_prefix|>", ("<|inner_suffix|>",)),
    ReasoningMarks("<longcat_think>", ("</longcat_think>",)),
    ReasoningMarks("<|think|>", ("<|end|>",)),
)
"""The marks of all families: clients, proxies and merged models write one family's calls with another's reasoning."""
RESULT_TAGS = ("<tool_response>", "<tool_result>", "<tool_results>", "<function_results>", "<tool_output>")


@dataclass(frozen=True)
class MarkupGrammar:
    """All the markup that one reader looks for."""

    wrappers: tuple[Wrapper, ...] = ()
    closers: tuple[str, ...] = ()
    """Closers that may occur alone; those of the wrappers need not be repeated."""
    results: tuple[str, ...] = RESULT_TAGS
    """The beginnings of a tool result: after a call, the model has invented the rest."""
    result_lines: tuple[str, ...] = ()
    reasoning: tuple[ReasoningMarks, ...] = THINK_TAGS
    labels: tuple[Label, ...] = ()
    specials: tuple[Special, ...] = ()
    whole_fences: bool = True
    """A fence around the whole reply may hold the call."""

    @override
    def __hash__(self) -> int:
        """Hash once: each reader looks its tables up, and the grammar of all forms takes 40 µs to hash."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, field.name) for field in fields(self)))

    def __or__(self, other: "MarkupGrammar") -> "MarkupGrammar":
        """Read both."""
        return MarkupGrammar(
            _unique(self.wrappers + other.wrappers),
            _unique(self.closers + other.closers),
            _unique(self.results + other.results),
            _unique(self.result_lines + other.result_lines),
            _unique(self.reasoning + other.reasoning),
            _unique(self.labels + other.labels),
            _unique(self.specials + other.specials),
            self.whole_fences or other.whole_fences,
        )

    @cached_property
    def opened_reasoning(self) -> ReasoningMarks | None:
        """Return the marks of reasoning that the prompt has opened: its opener is unknown, so each closer counts."""
        closers = tuple(closer for marks in self.reasoning for closer in marks.closers)
        stops = tuple(stop for marks in self.reasoning for stop in marks.stops if marks.closers)
        if not self.reasoning:
            return None
        return ReasoningMarks("", closers or THINK_TAGS[0].closers, stops)

    @cached_property
    def without_calls(self) -> "MarkupGrammar":
        """Give what is left when no tools are offered: only reasoning is split off."""
        return MarkupGrammar(results=(), reasoning=self.reasoning, specials=self.specials, whole_fences=False)


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))

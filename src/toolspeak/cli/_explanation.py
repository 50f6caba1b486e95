"""What a text is taken for: its spans, labelled, and what came of them. The data that `explain` shows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from toolspeak.cli._guess import guessed_tools
from toolspeak.dialects import Dialect, load, names
from toolspeak.ir.complaint import Complaint
from toolspeak.ir.event import CallRejected, Discarded, Event, Why
from toolspeak.ir.message import Call, Reasoning, Text
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Turn, TurnPart, fold
from toolspeak.toolset.toolset import ToolSet

_LONGEST_TRIED: Final = 64 * 1024
"""A longer text is not given to other readers for a hint."""


class Kind(StrEnum):
    """The places where a character of model output can end (P1)."""

    TEXT = "text"
    REASONING = "reasoning"
    CALL = "call"
    INVALID = "invalid"
    DEBRIS = "debris"
    FORGED = "forged"
    LIMIT = "limit"


_DISCARDED: Final = {Why.DEBRIS: Kind.DEBRIS, Why.FORGED: Kind.FORGED, Why.LIMIT: Kind.LIMIT}


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the text. `number` counts calls, and complaints, from 1; the text of several is with the first."""

    kind: Kind
    text: str
    start: int
    number: int = 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """One text, read."""

    text: str
    dialect: str
    tools: tuple[str, ...]
    guessed: bool
    turn: Turn
    chunk: int | None = None
    same_in_chunks: bool = True
    better: tuple[str, ...] = ()
    """Dialects that find calls, where this one finds nothing."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls that may run."""
        return self.turn.calls

    @property
    def complaints(self) -> tuple[Complaint, ...]:
        """Why attempts are no calls."""
        return self.turn.complaints

    @property
    def lossless(self) -> bool:
        """Whether the spans are the text, to the byte (P1)."""
        return "".join(span.text for span in self.spans) == self.text

    @property
    def sound(self) -> bool:
        """Whether the readers did what they promise."""
        return self.lossless and self.same_in_chunks

    @property
    def spans(self) -> tuple[Span, ...]:
        """The text in order, each character once."""
        spans: list[Span] = []
        counts = dict.fromkeys(Kind, 0)
        start: int = 0
        for part in self.turn.parts:
            kind, text = _labelled(part)
            counts[kind] += 1
            spans.append(Span(kind, text, start, counts[kind] if kind in (Kind.CALL, Kind.INVALID) else 0))
            start += len(text)
        return tuple(spans)

    @property
    def summary(self) -> str:
        """Say it in one line."""
        fixes = sum(len(call.fixes) for call in self.calls)
        counted = [_count(len(self.calls), "call"), _count(fixes, "fix"), _count(len(self.complaints), "complaint")]
        checks = ["no byte lost" if self.lossless else "BYTES ARE LOST: this is a bug of toolspeak"]
        if self.chunk is not None:
            size = _count(self.chunk, "character")
            how = "the same" if self.same_in_chunks else "DIFFERENT (a bug of toolspeak)"
            checks.append(f"{how} in chunks of {size}")
        return f"{', '.join(counted)}; {', '.join(checks)}"


def _count(number: int, what: str) -> str:
    plural = f"{what}es" if what.endswith("x") else f"{what}s"
    return f"{number or 'no'} {what if number == 1 else plural}"


def _labelled(part: TurnPart) -> tuple[Kind, str]:
    match part:
        case Text(text):
            return Kind.TEXT, text
        case Reasoning(text):
            return Kind.REASONING, text
        case Call():
            return Kind.CALL, part.raw
        case CallRejected():
            return Kind.INVALID, part.raw
        case Discarded(why, raw):
            return _DISCARDED[why], raw
        case _:
            assert_never(part)


def explained(text: str, tools: Sequence[Tool], dialect: str, chunk: int | None = None) -> Explanation:
    """Read a text; without tools, guess them."""
    reading = load(dialect)
    known = ToolSet.of(tools) if tools else guessed_tools(text, reading)
    turn = reading.read(text, known)
    offered = known.names if tools else tuple(dict.fromkeys(call.name for call in turn.calls))
    same = chunk is None or _in_chunks(text, reading, known, chunk) == turn
    better = () if turn.calls or turn.complaints else _better(text, tools)
    return Explanation(text, dialect, offered, not tools, turn, chunk, same, better)


def _in_chunks(text: str, dialect: Dialect, tools: ToolSet, size: int) -> Turn:
    reader = dialect.reader(tools)
    events: list[Event] = []
    for start in range(0, len(text), size):
        events += reader.feed(text[start : start + size])
    return fold((*events, *reader.finish()))


def _better(text: str, tools: Sequence[Tool]) -> tuple[str, ...]:
    if len(text) > _LONGEST_TRIED:
        return ()
    return tuple(name for name in _worth_a_try() if _finds_calls(text, load(name), tools))


def _worth_a_try() -> Iterator[str]:
    """Give the dialect for whatever comes, and those that read more than it does."""
    whatever = load("any").grammar
    yield "any"
    for name in names():
        grammar = load(name).grammar
        if not ({*grammar.wrappers} <= {*whatever.wrappers} and {*grammar.specials} <= {*whatever.specials}):
            yield name


def _finds_calls(text: str, dialect: Dialect, tools: Sequence[Tool]) -> bool:
    return bool(dialect.read(text, tools or guessed_tools(text, dialect)).calls)

"""The text of a model, cut into labelled spans: each character of it is in exactly one (P1)."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from toolspeak.ir.event import CallRejected, Discarded, Why
from toolspeak.ir.message import Call, Reasoning, Text
from toolspeak.ir.turn import TurnPart


class SpanKind(StrEnum):
    """The kinds of spans in a model's output."""

    TEXT = "text"
    REASONING = "reasoning"
    CALL = "call"
    INVALID = "invalid"
    DEBRIS = "debris"
    FORGED = "forged"
    LIMIT = "limit"


SPAN_MEANINGS: Final = {
    SpanKind.TEXT: "the answer",
    SpanKind.REASONING: "the model's reasoning",
    SpanKind.CALL: "a valid call",
    SpanKind.INVALID: "a rejected call",
    SpanKind.DEBRIS: "leftover markup, dropped",
    SpanKind.FORGED: "a tool result that the model invented, dropped",
    SpanKind.LIMIT: "beyond a limit, dropped",
}
"""Each kind in words, for people."""
_DISCARDED: Final = {Why.DEBRIS: SpanKind.DEBRIS, Why.FORGED: SpanKind.FORGED, Why.LIMIT: SpanKind.LIMIT}


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the text. `number` counts calls, and complaints, from 1.

    If several calls share one stretch, the first has its text and the others are empty.
    """

    kind: SpanKind
    text: str
    start: int
    number: int = 0


def spans_of(parts: Iterable[TurnPart]) -> tuple[Span, ...]:
    """Return the spans of a turn that was read from text, in order."""
    spans: list[Span] = []
    counts = dict.fromkeys(SpanKind, 0)
    start: int = 0
    for part in parts:
        kind, text = _labelled(part)
        counts[kind] += 1
        spans.append(Span(kind, text, start, counts[kind] if kind in (SpanKind.CALL, SpanKind.INVALID) else 0))
        start += len(text)
    return tuple(spans)


def _labelled(part: TurnPart) -> tuple[SpanKind, str]:
    match part:
        case Text(text):
            return SpanKind.TEXT, text
        case Reasoning(text):
            return SpanKind.REASONING, text
        case Call():
            return SpanKind.CALL, part.raw
        case CallRejected():
            return SpanKind.INVALID, part.raw
        case Discarded(why, raw):
            return _DISCARDED[why], raw
        case _:
            assert_never(part)

"""Rounds: what a run did between what the user said and its final text, kept compact (RUN-2).

Compact                      expanded
├── rounds[0]                assistant: "Let me check…"        its text before the calls, if any
│   ├── before               assistant: weather(city="Oslo")   its calls
│   ├── calls                tool:      {"degrees": 3}         their results
│   └── results
└── message                  assistant: "It is 3 degrees."     the final text, if any
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from toolspeak.ir.message import Call, Message, Reasoning, Result, Role, Text

Before: TypeAlias = Text | Reasoning


@dataclass(frozen=True, slots=True)
class Round:
    """One turn that called tools: what it said beside its calls, the calls, and what they gave, in the calls' order."""

    before: tuple[Before, ...]
    calls: tuple[Call, ...]
    results: tuple[Result, ...]

    @property
    def text(self) -> str:
        """Return what people saw before the calls."""
        return "".join(part.text for part in self.before if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class Compact:
    """A message as it is kept: only its final parts, and the rounds that led to them."""

    message: Message
    rounds: tuple[Round, ...] = ()


def expand(kept: Iterable[Compact]) -> tuple[Message, ...]:
    """Write kept messages out, in the order in which everything was said."""
    return tuple(message for each in kept for message in _expanded(each))


def expand_rounds(rounds: Iterable[Round]) -> tuple[Message, ...]:
    """Write rounds out."""
    return tuple(message for each in rounds for message in _round(each))


def _expanded(kept: Compact) -> Iterator[Message]:
    yield from expand_rounds(kept.rounds)
    if kept.message.parts or not kept.rounds:
        yield kept.message


def _round(each: Round) -> Iterator[Message]:
    said = len(each.before)
    while said and _is_seal(each.before[said - 1]):
        said -= 1
    if said:
        yield Message(Role.ASSISTANT, each.before[:said])
    yield Message(Role.ASSISTANT, (*each.before[said:], *each.calls))
    yield Message(Role.TOOL, each.results)


def _is_seal(part: Before) -> bool:
    """Return whether a part is a signature alone: it belongs to the call behind it, and stays there."""
    return isinstance(part, Reasoning) and bool(part.signature) and not part.text

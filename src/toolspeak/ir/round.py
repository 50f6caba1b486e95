"""Rounds: the turns with calls between the user's message and a run's final text, stored compactly (RUN-2).

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
    """One turn that called tools: its text before the calls, the calls, and their results in the calls' order."""

    before: tuple[Before, ...]
    calls: tuple[Call, ...]
    results: tuple[Result, ...]

    @property
    def text(self) -> str:
        """The visible text before the calls."""
        return "".join(part.text for part in self.before if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class Compact:
    """A stored message: its final parts, and the rounds that led to them."""

    message: Message
    rounds: tuple[Round, ...] = ()


def expand(kept: Iterable[Compact]) -> tuple[Message, ...]:
    """Return the full message list of stored messages, in chronological order."""
    return tuple(message for each in kept for message in _expanded(each))


def expand_rounds(rounds: Iterable[Round]) -> tuple[Message, ...]:
    """Return the messages of rounds."""
    return tuple(message for each in rounds for message in _round(each))


def _expanded(kept: Compact) -> Iterator[Message]:
    yield from expand_rounds(kept.rounds)
    if kept.message.parts or not kept.rounds:
        yield kept.message


def _round(each: Round) -> Iterator[Message]:
    # The text before the calls is a message of its own, as in the order in which people saw it. Signatures at its end
    # stay with the calls: Gemini rejects a call that has lost its signature.
    said = len(each.before)
    while said and _is_seal(each.before[said - 1]):
        said -= 1
    if said:
        yield Message(Role.ASSISTANT, each.before[:said])
    yield Message(Role.ASSISTANT, (*each.before[said:], *each.calls))
    yield Message(Role.TOOL, each.results)


def _is_seal(part: Before) -> bool:
    """Return whether a part is a signature without text. It belongs to the call after it, and must stay before it."""
    return isinstance(part, Reasoning) and bool(part.signature) and not part.text

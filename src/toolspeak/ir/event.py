"""The events of a turn while it is generated.

Readers turn text in any chunks into events, in order, and never take one back. Every event that was read from model
text keeps that text, so that `"".join(map(raw_of, events))` is the model's output, byte for byte (P1).

An event is made for every token of every stream. So events are Structs, which cost a third of a frozen dataclass, with
`gc=False`: they hold no cycles, and the garbage collector need not look at them.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from toolspeak.ir.complaint import Complaint, Fix
from toolspeak.ir.failure import Failure


class Why(StrEnum):
    """Why model text was discarded."""

    DEBRIS = "debris"
    """Markup of the dialect itself: wrappers, reasoning tags, orphan closers."""
    FORGED = "forged"
    """Everything from a tool result on that the model invented. Only toolspeak may write results."""
    LIMIT = "limit"
    """Text after a limit was reached (P7)."""


class StopReason(StrEnum):
    """Why generation ended."""

    END = "end"
    CALLS = "calls"
    LENGTH = "length"
    FILTER = "filter"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts, as the upstream reports them.

    `input_tokens` includes those read from and written to a cache, `output_tokens` those of the reasoning.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum with another request's tokens."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


class TextDelta(Struct, frozen=True, gc=False):
    """More visible text."""

    text: str


class ReasoningDelta(Struct, frozen=True, gc=False):
    """More reasoning. `signature` is opaque and usually empty; Anthropic and Gemini want it back unchanged."""

    text: str
    signature: str = ""


class CallStarted(Struct, frozen=True, gc=False):
    """A call of a tool that exists. `native_id` is the id that the model wrote, if any."""

    id: str
    name: str
    native_id: str = ""


class ArgsDelta(Struct, frozen=True, gc=False):
    """More of the arguments' JSON text."""

    id: str
    json: str


class CallEnded(Struct, frozen=True, gc=False):
    """The call is complete. `raw` is the model text that it was read from; `fixes` were applied to it."""

    id: str
    raw: str = ""
    fixes: tuple[Fix, ...] = ()


class CallRejected(Struct, frozen=True, gc=False):
    """The model attempted a call that must not run."""

    complaint: Complaint
    raw: str = ""


class Discarded(Struct, frozen=True, gc=False):
    """Model text that is neither shown nor executed."""

    why: Why
    raw: str


FirstToken: TypeAlias = tuple[tuple[str, float], ...]
"""The likeliest first tokens of an answer, each with its probability."""


class Finished(Struct, frozen=True, gc=False):
    """The last event of a turn. `stop_sequence` is the client's stop text that ended it, where the upstream tells.

    `first_token` is there if `Request.top_tokens` asks for it, and the upstream tells.
    """

    stop: StopReason
    usage: Usage = Usage()
    stop_sequence: str = ""
    first_token: FirstToken = ()


class Failed(Struct, frozen=True, gc=False):
    """The last event of a turn that failed. The events before it are not a complete answer, and no call may run."""

    failure: Failure
    usage: Usage = Usage()


Event: TypeAlias = (
    TextDelta | ReasoningDelta | CallStarted | ArgsDelta | CallEnded | CallRejected | Discarded | Finished | Failed
)


def raw_of(event: Event) -> str:
    """Return the model text that an event was read from."""
    match event:
        case TextDelta(text) | ReasoningDelta(text):
            return text
        case CallEnded(raw=raw) | CallRejected(raw=raw) | Discarded(raw=raw):
            return raw
        case CallStarted() | ArgsDelta() | Finished() | Failed():
            return ""

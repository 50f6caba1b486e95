"""The events of a run, for people who follow it (RUN-8). Each is a small JSON object with its `kind`.

A second `turn_began` for one round means that the first turn was lost with its worker: its text does not count.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

from toolspeak.engine.agent import Ending, Status


class RoundEvent(Struct, frozen=True, tag_field="kind", omit_defaults=True):
    """An event in a round."""

    round: int


class TurnBegan(RoundEvent, frozen=True, tag="turn_began"):
    """The model is asked for a turn."""


class Wrote(RoundEvent, frozen=True, tag="wrote"):
    """More text of the model. Consecutive pieces may have been joined."""

    text: str
    thought: bool = False


class TurnEnded(RoundEvent, frozen=True, tag="turn_ended"):
    """The turn is complete. `text` is its whole text, `calls` the number of its calls."""

    text: str
    calls: int
    seconds: float


class ToolCallBegan(RoundEvent, frozen=True, tag="call_began"):
    """A tool call starts."""

    id: str
    name: str
    arguments: str


class ToolCallAsked(RoundEvent, frozen=True, tag="call_asked"):
    """A call waits for a person's approval."""

    id: str
    name: str
    arguments: str


class ToolCallEnded(RoundEvent, frozen=True, tag="call_ended"):
    """A tool call has a result."""

    id: str
    name: str
    text: str
    is_error: bool
    seconds: float


class ToolCallRejected(RoundEvent, frozen=True, tag="call_rejected"):
    """The model wrote a call that must not run, such as one of an unknown tool. `text` is what the model is told."""

    name: str
    arguments: str
    text: str


class RunEnded(RoundEvent, frozen=True, tag="run_ended"):
    """The run has ended. It is the last event."""

    status: Status
    text: str
    reason: str = ""


RunEvent: TypeAlias = (
    TurnBegan | Wrote | TurnEnded | ToolCallBegan | ToolCallAsked | ToolCallEnded | ToolCallRejected | RunEnded
)
Watch: TypeAlias = Callable[[RunEvent], Awaitable[None]]


def run_ended(ending: Ending) -> RunEnded:
    """Return the event for the end of a run."""
    return RunEnded(len(ending.kept.rounds), ending.status, ending.text, ending.reason)


async def unwatched(event: RunEvent) -> None:
    """Ignore the event."""
    del event

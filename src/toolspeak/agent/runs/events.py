"""The events of a run, as people follow it (RUN-8). Each is a small JSON object with its `kind`.

A `turn_began` that comes twice for one round means that the first was lost with its worker: its text does not count.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

from toolspeak.engine.agent import Ending, Status


class RoundEvent(Struct, frozen=True, tag_field="kind", omit_defaults=True):
    """Something of one round."""

    round: int


class TurnBegan(RoundEvent, frozen=True, tag="turn_began"):
    """The model is asked."""


class Wrote(RoundEvent, frozen=True, tag="wrote"):
    """More text of the model; several pieces may have become one."""

    text: str
    thought: bool = False


class TurnEnded(RoundEvent, frozen=True, tag="turn_ended"):
    """The model has answered; `text` is the whole text, `calls` how many calls it made."""

    text: str
    calls: int
    seconds: float


class ToolCallBegan(RoundEvent, frozen=True, tag="call_began"):
    """A tool runs."""

    id: str
    name: str
    arguments: str


class ToolCallAsked(RoundEvent, frozen=True, tag="call_asked"):
    """A person's word is waited for."""

    id: str
    name: str
    arguments: str


class ToolCallEnded(RoundEvent, frozen=True, tag="call_ended"):
    """A tool has answered."""

    id: str
    name: str
    text: str
    is_error: bool
    seconds: float


class RunEnded(RoundEvent, frozen=True, tag="run_ended"):
    """Nothing comes after it."""

    status: Status
    text: str
    reason: str = ""


RunEvent: TypeAlias = TurnBegan | Wrote | TurnEnded | ToolCallBegan | ToolCallAsked | ToolCallEnded | RunEnded
Watch: TypeAlias = Callable[[RunEvent], Awaitable[None]]


def run_ended(ending: Ending) -> RunEnded:
    """Tell how a run ended."""
    return RunEnded(len(ending.kept.rounds), ending.status, ending.text, ending.reason)


async def unwatched(event: RunEvent) -> None:
    """Show nothing."""
    del event

"""A tool that can run.

    Action(tool, act, effect)     `act` gets the arguments and which call it is, and returns a Yield

`effect` says what running it twice would mean. After a crash a call whose outcome nobody knows is run again if it only
reads or can be repeated; else the model is told that the outcome is unknown (RUN-3).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias

from toolspeak.agent.sandbox.disk import DiskBudget, disk_budget
from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import ResultPart, Text
from toolspeak.ir.tool import Tool

SECONDS: Final = 120.0
OUTPUT: Final = 4096
"""Bytes of a result's text; more is cut in the middle (RUN-4)."""


class ToolEffect(StrEnum):
    """What a call does to the world."""

    READS = "reads"
    """Nothing."""
    REPEATS = "repeats"
    """Something; a second time changes nothing more."""
    ONCE = "once"
    """Something; a second time would do it again."""


def parse_effect(effect: ToolEffect | str) -> ToolEffect:
    """Return the effect of that name; raises `BadField` if there is none."""
    if effect not in list(ToolEffect):
        raise BadField("effect", f"{effect!r} is not one of {', '.join(ToolEffect)}")
    return ToolEffect(effect)


@dataclass(frozen=True, slots=True)
class CallContext:
    """Which call is running: of which run, and under which key. A call that runs again has the same key."""

    run: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a call gave."""

    content: tuple[ResultPart, ...]
    is_error: bool = False


Act: TypeAlias = Callable[[JsonObject, CallContext], Awaitable[ToolOutput]]


@dataclass(frozen=True, slots=True)
class Action:
    """A tool and how to run it."""

    tool: Tool
    act: Act
    effect: ToolEffect = ToolEffect.ONCE
    contained: bool = False
    """It cannot reach out of the sandbox or the run's folder."""
    ends: bool = False
    """Its call is the end of the run, and what it yields the final text."""
    seconds: float = SECONDS
    asks: bool = False
    """A person is asked before each call, unless the approval mode is `off`."""

    @property
    def name(self) -> str:
        """Return the name that the model calls."""
        return self.tool.name


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where a run's own tools work: the one folder that they may change, and how many bytes a result may have."""

    folder: Path
    output: int = OUTPUT
    unsafe: bool = False
    """Commands run without a sandbox: only the configuration may say so, never who asks for a run."""
    journal: Path | None = None
    """Where running commands are recorded, so that what they leave is found after a crash."""
    budget: DiskBudget = field(default_factory=disk_budget)
    """What the run may put on the disk; its commands share it."""


def text_output(text: str, *, is_error: bool = False) -> ToolOutput:
    """Yield plain text."""
    return ToolOutput((Text(text),), is_error)

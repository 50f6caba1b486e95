"""The definition of a tool that can run.

    Action(tool, act, effect)     `act` takes the arguments and the call's context, and returns a `ToolOutput`

`effect` tells what a second execution would mean. After a crash, a call with an unknown outcome is executed again if it
only reads or can be repeated. Otherwise the model is told that the outcome is unknown (RUN-3).
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
"""Maximum bytes of a result's text; longer text is cut in the middle (RUN-4)."""


class ToolEffect(StrEnum):
    """The effect of a call on the world."""

    READS = "reads"
    """None."""
    REPEATS = "repeats"
    """Some; a second execution changes nothing more."""
    ONCE = "once"
    """Some; a second execution would do it again."""


def parse_effect(effect: ToolEffect | str) -> ToolEffect:
    """Return the effect with this name. Raises `BadField` for an unknown one."""
    if effect not in list(ToolEffect):
        raise BadField("effect", f"{effect!r} is not one of {', '.join(ToolEffect)}")
    return ToolEffect(effect)


@dataclass(frozen=True, slots=True)
class CallContext:
    """Identifies a running call: its run, and its key. A call that is executed again has the same key."""

    run: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The result of a call."""

    content: tuple[ResultPart, ...]
    is_error: bool = False


Act: TypeAlias = Callable[[JsonObject, CallContext], Awaitable[ToolOutput]]


@dataclass(frozen=True, slots=True)
class Action:
    """A tool and the function that runs it. By default it counts as uncontained and not repeatable."""

    tool: Tool
    act: Act
    effect: ToolEffect = ToolEffect.ONCE
    contained: bool = False
    """It cannot reach anything outside the sandbox or the run's folder."""
    ends: bool = False
    """A call of it ends the run, and its output is the final text."""
    seconds: float = SECONDS
    asks: bool = False
    """A person is asked before each call, unless the approval mode is `off`."""

    @property
    def name(self) -> str:
        """Return the name that the model uses."""
        return self.tool.name


@dataclass(frozen=True, slots=True)
class Workplace:
    """Settings of a run's built-in tools: the one folder that they may change, and the maximum bytes of a result."""

    folder: Path
    output: int = OUTPUT
    unsafe: bool = False
    """Commands run without a sandbox. Only the configuration can set it, never the client that starts a run."""
    journal: Path | None = None
    """The journal of running commands, with which their leftovers are found after a crash."""
    budget: DiskBudget = field(default_factory=disk_budget)
    """The disk budget of the run, shared by its commands."""


def text_output(text: str, *, is_error: bool = False) -> ToolOutput:
    """Return plain text as an output."""
    return ToolOutput((Text(text),), is_error)

"""The definition of a tool that can run, the policy that decides whether a call may, and changes to existing tools.

    Action(tool, act, effect)     `act` takes the arguments and the call's context, and returns a `ToolOutput`

`effect` tells what a second execution would mean. After a crash, a call with an unknown outcome is executed again if it
only reads or can be repeated. Otherwise the model is told that the outcome is unknown (RUN-3).

`rule_on` is the approval policy: which calls run at once, after a person's approval, or not at all (RUN-5).

    mode        reads   contained   reaches further   asks, and reads   asks, and changes
    read-only   yes     no          no                ask               no
    ask         yes     ask         ask               ask               ask
    auto        yes     yes         ask               ask               ask
    off         yes     yes         yes               yes               yes

`only`, `without`, `prefixed`, `asked` and `judged` adapt a list of tools (RUN-4):

    prefixed(without(tools, "delete_*"), "github__")
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, TypeAlias

from toolspeak.agent.sandbox.disk import DiskBudget, disk_budget
from toolspeak.config.shape import Approval
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


class Ruling(StrEnum):
    """The decision on one call."""

    YES = "yes"
    ASK = "ask"
    NO = "no"


def rule_on(mode: Approval, action: Action) -> Ruling:
    """Return whether a call of this tool may run, in this approval mode."""
    reads = action.effect is ToolEffect.READS
    if mode is Approval.OFF:
        return Ruling.YES
    if mode is Approval.READ_ONLY and not reads:
        return Ruling.NO
    free = reads or (mode is Approval.AUTO and action.contained)
    return Ruling.YES if free and not action.asks else Ruling.ASK


_GLOB: Final = frozenset("*?[")


def only(actions: Sequence[Action], *patterns: str) -> tuple[Action, ...]:
    """Keep only the tools with these names or globs."""
    chosen = _chosen(actions, patterns)
    return tuple(action for action in actions if action.name in chosen)


def without(actions: Sequence[Action], *patterns: str) -> tuple[Action, ...]:
    """Leave out the tools with these names or globs."""
    chosen = _chosen(actions, patterns)
    return tuple(action for action in actions if action.name not in chosen)


def prefixed(actions: Sequence[Action], prefix: str) -> tuple[Action, ...]:
    """Add a prefix to all names."""
    return tuple(replace(action, tool=replace(action.tool, name=prefix + action.name)) for action in actions)


def asked(actions: Sequence[Action], *patterns: str) -> tuple[Action, ...]:
    """Require a person's approval for these tools, even in the mode `auto` and for reads. No pattern means all."""
    chosen = _chosen(actions, patterns or ("*",))
    return tuple(replace(action, asks=True) if action.name in chosen else action for action in actions)


def judged(actions: Sequence[Action], effect: ToolEffect | str, *patterns: str) -> tuple[Action, ...]:
    """Set the effect of these tools, whatever they declare. No pattern means all."""
    chosen, meant = _chosen(actions, patterns or ("*",)), parse_effect(effect)
    return tuple(replace(action, effect=meant) if action.name in chosen else action for action in actions)


def _chosen(actions: Sequence[Action], patterns: Sequence[str]) -> frozenset[str]:
    """Return the selected names. Raises `BadField` for an unknown plain name: a misspelt one would stay offered."""
    names = [action.name for action in actions]
    for pattern in patterns:
        if pattern not in names and _GLOB.isdisjoint(pattern):
            raise BadField("tools", f"{pattern!r} is not one of {', '.join(names)}")
    return frozenset(name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns))

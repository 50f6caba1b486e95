"""Adapts existing tools: leaves some out, renames them, or changes their approval and effect (RUN-4, RUN-5).

prefixed(without(tools, "delete_*"), "github__")
"""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

from toolspeak.agent.tools.action import Action, ToolEffect, parse_effect
from toolspeak.errors import BadField

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

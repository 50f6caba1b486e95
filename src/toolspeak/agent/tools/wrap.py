"""Tools of others, made to fit: some left out, named otherwise, or judged otherwise (RUN-4, RUN-5).

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
    """Keep the tools of these names or globs."""
    chosen = _chosen(actions, patterns)
    return tuple(action for action in actions if action.name in chosen)


def without(actions: Sequence[Action], *patterns: str) -> tuple[Action, ...]:
    """Leave out the tools of these names or globs."""
    chosen = _chosen(actions, patterns)
    return tuple(action for action in actions if action.name not in chosen)


def prefixed(actions: Sequence[Action], prefix: str) -> tuple[Action, ...]:
    """Put a prefix before all names."""
    return tuple(replace(action, tool=replace(action.tool, name=prefix + action.name)) for action in actions)


def asked(actions: Sequence[Action], *patterns: str) -> tuple[Action, ...]:
    """Let a person be asked about these, even in the mode `auto`, and even if they only read; no pattern: about all."""
    chosen = _chosen(actions, patterns or ("*",))
    return tuple(replace(action, asks=True) if action.name in chosen else action for action in actions)


def judged(actions: Sequence[Action], effect: ToolEffect | str, *patterns: str) -> tuple[Action, ...]:
    """Return what these do to the world, whatever they say themselves; no pattern: all."""
    chosen, meant = _chosen(actions, patterns or ("*",)), parse_effect(effect)
    return tuple(replace(action, effect=meant) if action.name in chosen else action for action in actions)


def _chosen(actions: Sequence[Action], patterns: Sequence[str]) -> frozenset[str]:
    """Return the names that are meant. A name that nobody has is a mistake, which could leave a door open."""
    names = [action.name for action in actions]
    for pattern in patterns:
        if pattern not in names and _GLOB.isdisjoint(pattern):
            raise BadField("tools", f"{pattern!r} is not one of {', '.join(names)}")
    return frozenset(name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns))

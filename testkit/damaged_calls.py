"""Calls as models write them, damaged in one place: read right, refused with a complaint, or missed in silence.

Each is made from its seed: a dialect's own form (`noncalls.renderings`), a tool with arguments that fit, and one damage
of the kinds that models and servers cause. The markup is still there, so that toolspeak can ask the model again.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from testkit.noncalls.renderings import BARE, RENDERINGS
from testkit.noncalls.tools import NAMES, Args, arguments, tool_set
from toolspeak.dialects import load

_FORMS: Final = tuple(row for row in RENDERINGS if row not in BARE)
_BRACKETS: Final = "{}[]\"'<>:,="


@dataclass(frozen=True)
class DamagedCall:
    """One text, the intended call, and the damage."""

    seed: int
    damage: str
    dialect: str
    text: str
    meant: tuple[str, Args]

    def verdict(self) -> str:
        """Read it: `right`, `other` (another call came), `asked` (a complaint) or `missed`."""
        turn = load(self.dialect).read(self.text, tool_set())
        calls = [(call.name, json.loads(call.arguments)) for call in turn.calls]
        if calls:
            return "right" if calls == [self.meant] else "other"
        return "asked" if turn.complaints else "missed"


def _cut(text: str, dice: Random) -> str:
    return text[: dice.randint(len(text) // 2, len(text) - 1)]


def _without_bracket(text: str, dice: Random) -> str:
    places = [at for at, char in enumerate(text) if char in _BRACKETS and at > len(text) // 3]
    at = dice.choice(places) if places else len(text) - 1
    return text[:at] + text[at + 1 :]


def _without_end(text: str, dice: Random) -> str:
    del dice
    return text.rstrip().rpartition("<")[0] or text[:-1]


def _doubled(text: str, dice: Random) -> str:
    start = dice.randint(len(text) // 3, len(text) - 2)
    end = min(len(text), start + dice.randint(1, 12))
    return text[:end] + text[start:]


def _lost(text: str, dice: Random) -> str:
    start = dice.randint(len(text) // 3, len(text) - 2)
    return text[:start] + text[start + dice.randint(1, 8) :]


DAMAGES: Final[dict[str, Callable[[str, Random], str]]] = {
    "cut": _cut,
    "bracket": _without_bracket,
    "end": _without_end,
    "doubled": _doubled,
    "lost": _lost,
}


def damaged_call(seed: int) -> DamagedCall:
    """Make the text of a seed."""
    dice = Random(f"damaged call {seed}")
    row = dice.choice(_FORMS)
    name = dice.choice(NAMES)
    args = arguments(dice, name)
    damage = dice.choice(tuple(DAMAGES))
    said = dice.choice(("", "I look it up.\n"))
    text = said + DAMAGES[damage](row.write(name, args), dice)
    return DamagedCall(seed, damage, dice.choice(row.dialects), text, (name, args))


def verdicts(count: int) -> Counter[str]:
    """Count the results of the first `count` texts."""
    return Counter(damaged_call(seed).verdict() for seed in range(count))

"""The product of a family: a text, its kind, and the dialects whose markup it shows."""

from random import Random
from typing import NamedTuple

from testkit.noncalls.renderings import Rendering, pick
from testkit.noncalls.tools import Args, example


class Draft(NamedTuple):
    """A text without a call. `strangers`: it is one for every reader, not only for the dialects it shows."""

    kind: str
    text: str
    dialects: tuple[str, ...] = ()
    strangers: bool = True


class Shown(NamedTuple):
    """A call that is written down in some dialect, not yet quoted."""

    name: str
    args: Args
    row: Rendering
    text: str

    @property
    def opener(self) -> str:
        """Return its first marker."""
        return self.row.opener.replace("{}", self.name)

    @property
    def dialects(self) -> tuple[str, ...]:
        """Return the dialects that write it so."""
        return self.row.dialects


def shown(dice: Random, *, fences: bool = True) -> Shown:
    """Write down a call; without `fences`, in a form that has no backticks."""
    return written(dice, pick(dice, fences=fences))


def written(dice: Random, row: Rendering) -> Shown:
    """Write down a call in this form."""
    name, args = example(dice)
    return Shown(name, args, row, row.write(name, args))

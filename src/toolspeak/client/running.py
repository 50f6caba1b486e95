"""What callers say about a run, and the work that comes of it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias, cast

from toolspeak.client.said import Wishes
from toolspeak.config.environment import current, journal_folder
from toolspeak.engine.agent import ROUNDS
from toolspeak.errors import BadField
from toolspeak.ir.message import Call
from toolspeak.runs.inline import Ask
from toolspeak.runs.preparation import built_in
from toolspeak.runs.watch import RunEvent, Watch
from toolspeak.runtime.tools.action import OUTPUT, Action, Workplace
from toolspeak.runtime.tools.approval import Approval
from toolspeak.runtime.tools.functions import Function, actions_of
from toolspeak.runtime.tools.thread import apart
from toolspeak.runtime.tools.toolbox import Toolbox

Able: TypeAlias = Sequence[Function | Action | str]
"""Tools that can run: functions, Actions, and the names of our own (`files`, `shell`, `final_output`)."""


class RunWishes(Wishes, total=False):
    """What else can be said with a task."""

    folder: str | Path
    """Where our own tools work, and the only place that they change."""
    approval: Approval | str
    """`read-only`, `ask`, `auto` or `off`. By default `ask` if there is somebody to ask, else `off`: who hands over a
    function lets it run."""
    rounds: int
    """How often the model may call tools before it must come to an end."""
    output: int
    """Bytes of a tool's result; more is cut in the middle."""


def toolbox_of(tools: Able, wishes: RunWishes) -> Toolbox:
    """Make the tools ready; raises `BadField`."""
    output = wishes.get("output", OUTPUT)
    named = (
        built_in(each, _workplace(wishes, output)) if isinstance(each, str) else actions_of((each,)) for each in tools
    )
    return Toolbox([action for actions in named for action in actions], output)


def approval_of(wishes: RunWishes, *, somebody: bool) -> Approval:
    """Return who is asked."""
    mode = wishes.get("approval", Approval.ASK if somebody else Approval.OFF)
    if mode not in list(Approval):
        raise BadField("approval", f"{mode!r} is not one of {', '.join(Approval)}")
    return Approval(mode)


def rounds_of(wishes: RunWishes) -> int:
    """Return how many rounds there may be."""
    rounds = wishes.get("rounds", ROUNDS)
    if rounds < 0:
        raise BadField("rounds", f"{rounds} is not a number from 0 on")
    return rounds


def plain_wishes(wishes: RunWishes) -> Wishes:
    """Return what is said with each turn."""
    runs_own = RunWishes.__annotations__.keys() - Wishes.__annotations__.keys()
    return cast("Wishes", {name: value for name, value in wishes.items() if name not in runs_own})


def _workplace(wishes: RunWishes, output: int) -> Workplace:
    folder = Path(wishes.get("folder", ""))
    if "folder" not in wishes or not folder.is_dir():
        raise BadField("folder", f"{str(folder)!r} is not a folder; our own tools need one to work in")
    return Workplace(folder.resolve(), output, journal=journal_folder(current()))


def watching(see: Callable[[RunEvent], object]) -> Watch:
    """Let a function that does not await see a run."""

    async def watch(event: RunEvent) -> None:
        see(event)

    return watch


def asking(ask: Callable[[Call], bool]) -> Ask:
    """Let a function that does not await be asked; it may wait for a person, so it does that beside the loop."""
    return lambda call: apart(ask, call)

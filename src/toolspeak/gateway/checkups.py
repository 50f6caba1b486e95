"""Runs the doctor for people who press its button on the page of a model: one examination at a time (OBS-17).

    checkups.start(route, folder, quick=True)      returns why it cannot start; empty if it has started
    checkups.progress(route)                       what the page shows: running, paused, stopped, ended or failed
    await checkups.stop(route)                     answers so far are kept for the next one
    await checkups.pause(progress)                 the same, but the page says that it will go on (`idle_doctor.py`)

One at a time, because an examination takes the time of its server from users. The last one of each model stays on its
page until the gateway ends.
"""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolspeak.errors import ToolspeakError
from toolspeak.gateway.access_log import safe_name, safe_words
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Route

if TYPE_CHECKING:  # its tasks are loaded when somebody presses the button, not when a gateway starts
    from toolspeak.doctor.diagnosis import Checkup, Diagnosis
    from toolspeak.doctor.examination import TaskProgress
    from toolspeak.doctor.report import DoctorReport

_LOG: Final = logging.getLogger(__name__)
_MOST_KEPT: Final = 50
"""Ended examinations that are kept for their pages."""


class CheckupState(StrEnum):
    """Where an examination stands."""

    RUNNING = "running"
    PAUSED = "paused"
    """It goes on by itself when the upstream is idle again."""
    STOPPED = "stopped"
    """A person has stopped it, or the gateway ends."""
    ENDED = "ended"
    FAILED = "failed"


@dataclass(slots=True, eq=False)
class CheckupProgress:
    """One examination: what is asked now, how each form has done, and what came of it."""

    quick: bool
    state: CheckupState = CheckupState.RUNNING
    step: "TaskProgress | None" = None
    checkup: "Checkup | None" = None
    """None until the facts are gathered."""
    diagnosis: "Diagnosis | None" = None
    problem: str = ""
    when_idle: bool = False
    """The gateway began it by itself."""
    answers: int = 0
    """Tasks that were asked and marked; those that an earlier trial has asked do not count."""
    task: "asyncio.Task[None] | None" = field(default=None, repr=False)

    @property
    def report(self) -> "DoctorReport | None":
        """What is known so far."""
        return self.checkup.examination.report if self.checkup is not None else None


class Checkups:
    """The examinations of this gateway, by the identity of their models."""

    def __init__(self, clock: Clock = CLOCK) -> None:
        """Start with none."""
        self._clock: Final = clock
        self._of_model: Final[OrderedDict[str, CheckupProgress]] = OrderedDict()

    def start(self, route: Route, folder: Path | None, *, quick: bool, when_idle: bool = False) -> str:
        """Examine a model in the background. Return why that is not possible; empty if it has begun."""
        busy = next((name for name, one in self._of_model.items() if one.state is CheckupState.RUNNING), None)
        if busy is not None:
            return f"the doctor examines {busy} now: wait until it has ended, or stop it on the page of that model"
        progress = CheckupProgress(quick, when_idle=when_idle)
        self._of_model.pop(route.identity, None)
        self._of_model[route.identity] = progress
        while len(self._of_model) > _MOST_KEPT:
            self._of_model.popitem(last=False)
        progress.task = asyncio.get_running_loop().create_task(self._run(route, folder, progress))
        return ""

    async def stop(self, route: Route) -> None:
        """Stop the examination of a model, and wait until it has; answers so far are kept.

        A paused one does not go on by itself.
        """
        progress = self._of_model.get(route.identity)
        if progress is not None:
            await _cancel([progress], CheckupState.STOPPED)

    async def pause(self, progress: CheckupProgress) -> None:
        """Stop an examination that will go on by itself; if it has ended, do nothing."""
        await _cancel([progress], CheckupState.PAUSED)

    def progress(self, route: Route) -> CheckupProgress | None:
        """Return the last examination of a model, if there was one."""
        return self._of_model.get(route.identity)

    async def close(self) -> None:
        """Stop all examinations, and wait until they have ended."""
        await _cancel([*self._of_model.values()], CheckupState.STOPPED)

    async def _run(self, route: Route, folder: Path | None, progress: CheckupProgress) -> None:
        from toolspeak.doctor.diagnosis import DoctorOptions, prepare_checkup  # noqa: PLC0415

        def tell(step: "TaskProgress") -> None:
            progress.step = step
            progress.answers += step.mark is not None and not step.known

        options = DoctorOptions(quick=progress.quick)
        try:
            checkup = progress.checkup = await prepare_checkup(route, options, folder, self._clock)
            await checkup.examination.run(tell, options.deadline(self._clock.monotonic()))
            progress.diagnosis = checkup.finish()
            progress.state = CheckupState.ENDED
            said = safe_name(route.identity), safe_words(progress.diagnosis.report.verdict), _kept(progress.diagnosis)
            _LOG.info("the doctor has examined %s: %s%s", *said)
        except ToolspeakError as error:  # the upstream is away or keeps failing: the page says so
            progress.state, progress.problem = CheckupState.FAILED, str(error)
        except Exception as error:  # noqa: BLE001 # no request awaits this task, so its error would be lost
            progress.state, progress.problem = CheckupState.FAILED, f"the doctor failed: {type(error).__name__}"
            _LOG.exception("the doctor failed on %s", route.identity)


def _kept(found: "Diagnosis") -> str:
    """Say what has changed; empty if nothing has."""
    if found.removed:
        return " Its profile is deleted."
    return f" The profile is saved in {found.saved}." if found.saved is not None else ""


async def _cancel(those: list[CheckupProgress], state: CheckupState) -> None:
    tasks = [one.task for one in those if one.task is not None]
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    # Not in the task: one that is cancelled before its first step runs no `except`, and would count as running forever.
    for one in those:
        if one.state in (CheckupState.RUNNING, CheckupState.PAUSED):
            one.state = state

"""A store of steps as Temporal would be one: the run's program is replayed from a recorded history.

A worker may be evicted whenever a result was recorded, so here it always is: the program begins anew, and gets recorded
results until it asks for one that is missing. An activity whose worker dies before its result is recorded is tried
again. What this asks of `RunSteps` is what the seam promises: the same steps in the same order in every attempt, no
effect outside `keep`, and a `started` before each call that must not run twice.

`started` and its call belong to one attempt: an eviction between them is a crash, and the outcome is unknown. A real
adapter maps the call to an activity with one attempt.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from toolspeak.agent.runs.events import run_ended
from toolspeak.agent.runs.steps import Do, Permission, RunSteps, T, TextForm, Work
from toolspeak.engine.agent import Ending
from toolspeak.ir.message import Call


class Evicted(Exception):
    """The attempt ends here, and another one replays the history."""


@dataclass
class History:
    """What is recorded of a run: the order of its steps, and their results."""

    steps: list[str] = field(default_factory=list[str])
    results: dict[str, str] = field(default_factory=dict[str, str])
    attempts: int = 0


@dataclass
class ReplayStore:
    """One attempt at a run. Implements `StepStore`."""

    history: History
    allowed: bool
    dies_before_record: Callable[[str], bool]
    _number: int = 0
    _going: int = 0

    async def keep(self, step: str, form: TextForm[T], do: Do[T], *, once: bool = False) -> T:
        """Return the recorded result, or record one and end the attempt."""
        del once
        self._schedule(step)
        if step in self.history.results:
            return form.read(self.history.results[step])
        self._going += 1
        try:
            outcome = await do()
        finally:
            self._going -= 1
        if self.dies_before_record(step):
            raise Evicted
        self.history.results[step] = form.write(outcome)
        if self._going or step.startswith("started:"):
            return outcome
        raise Evicted

    async def ask(self, key: str, call: Call) -> Permission:
        """Return the answer of the person, which comes at once."""
        del key, call
        return Permission(self.allowed)

    def _schedule(self, step: str) -> None:
        """Refuse a program that decides otherwise than it did in an earlier attempt."""
        steps = self.history.steps
        if self._number == len(steps):
            steps.append(step)
        assert steps[self._number] == step, f"step {self._number} was {steps[self._number]}, and is {step} now"
        self._number += 1


def never(step: str) -> bool:
    """Let no worker die."""
    del step
    return False


async def replayed(
    work: Work, history: History, *, allowed: bool = False, dies: Callable[[str], bool] = never
) -> Ending:
    """Work on a run to its end, each time from its beginning."""
    while True:
        history.attempts += 1
        try:
            ending = await RunSteps(work, ReplayStore(history, allowed, dies)).run(work.task)
        except Evicted:
            continue
        await work.watch(run_ended(ending))
        return ending

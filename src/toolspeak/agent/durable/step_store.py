"""One execution of a durable run: the worker's claim to it, and its steps, which DBOS stores (RUN-3).

After a crash, DBOS returns the stored result of each finished step instead of executing it again.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dbos import DBOS

from toolspeak.agent.durable.dbos_internals import Lost
from toolspeak.agent.durable.lease import Lease
from toolspeak.agent.runs.steps import JSON, Do, Permission, StopSwitch, T, TextForm
from toolspeak.engine.agent import Task
from toolspeak.ir.message import Call


class RunClaim(StopSwitch):
    """One execution of a run. DBOS stores none of its steps once the run has another token."""

    def __init__(self, run: str, token: str, lease: Lease) -> None:
        """Claim a run for this execution."""
        super().__init__()
        self.run: Final = run
        self.token: Final = token
        self._lease: Final = lease

    async def assure(self) -> None:
        """Return once the lease is confirmed, so that no other worker can have the run. Raise `Lost` if one has.

        A call that must not run twice begins right after it. A worker that was frozen (SIGSTOP, a suspended machine)
        stops here when it wakes up, since its run went on elsewhere with an unknown outcome of the call. Only if it
        freezes between this check and the first byte of the call, the call still begins, once, and its result is lost.
        """
        while not self._lease.held:
            if not await asyncio.to_thread(self._lease.renew):
                raise Lost(self.run)


BEGINNING: Final = "outfit"
"""Name of the first step, which stores the run's settings. It must not change: existing databases contain it."""
_YEAR: Final = 365 * 24 * 3600.0
"""Seconds to wait for a person's approval."""


@dataclass(frozen=True, slots=True)
class DbosStepStore:
    """Stores the steps of one execution of a run in DBOS. Implements `StepStore`."""

    claim: RunClaim

    async def keep(self, step: str, form: TextForm[T], do: Do[T], *, once: bool = False) -> T:
        """Return the stored result of the step, or execute and store it.

        DBOS numbers the step in this call before it awaits anything, so the numbers follow the order of calls even if
        steps run concurrently. It stores the result only if this execution still owns the run.
        """

        async def body() -> str:
            with self.claim.stoppable():
                if once:
                    await self.claim.assure()
                return form.write(await do())

        # A `once` call is exempt: its start is stored, so without a result its outcome would count as unknown.
        if not once:
            self.claim.admit()
        given: str = await DBOS.run_step_async({"name": step}, body)
        return form.read(given)

    async def ask(self, key: str, call: Call) -> Permission:
        """Wait for the message of `DurableRuns.approve`. DBOS stores it, so it may arrive while no worker runs."""
        del call
        self.claim.admit()
        with self.claim.stoppable(waits=True):
            said: Any = await DBOS.recv_async(key, timeout_seconds=_YEAR)
        if said is None:
            return Permission(granted=False, reason="no answer came")
        return Permission(said["allowed"] is True, said["reason"])

    async def beginning(self, task: Task) -> Task:
        """Return the task with the ending tools that it had when the run began, even if the tools have changed."""

        async def given() -> Any:  # noqa: ANN401 # JSON
            return {"model": task.request.model, "ending": sorted(task.ending), "tools": list(task.reviewed)}

        return begun_task(task, await self.keep(BEGINNING, JSON, given))


def begun_task(task: Task, kept: Mapping[str, Any]) -> Task:
    """Return a task as its program began, from the outcome of the first step.

    A run is replayed by the worker that takes it over and by every view of it, and both must decide the same. Versions
    before the review of endings stored no names of tools, and their runs are replayed without it.
    """
    return replace(task, ending=frozenset(kept["ending"]), reviewed=tuple(kept.get("tools", ())))

"""One execution of a durable run: a worker's claim to it, and its steps, which DBOS stores (RUN-3).

After a crash DBOS returns the stored outcome of each step that was done.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Final

from dbos import DBOS

from toolspeak.agent.durable.dbos_internals import Lost
from toolspeak.agent.durable.lease import Lease
from toolspeak.agent.runs.steps import JSON, Do, Permission, StopSwitch, T, TextForm
from toolspeak.engine.agent import Task
from toolspeak.ir.message import Call


class RunClaim(StopSwitch):
    """One execution of a run. DBOS keeps none of its steps once `token` is not the run's any more."""

    def __init__(self, run: str, token: str, lease: Lease) -> None:
        """Begin one."""
        super().__init__()
        self.run: Final = run
        self.token: Final = token
        self._lease: Final = lease

    async def assure(self) -> None:
        """Return only while no other worker can have this worker's runs; raise `Lost` if one has taken over.

        A call that must not run twice is begun right after it.
        """
        while not self._lease.held:
            if not await asyncio.to_thread(self._lease.renew):
                raise Lost(self.run)


BEGINNING: Final = "outfit"
"""The first step: what the run was given. Databases have runs with this name in them, so it stays."""
_YEAR: Final = 365 * 24 * 3600.0
"""Seconds that a person's answer is waited for."""


@dataclass(frozen=True, slots=True)
class DbosStepStore:
    """Keeps the steps of one execution of a run. Implements `Keeper`."""

    claim: RunClaim

    async def keep(self, step: str, form: TextForm[T], do: Do[T], *, once: bool = False) -> T:
        """Return what the step gave when it was done, or do it.

        DBOS gives the step its number in this call before it awaits anything, and stores the outcome only if the run
        is still this execution's.
        """

        async def body() -> str:
            with self.claim.stoppable():
                if once:
                    await self.claim.assure()
                return form.write(await do())

        if not once:
            self.claim.admit()
        given: str = await DBOS.run_step_async({"name": step}, body)
        return form.read(given)

    async def ask(self, key: str, call: Call) -> Permission:
        """Wait for the message that `DurableRuns.approve` sends. DBOS stores it: it may come while no worker works."""
        del call
        self.claim.admit()
        with self.claim.stoppable(waits=True):
            said: Any = await DBOS.recv_async(key, timeout_seconds=_YEAR)
        if said is None:
            return Permission(granted=False, reason="no answer came")
        return Permission(said["allowed"] is True, said["reason"])

    async def beginning(self, task: Task) -> Task:
        """Return the task as it was when the run began, however its tools have changed since."""

        async def given() -> Any:  # noqa: ANN401 # JSON
            return {"model": task.request.model, "ending": sorted(task.ending)}

        kept = await self.keep(BEGINNING, JSON, given)
        return replace(task, ending=frozenset(kept["ending"]))

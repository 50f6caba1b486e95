"""A worker's claim to a run: whether it may go on, and what must stop if it may not."""

import asyncio
from typing import Final

from toolspeak.agent.durable.dbos_internals import Lost
from toolspeak.agent.durable.lease import Lease
from toolspeak.agent.runs.steps import StopSwitch


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

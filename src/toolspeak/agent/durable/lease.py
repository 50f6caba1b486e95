"""A worker's lease: while the worker renews it, its runs belong to it.

The worker counts its lease from before it sends the request, the others from when the database executes it. So the
worker stops before the others take over, whatever the delay between them. A worker that has lost its lease, because it
was frozen or disconnected, finds its row deleted and can never renew it: its runs may have a new owner.
"""

from collections.abc import Collection
from typing import Final

import sqlalchemy as sa

from toolspeak.agent.durable import dbos_internals
from toolspeak.agent.durable.database import Database
from toolspeak.agent.durable.queue import name_tenants
from toolspeak.agent.durable.schema import LEASES
from toolspeak.runtime.clock import CLOCK, Clock

RENEWALS: Final = 4
"""A lease is renewed this many times within its duration, so that one failed renewal does not lose it."""
_STRANDED: Final = 10.0
"""Seconds after which a run that its own process never claimed is moved to the common queue."""


class Lease:
    """The lease of one worker. `take`, `renew` and `drop` block."""

    def __init__(self, database: Database, seconds: float, clock: Clock = CLOCK) -> None:
        """Create a lease that is not taken yet. Its id is the worker's id."""
        self.id: Final = f"worker_{clock.fresh_id()}"
        self.seconds: Final = seconds
        self._database: Final = database
        self._clock: Final = clock
        self._until = 0.0
        self.lost = False

    @property
    def held(self) -> bool:
        """Return whether no other worker can have taken over yet."""
        return not self.lost and self._clock.monotonic() < self._until

    @property
    def due(self) -> bool:
        """Return whether the lease should be renewed now."""
        return self._clock.monotonic() >= self._until - self.seconds * (1 - 1 / RENEWALS)

    def take(self) -> None:
        """Insert the lease into the database."""
        asked = self._clock.monotonic()
        with self._database.engine.begin() as connection:
            connection.execute(sa.insert(LEASES).values(id=self.id, expires=self._expires))
        self._until = asked + self.seconds

    def renew(self) -> bool:
        """Renew the lease, and return whether it is still held. A lease that others have deleted is lost for good."""
        asked = self._clock.monotonic()
        # The time before the request counts: the lease must end here before it ends for the others, however long the
        # database takes.
        renewed = sa.update(LEASES).where(LEASES.c.id == self.id).values(expires=self._expires)
        with self._database.engine.begin() as connection:
            self.lost |= not connection.execute(renewed).rowcount
        if not self.lost:
            self._until = asked + self.seconds
        return not self.lost

    def drop(self) -> None:
        """End the lease, and put the worker's unfinished runs back into the queue."""
        self.lost = True
        with self._database.engine.begin() as connection:
            # The flag above comes first: from then on `held` is False, and no call that must not run twice begins.
            connection.execute(sa.delete(LEASES).where(LEASES.c.id == self.id))
        _hand_back(self._database, [self.id])

    @property
    def _expires(self) -> sa.ColumnElement[float]:
        return self._database.now + self.seconds


def reap(database: Database) -> int:
    """Delete expired leases, and put the runs of workers without one back into the queue. Return the number of runs.

    Several workers may do this at once: a run is put back only while it still belongs to the dead worker.
    """
    with database.engine.begin() as connection:
        # The row is deleted before the runs are handed back: a worker that wakes up now cannot renew, and learns that
        # it has lost them.
        connection.execute(sa.delete(LEASES).where(LEASES.c.expires < database.now))
    runs = dbos_internals.WORKFLOWS
    alive = sa.select(LEASES.c.id)
    with database.theirs.begin() as connection:
        found = connection.execute(
            sa.select(runs.c.executor_id)
            .distinct()
            .where(runs.c.status == dbos_internals.PENDING, runs.c.application_name == dbos_internals.APPLICATION)
            .where(runs.c.executor_id.not_in(alive))
        )
        dead = [str(row[0]) for row in found]
    _unstrand(database)
    name_tenants(database)
    return _hand_back(database, dead)


def lease_end(database: Database, worker: str) -> float | None:
    """Return when a worker's lease ends, by the clock of the database; None if it has ended."""
    with database.engine.begin() as connection:
        return connection.execute(
            sa.select(LEASES.c.expires).where(LEASES.c.id == worker, LEASES.c.expires >= database.now)
        ).scalar()


def hand_back_unknown(database: Database, worker: str, known: Collection[str]) -> int:
    """Put runs of a living worker that it does not know back into the queue: the answer to its claim was lost."""
    return _hand_back(database, [worker], known)


def _hand_back(database: Database, workers: list[str], known: Collection[str] = ()) -> int:
    runs = dbos_internals.WORKFLOWS
    with database.theirs.begin() as connection:
        found = connection.execute(
            sa.select(runs.c.workflow_uuid, runs.c.executor_id).where(
                runs.c.status == dbos_internals.PENDING, runs.c.executor_id.in_(workers)
            )
        )
        left = [(str(run), str(worker)) for run, worker in found if run not in known]
    return sum(dbos_internals.hand_back(database.client, run, worker) for run, worker in left)


def _unstrand(database: Database) -> None:
    """Move runs to the common queue whose own process died before it claimed them."""
    runs = dbos_internals.WORKFLOWS
    with database.theirs.begin() as connection:
        connection.execute(
            sa.update(runs)
            .where(runs.c.status == dbos_internals.ENQUEUED, runs.c.queue_name == dbos_internals.HERE)
            .where(runs.c.updated_at < (database.now - _STRANDED) * 1000)
            .values(queue_name=dbos_internals.QUEUE)
        )

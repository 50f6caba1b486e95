"""A worker's lease: as long as it renews it, its runs are its own.

The worker counts its lease from before it asked, the others from when the database heard it: it stops before they
begin. A worker that has lost its lease, because it was frozen or cut off, finds its row gone and can never renew it.
"""

from typing import Final

import sqlalchemy as sa

from toolspeak.agent.durable import dbos_internals
from toolspeak.agent.durable.database import Database
from toolspeak.agent.durable.schema import LEASES
from toolspeak.runtime.clock import CLOCK, Clock

RENEWALS: Final = 4
"""So often within its seconds a lease is renewed."""
_STRANDED: Final = 10.0


class Lease:
    """One worker's. `take`, `renew` and `drop` block."""

    def __init__(self, database: Database, seconds: float, clock: Clock = CLOCK) -> None:
        """Make one that is not taken yet; its id is the worker's."""
        self.id: Final = f"worker_{clock.fresh_id()}"
        self.seconds: Final = seconds
        self._database: Final = database
        self._clock: Final = clock
        self._until = 0.0
        self.lost = False

    @property
    def held(self) -> bool:
        """Return whether nobody can have taken over yet."""
        return not self.lost and self._clock.monotonic() < self._until

    @property
    def due(self) -> bool:
        """Return whether it is time to renew it."""
        return self._clock.monotonic() >= self._until - self.seconds * (1 - 1 / RENEWALS)

    def take(self) -> None:
        """Begin it."""
        asked = self._clock.monotonic()
        with self._database.engine.begin() as connection:
            connection.execute(sa.insert(LEASES).values(id=self.id, expires=self._expires))
        self._until = asked + self.seconds

    def renew(self) -> bool:
        """Go on with it; if others have declared it dead, it is lost for good."""
        asked = self._clock.monotonic()
        renewed = sa.update(LEASES).where(LEASES.c.id == self.id).values(expires=self._expires)
        with self._database.engine.begin() as connection:
            self.lost |= not connection.execute(renewed).rowcount
        if not self.lost:
            self._until = asked + self.seconds
        return not self.lost

    def drop(self) -> None:
        """End it; what its worker has not finished goes back into the queue."""
        self.lost = True
        with self._database.engine.begin() as connection:
            connection.execute(sa.delete(LEASES).where(LEASES.c.id == self.id))
        _hand_back(self._database, [self.id])

    @property
    def _expires(self) -> sa.ColumnElement[float]:
        return self._database.now + self.seconds


def reap(database: Database) -> int:
    """Bury workers whose lease has run out, and put their runs back into the queue; return how many runs.

    Two who reap at once do no harm: a run is put back only as long as it is the dead worker's.
    """
    with database.engine.begin() as connection:
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
    return _hand_back(database, dead)


def is_alive(database: Database, worker: str) -> bool:
    """Return whether a worker has its lease."""
    with database.engine.begin() as connection:
        found = connection.execute(
            sa.select(LEASES.c.id).where(LEASES.c.id == worker, LEASES.c.expires >= database.now)
        )
        return found.first() is not None


def _hand_back(database: Database, dead: list[str]) -> int:
    runs = dbos_internals.WORKFLOWS
    with database.theirs.begin() as connection:
        found = connection.execute(
            sa.select(runs.c.workflow_uuid, runs.c.executor_id).where(
                runs.c.status == dbos_internals.PENDING, runs.c.executor_id.in_(dead)
            )
        )
        left = [(str(run), str(worker)) for run, worker in found]
    return sum(dbos_internals.hand_back(database.client, run, worker) for run, worker in left)


def _unstrand(database: Database) -> None:
    """Queue what a process wanted to work on itself, and died before it began."""
    runs = dbos_internals.WORKFLOWS
    with database.theirs.begin() as connection:
        connection.execute(
            sa.update(runs)
            .where(runs.c.status == dbos_internals.ENQUEUED, runs.c.queue_name == dbos_internals.HERE)
            .where(runs.c.updated_at < (database.now - _STRANDED) * 1000)
            .values(queue_name=dbos_internals.QUEUE)
        )

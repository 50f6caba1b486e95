"""The queue of runs. Workers claim from it in turn over the tenants that have waiting runs (RUN-20).

A worker goes through those tenants in a circle, and takes the same number of runs of each. So a tenant waits for at
most one run of each other tenant, however many those have queued. Each worker has a place in the circle of its own, and
begins at a random one: a shared place would be a row that all workers update, and restarts would favour one tenant.

A run waits in a row of DBOS, whose partition key is the tenant. The partial index of DBOS that begins with queue,
status and partition key carries every statement here: the next tenant is one descent, whatever the queue's length.
"""

from hashlib import sha256
from typing import Final

import sqlalchemy as sa

from toolspeak.agent.durable import dbos_internals
from toolspeak.agent.durable.database import Database
from toolspeak.agent.durable.schema import LEASES, RUNS
from toolspeak.runtime.clock import CLOCK, Clock

PAGE: Final = 64
"""Tenants that one statement finds."""
_PAGES: Final = 16
"""Statements for one claim: if the tenants of all of them are at their limit, the next claim goes on after them."""
_TURN: Final = 0x7475726E
"""First key of the advisory locks under which a tenant's running runs are counted; the second is its hash."""
_FLOWS: Final = dbos_internals.WORKFLOWS
_IN_FLIGHT: Final = [sa.literal_column("'ENQUEUED'", sa.Text), sa.literal_column("'PENDING'", sa.Text)]


class RunQueue:
    """The queue as one worker sees it. `claim` blocks."""

    def __init__(self, database: Database, worker: str, per_tenant: int | None = None, clock: Clock = CLOCK) -> None:
        """Claim for this worker. Of each tenant, all workers together run at most `per_tenant` runs."""
        self._database: Final = database
        self._worker: Final = worker
        self._per_tenant: Final = per_tenant
        self._clock: Final = clock
        self._after = clock.fresh_id()
        """The tenant that had the last turn; at first a random name."""

    def claim(self, room: int) -> list[tuple[str, str]]:
        """Claim up to `room` waiting runs in one transaction; return each with the token of its execution.

        With room for more runs than there are tenants with waiting ones, each gets the same share, and what a tenant
        leaves of it goes to the others.
        """
        token = self._clock.fresh_id()
        claimed: list[str] = []
        with self._database.theirs.begin() as connection:
            full = self._full_tenants(connection)
            for _ in range(_PAGES):
                left = room - len(claimed)
                size = min(PAGE, left) if self._per_tenant is None else PAGE
                tenants = self._next_tenants(connection, size)
                free, is_all = [tenant for tenant in tenants if tenant not in full], len(tenants) < size
                share = max(1, left // len(free)) if free and is_all else 1
                runs = [run for tenant in free[:left] for run in self._oldest(connection, tenant, share)][:left]
                # Marked before the next page, which would find them again: own locks hide no row.
                claimed += dbos_internals.mark_claimed(connection, runs, self._worker, token)
                self._after = free[left - 1] if len(free) > left else tenants[-1] if tenants else self._after
                if len(claimed) >= room or (is_all and not runs):
                    break
        return [(run, token) for run in claimed]

    def _next_tenants(self, connection: sa.Connection, most: int) -> list[str]:
        """Return the next tenants of the circle that have waiting runs; fewer than `most` are all of them."""
        found = self._tenants(connection, _FLOWS.c.queue_partition_key > self._after, most)
        if len(found) < most:
            found += self._tenants(connection, _FLOWS.c.queue_partition_key <= self._after, most - len(found))
        return found

    def _tenants(self, connection: sa.Connection, place: sa.ColumnElement[bool], most: int) -> list[str]:
        """Return tenants that have waiting runs, in their order. Each is one descent in the index."""
        waiting = (*self._in_flight(dbos_internals.ENQUEUED), place)
        lowest = sa.select(sa.func.min(_FLOWS.c.queue_partition_key)).where(*waiting)
        first = sa.select(lowest.scalar_subquery().label("tenant"), sa.literal(1).label("number"))
        turn = first.cte("turn", recursive=True)
        after = lowest.where(_FLOWS.c.queue_partition_key > turn.c.tenant).scalar_subquery()
        goes_on = (turn.c.tenant.is_not(None), turn.c.number < most)
        turn = turn.union_all(sa.select(after, turn.c.number + 1).where(*goes_on))
        rows = connection.execute(sa.select(turn.c.tenant).where(turn.c.tenant.is_not(None)))
        return [str(row[0]) for row in rows]

    def _oldest(self, connection: sa.Connection, tenant: str, most: int) -> list[str]:
        """Return the oldest waiting runs of a tenant that no other worker is claiming, as far as its limit allows."""
        room = self._room(connection, tenant, most)
        if room <= 0:
            return []
        key = _FLOWS.c.queue_partition_key
        # A range of one tenant, and not an equation: with it, PostgreSQL would drop the tenant from the order, and then
        # prefer the index without tenants if one of them has most of the queue.
        wanted = (
            sa.select(_FLOWS.c.workflow_uuid)
            .where(*self._in_flight(dbos_internals.ENQUEUED), key >= tenant, key <= tenant)
            .where(_FLOWS.c.application_version == dbos_internals.VERSION)
            .order_by(key, _FLOWS.c.priority, _FLOWS.c.created_at)
            .limit(room)
            .with_for_update(skip_locked=True)
        )
        return [str(row[0]) for row in connection.execute(wanted)]

    def _room(self, connection: sa.Connection, tenant: str, most: int) -> int:
        """Return how many runs of a tenant may be claimed in this transaction."""
        if self._per_tenant is None:
            return most
        if connection.dialect.name == "postgresql":
            # Two workers that counted at the same time would both find room for one more. A tenant whose lock is
            # taken is skipped: another worker claims for it. A hash that two tenants share costs a turn, no run.
            key = int.from_bytes(sha256(tenant.encode()).digest()[:4], signed=True)
            if not connection.execute(sa.select(sa.func.pg_try_advisory_xact_lock(_TURN, key))).scalar_one():
                return 0
        count = sa.select(sa.func.count()).where(
            *self._in_flight(dbos_internals.PENDING), _FLOWS.c.queue_partition_key == tenant
        )
        return min(most, self._per_tenant - int(connection.execute(count).scalar_one()))

    def _full_tenants(self, connection: sa.Connection) -> set[str]:
        """Return the tenants at their limit, which are passed over. `_room` counts again, under the tenant's lock."""
        if self._per_tenant is None:
            return set()
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # Python's driver would begin at the update, after the count
        key = _FLOWS.c.queue_partition_key
        running = sa.select(key).where(*self._in_flight(dbos_internals.PENDING)).group_by(key)
        return {str(row[0]) for row in connection.execute(running.having(sa.func.count() >= self._per_tenant))}

    def _in_flight(self, status: str) -> tuple[sa.ColumnElement[bool], ...]:
        """Return the conditions on queue and status in the form for which both databases use the partial index."""
        wanted = (_FLOWS.c.queue_name == dbos_internals.QUEUE, _FLOWS.c.status == status)
        if not self._database.is_sqlite:
            return wanted
        # SQLite uses a partial index only for a query that repeats its condition word for word.
        return (*wanted, _FLOWS.c.status.in_(_IN_FLIGHT), _FLOWS.c.queue_partition_key.is_not(None))


def name_tenants(database: Database) -> None:
    """Give waiting runs their tenant as partition key where a toolspeak before schema version 3 has enqueued them."""
    tenant = sa.select(RUNS.c.tenant).where(RUNS.c.id == _FLOWS.c.workflow_uuid).scalar_subquery()
    unnamed = (_FLOWS.c.status == dbos_internals.ENQUEUED, _FLOWS.c.queue_partition_key.is_(None))
    with database.theirs.begin() as connection:
        connection.execute(
            sa.update(_FLOWS)
            .where(_FLOWS.c.queue_name == dbos_internals.QUEUE, *unnamed)
            .values(queue_partition_key=tenant)
        )


def waiting_runs(database: Database) -> tuple[int, int]:
    """Return how many runs wait in the queue, and how many workers hold a lease."""
    waiting = (
        sa.select(sa.func.count())
        .where(_FLOWS.c.queue_name == dbos_internals.QUEUE, _FLOWS.c.status == dbos_internals.ENQUEUED)
        .scalar_subquery()
    )
    workers = sa.select(sa.func.count()).where(LEASES.c.expires >= database.now).scalar_subquery()
    with database.theirs.begin() as connection:
        runs, leases = connection.execute(sa.select(waiting, workers)).one()
    return int(runs), int(leases)

"""Rows of runs that wait in the queue, many at a time: `start` would take minutes for a hundred thousand."""

from collections.abc import Iterable

import sqlalchemy as sa

from toolspeak.agent.durable import dbos_internals
from toolspeak.agent.durable.database import Database

_BATCH = 5000


def enqueue(database: Database, tenant: str | None, count: int, first: int = 0) -> None:
    """Queue runs of a tenant, the oldest first: `TENANT-0`, `TENANT-1`, …; they began at `first` milliseconds."""
    rows = [
        {
            "workflow_uuid": f"{tenant or ''}-{number}",
            "status": dbos_internals.ENQUEUED,
            "name": dbos_internals.WORKFLOW,
            "created_at": first + number,
            "updated_at": first + number,
            "application_version": dbos_internals.VERSION,
            "application_name": dbos_internals.APPLICATION,
            "recovery_attempts": 0,
            "queue_name": dbos_internals.QUEUE,
            "queue_partition_key": tenant,
            "priority": 0,
        }
        for number in range(count)
    ]
    with database.theirs.begin() as connection:
        for begin in range(0, count, _BATCH):
            connection.execute(sa.insert(dbos_internals.WORKFLOWS), rows[begin : begin + _BATCH])


def finish(database: Database, runs: Iterable[str]) -> None:
    """End runs, as their worker would."""
    flows = dbos_internals.WORKFLOWS
    with database.theirs.begin() as connection:
        connection.execute(
            sa.update(flows).where(flows.c.workflow_uuid.in_(list(runs))).values(status=dbos_internals.OVER[0])
        )

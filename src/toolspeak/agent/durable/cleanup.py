"""Cleanup beside the runs: deletes old ones, and ends those whose worker or canceller died before it said so."""

from shutil import rmtree
from typing import Final

import sqlalchemy as sa

from toolspeak.agent.durable import dbos_internals, ledger
from toolspeak.agent.durable.database import Database
from toolspeak.agent.durable.tables import EVENTS, RUNS
from toolspeak.agent.runs.preparation import own_folder
from toolspeak.engine.agent import Status

_DAY: Final = 24 * 3600.0
_MANY: Final = 200
_SETTLED: Final = 5.0
"""Seconds after which nobody is about to write the end any more."""


def delete_old_runs(database: Database, days: float) -> int:
    """Delete runs that ended longer ago than they are to be kept, with their steps, events and own folders."""
    old = sa.select(RUNS.c.id).where(RUNS.c.ended > 0, RUNS.c.ended < database.now - days * _DAY)
    with database.engine.begin() as connection:
        runs = [str(row[0]) for row in connection.execute(old.limit(_MANY))]
    if not runs:
        return 0
    database.client.delete_workflows(runs)
    with database.engine.begin() as connection:
        connection.execute(sa.delete(EVENTS).where(EVENTS.c.run.in_(runs)))
        connection.execute(sa.delete(RUNS).where(RUNS.c.id.in_(runs)))
    for run in runs:
        if folder := own_folder(run):
            rmtree(folder, ignore_errors=True)
    return len(runs)


def end_abandoned_runs(database: Database) -> int:
    """End runs that DBOS has given up, or whose canceller died before it said so."""
    workflows = dbos_internals.WORKFLOWS
    quiet = workflows.c.updated_at < (database.now - _SETTLED) * 1000
    found = (
        sa.select(RUNS.c.id, workflows.c.status)
        .join(workflows, workflows.c.workflow_uuid == RUNS.c.id)
        .where(RUNS.c.ended == 0, workflows.c.status.in_(dbos_internals.OVER), quiet)
        .limit(_MANY)
    )
    with database.theirs.begin() as connection:
        rows = [(str(run), str(status)) for run, status in connection.execute(found)]
    return sum(_mend(database, run, status) for run, status in rows)


def _mend(database: Database, run: str, status: str) -> bool:
    if status == dbos_internals.CANCELLED:
        return ledger.end(database, run, Status.CANCELLED, "cancelled")
    return ledger.end(database, run, Status.FAILED, f"its worker could not end it ({status.lower()})")

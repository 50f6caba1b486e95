"""The tables that are kept beside those of DBOS, in the same database.

runs      one row each: what it was asked, how it stands, who may write about it (`token`)
events    what people see of a run, numbered from 0 without gaps that matter: `runs.next` is the next number
leases    who works: a worker that has not renewed its lease in time counts as dead
"""

from typing import Final

import sqlalchemy as sa

_TABLES = sa.MetaData()

RUNS: Final = sa.Table(
    "toolspeak_runs",
    _TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("task", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("rounds", sa.Integer, nullable=False),
    sa.Column("began", sa.Double, nullable=False),
    sa.Column("ended", sa.Double, nullable=False),
    sa.Column("next", sa.Integer, nullable=False),
    sa.Column("token", sa.Text, nullable=False),
    sa.Index("toolspeak_runs_began", "began"),
    sa.Index("toolspeak_runs_tenant", "tenant", "began"),
    sa.Index("toolspeak_runs_ended", "ended"),
)

EVENTS: Final = sa.Table(
    "toolspeak_events",
    _TABLES,
    sa.Column("run", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)

LEASES: Final = sa.Table(
    "toolspeak_leases",
    _TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("expires", sa.Double, nullable=False),
)

_LOCK: Final = 0x746F6F6C  # any number that nobody else uses


def create_tables(engine: sa.Engine) -> None:
    """Make the tables that are not there; workers that start together wait for each other."""
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        _TABLES.create_all(connection)


def now(engine: sa.Engine) -> sa.ColumnElement[float]:
    """Return the database's clock, in seconds since 1970: one clock for all who share it."""
    if engine.dialect.name == "postgresql":
        return sa.literal_column("extract(epoch from clock_timestamp())::double precision", sa.Double)
    return sa.literal_column("((julianday('now') - 2440587.5) * 86400.0)", sa.Double)

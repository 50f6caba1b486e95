"""The tables that are kept beside those of DBOS, in the same database.

schema    one row: the version of these tables (`schema.py` migrates them)
runs      one row each: what it was asked, how it stands, who may write about it (`token`); `name` is the id that its
          tenant knows it by, and `ended` is 0 while it is live
events    what people see of a run, numbered from 0 without gaps that matter: `runs.next` is the next number
leases    who works: a worker that has not renewed its lease in time counts as dead
"""

from typing import Final

import sqlalchemy as sa

TABLES: Final = sa.MetaData()

SCHEMA: Final = sa.Table("toolspeak_schema", TABLES, sa.Column("version", sa.Integer, primary_key=True))

RUNS: Final = sa.Table(
    "toolspeak_runs",
    TABLES,
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
    sa.Column("name", sa.Text, nullable=False, server_default=""),
    sa.Index("toolspeak_runs_began", "began"),
    sa.Index("toolspeak_runs_tenant", "tenant", "began"),
    sa.Index("toolspeak_runs_ended", "ended"),
    sa.Index("toolspeak_runs_name", "tenant", "name", unique=True),
    sa.Index("toolspeak_runs_live", "tenant", "ended"),
)

EVENTS: Final = sa.Table(
    "toolspeak_events",
    TABLES,
    sa.Column("run", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)

LEASES: Final = sa.Table(
    "toolspeak_leases",
    TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("expires", sa.Double, nullable=False),
)


def now(engine: sa.Engine) -> sa.ColumnElement[float]:
    """Return the database's clock, in seconds since 1970: one clock for all who share it."""
    if engine.dialect.name == "postgresql":
        return sa.literal_column("extract(epoch from clock_timestamp())::double precision", sa.Double)
    return sa.literal_column("((julianday('now') - 2440587.5) * 86400.0)", sa.Double)

"""Defines the tables of toolspeak, which share a database with those of DBOS, their version, and the migrations.

schema    one row: the version of these tables
runs      one row each: its spec, its state, the token of the execution that may write about it; `name` is the id that
          its tenant knows it by, and `ended` is 0 while it is live
events    the events of a run for people, numbered from 0; `runs.next` is the next number
leases    the workers: a worker that has not renewed its lease in time counts as dead

A process migrates the tables when it opens the database. It does so in one transaction, so that a crash leaves the old
tables unchanged, and under a lock, so that one of several starting processes migrates and the others find the result.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import sqlalchemy as sa

from toolspeak.errors import BadConfig

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


def now(dialect: sa.Dialect) -> sa.ColumnElement[float]:
    """Return the database's clock, in seconds since 1970. All processes use it, so their own clocks may differ."""
    if dialect.name == "postgresql":
        return sa.literal_column("extract(epoch from clock_timestamp())::double precision", sa.Double)
    return sa.literal_column("((julianday('now') - 2440587.5) * 86400.0)", sa.Double)


# ---------------------------------------------------------------- versions


VERSION: Final = 3
_UNVERSIONED: Final = 1
"""The version of tables from releases that stored no version."""
_LOCK: Final = 0x746F6F6C
"""The key of the advisory lock for migrations: a number that no other user of the database locks."""
_MIGRATIONS: Final[Mapping[int, Sequence[str]]] = {
    1: (  # names become unique within a tenant: before, a taken id revealed that another tenant had such a run
        "ALTER TABLE toolspeak_runs ADD COLUMN name TEXT NOT NULL DEFAULT ''",
        "UPDATE toolspeak_runs SET name = id",
        "CREATE UNIQUE INDEX toolspeak_runs_name ON toolspeak_runs (tenant, name)",
        "CREATE INDEX toolspeak_runs_live ON toolspeak_runs (tenant, ended)",
    ),
    2: (),  # only `_UNNAMED`
}
"""The statements that lead from each version to the next. SQLite and PostgreSQL must both accept them."""
_UNNAMED: Final = (
    "CREATE INDEX IF NOT EXISTS toolspeak_queue_unnamed ON {workflows} (queue_name)"
    " WHERE status = 'ENQUEUED' AND queue_partition_key IS NULL"
)
"""An index on the table of DBOS, since version 3: runs that an older toolspeak has enqueued without their tenant.

It has no rows otherwise. Workers look for such runs every few seconds, and would read the whole queue without it.
"""


def check_version(engine: sa.Engine) -> None:
    """Raise `BadConfig` if a newer toolspeak has migrated the tables: this one would misread them. Writes nothing."""
    with engine.begin() as connection:
        _check(_version(connection))


def migrate(engine: sa.Engine) -> None:
    """Create the tables, or migrate those of an older version. Raises `BadConfig` for a newer version.

    On SQLite, `engine` must begin its transactions with a write lock: Python's driver would commit before DDL.
    """
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        version = _version(connection)
        _check(version)
        if version == VERSION:
            return
        if version == 0:
            TABLES.create_all(connection)
        else:
            for each in range(version, VERSION):
                for statement in _MIGRATIONS[each]:
                    connection.exec_driver_sql(statement)
            SCHEMA.create(connection, checkfirst=True)
        workflows = "dbos.workflow_status" if connection.dialect.name == "postgresql" else "workflow_status"
        connection.exec_driver_sql(_UNNAMED.format(workflows=workflows))
        connection.execute(sa.delete(SCHEMA))
        connection.execute(sa.insert(SCHEMA).values(version=VERSION))


def _version(connection: sa.Connection) -> int:
    """Return the version of the tables; 0 if there are none."""
    found = sa.inspect(connection)
    if found.has_table(SCHEMA.name):
        return int(connection.execute(sa.select(SCHEMA.c.version)).scalar_one())
    return _UNVERSIONED if found.has_table(RUNS.name) else 0


def _check(version: int) -> None:
    if version > VERSION:
        raise BadConfig(
            f"the tables of runs have version {version}, and this toolspeak knows versions up to {VERSION}: a newer "
            "toolspeak has used this database. Upgrade toolspeak, or set another runs.database"
        )

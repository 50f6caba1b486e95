"""The database of runs: SQLite for one person, PostgreSQL for a fleet."""

import sqlite3
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

import sqlalchemy as sa
from dbos import DBOSClient
from sqlalchemy.event import listen

from toolspeak.config.shape import Durable
from toolspeak.errors import BadConfig
from toolspeak.runs.durable import seam
from toolspeak.runs.durable.tables import create_tables, now

OURS, ENGINE = 3, 8
"""Connections of one process: for our own tables, for DBOS."""
_SPARE: Final = 4
_NEEDED: Final = (3, 42)
"""DBOS asks SQLite for fractions of seconds, which older ones do not have."""
_WAIT: Final = 30
_ATTEMPTS: Final = 30_000


class _Opened(Protocol):
    isolation_level: str | None

    def execute(self, statement: str) -> object: ...


class Database:
    """An open database with all its tables. Everything in it blocks: call it from a thread."""

    def __init__(self, durable: Durable) -> None:
        """Connect, and make the tables that are missing."""
        self.url: Final = _url(durable)
        self._lease: Final = durable.lease
        self.engine: Final = self.new_engine(OURS)
        """For our own tables."""
        self._asking: Final = self.new_engine(OURS)
        self.client: Final = DBOSClient(
            system_database_engine=self._asking, serializer=seam.SERIALIZER, application_name=seam.APPLICATION
        )
        """What is asked of DBOS by those who do not work."""
        seam.refuse_pickle()
        seam.migrate(self.client)
        create_tables(self.engine)
        self.theirs: Final = seam.engine_of(self.client)
        """Sees DBOS's tables, and ours."""
        self.now: Final = now(self.engine)

    @property
    def is_sqlite(self) -> bool:
        """Tell whether it is a file."""
        return self.engine.dialect.name == "sqlite"

    def new_engine(self, connections: int) -> sa.Engine:
        """Return further connections."""
        if self.url.get_backend_name() == "sqlite":
            return _sqlite_engine(self.url, connections)
        return _postgres_engine(self.url, connections, self._lease)

    def close(self) -> None:
        """Let go of all connections."""
        self.client.destroy()
        self._asking.dispose()
        self.engine.dispose()


def _url(durable: Durable) -> sa.URL:
    if durable.database:
        url = sa.make_url(durable.database)
        return url.set(drivername="postgresql+psycopg") if url.get_backend_name() == "postgresql" else url
    if durable.folder is None:
        raise BadConfig("runs.database: is missing, and there is no home folder to keep runs in")
    return sa.URL.create("sqlite", database=str(durable.folder / "runs.sqlite"))


def _postgres_engine(url: sa.URL, connections: int, lease: float) -> sa.Engine:
    """Connect to PostgreSQL. A frozen worker must not hold others up with what it has locked."""
    idle = f"-c idle_in_transaction_session_timeout={int(lease * 1000)}"
    return sa.create_engine(
        url,
        connect_args={"application_name": "toolspeak", "connect_timeout": 10, "options": idle},
        pool_size=connections,
        max_overflow=_SPARE,
        pool_timeout=_WAIT,
        pool_pre_ping=True,
    )


def _sqlite_engine(url: sa.URL, connections: int) -> sa.Engine:
    """Open a file: writers take turns, readers do not wait, and what is committed survives a power failure."""
    if url.database:
        Path(url.database).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = sa.create_engine(url, module=_sqlite_module(), pool_size=connections, max_overflow=_SPARE)
    listen(engine, "connect", _prepare)
    return engine


def _prepare(opened: _Opened, record: object) -> None:
    del record
    opened.isolation_level = "IMMEDIATE"
    for pragma in (f"busy_timeout={_ATTEMPTS}", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        opened.execute(f"PRAGMA {pragma}")


def _sqlite_module() -> Any:  # noqa: ANN401 # a module of the database interface, which has no type
    if sqlite3.sqlite_version_info >= _NEEDED:
        return sqlite3
    try:
        return import_module("sqlean").dbapi2
    except ImportError:
        raise BadConfig(
            f"SQLite {sqlite3.sqlite_version} is too old for runs (3.42 is needed): pip install sqlean.py"
        ) from None

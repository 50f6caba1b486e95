"""Opens the database of runs: SQLite for one person, PostgreSQL for a fleet."""

import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from math import ceil
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import psycopg
import sqlalchemy as sa
from psycopg.abc import PQGen
from sqlalchemy.event import listen
from sqlalchemy.exc import DatabaseError, InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from typing_extensions import override

from toolspeak.agent.durable import dbos_internals, schema
from toolspeak.agent.durable.schema import now
from toolspeak.config.shape import Durable
from toolspeak.errors import BadConfig, MissingExtra, RunsUnavailable
from toolspeak.runtime.clock import CLOCK

OURS, ENGINE = 3, 8
"""Connections per process: for our own tables, and for DBOS."""
_SPARE: Final = 4
_NEEDED: Final = (3, 42)
"""DBOS needs `unixepoch('subsec')`. On SQLite 3.40 (Debian 12) its start failed with a NOT NULL constraint error."""
_WAIT: Final = 30.0
"""Seconds that a worker waits for a free connection of its pool."""
_CONNECT: Final = 10
"""Seconds to connect, for a process without `patience`."""
_MIGRATION: Final = 60.0
"""Seconds for one statement of a migration: it may have to wait for another process that migrates."""
_KEEP_ALIVE: Final = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
"""TCP keep-alive: a server whose machine has vanished is noticed within half a minute instead of two hours."""
_WRONG: Final = ("28", "3D", "42501")
"""SQLSTATE classes that a retry does not fix: wrong user or password, no such database, missing permission."""
FAILURES: Final = (OperationalError, InterfaceError, InternalError, NoConnectionFree)
"""The database refuses, disconnects, is read-only or has no connection left. No statement of ours is wrong."""
_ATTEMPTS: Final = 30_000
"""Milliseconds that SQLite waits for another writer."""
_STEP: Final = 0.02
"""Seconds between two attempts to set WAL mode."""
T = TypeVar("T")


class _Opened(Protocol):
    isolation_level: str | None

    def execute(self, statement: str) -> object: ...


class Database:
    """An open database with all its tables. All methods block: call them in a thread."""

    def __init__(self, durable: Durable, patience: float | None = None) -> None:
        """Connect, and create the tables or migrate them.

        With `patience`, a statement without a response within that many seconds fails. Raises `BadConfig` if a person
        must change something before the database can be used, `RunsUnavailable` if it is temporarily unreachable.
        """
        self.url: Final = _url(durable)
        self.cell: Final = durable.cell
        """The name of the cell whose runs these are; empty: the default cell."""
        self._lease: Final = durable.lease
        self._patience: Final = patience
        with self.translated_errors(opening=True):
            self._migrate()
        self.engine: Final = self.new_engine(OURS)
        """Connections for our own tables."""
        self._asking: Final = self.new_engine(OURS)
        self.client: Final = dbos_internals.client_of(self._asking)
        """The DBOS client for requests from outside a worker."""
        self.theirs: Final = dbos_internals.engine_of(self.client)
        """Connections that see the tables of DBOS and ours, for transactions over both."""
        self.now: Final = now(self.engine.dialect)

    @property
    def is_sqlite(self) -> bool:
        """Return whether the database is an SQLite file."""
        return self.engine.dialect.name == "sqlite"

    def new_engine(self, connections: int) -> sa.Engine:
        """Return an engine with a pool of this size."""
        if self._is_file:
            return _sqlite_engine(self.url, connections)
        engine = _postgres_engine(self.url, connections, self._lease, self._patience)
        if self._patience is not None:
            _limit_waits(engine, self._patience)
        return engine

    @contextmanager
    def translated_errors(self, *, opening: bool = False) -> Generator[None]:
        """Translate errors of the environment into toolspeak's own: one line, without the password.

        While `opening`, an unusable SQLite file raises `BadConfig`, since the person at this machine can fix it. Other
        exceptions pass unchanged.
        """
        # An error while a connection is set up (the first pragma on a read-only disk) comes from the driver itself;
        # SQLAlchemy does not wrap it.
        raw = (_sqlite_module().Error,) if self._is_file else ()
        try:
            yield
        except (*FAILURES, *raw) as error:
            raise self._translated(error, opening=opening) from None
        except DatabaseError as error:
            if not self._is_file or type(error) is not DatabaseError:  # a subclass means that our statement is wrong
                raise
            raise self._translated(error, opening=opening) from None  # "file is not a database"

    def _translated(self, error: Exception, *, opening: bool) -> BadConfig | RunsUnavailable:
        cause: BaseException = getattr(error, "orig", None) or error
        if self._is_file:
            problem = f"the file of runs {self.url.database} cannot be used: {first_line(cause)}"
            if opening:
                return BadConfig(
                    f"{problem}. Make room, make it writable, or move a damaged file away; or set XDG_STATE_HOME or"
                    " runs.database to another place"
                )
            return RunsUnavailable(problem)
        reason = type(cause).__name__ if str(cause) == "" else first_line(cause)
        if opening and (code := getattr(cause, "sqlstate", None)) and str(code).startswith(_WRONG):
            return BadConfig(f"runs.database: {self.url.render_as_string()} refuses us: {reason}")
        return RunsUnavailable(f"the database of runs ({self.url.render_as_string()}) does not respond: {reason}")

    @property
    def _is_file(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    def _migrate(self) -> None:
        """Migrate the tables of DBOS and ours, on separate connections: a migration may exceed `patience`."""
        if self._is_file:
            engine = _sqlite_engine(self.url, 1)
            listen(engine, "begin", _lock_at_once)
        else:
            engine = _postgres_engine(self.url, 1, self._lease, self._patience)
            _limit_waits(engine, _MIGRATION)
        # First: a database of a newer toolspeak must stay unchanged, including the tables of DBOS.
        try:
            schema.check_version(engine)
            dbos_internals.refuse_pickle()
            client = dbos_internals.client_of(engine)
            try:
                dbos_internals.migrate_dbos(client)
            finally:
                client.destroy()
            schema.migrate(engine)
        finally:
            engine.dispose()

    def close(self) -> None:
        """Close all connections."""
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


def _postgres_engine(url: sa.URL, connections: int, lease: float, patience: float | None) -> sa.Engine:
    """Connect to PostgreSQL. The idle timeout ends the transaction of a frozen worker, which would block others."""
    idle = f"-c idle_in_transaction_session_timeout={int(lease * 1000)}"
    connect = _CONNECT if patience is None else ceil(patience)
    return sa.create_engine(
        url,
        connect_args={"application_name": "toolspeak", "connect_timeout": connect, "options": idle, **_KEEP_ALIVE},
        pool_size=connections,
        max_overflow=_SPARE,
        pool_timeout=patience or _WAIT,
        # A connection that died while idle is replaced, instead of failing the next statement.
        pool_pre_ping=True,
    )


def _limit_waits(engine: sa.Engine, seconds: float) -> None:
    """Let every statement of an engine fail with `OperationalError` after `seconds` without a response.

    A frozen server (SIGSTOP, a stalled disk) keeps its sockets open, and its kernel acknowledges our packets. So no TCP
    timeout fires, and a statement timeout would have to be enforced by the frozen server. libpq would wait for ever,
    and with it its thread: a gateway would lose one thread per request.
    """

    def connect(dialect: object, record: object, args: Any, named: Any) -> psycopg.Connection[Any]:  # noqa: ANN401
        del dialect, record
        opened = _Bounded.connect(*args, **named)
        opened.seconds = seconds
        return opened

    listen(engine, "do_connect", connect)


class _Bounded(psycopg.Connection[Any]):
    """A connection that closes itself after a timeout: a late response would answer the next statement."""

    seconds: float = 60.0

    @override
    def wait(self, gen: PQGen[T], *args: Any, **named: Any) -> T:
        try:
            return super().wait(_bounded(gen, CLOCK.monotonic() + self.seconds), *args, **named)
        except _Late:
            self.close()
            raise


class _Late(psycopg.OperationalError):
    """The server did not respond in time."""


def _bounded(gen: PQGen[T], deadline: float) -> Generator[Any, Any, T]:
    """Run a psycopg generator until the deadline. psycopg resumes it every 0.1 s, with 0 if no data has come."""
    try:
        state = next(gen)
        while True:
            ready = yield state
            if not ready and CLOCK.monotonic() > deadline:
                raise _Late("the server did not respond in time")
            state = gen.send(ready)
    except StopIteration as stop:
        value: T = stop.value
        return value


def _sqlite_engine(url: sa.URL, connections: int) -> sa.Engine:
    """Open a file. Writers take turns, readers do not wait, and committed data survives a power failure."""
    if url.database:
        folder = Path(url.database).parent
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise BadConfig(
                f"the folder of runs {folder} cannot be created: {error.strerror or error}. "
                "Set XDG_STATE_HOME or runs.database"
            ) from None
    engine = sa.create_engine(url, module=_sqlite_module(), pool_size=connections, max_overflow=_SPARE)
    listen(engine, "connect", _prepare)
    return engine


def _lock_at_once(connection: sa.Connection) -> None:
    """Begin with the write lock: Python's driver opens a transaction before INSERT only, so DDL would be outside it."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message: PostgreSQL adds hints below it."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _prepare(opened: _Opened, record: object) -> None:
    del record
    # DBOS sets none of these on an engine that it is given. IMMEDIATE takes the write lock at BEGIN: a transaction
    # that reads first and writes later would fail at once with "database is locked", without the busy timeout.
    opened.isolation_level = "IMMEDIATE"
    opened.execute(f"PRAGMA busy_timeout={_ATTEMPTS}")
    _use_wal(opened)
    opened.execute("PRAGMA synchronous=FULL")
    opened.execute("PRAGMA foreign_keys=ON")


def _use_wal(opened: _Opened) -> None:
    """Set WAL mode. SQLite does not apply the busy timeout if another process that opens the file is about to write."""
    busy: type[Exception] = _sqlite_module().OperationalError
    deadline = CLOCK.monotonic() + _ATTEMPTS / 1000
    while True:
        try:
            opened.execute("PRAGMA journal_mode=WAL")
        except busy as error:
            if "locked" not in str(error) or CLOCK.monotonic() > deadline:
                raise
            time.sleep(_STEP)  # noqa: TID251 # this runs in a worker thread
        else:
            return


def _sqlite_module() -> Any:  # noqa: ANN401 # a module of the database interface, which has no type
    if sqlite3.sqlite_version_info >= _NEEDED:
        return sqlite3
    try:
        return import_module("sqlean").dbapi2
    except ImportError:
        purpose = f"runs.database: SQLite {sqlite3.sqlite_version} of this Python is too old (3.42 is needed), so it"
        raise MissingExtra(purpose, "runs") from None

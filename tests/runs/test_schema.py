"""Tables of runs carry a version: older ones are migrated with their rows, newer ones are refused (RUN-11)."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic_ns

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from testkit.postgres import postgres
from tests.runs.durable_scene import Scene, calls, installed, spec, to_the_end
from toolspeak.agent.durable import dbos_internals
from toolspeak.agent.durable.database import Database
from toolspeak.agent.durable.runs import open_runs
from toolspeak.agent.durable.schema import SCHEMA, VERSION
from toolspeak.agent.runs.events import RunEnded
from toolspeak.agent.runs.runs import encode_spec
from toolspeak.config.shape import Config, Durable
from toolspeak.engine.agent import Status
from toolspeak.errors import BadConfig, UnknownRun

FIRST = (
    """CREATE TABLE toolspeak_runs (
    id TEXT NOT NULL, tenant TEXT NOT NULL, task TEXT NOT NULL, model TEXT NOT NULL, spec TEXT NOT NULL,
    status TEXT NOT NULL, reason TEXT NOT NULL, rounds INTEGER NOT NULL, began {double} NOT NULL,
    ended {double} NOT NULL, next INTEGER NOT NULL, token TEXT NOT NULL, PRIMARY KEY (id))""",
    "CREATE INDEX toolspeak_runs_began ON toolspeak_runs (began)",
    "CREATE INDEX toolspeak_runs_tenant ON toolspeak_runs (tenant, began)",
    "CREATE INDEX toolspeak_runs_ended ON toolspeak_runs (ended)",
    """CREATE TABLE toolspeak_events (
    run TEXT NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (run, number))""",
    "CREATE TABLE toolspeak_leases (id TEXT NOT NULL, expires {double} NOT NULL, PRIMARY KEY (id))",
)
"""The tables of the releases that stored no version, as SQLAlchemy wrote them."""
ROW = (
    "INSERT INTO toolspeak_runs VALUES "
    "(:id, :tenant, 'do it', 'scripted', :spec, :status, '', 0, 1.0, :ended, :next, '')"
)
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def durable(request: pytest.FixtureRequest, tmp_path: Path) -> Durable:
    """Return an empty database."""
    if request.param == "sqlite":
        return Durable(folder=tmp_path, lease=20.0)
    url: str = request.getfixturevalue("server")
    name = f"schema_{os.getpid()}_{monotonic_ns()}"
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"create database {name}")
    engine.dispose()
    return Durable(database=url.replace("/postgres", f"/{name}"), folder=tmp_path, lease=20.0)


def url_of(durable: Durable) -> str:
    if durable.database:
        return durable.database.replace("postgresql:", "postgresql+psycopg:")
    return f"sqlite:///{durable.folder}/runs.sqlite"


def with_engine(durable: Durable, do: Callable[[sa.Engine], None]) -> None:
    engine = sa.create_engine(url_of(durable))
    try:
        do(engine)
    finally:
        engine.dispose()


def make_first_version(durable: Durable) -> None:
    """Make what a release without versions has left: a run that waits, one of a tenant that has ended."""
    if durable.folder is not None:
        durable.folder.mkdir(exist_ok=True)

    def make(engine: sa.Engine) -> None:
        client = dbos_internals.client_of(engine)
        dbos_internals.migrate_dbos(client)
        double = "DOUBLE PRECISION" if engine.dialect.name == "postgresql" else "DOUBLE"
        with dbos_internals.engine_of(client).begin() as connection:
            for statement in FIRST:
                connection.exec_driver_sql(statement.format(double=double))
            text = encode_spec(spec())
            waits = {"id": "waits", "tenant": "", "spec": text, "status": "running", "ended": 0.0, "next": 0}
            over = {"id": "over", "tenant": "anna", "spec": text, "status": "done", "ended": 2e9, "next": 1}
            connection.execute(sa.text(ROW), [waits, over])
            event = '{"kind":"run_ended","round":0,"status":"done","text":"Well."}'
            added = sa.text("INSERT INTO toolspeak_events VALUES ('over', 0, 'run_ended', :body)")
            connection.execute(added, {"body": event})
            client.enqueue_in_transaction(connection, dbos_internals.queued("waits", dbos_internals.QUEUE, ""), text)
        client.destroy()

    with_engine(durable, make)


def make_nothing(durable: Durable) -> None:
    del durable


def versions(durable: Durable) -> list[int]:
    found: list[int] = []

    def read(engine: sa.Engine) -> None:
        with engine.begin() as connection:
            found.extend(connection.execute(sa.select(SCHEMA.c.version)).scalars())

    with_engine(durable, read)
    return found


def test_rows_of_the_first_version_survive_and_their_runs_go_on_run11(durable: Durable, tmp_path: Path) -> None:
    make_first_version(durable)

    async def play(scene: Scene) -> None:
        async with open_runs(Config(runs=durable), scene.directory) as runs:
            assert [(line.id, line.name, line.tenant) for line in await runs.list()].count(("waits", "waits", "")) == 1
            assert await runs.find("over", "anna") == "over"
            with pytest.raises(UnknownRun):
                await runs.find("over", "berta")
            assert [type(each.event) for each in await to_the_end(runs, "over")] == [RunEnded]
            await runs.resume("waits")
            await to_the_end(runs, "waits")
            assert (await runs.show("waits")).line.status is Status.DONE
            assert await runs.start(spec(), "waits") == "waits", "its id is still taken"

    with installed(Scene(tmp_path, {0: calls("pay"), 1: "Done."})) as scene:
        asyncio.run(play(scene))
    assert scene.acts == {"0:0": 1}
    assert versions(durable) == [VERSION]


@pytest.mark.parametrize("make", [make_first_version, make_nothing], ids=["old", "empty"])
def test_of_several_that_start_at_once_one_migrates_run11(durable: Durable, make: Callable[[Durable], None]) -> None:
    make(durable)
    with ThreadPoolExecutor(8) as threads:
        for opened in list(threads.map(Database, [durable] * 8)):
            opened.close()
    assert versions(durable) == [VERSION]


OTHER_WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("CREATE TABLE theirs (x)")
connection.execute("BEGIN IMMEDIATE")
print("writing", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
"""


def test_a_file_opens_while_another_process_is_about_to_write_its_first_rows_run11(tmp_path: Path) -> None:
    """SQLite refuses WAL mode at once then, whatever the busy timeout says: of eight workers, one failed to start."""
    command = [sys.executable, "-c", OTHER_WRITER, str(tmp_path / "runs.sqlite")]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other,
        ThreadPoolExecutor(1) as threads,
    ):
        assert other.stdout
        assert other.stdout.readline() == "writing\n"
        opening = threads.submit(Database, Durable(folder=tmp_path, lease=20.0))
        time.sleep(0.3)
        assert not opening.done()
        other.communicate("commit\n", timeout=20)
        opened = opening.result(20)
    with opened.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    opened.close()


def test_a_migration_that_breaks_changes_nothing_run11(durable: Durable, monkeypatch: pytest.MonkeyPatch) -> None:
    make_first_version(durable)
    broken = {1: ("ALTER TABLE toolspeak_runs ADD COLUMN name TEXT NOT NULL DEFAULT ''", "SELECT missing FROM nowhere")}
    monkeypatch.setattr("toolspeak.agent.durable.schema._MIGRATIONS", broken)
    with pytest.raises((DBAPIError, BadConfig)):
        Database(durable)
    monkeypatch.undo()

    def check(engine: sa.Engine) -> None:
        assert "name" not in [each["name"] for each in sa.inspect(engine).get_columns("toolspeak_runs")]
        assert not sa.inspect(engine).has_table("toolspeak_schema")

    with_engine(durable, check)
    Database(durable).close()
    assert versions(durable) == [VERSION]


def test_tables_of_a_newer_version_are_refused_in_one_line_run11(durable: Durable, tmp_path: Path) -> None:
    Database(durable).close()

    def raise_version(engine: sa.Engine) -> None:
        with engine.begin() as connection:
            connection.execute(sa.update(SCHEMA).values(version=99))

    with_engine(durable, raise_version)
    with pytest.raises(
        BadConfig, match="the tables of runs have version 99, and this toolspeak knows versions up to 3"
    ):
        Database(durable)
    file = tmp_path / "toolspeak.toml"
    file.write_text(
        f'[runs]\nenabled = true\ndatabase = "{durable.database or url_of(durable)}"\n'
        '[upstreams.up]\nurl = "http://127.0.0.1:9/v1"\n'
    )
    file.chmod(0o600)
    for command in (["runs"], ["worker"], ["serve", "--port", "0"]):
        done = subprocess.run(
            [sys.executable, "-m", "toolspeak", *command, "--config", str(file)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, ""), (command, done.stderr)
        assert done.stderr.startswith("toolspeak: the tables of runs have version 99")
        assert done.stderr.count("\n") == 1, done.stderr
    assert versions(durable) == [99]

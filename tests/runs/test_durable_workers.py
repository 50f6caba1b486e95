"""Workers that die, freeze or end, as real processes on a real PostgreSQL (RUN-3)."""

import asyncio
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic, sleep

import msgspec
import pytest
import sqlalchemy as sa

from testkit.killtest_worker import MODEL, ROUNDS, TOOLS, Mark, Order, work
from testkit.postgres import postgres
from tests.runs.durable_scene import to_the_end
from toolspeak.agent.durable import dbos_internals
from toolspeak.agent.durable.database import Database
from toolspeak.agent.durable.lease import Lease, reap
from toolspeak.agent.durable.runs import open_runs
from toolspeak.agent.durable.schema import EVENTS, LEASES
from toolspeak.agent.runs.runs import RunView, Spec
from toolspeak.config.shape import Approval
from toolspeak.engine.agent import Status
from toolspeak.ir.message import part_text

LEASE = 8.0
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["testkit.killtest_worker"])
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    with postgres() as started:
        yield started


@pytest.fixture
def order(url: str, tmp_path: Path) -> Order:
    """Each test has a database of its own."""
    name = f"runs_{os.getpid()}_{monotonic():.0f}"
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"create database {name}")
    engine.dispose()
    return Order(url.replace("/postgres", f"/{name}"), tmp_path, LEASE, tmp_path / "marks", 0.05, 0.3)


@contextmanager
def working(order: Order) -> Generator[BaseProcess]:
    """Start a worker; if it is still there in the end, it goes."""
    process = PROCESSES.Process(target=work, args=(order,))
    process.start()
    try:
        yield process
    finally:
        if process.is_alive():
            process.kill()
        process.join()


def start(order: Order, *names: str) -> None:
    async def started() -> None:
        async with open_runs(order.config) as runs:
            for name in names:
                await runs.start(Spec(name, MODEL, tools=(TOOLS,), approval=Approval.OFF), name)

    asyncio.run(started())


def ended(order: Order, *names: str) -> list[RunView]:
    """Wait for the end of runs."""

    async def waited() -> list[RunView]:
        async with open_runs(order.config) as runs:
            for name in names:
                async with asyncio.timeout(120):
                    async for _ in runs.events(name):
                        pass
            return [await runs.show(name) for name in names]

    try:
        return asyncio.run(waited())
    except TimeoutError:
        raise AssertionError(f"no end after two minutes: {standing(order)}") from None


def standing(order: Order) -> object:
    """Return who has which run, who has a lease, and what was begun last: all that a run may wait for."""
    database, theirs = Database(order.config.runs), dbos_internals.WORKFLOWS.c
    columns = (theirs.workflow_uuid, theirs.status, theirs.executor_id, theirs.queue_name, theirs.recovery_attempts)
    with database.theirs.begin() as connection:
        found = [
            list(connection.execute(sa.select(*columns))),
            list(connection.execute(sa.select(LEASES, database.now))),
        ]
    database.close()
    return [*found, marks(order)[-3:]]


def marks(order: Order) -> list[Mark]:
    if not order.marks.exists():
        return []
    return [msgspec.json.decode(line, type=Mark) for line in order.marks.read_bytes().splitlines()]


def wait_for(order: Order, step: str, what: str = "begin") -> Mark:
    deadline = monotonic() + 100
    while monotonic() < deadline:
        for each in marks(order):
            if (each.step, each.what) == (step, what):
                return each
        sleep(0.01)
    raise TimeoutError(f"{step} did not {what}")


def begun(order: Order) -> Counter[tuple[str, str]]:
    return Counter((each.run, each.step) for each in marks(order) if each.what == "begin")


def results(view: RunView) -> list[str]:
    pieces = [result.content for each in view.kept.rounds for result in each.results]
    return ["".join(part_text(piece) for piece in content) for content in pieces]


def kept(order: Order) -> tuple[list[object], list[object]]:
    """Return all steps and events as they stand in the database."""
    database = Database(order.config.runs)
    with database.theirs.begin() as connection:
        steps = connection.execute(
            sa.select(dbos_internals.STEPS).order_by(
                dbos_internals.STEPS.c.workflow_uuid, dbos_internals.STEPS.c.function_id
            )
        )
        events = connection.execute(sa.select(EVENTS).order_by(EVENTS.c.run, EVENTS.c.number))
        found: tuple[list[object], list[object]] = (list(steps.all()), list(events.all()))
    database.close()
    return found


def test_another_worker_goes_on_after_kill_9_and_no_finished_step_repeats_run3_p4(order: Order) -> None:
    start(order, "one")
    with working(order) as first:
        wait_for(order, "tool:2:1")
        first.kill()
        first.join()
    done = begun(order)
    with working(order):
        (view,) = ended(order, "one")
    assert (view.line.status, len(view.kept.rounds)) == (Status.DONE, ROUNDS)
    assert "outcome of put is unknown" in results(view)[5]
    assert sum("unknown" in each for each in results(view)) == 1
    after = begun(order)
    assert {each: count for each, count in after.items() if count > 1} == {}, "the payment in the middle included"
    assert done <= after


def test_a_worker_that_was_frozen_changes_nothing_when_it_wakes_run3(order: Order) -> None:
    names = [f"run{number}" for number in range(5)]
    start(order, *names)
    with working(order) as one, working(order) as other:
        wait_for(order, "tool:1:1")
        busy = marks(order)[-1].worker
        frozen = one if one.pid == busy else other
        assert frozen.pid == busy
        os.kill(busy, signal.SIGSTOP)
        views = ended(order, *names)
        before, stood = begun(order), kept(order)
        os.kill(busy, signal.SIGCONT)
        frozen.join(30)
        assert frozen.exitcode == 0, "it ends when it finds that its runs are others'"
    late = begun(order) - before  # it had passed the check, and was frozen just before its first byte
    assert not set(late) & set(before), "a call began twice"
    assert kept(order) == stood
    assert {view.line.status for view in views} == {Status.DONE}
    assert {each: count for each, count in before.items() if count > 1 and each[1].endswith(":1")} == {}


def test_a_worker_that_is_told_to_end_lets_its_step_finish_and_hands_over_run3(order: Order) -> None:
    start(order, "one")
    with working(order) as first:
        wait_for(order, "tool:2:1")
        first.terminate()
        began = monotonic()
        with working(order):
            first.join(60)
            assert first.exitcode == 0
            (view,) = ended(order, "one")
    assert monotonic() - began < 60
    assert view.line.status is Status.DONE
    assert not [each for each in results(view) if "unknown" in each]
    assert set(begun(order).values()) == {1}


def test_a_cancelled_run_stops_within_a_second_in_another_process(order: Order) -> None:
    slow = Order(order.database, order.folder, LEASE, order.marks, 0.05, 60.0)
    start(slow, "one")

    async def cancelled() -> None:
        async with open_runs(slow.config) as runs:
            await runs.cancel("one")
            await to_the_end(runs, "one")
            view = await runs.show("one")
            assert (view.line.status, len(view.kept.rounds)) == (Status.CANCELLED, 0)

    with working(slow) as worker:
        wait_for(slow, "tool:0:0")
        asyncio.run(cancelled())
        began = monotonic()
        worker.terminate()
        worker.join(60)
        assert monotonic() - began < 30, "it need not wait for the call of a minute"
    assert begun(slow)["one", "tool:0:0"] == 1


def test_a_worker_whose_database_is_gone_can_still_be_ended(tmp_path: Path) -> None:
    with postgres() as url:
        gone = Order(url, tmp_path, LEASE, tmp_path / "marks", 0.05, 5.0)
        start(gone, "one")
        worker = PROCESSES.Process(target=work, args=(gone,))
        worker.start()
        wait_for(gone, "tool:0:0")
    try:
        worker.terminate()
        worker.join(60)
        assert worker.exitcode is not None
    finally:
        worker.kill()
        worker.join()


def test_two_who_bury_the_same_worker_take_over_once(order: Order) -> None:
    database = Database(order.config.runs)
    dead = Lease(database, -1.0)
    dead.take()
    start(order, "one")
    runs = dbos_internals.WORKFLOWS
    with database.theirs.begin() as connection:
        connection.execute(sa.update(runs).values(status=dbos_internals.PENDING, executor_id=dead.id, owner_xid="x"))
    assert [reap(database), reap(database)] == [1, 0]
    assert not dead.renew()
    assert dead.lost
    with database.theirs.begin() as connection:
        assert connection.execute(sa.select(runs.c.status, runs.c.owner_xid, runs.c.queue_name)).all() == [
            (dbos_internals.ENQUEUED, None, dbos_internals.QUEUE)
        ]
    database.close()

"""Workers claim runs in turn over tenants, whose running runs are limited (RUN-20). On real databases."""

from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
import sqlalchemy as sa

from testkit.postgres import postgres
from testkit.queued_runs import enqueue, finish
from tests.runs.durable_scene import spec
from toolspeak.agent.durable import dbos_internals, ledger
from toolspeak.agent.durable.database import Database
from toolspeak.agent.durable.lease import Lease, hand_back_unknown, reap
from toolspeak.agent.durable.ledger import NewRun
from toolspeak.agent.durable.queue import PAGE, RunQueue
from toolspeak.agent.durable.schema import RUNS
from toolspeak.config.shape import Durable

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Database]:
    """Open a database in which no run waits."""
    url: str = request.getfixturevalue("server") if request.param == "postgresql" else ""
    opened = Database(Durable(database=url, folder=tmp_path))
    yield opened
    with opened.theirs.begin() as connection:
        connection.execute(sa.delete(dbos_internals.WORKFLOWS))
        connection.execute(sa.delete(RUNS))
    opened.close()


def tenants_of(claimed: list[tuple[str, str]]) -> list[str]:
    return [run.rpartition("-")[0] for run, _ in claimed]


def test_a_tenant_waits_for_the_other_tenants_and_not_for_their_queues_run20(database: Database) -> None:
    enqueue(database, "big", 1000)
    for number in range(9):
        enqueue(database, f"other{number}", 5)
    queue = RunQueue(database, "worker")
    queue.claim(3)
    enqueue(database, "small", 1, first=10**6)
    served = [tenant for _ in range(11) for tenant in tenants_of(queue.claim(1))]
    assert served.count("small") == 1
    assert Counter(served).most_common(1)[0][1] == 1, "another tenant had two turns before all had one"


def test_room_for_many_is_shared_alike_and_what_is_left_goes_to_the_others_run20(database: Database) -> None:
    enqueue(database, "a", 100)
    enqueue(database, "b", 3)
    enqueue(database, "", 100)
    shares = Counter(tenants_of(RunQueue(database, "worker").claim(90)))
    assert sum(shares.values()) == 90
    assert shares["b"] == 3
    assert abs(shares["a"] - shares[""]) <= 30
    assert min(shares["a"], shares[""]) >= 30


def test_a_tenants_runs_are_claimed_oldest_first_run20(database: Database) -> None:
    enqueue(database, "a", 20)
    queue = RunQueue(database, "worker")
    assert [run for run, _ in queue.claim(3) + queue.claim(4)] == [f"a-{number}" for number in range(7)]


def test_tenants_at_their_limit_do_not_hold_up_another_run20(database: Database) -> None:
    """With more tenants at their limit than one statement finds."""
    for number in range(PAGE + 10):
        enqueue(database, f"t{number:03}", 2)
    queue = RunQueue(database, "worker", 1)
    first = queue.claim(PAGE + 10)
    assert set(Counter(tenants_of(first)).values()) == {1}
    assert len(first) == PAGE + 10
    assert queue.claim(5) == []
    enqueue(database, "z", 1)
    assert tenants_of(queue.claim(5)) == ["z"]
    finish(database, ["t007-0"])
    assert [run for run, _ in queue.claim(5)] == ["t007-1"]


def test_the_limit_holds_with_several_workers_and_no_run_is_claimed_twice_run20(database: Database) -> None:
    limit, workers = 3, 4
    left = Counter({"a": 12, "b": 7, "c": 1})
    for tenant, count in left.items():
        enqueue(database, tenant, count)
    queues = [RunQueue(database, f"worker{number}", limit) for number in range(workers)]
    together = Barrier(workers)

    def claim(queue: RunQueue) -> list[str]:
        together.wait(60)
        return [run for run, _ in queue.claim(10) + queue.claim(10)]

    claimed: list[str] = []
    with ThreadPoolExecutor(workers) as threads:
        while left.total():
            runs = [run for some in threads.map(claim, queues) for run in some]
            assert Counter(run[0] for run in runs) == {each: min(limit, count) for each, count in left.items() if count}
            assert count_running(database) == Counter(run[0] for run in runs)
            finish(database, runs)
            claimed += runs
            left -= Counter(run[0] for run in runs)
    assert len(set(claimed)) == len(claimed) == 20


def count_running(database: Database) -> dict[str, int]:
    flows = dbos_internals.WORKFLOWS
    wanted = sa.select(flows.c.queue_partition_key, sa.func.count()).where(flows.c.status == dbos_internals.PENDING)
    with database.theirs.begin() as connection:
        rows = connection.execute(wanted.group_by(flows.c.queue_partition_key))
        return {str(tenant): int(count) for tenant, count in rows}


def test_runs_that_an_older_toolspeak_enqueued_are_claimed_for_their_tenant_run20(database: Database) -> None:
    ledger.begin(database, NewRun("one", "one", spec(), dbos_internals.QUEUE), None)
    flows = dbos_internals.WORKFLOWS
    with database.theirs.begin() as connection:
        connection.execute(sa.update(flows).values(queue_partition_key=None))
    queue = RunQueue(database, "worker")
    assert queue.claim(1) == []
    reap(database)
    assert [run for run, _ in queue.claim(1)] == ["one"]


def test_a_run_whose_claim_was_never_answered_goes_back_to_the_queue_run20(database: Database) -> None:
    lease = Lease(database, 20.0)
    lease.take()
    enqueue(database, "a", 2)
    (known, _), (lost, _) = RunQueue(database, lease.id).claim(2)
    assert hand_back_unknown(database, lease.id, [known]) == 1
    assert [run for run, _ in RunQueue(database, lease.id).claim(2)] == [lost]
    lease.drop()

"""Capacity of one cell of runs and one Redis, by CPU: claims of a long queue, whole runs on PostgreSQL, limit checks.

CPU counts, not time: the machine has other work, and its disk syncs at its own pace. A cell is a PostgreSQL with fsync.
The worker and PostgreSQL are counted apart, because they scale apart: workers by number, PostgreSQL by the cell.
"""

import argparse
import asyncio
import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from testkit.killtest_worker import MODEL, TOOLS, Order, prepare
from testkit.meter import cpu_s
from testkit.postgres import postgres
from testkit.queued_runs import enqueue
from testkit.redis_server import running
from testkit.report import close
from toolspeak.agent.durable.database import Database
from toolspeak.agent.durable.queue import RunQueue
from toolspeak.agent.durable.runs import open_runs, open_worker
from toolspeak.agent.runs.runs import Spec
from toolspeak.config.shape import Approval, RateLimits
from toolspeak.gateway.fleet_limits import FleetLimits
from toolspeak.gateway.limit_store import Demand, LocalLimits, Spent
from toolspeak.gateway.tally import ProcessTally
from toolspeak.runtime.clock import CLOCK

RESULTS = Path(__file__).parent / "results" / "cell.json"
SIZE = "SELECT pg_database_size(current_database())"
QUEUED, TENANTS = 100_000, 100
CLAIMS, RUNS, ROUNDS, CHECKS, AT_ONCE = 200, 60, 2, 4000, 50


def server_cpu(database: Database) -> float:
    """Return the CPU seconds of the whole PostgreSQL, those of its processes that have ended included."""
    with database.engine.connect() as connection:
        backend = int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
    postmaster = int(Path(f"/proc/{backend}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])
    return cpu_s(postmaster, lost_threads=True)


def claims(order: Order) -> dict[str, float]:
    """Measure claims of one run each, of a queue in which one tenant has nearly all runs."""
    database = Database(order.config.runs)
    enqueue(database, "big", QUEUED - 10 * TENANTS)
    for number in range(TENANTS):
        enqueue(database, f"tenant{number:03}", 10)
    with database.theirs.begin() as connection:
        connection.exec_driver_sql("ANALYZE dbos.workflow_status")
    figures: dict[str, float] = {"queued": QUEUED, "tenants": TENANTS + 1}
    for name, limit in (("one", None), ("limited", 50)):
        queue = RunQueue(database, "bench", limit)
        queue.claim(1)
        client, server = cpu_s(os.getpid()), server_cpu(database)
        taken = sum(len(queue.claim(1)) for _ in range(CLAIMS))
        figures[f"{name}_client_ms"] = round((cpu_s(os.getpid()) - client) * 1000 / taken, 3)
        figures[f"{name}_server_ms"] = round((server_cpu(database) - server) * 1000 / taken, 3)
    with database.theirs.begin() as connection:
        connection.exec_driver_sql("DELETE FROM dbos.workflow_status")
    database.close()
    return figures


async def runs(order: Order) -> dict[str, float]:
    """Measure whole runs: a gateway's code starts them, one worker runs them, and all of them end."""
    database = Database(order.config.runs)
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM FULL")
        before = int(connection.exec_driver_sql(SIZE).scalar_one())
        async with open_worker(order.config, prepare(order), 5.0), open_runs(order.config) as opened:
            client, server = cpu_s(os.getpid(), lost_threads=True), server_cpu(database)
            specs = [Spec(f"r{each}", MODEL, tools=(TOOLS,), approval=Approval.OFF, rounds=9) for each in range(RUNS)]
            ids = [await opened.start(spec, spec.task) for spec in specs]
            for id in ids:
                async for _ in opened.events(id):
                    pass
            client = cpu_s(os.getpid(), lost_threads=True) - client
            server = server_cpu(database) - server
        after = int(connection.exec_driver_sql(SIZE).scalar_one())
    steps = connection_steps(database)
    database.close()
    return {
        "runs": RUNS,
        "steps_per_run": round(steps / RUNS, 1),
        "worker_ms_per_run": round(client * 1000 / RUNS, 1),
        "server_ms_per_run": round(server * 1000 / RUNS, 1),
        "bytes_per_run": int((after - before) / RUNS),
    }


def connection_steps(database: Database) -> int:
    """Return the number of steps that are stored."""
    with database.engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM dbos.operation_outputs").scalar_one())


async def checks(folder: Path) -> dict[str, float]:
    """Measure checks of limits in Redis, with the end of each request, from one gateway."""
    with running(folder) as redis:
        store = FleetLimits(redis.url, LocalLimits(ProcessTally(), CLOCK), CLOCK)
        limits = RateLimits(requests_per_minute=10**6, output_tokens_per_minute=10**9, concurrent=10**4)

        async def check(number: int) -> None:
            for each in range(CHECKS // AT_ONCE):
                demand = Demand(f"key:tenant{number}", limits, f"{number}-{each}")
                assert await store.take(demand) is None
                store.end(demand, Spent(10, 100))

        await check(AT_ONCE)
        pid = redis.pid
        client, server = cpu_s(os.getpid(), lost_threads=True), cpu_s(pid)
        await asyncio.gather(*(check(number) for number in range(AT_ONCE)))
        client, server = cpu_s(os.getpid(), lost_threads=True) - client, cpu_s(pid) - server
        assert not store.is_alone
        await store.close()
    count = CHECKS // AT_ONCE * AT_ONCE
    return {
        "checks": count,
        "redis_us_per_check": round(server * 1e6 / count, 1),
        "gateway_us_per_check": round(client * 1e6 / count, 1),
    }


def main() -> None:
    """Measure, and exit."""
    options = argparse.ArgumentParser(prog="bench.cell")
    options.add_argument("--save", action="store_true", help="write bench/results/cell.json")
    is_saved = options.parse_args().save
    with tempfile.TemporaryDirectory(prefix="toolspeak-cell-") as folder, postgres() as url:
        order = Order(url, Path(folder), 30.0, Path(folder) / "marks", 0.0, 0.0, rounds=ROUNDS)
        figures = {
            "claims": claims(order),
            "runs": asyncio.run(runs(order)),
            "redis": asyncio.run(checks(Path(folder))),
        }
    ok = figures["claims"]["limited_server_ms"] < 20
    if is_saved and ok:
        written = {"date": datetime.now(UTC).date().isoformat(), **figures}
        RESULTS.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    close("cell", ok=ok, **figures)


if __name__ == "__main__":
    main()

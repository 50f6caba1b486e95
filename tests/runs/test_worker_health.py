"""A worker answers probes and tells its load (RUN-22)."""

import asyncio
import socket
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from testkit.queued_runs import enqueue
from tests.runs.durable_scene import Scene
from toolspeak.agent.durable.database import Database
from toolspeak.agent.durable.runs import open_worker
from toolspeak.agent.durable.worker_health import health_server
from toolspeak.config.shape import Config, Durable
from toolspeak.errors import BadConfig

pytestmark = pytest.mark.timeout(120)


async def get(port: int, path: str) -> tuple[int, str]:
    def ask() -> tuple[int, str]:
        try:
            with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:  # our own
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    return await asyncio.to_thread(ask)


def test_probes_and_load_of_a_worker_run22(tmp_path: Path) -> None:
    """The tenant is at its limit, so its runs stay in the queue."""
    config = Config(runs=Durable(folder=tmp_path, lease=20.0, concurrent_per_tenant=1))
    database = Database(config.runs)
    enqueue(database, "busy", 1)
    with database.theirs.begin() as connection:  # another worker has a run of the tenant
        connection.exec_driver_sql("INSERT INTO toolspeak_leases VALUES ('other', 9e9)")
        taken = "UPDATE workflow_status SET status = 'PENDING', executor_id = 'other', workflow_uuid = 'taken'"
        connection.exec_driver_sql(taken)
    enqueue(database, "busy", 10)

    async def play() -> None:
        scene = Scene(tmp_path, {})
        async with open_worker(config, scene.directory, 1.0) as worker, health_server(worker, "127.0.0.1:0") as port:
            assert await get(port, "/live") == (200, "live\n")
            assert await get(port, "/ready") == (200, "ready\n")
            status, metrics = await get(port, "/metrics")
            values = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
            assert status == 200
            assert values == {
                "toolspeak_worker_runs": "0",
                "toolspeak_runs_waiting": "10",
                "toolspeak_worker_load": "5.00",
            }, "two workers share the runs that wait"
            assert (await get(port, "/else"))[0] == 404
            worker.lease.lost = True
            assert (await get(port, "/ready"))[0] == 503
            worker.lease.lost = False

    asyncio.run(play())
    database.close()


def test_an_address_that_cannot_be_used_is_said_run22() -> None:
    async def serve(address: str) -> None:
        async with health_server(None, address):  # type: ignore[arg-type]  # it is not asked
            pass

    with pytest.raises(BadConfig, match="'4142' is not an address and a port such as"):
        asyncio.run(serve("4142"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(BadConfig, match="cannot be listened on"):
            asyncio.run(serve(f"127.0.0.1:{taken.getsockname()[1]}"))

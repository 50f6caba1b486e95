"""A gateway whose PostgreSQL stops, hangs and comes back: 503 in bounded time, one line, then all goes on (RUN-10)."""

import http.client
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testkit.postgres import Postgres, controlled_postgres
from tests.gateway.scene import Reply, soon
from tests.gateway.served_process import ServedProcess, served_process
from tests.gateway.test_runs_limits import ANNA, CONFIG

BOUND_S = 9.0
"""The gateway waits 5 s for its database; the rest is for a machine that has other work."""
START = {"task": "Go.", "model": "up:m"}
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def database() -> Generator[Postgres]:
    with controlled_postgres() as started:
        yield started


@pytest.fixture
def gateway(database: Postgres, tmp_path: Path) -> Generator[ServedProcess]:
    with served_process(tmp_path, CONFIG.format(live=20, database=database.url)) as served:
        yield served


def every_endpoint(gateway: ServedProcess, id: str) -> list[tuple[float, Reply]]:
    """Ask each of the endpoints, all at once; return how long each took."""
    asks: list[tuple[str, str, object]] = [
        ("POST", "/v1/runs", START),
        ("POST", "/v1/runs", {**START, "id": "chosen"}),
        ("GET", "/v1/runs", None),
        ("GET", f"/v1/runs/{id}", None),
        ("GET", f"/v1/runs/{id}/events", None),
        ("POST", f"/v1/runs/{id}/cancel", {}),
        ("POST", f"/v1/runs/{id}/resume", {}),
        ("POST", f"/v1/runs/{id}/calls/x/approve", {"allowed": True}),
    ]

    def timed(ask: tuple[str, str, object]) -> tuple[float, Reply]:
        began = time.monotonic()
        reply = gateway.ask(*ask, key=ANNA)
        return time.monotonic() - began, reply

    with ThreadPoolExecutor(2 * len(asks)) as threads:
        return list(threads.map(timed, asks * 2))


def check_outage(gateway: ServedProcess, id: str) -> float:
    """Check all endpoints while the database is away; return how long the slowest took."""
    with ThreadPoolExecutor(1) as side:
        health = side.submit(lambda: [_timed_health(gateway) for _ in range(20)])
        answers = every_endpoint(gateway, id)
    for seconds, reply in answers:
        assert reply.status == 503, reply.body
        assert (reply.headers["x-should-retry"], int(reply.headers["retry-after"]) > 0) == ("true", True)
        assert "the database of runs does not respond" in reply.json["error"]["message"]
        assert "postgresql" not in reply.body.decode(), "where it is is not the client's business"
        assert seconds < BOUND_S
    assert max(health.result()) < BOUND_S / 3, "the rest of the gateway is not held up"
    return max(seconds for seconds, _ in answers)


def _timed_health(gateway: ServedProcess) -> float:
    began = time.monotonic()
    assert gateway.ask("GET", "/health").status == 200
    time.sleep(0.1)
    return time.monotonic() - began - 0.1


def check_back(gateway: ServedProcess, id: str) -> None:
    """Wait until runs are served again; those from before are there, and new ones start."""
    assert soon(lambda: gateway.ask("GET", f"/v1/runs/{id}", key=ANNA).status == 200, 30)
    started = gateway.ask("POST", "/v1/runs", START, ANNA)
    assert started.status == 201, started.body
    for each in (id, started.json["id"]):
        assert gateway.ask("POST", f"/v1/runs/{each}/cancel", {}, ANNA).json["status"] == "cancelled"


def check_log(gateway: ServedProcess) -> None:
    """Check that the outage is one line, its end another, and that there is no traceback."""
    lines = gateway.lines()
    assert not [line for line in lines if "Traceback" in line or "Error" in line], lines
    assert len([line for line in lines if "requests for runs get 503 until it is back" in line]) == 1, lines
    assert len([line for line in lines if "the database of runs responds again" in line]) == 1, lines


def stopped(database: Postgres) -> Callable[[], None]:
    database.stop()
    return database.start


def frozen(database: Postgres) -> Callable[[], None]:
    database.freeze()
    return database.thaw


@pytest.mark.parametrize("away", [stopped, frozen])
def test_a_database_that_is_away_is_503_in_bounded_time_and_then_all_goes_on_run10(
    gateway: ServedProcess, database: Postgres, away: Callable[[Postgres], Callable[[], None]]
) -> None:
    """It was 500 with a traceback and `x-should-retry: false`; with a frozen one, no answer at all."""
    id = gateway.ask("POST", "/v1/runs", START, ANNA).json["id"]
    back = away(database)
    try:
        check_outage(gateway, id)
        check_outage(gateway, id)  # threads that wait for the first round must not hold up the second
    finally:
        back()
    check_back(gateway, id)
    check_log(gateway)


@pytest.mark.parametrize("away", [stopped, frozen])
def test_a_gateway_that_starts_without_its_database_serves_the_rest_and_finds_it_later_run10(
    database: Postgres, tmp_path: Path, away: Callable[[Postgres], Callable[[], None]]
) -> None:
    back = away(database)
    try:
        with served_process(tmp_path, CONFIG.format(live=20, database=database.url)) as gateway:
            check_outage(gateway, "some")
            back()
            assert soon(lambda: gateway.ask("GET", "/v1/runs", key=ANNA).status == 200, 60)
            check_back(gateway, gateway.ask("POST", "/v1/runs", START, ANNA).json["id"])
            check_log(gateway)
    finally:
        back()


def test_a_watcher_of_a_run_gets_its_events_across_an_outage_run10(gateway: ServedProcess, database: Postgres) -> None:
    id = gateway.ask("POST", "/v1/runs", START, ANNA).json["id"]
    watchers: list[tuple[http.client.HTTPConnection, http.client.HTTPResponse]] = []
    for _ in range(8):  # the database goes away before some of them have looked into it for the first time
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        connection.request("GET", f"/v1/runs/{id}/events", headers={"authorization": f"Bearer {ANNA}"})
        watchers.append((connection, connection.getresponse()))
    assert [events.status for _, events in watchers] == [200] * 8
    database.stop()
    assert soon(lambda: gateway.ask("GET", "/v1/runs", key=ANNA).status == 503, 10)
    database.start()
    check_back(gateway, id)
    for connection, events in watchers:
        assert b'"kind":"run_ended"' in events.read()
        connection.close()

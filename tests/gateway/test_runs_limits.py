"""The limit of live runs against clients that try to pass it, on PostgreSQL, with two gateways (RUN-9)."""

from collections import Counter
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import pytest

from testkit.postgres import postgres
from tests.gateway.scene import Reply
from tests.gateway.served_process import ServedProcess, served_process

LIVE, AT_ONCE = 20, 60
pytestmark = pytest.mark.timeout(300)
CONFIG = """
[server]
probe = "off"
[runs]
enabled = true
live = {live}
database = "{database}"
[upstreams.up]
url = "http://127.0.0.1:9/v1"
wire = "openai_chat"
retries = 0
[[keys]]
tenant = "anna"
key = "anna-key-of-sixteen"
[[keys]]
tenant = "berta"
key = "berta-key-of-sixteen"
"""
Ask: TypeAlias = tuple[ServedProcess, str, dict[str, str] | None]
ANNA, BERTA = "anna-key-of-sixteen", "berta-key-of-sixteen"


@pytest.fixture(scope="module")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Generator[Sequence[ServedProcess]]:
    """Two gateways that share a PostgreSQL. No worker takes the runs: all stay live."""
    folder = tmp_path_factory.mktemp("gateways")
    with postgres() as url:
        config = CONFIG.format(live=LIVE, database=url)
        with served_process(folder, config, "one") as one, served_process(folder, config, "two") as two:
            yield (one, two)


def live(gateway: ServedProcess, key: str) -> list[str]:
    data = gateway.ask("GET", "/v1/runs?limit=1000", key=key).json["data"]
    return [each["id"] for each in data if each["ended"] is None]


def all_at_once(asks: Sequence[Ask], key: str) -> list[Reply]:
    def one(ask: Ask) -> Reply:
        gateway, path, body = ask
        return gateway.ask("POST", path, body, key)

    with ThreadPoolExecutor(len(asks)) as threads:
        return list(threads.map(one, asks))


def clear(gateways: Sequence[ServedProcess], key: str) -> None:
    if ids := live(gateways[0], key):
        all_at_once([(gateways[0], f"/v1/runs/{id}/cancel", None) for id in ids], key)


@pytest.mark.parametrize("count", [1, 2])
def test_60_starts_at_once_give_exactly_the_limit_run9(gateways: Sequence[ServedProcess], count: int) -> None:
    """It was 60 times 201: each request counted before any had inserted."""
    asks: list[Ask] = [
        (gateways[number % count], "/v1/runs", {"task": "Go.", "model": "up:m"}) for number in range(AT_ONCE)
    ]
    replies = all_at_once(asks, ANNA)
    assert Counter(reply.status for reply in replies) == {201: LIVE, 429: AT_ONCE - LIVE}
    refused = [reply for reply in replies if reply.status == 429]
    assert all(int(reply.headers["retry-after"]) > 0 for reply in refused)
    assert all("20 runs go on already (runs.live)" in reply.json["error"]["message"] for reply in refused)
    assert len(live(gateways[1], ANNA)) == LIVE
    assert gateways[0].ask("POST", "/v1/runs", {"task": "Go.", "model": "up:m"}, BERTA).status == 201
    clear(gateways, ANNA)
    assert live(gateways[0], ANNA) == []


def test_cancel_start_resume_at_two_gateways_stays_within_the_limit_run9(gateways: Sequence[ServedProcess]) -> None:
    """It was 40: a resume did not count."""
    start = {"task": "Go.", "model": "up:m"}
    first = [reply.json["id"] for reply in all_at_once([(gateways[0], "/v1/runs", start)] * LIVE, ANNA)]
    clear(gateways, ANNA)
    half = all_at_once([(gateways[1], "/v1/runs", start)] * (LIVE // 2), ANNA)
    assert {reply.status for reply in half} == {201}
    # each is resumed at both gateways at once: one of them makes it live, the other finds that it is
    resumes: list[Ask] = [(gateway, f"/v1/runs/{id}/resume", None) for id in first for gateway in gateways]
    replies = all_at_once(resumes, ANNA)
    assert set(Counter(reply.status for reply in replies)) == {200, 429}
    went_on = {reply.json["id"] for reply in replies if reply.status == 200}
    assert len(went_on) == LIVE // 2
    assert len(live(gateways[0], ANNA)) == LIVE
    stopped = next(id for id in first if id not in went_on)
    mixed: list[Ask] = [(gateways[0], "/v1/runs", start), (gateways[1], f"/v1/runs/{stopped}/resume", None)]
    assert [reply.status for reply in all_at_once(mixed, ANNA)] == [429, 429]
    clear(gateways, ANNA)


def test_two_starts_with_one_id_at_two_gateways_begin_one_run(gateways: Sequence[ServedProcess]) -> None:
    asks: list[Ask] = [
        (gateways[number % 2], "/v1/runs", {"task": "Go.", "model": "up:m", "id": "same"}) for number in range(10)
    ]
    for key in (ANNA, BERTA):
        replies = all_at_once(asks, key)
        assert {(reply.status, reply.json.get("id")) for reply in replies} == {(201, "same")}
        assert live(gateways[0], key).count("same") == 1
        clear(gateways, key)

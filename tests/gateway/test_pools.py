"""A gateway before several servers of one model: one dies, one fails, all fail (POOL-1 to POOL-4)."""

import asyncio
import json
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import SSE, Asked, ScriptedUpstream, listening, refuse
from testkit.vendor_answers import STREAMS, Answer
from tests.gateway.scene import Served, config_of, serving, soon, towards
from tests.gateway.test_metrics import page, series
from toolspeak.config.shape import Model
from toolspeak.gateway import metrics
from toolspeak.runtime import replicas

COLD = Answer("It is cold.")
QUESTION = question("openai_chat")
BODY: dict[str, Any] = QUESTION.body or {}


@pytest.fixture(autouse=True)
def is_always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "FRESH", 0.0)


@pytest.fixture
def servers() -> Generator[list[ScriptedUpstream]]:
    with listening() as one, listening() as two, listening() as three:
        for each in (one, two, three):
            each.answers(answering(COLD))
        yield [one, two, three]


@pytest.fixture
def gateway(servers: list[ScriptedUpstream]) -> Generator[Served]:
    first, *more = servers
    with serving(config_of(towards(first, more_urls=tuple(each.url for each in more)))) as served:
        yield served


def body_of(number: int, *, stream: bool = True) -> dict[str, Any]:
    return {**BODY, "stream": stream, "messages": [{"role": "user", "content": f"Question {number}"}]}


def is_cold(reply: bytes) -> bool:
    lines = [line for line in reply.decode().split("\n") if line.startswith("data: {")]
    deltas = [json.loads(line[6:])["choices"] for line in lines]
    return "".join(choice["delta"].get("content") or "" for each in deltas for choice in each) == "It is cold."


def test_a_server_dies_under_load_and_no_request_fails_before_its_first_byte_pool4(
    gateway: Served, servers: list[ScriptedUpstream]
) -> None:
    is_dead = threading.Event()

    async def works_until_it_dies(asked: Asked) -> None:
        asked.head()  # as vLLM does: the head at once, the first token later
        for _ in range(20):
            await asyncio.sleep(0.01)
            if is_dead.is_set():
                asked.reset()
                return
        data = STREAMS["openai_chat"](COLD).encode()
        await asked.chunk(data)
        await asked.end()

    for each in servers[1:]:
        each.answers(_slowly)
    servers[0].answers(works_until_it_dies)
    killer = threading.Timer(0.35, is_dead.set)
    killer.start()
    with ThreadPoolExecutor(60) as pool:
        replies = list(pool.map(partial(gateway.post, QUESTION.path), map(body_of, range(240))))
    killer.join()
    assert [reply.status for reply in replies if reply.status != 200] == []
    assert all(is_cold(reply.body) for reply in replies)
    assert is_dead.is_set()
    found = series(page(gateway))
    assert found["toolspeak_replica_ejected{replica=1,upstream=up}"] == 1
    assert found["toolspeak_replica_ejections_total{replica=1,upstream=up}"] >= 1
    assert found["toolspeak_upstream_retries_total{result=sent,upstream=up}"] >= replicas.EJECT_AFTER
    assert found["toolspeak_upstream_retries_total{result=denied,upstream=up}"] == 0
    assert [found[f"toolspeak_replica_requests_in_flight{{replica={n},upstream=up}}"] for n in (1, 2, 3)] == [0, 0, 0]


def test_a_server_that_answers_500_is_ejected_and_comes_back_pool2_pool3(
    gateway: Served, servers: list[ScriptedUpstream], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "EJECTION", 0.3)
    servers[0].answers(refuse(500, {"error": {"message": "CUDA error: device-side assert triggered"}}))
    ejected = "toolspeak_replica_ejected{replica=1,upstream=up}"
    for number in range(60):
        assert gateway.post(QUESTION.path, body_of(number)).status == 200
    assert len(servers[0].asked) >= replicas.EJECT_AFTER
    servers[0].answers(answering(COLD))

    def is_back() -> bool:
        assert gateway.post(QUESTION.path, body_of(1)).status == 200
        return series(page(gateway))[ejected] == 0

    soon(is_back)
    for number in range(60):
        assert gateway.post(QUESTION.path, body_of(number)).status == 200
    assert len(servers[0].asked) > 5


def test_a_conversation_keeps_its_server_pool1(gateway: Served, servers: list[ScriptedUpstream]) -> None:
    body = body_of(7)
    for _ in range(8):
        assert gateway.post(QUESTION.path, body).status == 200
        body["messages"] += [{"role": "assistant", "content": "Cold."}, {"role": "user", "content": "And now?"}]
    assert sorted(len(each.asked) for each in servers) == [0, 0, 8]


def test_when_all_fail_retries_are_bounded_pool4(gateway: Served, servers: list[ScriptedUpstream]) -> None:
    for each in servers:
        each.answers(refuse(500, {"error": {"message": "out of memory"}}))
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(partial(gateway.post, QUESTION.path), map(body_of, range(100))))
    assert all(reply.status >= 500 for reply in replies)
    sent = sum(len(each.asked) for each in servers)
    in_flight_at_ejection = 3 * 8
    assert sent <= 100 + 10 + 20 + in_flight_at_ejection
    assert series(page(gateway))["toolspeak_upstream_retries_total{result=denied,upstream=up}"] > 0


def test_the_dashboard_says_how_many_servers_are_in_service_pool2(gateway: Served) -> None:
    assert b"3 of 3 servers in service" in gateway.ask("GET", "/ui/models").body


async def _slowly(asked: Asked) -> None:
    for _ in range(20):
        await asyncio.sleep(0.01)
    asked.head(media_type=SSE)
    await asked.chunk(STREAMS["openai_chat"](COLD).encode())
    await asked.end()


# ---------------------------------------------------------------- another model


@pytest.fixture
def with_fallback(servers: list[ScriptedUpstream]) -> Generator[Served]:
    one, two, _ = servers
    places = towards(one, retries=0), replace(towards(two), name="other")
    models = Model("fast", "up", "m", fallback=("large",)), Model("large", "other", "big")
    with serving(config_of(*places, models=models)) as served:
        yield served


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES)
def test_another_model_answers_and_the_answer_says_so_pool5(
    with_fallback: Served, servers: list[ScriptedUpstream], wire: str, stream: bool
) -> None:
    servers[0].answers(refuse(503, {"error": {"message": "overloaded"}}))
    asked = question(wire, model="fast", stream=stream)
    reply = with_fallback.post(asked.path, asked.body)
    assert reply.status == 200
    assert b"It " in reply.body  # a stream cuts the rest
    assert b'"large"' in reply.body
    assert b'"fast"' not in reply.body
    assert "fallback from fast to large (transient)" in reply.headers["x-toolspeak-plan"]
    assert servers[1].asked[-1].json["model"] == "big"
    assert series(page(with_fallback))["toolspeak_fallbacks_total{model=big,reason=transient}"] >= 1


def test_a_model_whose_servers_are_all_out_is_not_waited_for_pool5(
    with_fallback: Served, servers: list[ScriptedUpstream]
) -> None:
    servers[0].answers(refuse(500, {"error": {"message": "CUDA error"}}))
    for _ in range(replicas.EJECT_AFTER + 4):
        assert with_fallback.post(QUESTION.path, {**BODY, "model": "fast"}).status == 200
    assert len(servers[0].asked) == replicas.EJECT_AFTER
    found = series(page(with_fallback))
    assert found["toolspeak_fallbacks_total{model=big,reason=out}"] == 4
    trace = with_fallback.ask("GET", "/traces").json["traces"][0]
    assert (trace["upstream"], trace["model"]) == ("other:big", "fast")


def test_a_model_that_works_keeps_its_turns_pool5(with_fallback: Served, servers: list[ScriptedUpstream]) -> None:
    reply = with_fallback.post(QUESTION.path, {**BODY, "model": "fast"})
    assert reply.json["model"] == "fast"
    assert len(servers[1].asked) == 0


# ---------------------------------------------------------------- a stronger model


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES)
def test_a_stronger_model_makes_the_call_that_a_model_gets_wrong_pool6(
    servers: list[ScriptedUpstream], wire: str, stream: bool
) -> None:
    weak, strong, _ = servers
    weak.answers(answering(Answer(calls=(("call_1", "get_weather", {"town": 7}),))))
    strong.answers(answering(Answer(calls=(("call_2", "get_weather", {"city": "Oslo"}),))))
    places = towards(weak), replace(towards(strong), name="other")
    models = (
        Model("fast", "up", "m", escalate_to="large", escalations_per_minute=2),
        Model("large", "other", "big"),
    )
    asked = question(wire, model="fast", stream=stream)
    with serving(config_of(*places, models=models)) as gateway:
        replies = [gateway.post(asked.path, asked.body) for _ in range(3)]
        found = series(page(gateway))
        trace = gateway.ask("GET", "/traces/" + replies[0].headers["x-toolspeak-trace"]).json
    for reply in replies[:2]:
        assert reply.status == 200
        assert b"Oslo" in reply.body
        assert b"town" not in reply.body
    assert replies[2].status >= 500 or b"error" in replies[2].body  # the limit is reached: as without a stronger model
    assert (len(weak.asked), len(strong.asked)) == (9, 2)
    assert found["toolspeak_escalations_total{model=m,result=answered}"] == 2
    assert found["toolspeak_escalations_total{model=m,result=denied}"] == 1
    assert trace["attempts"][-1]["why"].startswith("escalated to large: its calls cannot run")

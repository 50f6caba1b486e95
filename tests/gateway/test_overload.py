"""The gateway stays responsive and within its memory while clients send the worst bodies (SAFE-7)."""

import asyncio
import json
import threading
import time
from collections.abc import Generator
from typing import Any

import pytest

from testkit.loopback import in_loop
from testkit.protocols import WIRES, answering, error_faults, question
from testkit.scripted_upstream import ScriptedUpstream, hang
from testkit.vendor_answers import Answer
from tests.gateway.scene import Served, config_of, head, key, serving, soon, towards
from toolspeak.config.shape import Key, Limits, Model
from toolspeak.engine.settings import Mode, Settings
from toolspeak.gateway import overload
from toolspeak.gateway.exchange import Refused
from toolspeak.gateway.overload import Overload
from toolspeak.runtime.clock import CLOCK
from toolspeak.runtime.offload import GATED, HUGE, THREADED, Offload, at_once
from toolspeak.wires.limits import RequestLimits


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    emulated = Model("emulated", "up", "m", Settings(Mode.FORCE))
    with serving(config_of(towards(upstream), models=(emulated,))) as served:
        yield served


# ---------------------------------------------------------------- what one request may contain


@pytest.mark.parametrize("wire", WIRES)
def test_a_request_over_a_limit_gets_its_protocols_error_safe7(upstream: ScriptedUpstream, wire: str) -> None:
    limits = Limits(request=RequestLimits(json_values=60, tools=1))
    with serving(config_of(towards(upstream), limits=limits)) as served:
        asked = question(wire)
        assert served.post(asked.path, asked.body).status == 200
        large = served.post(asked.path, {**(asked.body or {}), "metadata": {str(n): 1 for n in range(80)}})
        assert large.status == 413
        assert error_faults(wire, 413, large.json) == []
        assert "limits.json_values" in str(large.json)
    with serving(config_of(towards(upstream), limits=Limits(request=RequestLimits(messages=1)))) as served:
        body = doubled(asked.body or {})
        many = served.post(asked.path, body)
        assert many.status == 400, many.body
        assert error_faults(wire, 400, many.json) == []
        assert "limits.messages" in str(many.json)


def doubled(body: dict[str, Any]) -> dict[str, Any]:
    """Say the same three times over: a user, an assistant, a user."""
    history = next(name for name in ("messages", "contents", "input") if name in body)
    said = body[history] if isinstance(body[history], list) else [{"role": "user", "content": body[history]}]
    other = {**said[-1], "role": "model" if history == "contents" else "assistant"}
    if history == "input":
        other["content"] = "Yes."
    return {**body, history: [*said, other, *said]}


# ---------------------------------------------------------------- the event loop


def text(piece: str, size: int) -> bytes:
    asked = {**(question("openai_chat", model="emulated").body or {})}
    asked["messages"] = [{"role": "user", "content": piece * (size // len(piece))}]
    return json.dumps(asked).encode()


def schemas(number: int, size: int) -> bytes:
    properties = {f"property_{i}": {"type": "string", "enum": ["a", "b"]} for i in range(size // 60)}
    tools = [
        {"type": "function", "function": {"name": f"t{n}", "parameters": {"type": "object", "properties": properties}}}
        for n in range(number)
    ]
    return json.dumps({**(question("openai_chat", model="emulated").body or {}), "tools": tools}).encode()


def turns(number: int) -> bytes:
    asked = {**(question("openai_chat", model="emulated").body or {})}
    asked["messages"] = [{"role": "user" if n % 2 else "assistant", "content": "a"} for n in range(number)]
    return json.dumps(asked).encode()


WORST = {
    "angle brackets": text("<", 2_000_000),
    "special tokens": text("<|im_start|>", 8_300_000),
    "backticks": text("`", 8_300_000),
    "new lines": text("\n", 2_000_000),
    "schemas": schemas(8, 240_000),
    "messages": turns(9_999),
    "many values": b'{"x":[' + b"[]," * 8_000_000 + b"0]}",
}


@pytest.mark.parametrize("body", WORST.values(), ids=WORST.keys())
def test_other_clients_are_served_while_the_worst_body_is_read_safe7(gateway: Served, body: bytes) -> None:
    """One such body once stopped everybody for up to 23 seconds.

    The bound is 250 ms; here the client, the gateway and other tests share two cores and one interpreter, so this test
    only tells a loop that runs from one that is blocked. `just attack` measures the bound.
    """
    asking = threading.Thread(target=lambda: gateway.post("/v1/chat/completions", body, seconds=120))
    waits: list[float] = []
    asking.start()
    while asking.is_alive():
        began = time.monotonic()
        assert gateway.ask("GET", "/health").status == 200
        waits.append(time.monotonic() - began)
        time.sleep(0.01)
    assert sorted(waits)[len(waits) // 2] < 0.5
    assert max(waits) < 3
    assert soon(lambda: gateway.inside == 0)


@in_loop
async def test_work_goes_where_its_size_says() -> None:
    offload = Offload()
    here = threading.get_ident()
    assert offload.for_size(GATED) is at_once
    assert await offload.for_size(THREADED)(threading.get_ident) == here
    assert await offload.for_size(THREADED + 1)(threading.get_ident) != here
    with pytest.raises(ZeroDivisionError):
        await offload.for_size(THREADED + 1)(lambda: 1 / 0)
    assert offload.waiting == 0
    offload.close()


@in_loop
async def test_large_work_does_not_wait_behind_huge_work_which_goes_one_at_a_time() -> None:
    offload, release, begun = Offload(), threading.Event(), list[int]()

    def work() -> None:
        begun.append(threading.get_ident())
        release.wait(30)

    huge = [asyncio.ensure_future(offload.for_size(HUGE + 1)(work)) for _ in range(2)]
    try:
        large = await asyncio.wait_for(offload.for_size(HUGE)(threading.get_ident), 30)
        assert soon(lambda: len(begun) == 1)
        assert large not in begun
        assert not any(task.done() for task in huge)
    finally:
        release.set()
        await asyncio.gather(*huge)
        offload.close()


@in_loop
async def test_a_burst_of_medium_bodies_lets_others_run_between() -> None:
    """Twenty bodies that arrive in one pass of the loop would otherwise be one long pause."""
    run, order = Offload().for_size(GATED + 1), list[str]()

    async def ticker() -> None:
        for _ in range(5):
            order.append("tick")
            await asyncio.sleep(0)

    def work() -> None:
        order.append("work")
        time.sleep(0.003)  # more than a pass may take

    async with asyncio.TaskGroup() as group:
        group.create_task(ticker())
        for _ in range(5):
            group.create_task(run(work))
    assert "work work" not in " ".join(order[: order.index("work") + 4])


@in_loop
async def test_short_work_on_medium_bodies_waits_for_no_other_pass_of_the_loop() -> None:
    run, order = Offload().for_size(GATED + 1), list[str]()
    asyncio.get_running_loop().call_soon(order.append, "another pass")
    for number in range(3):
        await run(lambda number=number: order.append(f"piece {number}"))
    assert order == ["piece 0", "piece 1", "piece 2"]


# ---------------------------------------------------------------- memory


def test_bodies_have_a_budget_and_a_tenant_half_of_it_safe7() -> None:
    guard = Overload(Limits(buffered_bytes=1000), CLOCK)
    guard.hold("anna", 0, THREADED)  # what every request may have
    guard.hold("anna", THREADED, 500)
    with pytest.raises(Refused, match="buffered_bytes"):
        guard.hold("anna", THREADED + 500, 1)
    guard.hold("berta", THREADED - 10, 410)
    guard.hold("carl", THREADED, 100)
    with pytest.raises(Refused, match="buffered_bytes"):
        guard.hold("carl", THREADED + 100, 1)
    guard.hold("carl", 0, THREADED)
    guard.release("anna", THREADED + 500)
    guard.hold("carl", THREADED + 100, 400)
    assert guard.report(0)["buffered_bytes"] == {"held": 900, "limit": 1000}


def test_memory_is_returned_once_after_the_last_large_body_safe7(monkeypatch: pytest.MonkeyPatch) -> None:
    """To return it walks the whole heap, and the next large body would need it again."""
    trimmed: list[str] = []

    async def bodies() -> None:
        guard = Overload(Limits(), CLOCK)
        guard.start()
        await asyncio.sleep(0.05)
        assert trimmed == [], "nothing large came"
        for tenant in ("anna", "berta"):
            guard.hold(tenant, 0, THREADED + 1)
        guard.release("anna", THREADED + 1)
        await asyncio.sleep(0.05)
        assert trimmed == [], "another large body is still here"
        guard.release("berta", THREADED + 1)
        await asyncio.sleep(0.2)
        guard.stop()

    monkeypatch.setattr(overload, "TICK", 0.005)
    monkeypatch.setattr(overload, "trim_memory", lambda: trimmed.append("once"))
    asyncio.run(bodies())
    assert trimmed == ["once"]


def test_large_bodies_over_the_budget_are_told_to_come_later_safe7(upstream: ScriptedUpstream) -> None:
    limits = Limits(buffered_bytes=400_000)
    with serving(config_of(towards(upstream), limits=limits)) as served:
        upstream.answers(hang)
        large = text("a ", THREADED + 150_000)
        waiting = served.connect()
        waiting.sendall(head(content_length=len(large)) + large)
        assert soon(lambda: served.app.gateway.overload.report(0)["buffered_bytes"] != {"held": 0, "limit": 400_000})
        upstream.answers(answering(Answer("It is cold.")))
        refused = served.post("/v1/chat/completions", large)
        assert refused.status == 503
        assert (refused.headers["retry-after"], refused.headers["x-should-retry"]) == ("2", "true")
        assert served.post("/v1/chat/completions", question("openai_chat").body).status == 200
        waiting.close()
        assert soon(lambda: served.inside == 0)
        assert served.post("/v1/chat/completions", large).status == 200


def test_a_body_of_ordinary_size_needs_no_budget_safe7(upstream: ScriptedUpstream) -> None:
    upstream.answers(answering(Answer("It is cold.")))
    plain = json.dumps(question("openai_chat").body).encode()
    with serving(config_of(towards(upstream), limits=Limits(buffered_bytes=1))) as served:
        statuses = [served.post("/v1/chat/completions", plain.ljust(THREADED + more)).status for more in (-1, 0, 1)]
    assert statuses == [200, 200, 503]


@pytest.mark.parametrize("wire", WIRES)
def test_without_memory_new_requests_are_refused_and_health_is_not_safe7(
    upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, wire: str
) -> None:
    with serving(config_of(towards(upstream), limits=Limits(memory_bytes=1 << 40))) as served:
        asked = question(wire)
        assert served.post(asked.path, asked.body).status == 200
        monkeypatch.setattr(overload, "resident_bytes", lambda: 1 << 41)
        assert soon(lambda: served.post(asked.path, asked.body).status in (503, 529))
        refused = served.post(asked.path, asked.body)
        assert error_faults(wire, refused.status, refused.json) == []
        assert refused.headers["retry-after"] == "2"
        assert served.ask("GET", "/health").status == 200
        assert served.ask("GET", "/health/load").json["shed"]["memory"] >= 2
        monkeypatch.undo()
        assert soon(lambda: served.post(asked.path, asked.body).status == 200)


# ---------------------------------------------------------------- the report


def test_the_load_is_shown_to_those_with_a_key_safe7(upstream: ScriptedUpstream) -> None:
    keys: tuple[Key, ...] = (key("sk-ours"),)
    with serving(config_of(towards(upstream), keys=keys)) as served:
        assert served.ask("GET", "/health/load").status == 401
        report = served.ask("GET", "/health/load", headers={"authorization": "Bearer sk-ours"}).json
        assert {*report} == {"requests", "loop_delay_ms", "memory_bytes", "buffered_bytes", "shed"}
        assert 0 <= report["loop_delay_ms"]["p99"] <= report["loop_delay_ms"]["max"]
        assert report["memory_bytes"]["resident"] > 1 << 20


@in_loop
async def test_a_late_loop_is_measured_and_sheds_only_in_a_crowd_safe7() -> None:
    guard = Overload(Limits(loop_delay_seconds=0.05), CLOCK)
    guard.start()
    await asyncio.sleep(0.02)
    time.sleep(0.3)  # noqa: ASYNC251 # the loop is to be late
    await asyncio.sleep(0.01)
    guard.check(3)
    with pytest.raises(Refused, match="loop_delay_seconds"):
        guard.check(100)
    await asyncio.sleep(0.25)
    guard.check(100)
    guard.stop()
    delays = guard.report(0)["loop_delay_ms"]
    assert isinstance(delays, dict)
    assert isinstance(delays["max"], float)
    assert delays["max"] > 150

"""Facts that tenants share cannot be moved by one client, nor by what somebody writes into Redis (CAP-6)."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typing_extensions import override

from testkit.loopback import in_loop
from testkit.redis_server import RedisServer, running
from testkit.vendor_answers import Answer
from tests.gateway.scene import Reply, Served, config_of, key, serving, soon
from tests.probes.servers import Behaviour, Body, Dropper, Refusal, listening, native
from tests.probes.test_gateway import SECONDS, ask, calls, gateway, known, plan, verdict
from tests.probes.test_shared import BOX, NONE
from toolspeak.config.shape import Server, Upstream
from toolspeak.engine.verdict import Depth
from toolspeak.facts.model import Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.runtime import shared as module
from toolspeak.runtime.shared import Shared
from toolspeak.upstreams import Auth

FORGED = "this does not support tools"


class Echo(Behaviour):
    """Has native tools, and quotes the field that it refuses."""

    @override
    def check(self, body: Body) -> None:
        for where in ("user", "metadata", "stop"):
            if FORGED in json.dumps(body.get(where, "")):
                message = f"Invalid value for {where}: '{FORGED}'. Try again with another one."
                raise Refusal(400, {"error": {"message": message, "type": "invalid_request_error", "param": where}})


@pytest.mark.parametrize("depth", [Depth.OFF, Depth.FULL])
@pytest.mark.parametrize("field", [{"user": FORGED}, {"metadata": {"a": FORGED}}, {"stop": FORGED}])
def test_words_that_an_upstream_echoes_change_nothing_for_others_cap6(depth: Depth, field: dict[str, Any]) -> None:
    with gateway(Echo(), depth) as served:
        assert depth is Depth.OFF or (ask(served) and known(served))
        for _ in range(5):
            ask(served, **field)
            later = ask(served)
            assert plan(later).startswith("native")
            assert calls(later) == ["roll_dice"]
        assert verdict(served).tools is not Support.NONE


class Empty(Behaviour):
    """Answers with nothing at all where it is asked to."""

    @override
    def answer(self, body: Body) -> Answer:
        return Answer("") if "be silent" in json.dumps(body["messages"]).lower() else native(body)


@pytest.mark.parametrize("depth", [Depth.OFF, Depth.FULL])
def test_turns_with_empty_answers_of_one_client_change_nothing_for_others_cap6(depth: Depth) -> None:
    with gateway(Empty(), depth) as served:
        for _ in range(6):
            ask(served, "Be silent.")
            assert plan(ask(served)).startswith("native")


class Turncoat(Behaviour):
    """Is started again without tools."""

    has = True

    @override
    def check(self, body: Body) -> None:
        if body.get("tools") and not self.has:
            raise Refusal(400, {"error": {"message": "m does not support tools"}})


def test_a_server_that_really_loses_its_tools_is_found_out_by_a_probe_cap6() -> None:
    turncoat = Turncoat()
    with gateway(turncoat) as served:
        ask(served)
        assert known(served)
        assert verdict(served).tools is Support.NATIVE
        turncoat.has = False
        assert [began(ask(served)) for _ in range(3)] == ["native", "force", "force"], "the first remembers"
        assert soon(lambda: verdict(served).tools is Support.NONE, SECONDS)
        assert plan(ask(served)).startswith("force")


def test_without_probes_it_takes_several_turns_of_several_tenants_cap6() -> None:
    turncoat = Turncoat()
    turncoat.has = False
    keys = (key("sk-first-key", "first"), key("sk-second-key", "second"))
    with listening(turncoat) as url:
        config = config_of(Upstream("up", url, auth=Auth.NONE), server=Server(probe=Depth.OFF), keys=keys)
        with serving(config) as served:
            assert [_as(served, "sk-first-key") for _ in range(6)] == ["native", *["force"] * 5], "for these tools"
            assert _as(served, "sk-first-key", "other") == "native"
            assert _as(served, "sk-first-key", "third") == "native"
            assert _as(served, "sk-second-key") == "native"
            assert _as(served, "sk-second-key", "other") == "force", "three turns of two tenants"


def _as(served: Served, secret: str, tool: str = "roll_dice") -> str:
    tools = [{"type": "function", "function": {"name": tool, "parameters": {"type": "object"}}}]
    body = {"model": "m", "messages": [{"role": "user", "content": "Roll."}], "tools": tools}
    return began(served.post("/v1/chat/completions", body, {"authorization": f"Bearer {secret}"}))


def began(reply: Reply) -> str:
    """Tell how a turn began: its plan names the way that it took in the end, and after that what it tried first."""
    way, _, why = plan(reply).partition(": ")
    return "native" if why.startswith("native (tools refused)") else way.split()[0]


def test_invented_names_of_models_start_no_probe_cap6() -> None:
    dropper = Dropper()
    with gateway(dropper) as served:
        turns = [ask(served, model=f"up:invented-{index}").status for index in range(20)]
        assert turns == [200] * 20
        assert not soon(lambda: len(dropper.turns) > 20 or "/props" in dropper.looks, 1.5)
        assert len(dropper.turns) == 20
        assert len(dropper.looks) <= 2, "the list of models"
        ask(served, model="up:m")
        assert known(served)


def test_a_budget_bounds_what_all_probes_send_cap6() -> None:
    dropper = Dropper()
    dropper.pages["/v1/models"] = {"data": [{"id": f"m{index}"} for index in range(12)]}
    with listening(dropper) as url:
        config = config_of(Upstream("up", url, auth=Auth.NONE), server=Server(probe=Depth.FULL, probe_requests=20))
        with serving(config) as served:
            for index in range(12):
                ask(served, model=f"m{index}")
            soon(lambda: False, 4.0)
    assert len(dropper.turns) - 12 + len(dropper.looks) <= 20 + 2, "besides the lists of models"


# ---------------------------------------------------------------- Redis


@pytest.fixture
def redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisServer]:
    """Start a Redis that is waited for on a busy machine too: a slow one would hide whether its value was read."""
    monkeypatch.setattr(module, "TIMEOUT", 5.0)
    with running(tmp_path) as server:
        yield server


def changed(**fields: object) -> bytes:
    told: dict[str, Any] = json.loads(msgspec.json.encode(NONE))
    return json.dumps(told | fields).encode()


DAY = 86_400_000
FINDING = {"layer": "traffic", "says": "none", "reason": "x"}
POISON: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"\xff\xfe\x00",
    "null": b"null",
    "list": b"[]",
    "deep": b'{"x":' + b"[" * 60_000 + b"]" * 100,
    "huge": changed(server="x" * (1 << 20)),
    "confidence": changed(confidence=1e300),
    "negative": changed(confidence=-1),
    "infinite": changed().replace(b"0.95", b"1e999"),
    "evidence": changed(evidence=[FINDING] * 25),
    "long reason": changed(evidence=[{**FINDING, "reason": "x" * 5000}]),
    "layer": changed(evidence=[{**FINDING, "layer": "of another version"}]),
    "server": changed(server="evil\nserver"),
    "constraint": changed(constraint=ConstraintForm.GEMINI.value),
    "context": changed(context_tokens=-5),
    "large context": changed(context_tokens=10**30),
    "types": changed(tools=7, stopped="yes"),
    "another fingerprint": changed(fingerprint="fff"),
    "surrogate": changed(server="\ud800"),
}


@in_loop
async def _poisoned(server: RedisServer, value: bytes) -> None:
    store = Shared(server.url)
    client = store._link._redis
    await store.keep(BOX, NONE)
    assert await store.find(BOX) == NONE
    verdict_key, seen_key = module._VERDICT + BOX.of("abc").key, module._SEEN + BOX.key
    await client.set(verdict_key, value, px=DAY)
    began = time.monotonic()
    assert await store.find(BOX) is None
    assert time.monotonic() - began < 5
    await store.keep(BOX, NONE)
    await client.set(seen_key, value or b"\xff", px=DAY)
    assert await store.find(BOX) is None
    assert await store.find(BOX.of("abc")) == NONE, "a bad key does not hide the others"
    await store.keep(BOX, NONE)
    assert await store.find(BOX) == NONE, "and is overwritten"
    await store.close()


@pytest.mark.parametrize("value", POISON.values(), ids=POISON.keys())
def test_a_poisoned_value_counts_as_missing_cap6(redis: RedisServer, value: bytes) -> None:
    _poisoned(redis, value)


Write = Callable[[Any, str], Any]
WRITES: dict[str, Write] = {
    "list": lambda client, name: client.rpush(name, "x"),
    "hash": lambda client, name: client.hset(name, "x", "y"),
    "set": lambda client, name: client.sadd(name, "x"),
    "stream": lambda client, name: client.xadd(name, {"x": "y"}),
    "no expiry": lambda client, name: client.set(name, changed()),
    "expiry after years": lambda client, name: client.set(name, changed(), px=10**12),
}


@in_loop
async def _of_another_type(server: RedisServer, write: Write) -> None:
    store = Shared(server.url)
    client, names = store._link._redis, (module._VERDICT + BOX.of("abc").key, module._SEEN + BOX.key)
    for name in (*names, module._PROBE + BOX.key):
        await store.keep(BOX, NONE)
        await client.delete(name)
        await write(client, name)
        assert name not in names or await store.find(BOX) is None
        assert store._link._until == 0.0, "Redis is there, and is not left alone"
        await store.release(BOX, "token")
    token = await store.claim(BOX)
    assert token, "a claim that never ends does not end all probes"
    await store.release(BOX, token)
    await store.close()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_a_key_of_another_type_or_without_an_end_counts_as_missing_cap6(redis: RedisServer, write: Write) -> None:
    _of_another_type(redis, write)


def test_a_gateway_over_a_poisoned_redis_answers_and_finds_out_by_itself_cap6(redis: RedisServer) -> None:
    dropper = Dropper()
    with listening(dropper) as url:
        subject = module.Subject(url, "m")
        asyncio.run(_fill(redis, [module._SEEN + subject.key, module._PROBE + subject.key], POISON["huge"]))
        config = config_of(Upstream("up", url, auth=Auth.NONE), server=Server(probe=Depth.FULL), redis=redis.url)
        with serving(config) as served:
            assert plan(ask(served)).startswith("native")
            assert known(served)
            assert plan(ask(served)).startswith("force")


async def _fill(server: RedisServer, names: list[str], value: bytes) -> None:
    store = Shared(server.url)
    for name in names:
        await store._link._redis.set(name, value)
    await store.close()

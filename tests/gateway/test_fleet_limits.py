"""Limits that a fleet shares through a real Redis: exact, given back by the dead, and local while Redis is away."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testkit.loopback import in_loop
from testkit.protocols import answering, question
from testkit.redis_server import RedisServer, running
from testkit.scripted_upstream import listening
from testkit.vendor_answers import Answer
from tests.gateway.fleet_member import PATIENT
from tests.gateway.scene import config_of, key, serving, towards
from tests.gateway.test_rates import Still
from toolspeak.config.shape import Key, Limits, Model, RateLimits
from toolspeak.gateway import fleet_limits
from toolspeak.gateway.admission import Admission
from toolspeak.gateway.exchange import Refused
from toolspeak.gateway.fleet_limits import FleetLimits
from toolspeak.gateway.limit_store import Demand, LocalLimits, Spent
from toolspeak.gateway.tally import ProcessTally
from toolspeak.runtime.clock import CLOCK

ROOT = Path(__file__).parents[2]
# Read from a key of Redis, so that a test moves the time of scripts and of the local store alike.
MOVED_TIME = "local now = tonumber(redis.call('get', 'now'))"


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with running(tmp_path) as server:
        yield server


@contextmanager
def member(redis: RedisServer, **plan: object) -> Generator[subprocess.Popen[str]]:
    """Start a process of the fleet."""
    command = [sys.executable, "-m", "tests.gateway.fleet_member", redis.url, json.dumps(plan)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def admitted(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())["admitted"]


@contextmanager
def fleet(redis: RedisServer, count: int, **plan: object) -> Generator[list[subprocess.Popen[str]]]:
    with ExitStack() as stack:
        yield [stack.enter_context(member(redis, **plan)) for _ in range(count)]


@pytest.mark.timeout(120)
def test_requests_of_four_processes_are_exact_within_one_percent_safe9(redis: RedisServer) -> None:
    began = time.monotonic()
    with fleet(redis, 4, limits={"requests_per_minute": 2000}, attempts=1000) as processes:
        total = sum(map(admitted, processes))
    back = 2000 * (time.monotonic() - began) / 60
    assert 2000 <= total <= 2000 + back + 1
    assert total <= 2000 * 1.01 + back


@pytest.mark.timeout(120)
def test_tokens_of_four_processes_hold_on_average_within_one_percent_safe9(redis: RedisServer) -> None:
    """Each process has 20 answers of 10 tokens at once, so 800 tokens may be spent beyond the limit, and are owed."""
    began = time.monotonic()
    limits = {"output_tokens_per_minute": 12_000}
    with fleet(redis, 4, limits=limits, attempts=600, tokens=10) as processes:
        total = 10 * sum(map(admitted, processes))
    back = 12_000 * (time.monotonic() - began) / 60
    assert 12_000 <= total <= 12_000 + back + 800


@pytest.mark.timeout(120)
def test_the_open_requests_of_a_killed_process_are_given_back_safe9(redis: RedisServer) -> None:
    limits = {"concurrent": 100}
    with member(redis, limits=limits, attempts=60, holds=True) as first:
        assert admitted(first) == 60
        with member(redis, limits=limits, attempts=60, holds=True) as second:
            assert admitted(second) == 40
            first.kill()
            first.wait()
            killed = time.monotonic()
            with member(redis, limits=limits, attempts=60, holds=True) as third:
                assert admitted(third) == 0, "a lease is not given back at once: the process may only be slow"
            time.sleep(max(0.0, killed + fleet_limits.LEASE + 0.5 - time.monotonic()))
            with member(redis, limits=limits, attempts=100, holds=True) as fourth:
                assert admitted(fourth) == 60, "the second process goes on renewing its 40"


# ---------------------------------------------------------------- one process, and its Redis


class Fleet:
    """Admission of one process."""

    def __init__(self, url: str, time_source: str = fleet_limits.SERVER_TIME, timeout: float = PATIENT) -> None:
        tally = ProcessTally()
        self.store = FleetLimits(url, LocalLimits(tally, CLOCK), CLOCK, time_source, timeout=timeout)
        self.admission = Admission(Limits(), CLOCK, tally, self.store)

    async def enters(self, key: Key, held: AsyncExitStack | None = None) -> bool:
        request = self.admission.enter(key)
        try:
            await request.__aenter__()
        except Refused:
            return False
        if held is None:
            await request.__aexit__(None, None, None)
        else:
            held.push_async_exit(request.__aexit__)
        return True

    async def count(self, key: Key, attempts: int, held: AsyncExitStack | None = None) -> int:
        return sum([await self.enters(key, held) for _ in range(attempts)])


async def until(is_so: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        await asyncio.sleep(0.05)


@in_loop
async def _outage(redis: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    one, other = Fleet(redis.url), Fleet(redis.url)
    anna = Key("anna", b"", limits=RateLimits(requests_per_minute=100, concurrent=1000))
    assert await one.count(anna, 30) == 30
    redis.kill()
    # Each process applies the whole limit to its own requests, and knows what it has admitted before.
    assert (await one.count(anna, 200), await other.count(anna, 200)) == (70, 100)
    assert one.admission.figures.is_alone
    assert any("each gateway counts alone" in record.message for record in caplog.records)
    redis.start()
    await until(lambda: not one.store.is_alone and not other.store.is_alone)
    assert any("limits are shared again" in record.message for record in caplog.records)
    assert await one.count(anna, 20) == 0, "what both admitted meanwhile was added"
    bert = Key("bert", b"", limits=RateLimits(requests_per_minute=10))
    assert await one.count(bert, 6) + await other.count(bert, 6) == 10
    await one.admission.close()
    await other.admission.close()


def test_while_redis_is_away_limits_are_local_and_their_use_is_added_safe9(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    _outage(redis, caplog)


@in_loop
async def _open_over_restart(redis: RedisServer) -> None:
    one, other, held = Fleet(redis.url), Fleet(redis.url), AsyncExitStack()
    anna = Key("anna", b"", limits=RateLimits(concurrent=10))
    assert await one.count(anna, 4, held) == 4
    redis.kill()
    assert await one.count(anna, 2, held) == 2
    redis.start()  # empty
    await until(lambda: not one.store.is_alone)
    more = AsyncExitStack()
    assert await other.count(anna, 20, more) == 4, "the open requests are told to the new Redis"
    await held.aclose()
    await asyncio.sleep(0.2)
    assert await other.count(anna, 20, more) == 6
    await more.aclose()
    await one.admission.close()
    await other.admission.close()


def test_open_requests_outlive_a_redis_that_starts_empty_safe9(redis: RedisServer) -> None:
    _open_over_restart(redis)


@in_loop
async def _hang(redis: RedisServer) -> None:
    one = Fleet(redis.url, timeout=fleet_limits.TIMEOUT)
    anna = Key("anna", b"", limits=RateLimits(requests_per_minute=1000))
    assert await one.enters(anna)
    redis.hang()
    began = time.monotonic()
    assert all(await asyncio.gather(*(one.enters(anna) for _ in range(50))))
    assert time.monotonic() - began < 2.0
    began = time.monotonic()
    assert await one.count(anna, 50) == 50
    assert time.monotonic() - began < 0.5, "only the first requests wait for a Redis that hangs"
    await one.admission.close()


def test_a_redis_that_hangs_delays_few_requests_and_refuses_none_safe9(redis: RedisServer) -> None:
    _hang(redis)


@in_loop
async def _hung_up(redis: RedisServer) -> None:
    one = Fleet(redis.url)
    anna = Key("anna", b"", limits=RateLimits(requests_per_minute=5, concurrent=5))
    for _ in range(20):
        waiting = asyncio.ensure_future(one.enters(anna))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait((waiting,))
    await asyncio.sleep(0.2)
    assert await one.count(anna, 10) == 5, "clients that hung up during the decision have taken nothing"
    await one.admission.close()


@in_loop
async def _closed_at_once(redis: RedisServer) -> None:
    anna = Key("anna", b"", limits=RateLimits(requests_per_minute=10_000, concurrent=1000))
    for _ in range(20):
        one = Fleet(redis.url)
        await asyncio.gather(*(one.enters(anna) for _ in range(50)))
        async with asyncio.timeout(5):
            await one.admission.close()


def test_a_gateway_that_ends_with_decisions_under_way_does_not_hang_safe9(redis: RedisServer) -> None:
    _closed_at_once(redis)


def test_a_client_that_hangs_up_during_the_decision_spends_nothing_safe9(redis: RedisServer) -> None:
    _hung_up(redis)


# ---------------------------------------------------------------- the same rules in Redis and in the process

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "take", "take", "end"]),
        st.floats(0, 40).map(lambda seconds: round(seconds, 3)),
        st.integers(0, 300),
    ),
    max_size=25,
)
RATES = st.builds(
    RateLimits,
    requests_per_minute=st.none() | st.integers(1, 20),
    input_tokens_per_minute=st.none() | st.integers(1, 500),
    output_tokens_per_minute=st.none() | st.integers(1, 500),
    concurrent=st.none() | st.integers(1, 4),
)


@in_loop
async def _same(url: str, limits: RateLimits, steps: list[tuple[str, float, int]], subject: str) -> None:
    clock = Still(1_800_000_000.0)
    local, fleet = LocalLimits(ProcessTally(), clock), Fleet(url, MOVED_TIME)
    held: list[Demand] = []
    store = fleet.store
    for number, (action, seconds, tokens) in enumerate(steps):
        clock.now += seconds

        async def move(redis: Any) -> Any:  # noqa: ANN401 -- an optional package
            return await redis.set("now", repr(clock.now))

        await store._link.run(move)
        for leases in store._leases.values():  # renewed, however far the time was moved
            assert len(leases) <= len(held)
        await store._send(store._renewals())
        if action == "end" and held:
            demand, spent = held.pop(), Spent(tokens, tokens // 2)
            local.end(demand, spent)
            store.end(demand, spent)
            await store._exchange()
        elif action == "take":
            demand = Demand(subject, limits, f"lease-{number}")
            here, there = await local.take(demand), await store.take(demand)
            assert (here is None) == (there is None), (here, there)
            if here is not None and there is not None:
                assert here.meter is there.meter
                assert here.wait == pytest.approx(there.wait, abs=2e-3)
            else:
                held.append(demand)
    await fleet.admission.close()


@pytest.mark.timeout(180)
def test_redis_decides_as_the_process_does_safe9(tmp_path: Path) -> None:
    with running(tmp_path) as redis:
        numbers = iter(range(1_000_000))

        @given(limits=RATES, steps=STEPS)
        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        def check(limits: RateLimits, steps: list[tuple[str, float, int]]) -> None:
            _same(redis.url, limits, steps, f"key:{next(numbers)}")

        check()


@in_loop
async def _clock_back(redis: RedisServer) -> None:
    fleet = Fleet(redis.url, MOVED_TIME)

    async def at(seconds: float) -> None:
        async def move(redis: Any) -> Any:  # noqa: ANN401 -- an optional package
            return await redis.set("now", repr(seconds))

        await fleet.store._link.run(move)

    anna = Key("anna", b"", limits=RateLimits(requests_per_minute=10))
    await at(1_800_000_000.0)
    assert await fleet.count(anna, 20) == 10
    await at(1_800_000_000.0 - 7200)
    assert await fleet.count(anna, 20) == 0, "nothing is gained"
    await at(1_800_000_000.0 - 7200 + 30)
    assert await fleet.count(anna, 20) == 5, "and nobody is locked out for two hours"
    await fleet.admission.close()


def test_a_clock_of_redis_that_is_set_back_locks_nobody_out_safe9(redis: RedisServer) -> None:
    _clock_back(redis)


# ---------------------------------------------------------------- through a gateway

COUNTED = Answer("It is cold.")


def test_two_gateways_share_the_limits_of_a_key_and_of_a_model_safe9(redis: RedisServer) -> None:
    keys = (key("k", "t", requests_per_minute=5), key("free", "u"))
    with listening() as upstream, ExitStack() as stack:
        upstream.answers(answering(COUNTED))
        models = (Model("small", "up", "m", limits=RateLimits(requests_per_minute=7)),)
        config = config_of(towards(upstream), keys=keys, models=models, redis=redis.url)
        gateways = [stack.enter_context(serving(config)) for _ in range(2)]
        asked = question("openai_chat")

        def ask(number: int, sent: str, model: str) -> int:
            body = {**json.loads(json.dumps(asked.body)), "model": model}
            return gateways[number % 2].post(asked.path, body, {"x-api-key": sent}).status

        assert [ask(number, "k", "up:other") for number in range(6)] == [200] * 5 + [429]
        # By its alias or by its place, it is one model.
        names = ["small", "up:m"] * 4
        assert [ask(number // 2, "free", name) for number, name in enumerate(names)] == [200] * 7 + [429]
        page = gateways[0].ask("GET", "/metrics", headers={"x-api-key": "free"}).body.decode()
        other = gateways[1].ask("GET", "/metrics", headers={"x-api-key": "free"}).body.decode()
        assert 'toolspeak_limited_total{limit="requests_per_minute",limit_of="key"} 1.0' in page + other
        assert 'toolspeak_limited_total{limit="requests_per_minute",limit_of="model"} 1.0' in page + other
        assert "toolspeak_limits_alone 0.0" in page
        redis.kill()
        assert ask(0, "k", "up:other") == 200, "this gateway has admitted three of five itself"
        page = gateways[0].ask("GET", "/metrics", headers={"x-api-key": "free"}).body.decode()
        assert "toolspeak_limits_alone" in page

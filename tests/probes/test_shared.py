"""Verdicts in a real Redis: shared, one probe at a time, and nothing fails when it is away (CAP-4)."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.loopback import in_loop
from testkit.redis_server import RedisServer, running
from tests.unit.runtime.test_learned import Stood
from toolspeak.engine.verdict import Depth, Finding, Layer, Verdict
from toolspeak.errors import BadConfig, MissingExtra
from toolspeak.facts.model import Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.runtime.cache import Subject
from toolspeak.runtime.redis_link import FIRST_REST, LONGEST_REST
from toolspeak.runtime.shared import Shared

BOX = Subject("http://127.0.0.1:8080/v1", "m")
NONE = Verdict(
    Support.NONE,
    0.95,
    (Finding(Layer.TOKENS, Support.NONE, "dropped in silence"),),
    parallel=None,
    streamed=False,
    continues=True,
    context_tokens=4096,
    server="llamacpp",
    fingerprint="abc",
    constraint=ConstraintForm.LLAMACPP,
    depth=Depth.FULL,
)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with running(tmp_path) as server:
        yield server


@in_loop
async def _two_share(url: str) -> None:
    one, other = Shared(url), Shared(url)
    assert await other.find(BOX) is None
    await one.keep(BOX, NONE)
    assert await other.find(BOX) == NONE
    assert await other.find(BOX.of("abc")) == NONE
    assert await other.find(BOX.of("xyz")) is None
    unknown = Verdict(fingerprint="xyz")
    await other.keep(BOX, unknown)
    assert await one.find(BOX) == unknown, "what is unknown stays unknown, and is shared as such"
    await one.seen(BOX.of("abc"))
    assert await other.find(BOX) == NONE
    await one.close()
    await other.close()


def test_what_one_process_finds_the_others_know_with_all_its_evidence_cap4(redis: RedisServer) -> None:
    _two_share(redis.url)


@in_loop
async def _one_claims(url: str) -> None:
    one, other = Shared(url), Shared(url)
    token = await one.claim(BOX)
    assert token
    assert await other.claim(BOX) == ""
    await other.release(BOX, "not mine")
    assert await other.claim(BOX) == ""
    await one.release(BOX, token)
    assert await other.claim(BOX)
    await one.close()
    await other.close()


def test_one_process_probes_and_only_it_may_say_that_it_is_done_cap4(redis: RedisServer) -> None:
    _one_claims(redis.url)


@in_loop
async def _expires(server: RedisServer) -> None:
    shared = Shared(server.url)
    await shared.keep(BOX, NONE)
    assert await shared.claim(BOX)
    client = shared._link._redis
    keys = sorted(await client.keys("*"))
    assert [key.split(b":")[1] for key in keys] == [b"probe", b"seen", b"verdict"]
    assert not [key for key in keys if b"127.0.0.1" in key], "a URL may hold a key"
    lives = [await client.pttl(key) for key in keys]
    assert all(0 < life <= 86_400_000 for life in lives), lives
    await client.set(keys[2], b'{"tools": "of another version"}')
    assert await shared.find(BOX) is None
    await shared.close()


def test_everything_in_redis_expires_and_nothing_shows_a_url_cap4(redis: RedisServer) -> None:
    _expires(redis)


@in_loop
async def _away(server: RedisServer, *, hangs: bool) -> None:
    clock = Stood()
    shared = Shared(server.url, clock)
    await shared.keep(BOX, NONE)
    server.hang() if hangs else server.kill()
    began = time.monotonic()
    assert await shared.find(BOX) == NONE, "what this process has found itself it still knows"
    first = time.monotonic() - began
    assert first < 2, "a slow Redis is not waited for"
    client = shared._link._redis
    object.__setattr__(shared._link, "_redis", None)  # whatever asked it would fail
    for _ in range(100):
        assert await shared.find(BOX) == NONE, "a Redis that is away is left alone"
    object.__setattr__(shared._link, "_redis", client)
    token = await shared.claim(BOX)
    assert token
    assert await shared.claim(BOX) == "", "alone, it still probes once"
    await shared.release(BOX, token)
    assert await shared.claim(BOX)
    await _back(server, shared, clock)
    await shared.close()


async def _back(server: RedisServer, shared: Shared, clock: Stood) -> None:
    server.kill()
    server.start()
    clock.now += FIRST_REST
    assert await shared.find(BOX) is None, "the new one is empty"
    await shared.keep(BOX, NONE)
    other = Shared(server.url)
    assert await other.find(BOX) == NONE, "and is used again"
    await other.close()


@pytest.mark.parametrize("hangs", [False, True])
def test_redis_away_means_alone_and_back_means_together_cap4(redis: RedisServer, hangs: bool) -> None:
    _away(redis, hangs=hangs)


@in_loop
async def _rests(server: RedisServer) -> None:
    clock = Stood()
    shared = Shared(server.url, clock)
    server.kill()
    rests: list[float] = []
    for _ in range(9):
        await shared.find(BOX)
        rests.append(shared._link._until - clock.now)
        clock.now = shared._link._until
    assert rests == [1, 2, 4, 8, 16, 32, 60, 60, LONGEST_REST]
    await shared.close()


def test_who_stays_away_is_asked_less_and_less_cap4(redis: RedisServer) -> None:
    _rests(redis)


def test_without_the_package_the_configuration_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("redis", "redis.asyncio"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"redis\.url needs an optional package: pip install 'toolspeak\[redis\]'"):
        Shared("redis://127.0.0.1:6379/0")


def test_a_password_is_in_no_error() -> None:
    with pytest.raises(BadConfig) as refused:
        Shared("redis://:hunter2@127.0.0.1:notaport/0")
    assert "hunter2" not in str(refused.value)

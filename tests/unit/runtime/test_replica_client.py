"""Requests to several servers of one upstream: where they go, when they are sent again, what ejects a server."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from testkit.loopback import Got, Loopback, Out, Say, in_loop, until
from tests.unit.runtime.scene import CHAT, COLD, HEADERS, REQUEST, STREAMED, Paced, answered, say_stream, whole_of
from toolspeak import wires
from toolspeak.ir.event import Event, Failed
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.turn import fold
from toolspeak.runtime.http_transport import HttpTransport
from toolspeak.runtime.replica_client import UpstreamAddress
from toolspeak.runtime.replicas import EJECT_AFTER, EJECTION, Replica
from toolspeak.runtime.transport import TransportError
from toolspeak.runtime.upstream import HttpUpstream, list_models


async def cold(got: Got, out: Out) -> None:
    if got.method == "GET":
        await out.whole(200, b'{"data": [{"id": "m"}]}')
    elif json.loads(got.body).get("stream"):
        await say_stream(out)
    else:
        await out.whole(200, whole_of(CHAT, COLD))


def failing(status: int, headers: tuple[tuple[str, str], ...] = ()) -> Say:
    async def say(got: Got, out: Out) -> None:
        if got.method == "GET":
            await out.whole(200, b'{"data": [{"id": "m"}]}')
        else:
            await out.whole(status, b'{"error": {"message": "it is broken"}}', headers=headers)

    return say


async def dies_before_the_first_byte(got: Got, out: Out) -> None:
    del got
    await out.begin()
    out.reset()


async def dies_in_the_middle(got: Got, out: Out) -> None:
    del got
    await out.begin()
    await out.piece(b'data: {"choices": [{"index": 0, "delta": {"content": "It is"}}]}\n\n')
    await asyncio.sleep(0.02)
    out.reset()


@asynccontextmanager
async def pool_of(*servers: Loopback, clock: Paced | None = None, retries: int = 2) -> AsyncGenerator[HttpUpstream]:
    transport = HttpTransport()
    first, *more = (server.url for server in servers)
    address = UpstreamAddress(first, HEADERS, retries=retries, more_urls=tuple(more))
    try:
        yield HttpUpstream(transport, wires.load(CHAT), address, clock or Paced())
    finally:
        await transport.close()


def conversation(number: int, *, stream: bool = True) -> Request:
    messages = (Message(Role.USER, (Text(f"Question {number}"),)),)
    return replace(STREAMED if stream else REQUEST, messages=messages)


def preferring(opened: HttpUpstream, replica: Replica) -> Request:
    """Return a conversation whose server is this one."""
    pool = opened.pool
    for number in range(1000):
        request = conversation(number)
        found = pool.take(0.0, opened._affinity(request))
        found.in_flight, found.requests = found.in_flight - 1, found.requests - 1
        if found is replica:
            return request
    raise AssertionError


def turns(server: Loopback) -> int:
    return sum(got.method == "POST" for got in server.got)


def failure_of(events: list[Event]) -> FailureKind | None:
    last = events[-1]
    return last.failure.kind if isinstance(last, Failed) else None


@in_loop
async def test_a_conversation_goes_to_one_server_also_when_it_grows_pool1() -> None:
    async with Loopback(cold) as one, Loopback(cold) as two, pool_of(one, two) as opened:
        request = conversation(1)
        for _ in range(6):
            assert fold(await answered(opened, request)).text == COLD.text
            more = (Message(Role.ASSISTANT, (Text("Cold."),)), Message(Role.USER, (Text("And now?"),)))
            request = replace(request, messages=(*request.messages, *more))
        assert {turns(one), turns(two)} == {0, 6}
        for number in range(40):
            await answered(opened, conversation(number))
        assert min(turns(one), turns(two)) > 5
        assert [each.in_flight for each in opened.pool.replicas] == [0, 0]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("say", [failing(500), failing(503), failing(429), dies_before_the_first_byte])
@in_loop
async def test_another_server_is_tried_at_once_before_the_first_byte_pool4(say: Say, stream: bool) -> None:
    clock = Paced()
    async with Loopback(say) as bad, Loopback(cold) as good, pool_of(bad, good, clock=clock) as opened:
        request = replace(preferring(opened, opened.pool.replicas[0]), stream=stream)
        assert fold(await answered(opened, request)).text == COLD.text
        assert (turns(bad), turns(good)) == (1, 1)
        assert not any(clock.pauses)
        assert opened.pool.budget.used == 1
        assert [each.in_flight for each in opened.pool.replicas] == [0, 0]


@in_loop
async def test_after_the_first_byte_nothing_is_sent_again_and_it_counts_against_the_server_pool4() -> None:
    async with Loopback(dies_in_the_middle) as bad, Loopback(cold) as good, pool_of(bad, good) as opened:
        replica = opened.pool.replicas[0]
        request = preferring(opened, replica)
        for _ in range(EJECT_AFTER):
            assert not replica.is_out
            assert failure_of(await answered(opened, request)) is FailureKind.DISCONNECTED
        assert turns(good) == 0
        assert replica.is_out
        assert fold(await answered(opened, request)).text == COLD.text


@in_loop
async def test_a_server_that_answers_500_is_ejected_and_comes_back_after_a_probe_pool2_pool3() -> None:
    clock, says = Paced(), [failing(500)]

    async def say(got: Got, out: Out) -> None:
        await says[-1](got, out)

    async with Loopback(say) as bad, Loopback(cold) as good, pool_of(bad, good, clock=clock) as opened:
        replica = opened.pool.replicas[0]
        request = preferring(opened, replica)
        for number in range(2 * EJECT_AFTER):
            assert fold(await answered(opened, request)).text == COLD.text
            assert replica.is_out == (number >= EJECT_AFTER - 1)
        assert (turns(bad), turns(good)) == (EJECT_AFTER, 2 * EJECT_AFTER)
        clock.now += EJECTION
        await answered(opened, request)  # the request that finds its time to be up probes it, beside itself
        await until(lambda: not replica.is_out)
        assert fold(await answered(opened, request)).text == COLD.text  # it still fails: out at once, for longer
        assert replica.is_out
        assert replica.out_until - clock.now == 2 * EJECTION
        says.append(cold)
        clock.now += 2 * EJECTION
        await answered(opened, request)
        await until(lambda: not replica.is_out)
        before = turns(bad)
        for _ in range(3):
            await answered(opened, request)
        assert turns(bad) == before + 3


@in_loop
async def test_a_request_that_every_server_fails_ejects_none_pool2() -> None:
    async with Loopback(failing(500)) as one, Loopback(failing(500)) as two, pool_of(one, two) as opened:
        opened.pool.budget.count_request(1000.0)
        opened.pool.budget.allow(1000)
        for number in range(4 * EJECT_AFTER):
            assert failure_of(await answered(opened, conversation(number))) is FailureKind.TRANSIENT
        assert not any(each.is_out for each in opened.pool.replicas)


@in_loop
async def test_a_refused_connection_ejects_at_once_and_the_list_of_models_comes_from_another_pool2() -> None:
    async with Loopback(cold) as gone, Loopback(cold) as good, pool_of(gone, good) as opened:
        await gone.__aexit__(None, None, None)
        assert await list_models(opened) == ["m"]
        assert [each.is_out for each in opened.pool.replicas] == [True, False]
        for number in range(10):
            assert failure_of(await answered(opened, conversation(number))) is None
        assert opened.pool.replicas[0].requests == 0


@in_loop
async def test_all_are_gone_and_the_client_gets_the_error_pool2() -> None:
    async with Loopback(cold) as one, Loopback(cold) as two, pool_of(one, two) as opened:
        await one.__aexit__(None, None, None)
        await two.__aexit__(None, None, None)
        assert failure_of(await answered(opened)) is FailureKind.DISCONNECTED
        assert opened.is_out
        with pytest.raises(TransportError):
            await list_models(opened)


@in_loop
async def test_retry_after_of_one_server_does_not_delay_a_request_and_is_kept_pool2() -> None:
    clock, busy = Paced(), failing(429, (("retry-after", "30"),))
    async with Loopback(busy) as one, Loopback(cold) as two, pool_of(one, two, clock=clock) as opened:
        request = preferring(opened, opened.pool.replicas[0])
        for _ in range(5):
            assert fold(await answered(opened, request)).text == COLD.text
        assert turns(one) == 1
        assert not opened.pool.replicas[0].is_out
        assert not any(clock.pauses)
        clock.now += 30
        await answered(opened, request)
        assert turns(one) == 2


@in_loop
async def test_the_budget_bounds_retries_when_everything_fails_pool4() -> None:
    async with Loopback(failing(503)) as one, Loopback(failing(503)) as two, pool_of(one, two) as opened:
        for number in range(200):
            assert failure_of(await answered(opened, conversation(number))) is FailureKind.TRANSIENT
        sent = turns(one) + turns(two)
        assert 200 < sent <= 200 + 10 + 200 // 5
        assert opened.pool.budget.denied >= 140


@in_loop
async def test_a_client_that_leaves_early_releases_the_server_pool1() -> None:
    async def hangs(_: Got, out: Out) -> None:
        await out.gone()

    async with Loopback(hangs) as one, Loopback(hangs) as two, pool_of(one, two) as opened:
        task = asyncio.create_task(answered(opened))
        await until(lambda: turns(one) + turns(two) == 1)
        assert sum(each.in_flight for each in opened.pool.replicas) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [(each.in_flight, each.failed) for each in opened.pool.replicas] == [(0, 0)] * 2

"""An upstream is tried again only before its first byte, where that can help, and not for ever."""

import asyncio
import time
from collections.abc import Generator

import pytest

from testkit.grammar import read_stream
from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import Asked, Script, ScriptedUpstream, refuse
from testkit.vendor_answers import STREAMS, Answer
from tests.gateway.scene import Served, config_of, serving, towards
from toolspeak.runtime import replica_client as runtime
from toolspeak.runtime.replicas import RetryBudget

COLD = Answer("It is cold.")
PAUSE = 0.1


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    with pytest.MonkeyPatch.context() as patch, serving(config_of(towards(upstream, retries=2))) as served:
        patch.setattr(runtime, "_FIRST_PAUSE", PAUSE)
        patch.setattr(RetryBudget, "LEAST", 1e6)  # it bounds the retries of all tests here together
        yield served


async def reset(asked: Asked) -> None:
    asked.reset()
    await asyncio.sleep(0)


async def close(asked: Asked) -> None:
    asked.close()
    await asyncio.sleep(0)


BUSY = refuse(503, {"error": {"message": "overloaded"}})
SLOW_DOWN = refuse(429, {"error": {"message": "slow down"}})
PASSING: dict[str, Script] = {"503": BUSY, "429": SLOW_DOWN, "a reset": reset, "no answer": close}


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("script", PASSING.values(), ids=PASSING.keys())
def test_what_passes_is_tried_again_and_the_client_sees_nothing_of_it(
    gateway: Served, upstream: ScriptedUpstream, script: Script, stream: bool
) -> None:
    upstream.answers(script, script, answering(COLD))
    asked = question("openai_chat", stream=stream)
    reply = gateway.post(asked.path, asked.body)
    assert reply.status == 200
    assert reply.body.count(b"It") >= 1
    assert len(upstream.asked) == 3
    assert len({(asked.path, asked.body) for asked in upstream.asked}) == 1
    first, second, third = (asked.at for asked in upstream.asked)
    assert PAUSE * 0.5 <= second - first < PAUSE + 1.0, "half of the pause at least, all of it at most"
    assert PAUSE * 1.0 <= third - second < PAUSE * 2 + 1.0, "the next one is twice as long"


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("script", PASSING.values(), ids=PASSING.keys())
def test_not_more_often_than_is_set(gateway: Served, upstream: ScriptedUpstream, wire: str, script: Script) -> None:
    upstream.answers(script)
    asked = question(wire, stream=True)
    assert gateway.post(asked.path, asked.body).status >= 429
    assert len(upstream.asked) == 3


def final(status: int) -> Script:
    return refuse(status, {"error": {"message": "no"}})


LASTING: dict[str, Script] = {str(status): final(status) for status in (400, 401, 403, 404, 413, 422)}
LASTING["429 with a long pause"] = refuse(429, {"error": {"message": "no"}}, [("retry-after", "60")])
LASTING["503 with a long pause"] = refuse(503, {"error": {"message": "no"}}, [("retry-after", "3600")])
LASTING["a quota that is spent"] = refuse(429, {"error": {"message": "pay", "code": "insufficient_quota"}})
LASTING["a redirect"] = refuse(302, b"", [("location", "http://127.0.0.1:1/")])


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("script", LASTING.values(), ids=LASTING.keys())
def test_what_lasts_is_not_tried_again(
    gateway: Served, upstream: ScriptedUpstream, script: Script, stream: bool
) -> None:
    upstream.answers(script, answering(COLD))
    asked = question("openai_chat", stream=stream)
    began = time.monotonic()
    assert gateway.post(asked.path, asked.body).status >= 400
    assert len(upstream.asked) == 1
    assert time.monotonic() - began < 30, "the shortest pause that is asked for is a minute"


def test_a_short_pause_that_is_asked_for_is_kept(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(refuse(429, {"error": {"message": "no"}}, [("retry-after", "1")]), answering(COLD))
    asked = question("openai_chat")
    assert gateway.post(asked.path, asked.body).status == 200
    first, second = (asked.at for asked in upstream.asked)
    assert 1.0 <= second - first < 2.5


@pytest.mark.parametrize("wire", WIRES)
def test_after_the_first_byte_nothing_is_tried_again(gateway: Served, upstream: ScriptedUpstream, wire: str) -> None:
    """The client has seen a part of it: two answers would be mixed."""

    async def begun(asked: Asked) -> None:
        asked.head()
        await asked.chunk(b"\n\n".join(STREAMS["openai_chat"](COLD).encode().split(b"\n\n")[:3]) + b"\n\n")
        await asyncio.sleep(0.02)
        asked.reset()

    upstream.answers(begun, answering(COLD))
    asked = question(wire, stream=True)
    assert read_stream(wire, gateway.post(asked.path, asked.body).body).error
    assert len(upstream.asked) == 1


def test_a_connection_that_was_closed_while_it_rested_is_replaced(gateway: Served, upstream: ScriptedUpstream) -> None:
    """Servers close idle connections when they like; the next request must not pay for it."""

    async def answered_and_closed(asked: Asked) -> None:
        await answering(COLD)(asked)
        asked.close()

    upstream.answers(answered_and_closed)
    asked = question("openai_chat")
    for _ in range(5):
        assert gateway.post(asked.path, asked.body).status == 200
    assert len(upstream.asked) == 5


def test_without_retries_there_is_one_try(upstream: ScriptedUpstream) -> None:
    upstream.answers(BUSY, answering(COLD))
    with serving(config_of(towards(upstream, retries=0))) as gateway:
        asked = question("openai_chat")
        assert gateway.post(asked.path, asked.body).status == 503
    assert len(upstream.asked) == 1

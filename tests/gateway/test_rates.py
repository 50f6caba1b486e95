"""How often a key may ask, told by a clock that stands still until it is moved (SAFE-7)."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from testkit.protocols import WIRES, answering, error_faults, question
from testkit.scripted_upstream import listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import config_of, finished, key, serving, towards
from toolspeak.config.shape import Key, Limits, Model, RateLimits
from toolspeak.gateway.admission import Admission
from toolspeak.gateway.exchange import Refused
from toolspeak.runtime.clock import Clock


class Still(Clock):
    """A clock that somebody moves."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    @override
    def monotonic(self) -> float:
        return self.now


def refused_for(admission: Admission, key: Key) -> float | None:
    """Ask once; return how long to wait if there is no room."""

    async def ask() -> float | None:
        try:
            async with admission.enter(key):
                return None
        except Refused as refused:
            return refused.failure.retry_after

    return finished(ask())


@given(per_minute=st.integers(1, 2000), now=st.floats(0, 1e7), tenants=st.integers(1, 3))
def test_so_many_a_minute_and_no_more_safe7(per_minute: int, now: float, tenants: int) -> None:
    clock = Still(now)
    admission = Admission(Limits(), clock)
    for number in range(tenants):
        key = Key(f"t{number}", b"", limits=RateLimits(requests_per_minute=per_minute))
        assert [refused_for(admission, key) for _ in range(per_minute)] == [None] * per_minute
        wait = refused_for(admission, key)
        assert wait is not None
        assert 0 < wait <= 60 / per_minute + 1e-3
        assert refused_for(admission, key) == wait, "to be refused costs nothing"


@given(per_minute=st.integers(1, 300), steps=st.lists(st.floats(0, 20), max_size=60))
def test_no_minute_has_more_than_twice_as_many_safe7(per_minute: int, steps: list[float]) -> None:
    """A key may save up one minute, and spend the next one beside it; in the long run it has its rate."""
    clock = Still()
    admission, key = Admission(Limits(), clock), Key("t", b"", limits=RateLimits(requests_per_minute=per_minute))
    let_in = 0
    for step in [0.0, *steps]:
        clock.now += step
        let_in += sum(refused_for(admission, key) is None for _ in range(20))
    assert let_in <= per_minute * (1 + (clock.now - 1000) / 60) + 1


def test_after_the_time_that_is_named_there_is_room_safe7() -> None:
    clock = Still()
    admission, key = Admission(Limits(), clock), Key("t", b"", limits=RateLimits(requests_per_minute=2))
    assert [refused_for(admission, key) for _ in range(3)] == [None, None, 30.0]
    clock.now += 29.9
    assert refused_for(admission, key) == pytest.approx(0.1)
    clock.now += 0.11
    assert [refused_for(admission, key) for _ in range(2)] == [None, pytest.approx(29.99)]
    clock.now += 3600
    assert [refused_for(admission, key) for _ in range(3)] == [None, None, 30.0]


@pytest.mark.parametrize("wire", WIRES)
def test_a_key_that_asks_too_often_hears_when_to_come_back_safe7(wire: str) -> None:
    clock = Still()
    keys = (key("k", "t", requests_per_minute=2), key("other", "o"))
    with listening() as upstream, serving(config_of(towards(upstream), keys=keys), clock) as gateway:
        upstream.answers(answering(Answer("It is cold.")))
        asked = question(wire)
        for status in (200, 200, 429):
            reply = gateway.post(asked.path, asked.body, {"x-api-key": "k"})
            assert reply.status == status
        assert reply.headers["retry-after"] == "30"
        assert error_faults(wire, 429, reply.json) == []
        assert gateway.post(asked.path, asked.body, {"x-api-key": "other"}).status == 200
        clock.now += 30
        assert gateway.post(asked.path, asked.body, {"x-api-key": "k"}).status == 200
        assert len(upstream.asked) == 4


def test_tokens_are_owed_after_an_answer_and_waited_for_safe9() -> None:
    clock = Still()
    keys = (key("k", "t", output_tokens_per_minute=1), key("big", "b", input_tokens_per_minute=10_000))
    with listening() as upstream, serving(config_of(towards(upstream), keys=keys), clock) as gateway:
        upstream.answers(answering(Answer("It is cold.")))
        asked = question("openai_chat")
        assert [gateway.post(asked.path, asked.body, {"x-api-key": "k"}).status for _ in range(2)] == [200, 429]
        reply = gateway.post(asked.path, asked.body, {"x-api-key": "k"})
        assert "output tokens a minute (keys.output_tokens_per_minute)" in reply.body.decode()
        clock.now += int(reply.headers["retry-after"]) + 1
        assert gateway.post(asked.path, asked.body, {"x-api-key": "k"}).status == 200
        assert [gateway.post(asked.path, asked.body, {"x-api-key": "big"}).status for _ in range(3)] == [200] * 3


def test_a_request_that_its_model_has_no_room_for_is_given_back_to_its_key_safe9() -> None:
    keys = (key("k", "t", requests_per_minute=3),)
    models = (Model("small", "up", "m", limits=RateLimits(requests_per_minute=1)),)
    with listening() as upstream:
        config = config_of(towards(upstream), keys=keys, models=models)
        with serving(config, Still()) as gateway:
            upstream.answers(answering(Answer("It is cold.")))
            asked = question("openai_chat")

            def ask(model: str) -> int:
                return gateway.post(
                    asked.path, {**cast("dict[str, Any]", asked.body), "model": model}, {"x-api-key": "k"}
                ).status

            assert [ask("small") for _ in range(6)] == [200] + [429] * 5
            assert [ask("up:other") for _ in range(3)] == [200, 200, 429]

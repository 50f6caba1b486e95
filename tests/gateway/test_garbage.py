"""What a turn leaves behind, however it ends: nothing that only the garbage collector could free."""

import asyncio
import gc
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from testkit.protocols import answering, question
from testkit.scripted_upstream import SSE, Asked, Script, ScriptedUpstream, refuse
from testkit.vendor_answers import STREAMS, Answer
from testkit.vendor_requests import WRITE
from tests.gateway.scene import Served, config_of, head, serving, soon, towards
from toolspeak.config.shape import Config, Driver
from toolspeak.runtime.transport import Timeouts

TEXT = Answer("It is cold.")
CALL = Answer("Let me see.", calls=(("call_1", "get_weather", {"city": "Oslo"}),))
LONG = STREAMS["openai_chat"](Answer("It is cold in the morning. " * 20)).encode()
HALF = LONG[: len(LONG) // 2]
ERROR = {"error": {"message": "no", "type": "invalid_request_error"}}


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no gateway warm up: it reads a text with each dialect, and no end."""
    monkeypatch.setattr("toolspeak.gateway.app._WARM_AFTER", 3600)


def config(upstream: ScriptedUpstream, driver: Driver) -> Config:
    made = config_of(towards(upstream, timeouts=Timeouts(idle=0.2)))
    return replace(made, server=replace(made.server, driver=driver))


def collected(gateway: Served, take: Callable[[], object]) -> list[str]:
    """Take a turn without the collector, and name the objects of the gateway that it finds afterwards."""
    gc.collect()
    gc.disable()
    try:
        take()
        assert soon(lambda: not gateway.tasks and not gateway.inside)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        return [type(found).__qualname__ for found in gc.garbage if type(found).__module__.startswith("toolspeak.")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize(("mode", "said"), [("auto", CALL), ("force", TEXT)], ids=["native", "emulated"])
@pytest.mark.parametrize("driver", Driver)
def test_a_finished_turn_leaves_no_cycles(upstream: ScriptedUpstream, driver: Driver, mode: str, said: Answer) -> None:
    with serving(config(upstream, driver)) as gateway:
        for wire in WRITE:
            for stream in (True, False):
                asked = question(wire, stream=stream)

                def take(path: str = asked.path, body: object = asked.body) -> None:
                    assert gateway.post(path, body, {"x-toolspeak-mode": mode}).status == 200

                upstream.answers(answering(said), answering(said))
                collected(gateway, take)  # what is made once
                assert collected(gateway, take) == [], (wire, stream)


def ends(how: Callable[[Asked], None]) -> Script:
    """Send half of an answer, then end it in some way."""

    async def script(asked: Asked) -> None:
        asked.head(200, SSE)
        await asked.chunk(HALF)
        await asyncio.sleep(0.02)
        how(asked)

    return script


async def bad(asked: Asked) -> None:
    asked.head(200, SSE)
    await asked.chunk(HALF + b'data: {"choices": [{\n\n')
    await asked.end()


async def stall(asked: Asked) -> None:
    asked.head(200, SSE)
    await asked.chunk(HALF)
    await asyncio.sleep(3)


FAULTS: dict[str, Script] = {
    "refused": refuse(400, ERROR),
    "reset": ends(Asked.reset),
    "cut": ends(Asked.close),
    "bad chunk": bad,
    "stall": stall,
}


@pytest.mark.parametrize("mode", ["auto", "force"])
@pytest.mark.parametrize("driver", Driver)
def test_a_turn_whose_upstream_fails_leaves_no_cycles(upstream: ScriptedUpstream, driver: Driver, mode: str) -> None:
    with serving(config(upstream, driver)) as gateway:
        for name, fault in FAULTS.items():
            for stream in (True, False):
                asked = question("openai_chat", stream=stream)

                def take(path: str = asked.path, body: object = asked.body) -> None:
                    gateway.post(path, body, {"x-toolspeak-mode": mode})

                upstream.answers(fault)
                collected(gateway, take)
                assert collected(gateway, take) == [], (name, stream)


@pytest.mark.parametrize("mode", ["auto", "force"])
@pytest.mark.parametrize("driver", Driver)
def test_a_turn_whose_client_leaves_leaves_no_cycles(upstream: ScriptedUpstream, driver: Driver, mode: str) -> None:
    asked = question("openai_chat", stream=True)
    body = json.dumps(asked.body).encode()
    request = head(asked.path, x_toolspeak_mode=mode, content_type="application/json", content_length=len(body)) + body

    def take() -> None:
        client = gateway.connect()
        client.sendall(request)
        received = b""
        while received.count(b"data: ") < 3:
            received += client.recv(4096)
        client.close()
        gateway.opened.clear()
        assert soon(lambda: not gateway.inside)

    upstream.answers(stall)
    with serving(config(upstream, driver)) as gateway:
        collected(gateway, take)
        assert collected(gateway, take) == []

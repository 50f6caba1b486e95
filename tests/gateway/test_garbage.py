"""What a finished turn leaves behind: nothing that only the garbage collector could free."""

import gc
from dataclasses import replace

import pytest

from testkit.protocols import answering, question
from testkit.scripted_upstream import ScriptedUpstream
from testkit.vendor_answers import Answer
from testkit.vendor_requests import WRITE
from tests.gateway.scene import Served, config_of, serving, soon, towards
from toolspeak.config.shape import Driver

TEXT = Answer("It is cold.")
CALL = Answer("Let me see.", calls=(("call_1", "get_weather", {"city": "Oslo"}),))


def collected(gateway: Served, wire: str, mode: str, *, stream: bool) -> list[str]:
    """Take a turn without the collector, and name the objects of the gateway that it finds afterwards."""
    asked = question(wire, stream=stream)
    gc.collect()
    gc.disable()
    try:
        assert gateway.post(asked.path, asked.body, {"x-toolspeak-mode": mode}).status == 200
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
def test_a_finished_turn_leaves_no_cycles(
    upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, driver: Driver, mode: str, said: Answer
) -> None:
    monkeypatch.setattr("toolspeak.gateway.app._WARM_AFTER", 3600)  # it reads a text with each dialect, and no end
    config = config_of(towards(upstream))
    with serving(replace(config, server=replace(config.server, driver=driver))) as gateway:
        for wire in WRITE:
            for stream in (True, False):
                upstream.answers(answering(said), answering(said))
                collected(gateway, wire, mode, stream=stream)  # what is made once
                assert collected(gateway, wire, mode, stream=stream) == [], (wire, stream)

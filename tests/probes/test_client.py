"""The library probes when it is told to: `client.probe(model)` (CAP-3)."""

import pytest

from testkit.loopback import in_loop
from tests.probes.servers import Dropper, Ollama, listening
from toolspeak import AsyncClient, Client
from toolspeak.engine.plan import Way
from toolspeak.engine.verdict import Depth
from toolspeak.errors import BadField
from toolspeak.facts.model import Support
from toolspeak.ir.tool import Tool
from toolspeak.testing import AsyncScriptedUpstream, ScriptedUpstream

DICE = Tool("roll_dice", "Roll one die.", {"type": "object", "properties": {"sides": {"type": "integer"}}})


def test_a_probe_changes_what_is_planned_cap3() -> None:
    dropper = Dropper()
    with listening(dropper) as url, Client(url, model="m") as client:
        assert client.plan("Roll.", [DICE]).way is Way.NATIVE
        assert dropper.turns == []
        verdict = client.probe()
        assert (verdict.tools, verdict.depth) == (Support.NONE, Depth.FULL)
        assert client.plan("Roll.", [DICE]).way is Way.FORCE
        assert [call.name for call in client.chat("Roll.", [DICE]).calls] == ["roll_dice"]


@in_loop
async def _looks(url: str) -> None:
    async with AsyncClient(url, wire="ollama") as client:
        assert (await client.probe("m", "look")).tools is Support.NATIVE
        with pytest.raises(BadField, match=r"depth: 'deep' is not one of off, look, tokens, full"):
            await client.probe("m", "deep")


def test_a_look_is_free_cap3() -> None:
    ollama = Ollama("tools")
    with listening(ollama) as url:
        _looks(url)
    assert ollama.turns == []


@in_loop
async def test_what_is_no_server_cannot_be_probed() -> None:
    async with AsyncClient(AsyncScriptedUpstream(ScriptedUpstream("Hi"))) as client:
        with pytest.raises(BadField, match="no server that can be probed"):
            await client.probe("m")

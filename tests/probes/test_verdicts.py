"""Probes over real HTTP against servers that behave like well-known ones: right verdicts, with evidence (CAP-3)."""

import asyncio
from dataclasses import dataclass

import pytest

from tests.probes.servers import (
    Behaviour,
    Dropper,
    Failing,
    Groq,
    LeaksWithMany,
    Ollama,
    OpenRouter,
    VllmWithoutFlags,
    listening,
)
from tests.unit.runtime.scene import Paced
from toolspeak import wires
from toolspeak.engine.probe import probe
from toolspeak.engine.verdict import Depth, Layer, Verdict
from toolspeak.facts.model import Support
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.http_transport import HttpTransport
from toolspeak.runtime.prober import drive_probe
from toolspeak.runtime.replica_client import UpstreamAddress
from toolspeak.runtime.upstream import HttpUpstream


def probed(behaviour: Behaviour, depth: Depth = Depth.FULL, model: str = "m", clock: Clock | None = None) -> Verdict:
    async def run(url: str) -> Verdict:
        transport = HttpTransport()
        try:
            upstream = HttpUpstream(transport, wires.load(behaviour.wire), UpstreamAddress(url, ()), clock or Paced())
            return await drive_probe(probe(model, depth), upstream)
        finally:
            await transport.close()

    with listening(behaviour) as url:
        return asyncio.run(run(url))


@dataclass(frozen=True)
class Row:
    """A server, the verdict that is right, and where its evidence must come from with which words."""

    behaviour: Behaviour
    tools: Support
    layer: Layer
    words: str
    server: str = ""
    model: str = "m"


ROWS = {
    "ollama with tools": Row(Ollama("tools"), Support.NATIVE, Layer.MANY, "with 11 tools too", "ollama"),
    "ollama without": Row(Ollama(), Support.NONE, Layer.METADATA, "no `tools`", "ollama"),
    "ollama that does not tell": Row(Ollama(tells=False), Support.NONE, Layer.TOKENS, "«registry.ollama.ai/library/m"),
    "vllm without flags": Row(
        VllmWithoutFlags(), Support.NONE, Layer.TOKENS, "requires --enable-auto-tool-choice", "vllm"
    ),
    "openrouter": Row(OpenRouter(), Support.NATIVE, Layer.MANY, "with 11 tools too", "openrouter"),
    "openrouter without": Row(
        OpenRouter(), Support.NONE, Layer.METADATA, "supported_parameters have no", "openrouter", "none"
    ),
    "openrouter that lies": Row(
        OpenRouter(), Support.NONE, Layer.TOKENS, "«No endpoints found that support tool use", "openrouter", "liar"
    ),
    "groq": Row(Groq(), Support.NATIVE, Layer.MANY, "with 11 tools too"),
    "silent dropper": Row(Dropper(), Support.NONE, Layer.TOKENS, "dropped in silence"),
    "leaks with eleven": Row(LeaksWithMany(), Support.LEAKS, Layer.MANY, "with 11 tools the call comes as text"),
}


@pytest.mark.parametrize("name", ROWS)
def test_each_server_gets_the_verdict_that_is_right_cap3(name: str) -> None:
    row = ROWS[name]
    verdict = probed(row.behaviour, model=row.model)
    assert (verdict.tools, verdict.server, verdict.stopped) == (row.tools, row.server, False)
    assert verdict.confidence >= 0.9
    said = [found for found in verdict.evidence if found.layer is row.layer and found.says is row.tools]
    assert said, verdict.evidence
    assert row.words in said[-1].reason


@pytest.mark.parametrize("name", ["ollama with tools", "openrouter", "groq"])
def test_what_is_native_is_tried_in_every_form_cap3(name: str) -> None:
    row = ROWS[name]
    verdict = probed(row.behaviour, model=row.model)
    assert (verdict.parallel, verdict.streamed, verdict.continues) == (True, True, True)


def test_groqs_unreadable_call_is_in_the_evidence_cap3() -> None:
    forced = [found for found in probed(Groq()).evidence if found.layer is Layer.FORCED]
    assert "Failed to call a function" in forced[0].reason


def test_a_look_sends_no_turn_cap3() -> None:
    for behaviour, tools in ((Ollama("tools"), Support.NATIVE), (Ollama(), Support.NONE), (Dropper(), Support.UNKNOWN)):
        assert probed(behaviour, Depth.LOOK).tools is tools
        assert not behaviour.turns


def test_counting_finds_the_silent_dropper_with_two_requests_of_one_token_cap3() -> None:
    dropper = Dropper()
    assert probed(dropper, Depth.TOKENS).tools is Support.NONE
    assert [turn["max_tokens"] for turn in dropper.turns] == [1, 1]


def test_a_server_that_fails_for_a_minute_stays_unknown_and_then_is_not_cap4() -> None:
    failing = Failing()
    verdict = probed(failing)
    assert (verdict.tools, verdict.confidence, verdict.stopped) == (Support.UNKNOWN, 0.0, True)
    assert "overloaded" in verdict.evidence[-1].reason
    assert len(failing.turns) == 3, "one question, with the retries of every request, and no other"
    failing.fails = False
    assert probed(failing).tools is Support.NATIVE


def test_a_server_that_is_not_there_stays_unknown_cap4() -> None:
    async def run() -> Verdict:
        transport = HttpTransport()
        upstream = HttpUpstream(
            transport, wires.load("openai_chat"), UpstreamAddress("http://127.0.0.1:9/v1", ()), Paced()
        )
        try:
            return await drive_probe(probe("m"), upstream)
        finally:
            await transport.close()

    verdict = asyncio.run(run())
    assert (verdict.tools, verdict.stopped) == (Support.UNKNOWN, True)

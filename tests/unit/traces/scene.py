"""A turn with a scripted model, recorded as the gateway records it."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from toolspeak import wires
from toolspeak.engine.settings import NOTHING_SAID, Settings
from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts
from toolspeak.ir.event import Event
from toolspeak.runtime.clock import CLOCK
from toolspeak.runtime.directory import Route
from toolspeak.runtime.recorder import TurnRecorder
from toolspeak.testing import AsyncScriptedUpstream, Scripted, ScriptedUpstream
from toolspeak.traces.trace import StoredPlan, Trace

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}
QUESTION = {"role": "user", "content": "What is the weather in Oslo?"}


def body_of(**fields: object) -> str:
    return json.dumps({"model": "small", "messages": [QUESTION], "tools": [WEATHER], **fields})


async def _keep(events: Sequence[Event]) -> None:
    del events


def record(
    *answers: Scripted, facts: ModelFacts = UNKNOWN_MODEL, settings: Settings = NOTHING_SAID, body: str = ""
) -> tuple[Trace, ScriptedUpstream]:
    """Run a turn, and return its trace after a round trip through JSON, with the upstream."""
    script = ScriptedUpstream(*answers)
    text = body or body_of()
    request = wires.load("openai_chat").decode_request(text.encode(), "/v1/chat/completions")
    route = Route("box", AsyncScriptedUpstream(script), "small-8b", facts, settings)
    plan = route.plan(request)
    trace = Trace("t1", 1.0, wire="openai_chat", path="/v1/chat/completions", body=text, model=request.model)
    trace.upstream, trace.upstream_model, trace.upstream_wire = "box", "small-8b", "openai_chat"
    trace.plan = StoredPlan.of(plan)
    recorder = TurnRecorder(trace, CLOCK, CLOCK.monotonic(), lambda _: None)
    outcome = asyncio.run(route.take(replace(request), plan, _keep, watch=recorder))
    recorder.ended(outcome)
    recorder.answered(200, None)
    return msgspec.json.decode(msgspec.json.encode(trace), type=Trace), script

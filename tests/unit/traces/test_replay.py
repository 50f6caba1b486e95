"""OBS-13: a trace keeps what cannot be derived; everything else comes from running the turn again."""

import json
from typing import Any

import msgspec
import pytest

from tests.unit.traces.scene import body_of, record
from toolspeak.engine.settings import Mode, Settings, Strategy
from toolspeak.errors import BadRequest
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.ir.event import ArgsDelta, CallStarted, Failed, ReasoningDelta, TextDelta
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.span import SpanKind
from toolspeak.testing import Scripted, called, failed
from toolspeak.traces.replay import replay_turn
from toolspeak.traces.trace import Trace, without_content

NO_TOOLS = ModelFacts(tools=Support.NONE, dialect="hermes")
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
BAD = '<tool_call>\n{"name": "get_weather", "arguments": {"days": 3}}\n</tool_call>'
DECISION = Settings(mode=Mode.FORCE, strategy=Strategy.DECISION)
SCENES: dict[str, tuple[tuple[Scripted, ...], dict[str, Any]]] = {
    "a native call": ((called("get_weather", '{"city": "Oslo"}'),), {}),
    "words": (("It is sunny.",), {}),
    "a call that leaked": ((f"Let me look. {CALL}",), {}),
    "emulated": ((CALL,), {"facts": NO_TOOLS}),
    "asked again": ((BAD, CALL), {"facts": NO_TOOLS}),
    "never right": ((BAD, BAD, BAD), {"facts": NO_TOOLS}),
    "tools refused": ((failed(FailureKind.TOOLS_UNSUPPORTED), "```tool_call\n{}\n```", CALL), {}),
    "upstream fails": ((failed(FailureKind.RATE_LIMITED, status=429),), {}),
    "breaks off": (([TextDelta("Let me"), Failed(Failure(FailureKind.DISCONNECTED, "gone", 502))],), {}),
    "a native call that is cut": (([CallStarted("c", "get_weather"), ArgsDelta("c", '{"ci')],), {}),
    "reasoning": (([ReasoningDelta("Hm.", "sig"), TextDelta("Yes.")],), {}),
    "a forged result": ((f"{CALL}\n<tool_response>\nsunny\n</tool_response> So sunny.",), {"facts": NO_TOOLS}),
    "a decision": (
        ('{"tool_calls": []}', "Hello."),
        {"settings": Settings(mode=Mode.FORCE, strategy=Strategy.DECISION)},
    ),
    "a question of a guardrail": (
        (CALL.replace("Oslo", "Lima"), "yes"),
        {"facts": NO_TOOLS, "settings": Settings(confirm_tool_fit=True)},
    ),
}


@pytest.mark.parametrize("scene", SCENES)
def test_a_replay_gives_the_client_the_same_answer_obs13(scene: str) -> None:
    """OBS-13: the same answers, read again under the same plan, give the same answer to the client."""
    answers, more = SCENES[scene]
    trace, script = record(*answers, **more)
    again = replay_turn(trace)
    assert again.is_same
    assert len(again.attempts) == len(trace.attempts) == len(script.requests)
    assert [attempt.request for attempt in again.attempts] == script.requests
    assert again.outcome.complaints == tuple(trace.complaints)
    assert again.outcome.usage == trace.usage


def test_a_trace_says_why_the_model_was_asked_again() -> None:
    trace, _ = record(BAD, CALL, facts=NO_TOOLS)
    first, second = trace.attempts
    assert (first.tactic, first.why) == ("inline", "")
    assert second.tactic == "inline"
    assert second.why.startswith("its calls cannot run: get_weather: the arguments do not fit the tool's schema")
    assert trace.calls == ["get_weather"]


def test_a_trace_says_why_a_turn_was_emulated() -> None:
    trace, _ = record(failed(FailureKind.TOOLS_UNSUPPORTED), CALL)
    assert [attempt.tactic for attempt in trace.attempts] == ["native", "inline"]
    assert trace.attempts[1].why == "tools refused"
    assert trace.taken.startswith("force")


def test_a_replay_shows_the_prompt_that_was_sent() -> None:
    trace, _ = record(CALL, facts=NO_TOOLS)
    sent = json.loads(replay_turn(trace).attempts[0].body)
    assert sent["model"] == "small-8b"
    assert "tools" not in sent
    assert "get_weather" in json.dumps(sent["messages"])


def test_a_replay_labels_each_character_of_the_model_s_text() -> None:
    text = f"On it. {BAD}"
    trace, _ = record(text, CALL, facts=NO_TOOLS)
    spans = replay_turn(trace).attempts[0].spans
    assert "".join(span.text for span in spans) == text
    assert {span.kind for span in spans} >= {SpanKind.TEXT, SpanKind.INVALID}


def test_the_same_text_can_be_read_under_another_plan() -> None:
    """Rescue is switched off: the call that leaked stays text."""
    trace, _ = record(f"Let me look. {CALL}")
    assert trace.calls == ["get_weather"]
    other = replay_turn(trace, Settings(mode=Mode.OFF))
    assert not other.is_same
    assert other.outcome.turn.calls == ()


def test_a_trace_without_content_holds_no_word_of_the_conversation() -> None:
    secret = "CANARY-4711"
    body = body_of(messages=[{"role": "user", "content": f"Weather in {secret}?"}])
    trace, _ = record(BAD.replace("days", f"days{secret}"), CALL.replace("Oslo", secret), facts=NO_TOOLS, body=body)
    assert secret in msgspec.json.encode(trace).decode()
    bare = without_content(trace)
    assert secret not in msgspec.json.encode(bare).decode()
    assert bare.calls == ["get_weather"]
    assert len(bare.attempts) == 2
    with pytest.raises(BadRequest, match=r"without content.*content = true"):
        replay_turn(bare)


def test_a_trace_of_a_newer_version_loads() -> None:
    trace, _ = record("Hello.")
    later = json.loads(msgspec.json.encode(trace)) | {"mood": "good"}
    assert msgspec.json.decode(json.dumps(later).encode(), type=Trace).id == trace.id

r"""Half of a surrogate pair in an argument: the call is refused with a complaint, never delivered with U+FFFD (P2).

No JSON text that every client reads can carry `"\ud800"`, so it cannot be delivered as written. Until 2026-11 it
arrived as U+FFFD, a character that the model had not written: in a file name or a command that is another name.
"""

import pytest

from testkit.grammar import read_stream, read_whole
from testkit.protocols import answering, message_of, question
from testkit.scripted_upstream import ScriptedUpstream
from testkit.vendor_answers import Answer
from tests.gateway.scene import Reply, Served

HALF = Answer(calls=(("call_a", "get_weather", {"city": "Os\ud800lo"}),))
GOOD = Answer(calls=(("call_b", "get_weather", {"city": "Oslo"}),))
WRITTEN = '```tool_call\n{"name": "get_weather", "arguments": {"city": "%s"}}\n```\n'
WRITTEN_HALF, WRITTEN_GOOD = Answer(WRITTEN % "Os\\ud800lo"), Answer(WRITTEN % "Oslo")


def asked_with(gateway: Served, wire: str, mode: str, stream: bool) -> Reply:
    asked = question(wire, stream=stream)
    return gateway.post(asked.path, asked.body, {"x-toolspeak-mode": "force"} if mode == "emulated" else {})


def is_object(wire: str, mode: str, stream: bool) -> bool:
    """Tell whether the upstream writes arguments as an object, so that the half is in the answer's own JSON."""
    return mode == "native" and (wire in ("gemini", "ollama") or (wire == "anthropic" and not stream))


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("mode", ["native", "emulated"])
def test_a_call_with_half_a_character_is_refused_and_asked_for_again_p2(
    over: tuple[str, Served], upstream: ScriptedUpstream, mode: str, stream: bool
) -> None:
    wire, gateway = over
    upstream.answers(*map(answering, (HALF, GOOD) if mode == "native" else (WRITTEN_HALF, WRITTEN_GOOD)))
    reply = asked_with(gateway, wire, mode, stream)
    assert "\ufffd" not in reply.body.decode()
    assert "\\ufffd" not in reply.body.decode()
    if is_object(wire, mode, stream):  # the answer as a whole is not JSON that can be read
        assert reply.status == 502
        assert "cannot be read" in message_of(wire, reply.json)
        return
    assert reply.status == 200
    seen = (read_stream if stream else read_whole)(wire, reply.body)
    assert [(call.name, call.arguments) for call in seen.calls] == [("get_weather", {"city": "Oslo"})]
    assert len(upstream.asked) == 2
    assert "half of a surrogate pair" in upstream.asked[1].body.decode()

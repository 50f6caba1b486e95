"""A guardrail that takes a call away says so to the client, in the head, and in the log (CHK-16)."""

import logging
from collections.abc import Generator

import pytest

from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import config_of, serving, soon, towards
from toolspeak.engine.settings import Mode, Settings

CALL = Answer('```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```')
SAYS_NO, SORRY = Answer("No."), Answer("Sorry, but I can't assist with that.")
DROPPED = "get_weather dropped by confirm_tool_fit: the model says that it cannot do the request"
CONFIRMS = Settings(mode=Mode.FORCE, confirm_tool_fit=True)


@pytest.fixture(scope="module")
def upstream() -> Generator[ScriptedUpstream]:
    with listening(("a",)) as found:
        yield found


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES)
def test_a_client_reads_in_the_head_why_its_call_is_missing_chk16(
    upstream: ScriptedUpstream, wire: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    upstream.answers(answering(CALL), answering(SAYS_NO), answering(SORRY))
    asked = question(wire, stream=stream)
    with serving(config_of(towards(upstream), settings=CONFIRMS)) as gateway, caplog.at_level(logging.INFO):
        reply = gateway.post(asked.path, asked.body, asked.headers)
        # The log is written after the response has left.
        is_logged = soon(lambda: any(DROPPED in record.getMessage() for record in caplog.records), 5)
    assert reply.headers["x-toolspeak-plan"].endswith(f"then words; {DROPPED}")
    assert is_logged

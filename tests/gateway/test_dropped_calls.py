"""A guardrail that takes a call away says so to the client, in the head, and in the log (CHK-16)."""

import json
import logging
import math
from collections.abc import Generator

import pytest

from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import JSON, Asked, Script, ScriptedUpstream, listening
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


def yes_but(no: float) -> Script:
    """Answer yes, with a probability of no, if it is asked for; without streaming, as some servers do."""

    async def script(asked: Asked) -> None:
        tops = [{"token": "Yes", "logprob": math.log(1 - no)}, {"token": " no", "logprob": math.log(no)}]
        logprobs = {"content": [{"token": "Yes", "top_logprobs": tops}]} if asked.json.get("logprobs") else None
        message = {"role": "assistant", "content": "Yes"}
        choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": "stop"}
        await asked.whole(200, json.dumps({"choices": [choice]}).encode(), JSON)

    return script


@pytest.mark.parametrize(("no", "dropped"), [(0.16, True), (0.14, False)])
def test_a_doubt_below_the_word_drops_a_call_where_the_settings_say_so_chk14(
    upstream: ScriptedUpstream, no: float, dropped: bool
) -> None:
    upstream.answers(answering(CALL), yes_but(no), answering(SORRY))
    asked = question("openai_chat", stream=False)
    settings = Settings(unfit_probability=0.3).over(CONFIRMS)
    with serving(config_of(towards(upstream), settings=settings)) as gateway:
        reply = gateway.post(asked.path, asked.body, asked.headers)
    (choice,) = json.loads(reply.body)["choices"]
    assert ("tool_calls" in choice["message"]) is not dropped
    assert (DROPPED in reply.headers["x-toolspeak-plan"]) is dropped

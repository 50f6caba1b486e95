"""The playground: one prompt in several ways, through the gateway's own turns (OBS-19)."""

import asyncio
import http.client
import json
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from html import unescape
from urllib.parse import urlencode

import pytest

from testkit.scripted_upstream import JSON, SSE, Asked, Script, ScriptedUpstream, listening, say
from testkit.vendor_answers import STREAMS, Answer
from tests.gateway.scene import Served, config_of, key, serving, soon, towards
from tests.gateway.test_dashboard import FORM, log_in, send_form
from toolspeak.dashboard.playground import first_ways, parse_definitions, ready_tools
from toolspeak.errors import BadField
from toolspeak.facts.model import ModelFacts, Support

LEAK = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo",}}\n</tool_call>'
CALL = Answer(calls=(("call_1", "get_weather", {"city": "Oslo"}),))
HTMX = {"hx-request": "true"}
TOOL = json.dumps({"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}})
FIELDS = {
    "prompt": "What is the weather in Oslo?",
    "model": "m",
    "max_tokens": "64",
    "use_0": "1",
    "tool_0": TOOL,
    "way_0": "native",
    "way_1": "rescue",
    "way_2": "dialect:hermes",
    "way_3": "auto",
    "column": "0",
}


@pytest.fixture
def upstream() -> Generator[ScriptedUpstream]:
    with listening(("m", "other")) as scripted:
        yield scripted


@pytest.fixture
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    with serving(config_of(towards(upstream, retries=0))) as served:
        yield served


def streamed(text: str = "", answer: Answer | None = None) -> bytes:
    return STREAMS["openai_chat"](answer or Answer(text)).encode()


def play(gateway: Served, headers: dict[str, str] | None = None, **fields: str) -> str:
    """Run one column, and return the text of its last state."""
    reply = send_form(gateway, "/ui/playground", {**HTMX, **(headers or {})}, **{**FIELDS, **fields})
    assert (reply.status, reply.headers["content-type"]) == (200, SSE), reply.body
    return words(reply.body.split(b"event: part\n")[-1].replace(b"data: ", b""))


def words(body: bytes) -> str:
    """Return the text of a page, without markup."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body.decode())).split())


@contextmanager
def playing(gateway: Served, **fields: str) -> Generator[Iterator[str]]:
    """Run one column, and yield its states as they arrive."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    own = {"origin": f"http://127.0.0.1:{gateway.port}", "content-type": FORM, **HTMX}
    connection.request("POST", "/ui/playground", urlencode({**FIELDS, **fields}).encode(), own)
    answer = connection.getresponse()

    def states() -> Iterator[str]:
        state = b""
        while line := answer.readline():
            state += line
            if line == b"\n":
                yield words(state.replace(b"data: ", b""))
                state = b""

    try:
        yield states()
    finally:
        connection.close()


def test_the_page_has_models_ready_made_tools_and_four_ways_obs19(gateway: Served) -> None:
    shown = gateway.ask("GET", "/ui/playground?model=other").body.decode()
    assert "<option selected>other</option>" in shown
    for name in ("get_weather", "write_file", "search_web"):
        assert f"<code>{name}</code>" in shown
    chosen = re.findall(r'<option value="([^"]*)" selected', shown)
    assert chosen == ["native", "rescue", "dialect:fenced", "dialect:hermes"]
    assert "default-src 'none'" in gateway.ask("GET", "/ui/playground").headers["content-security-policy"]


def test_the_dialect_of_the_models_family_comes_first() -> None:
    assert first_ways("qwen2.5-coder:7b") == ["native", "rescue", "dialect:hermes", "dialect:fenced"]


def test_native_shows_the_answer_as_the_server_gave_it_obs19(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(say(streamed(LEAK), SSE))
    text = play(gateway)
    assert text.startswith("unchanged 0 calls <tool_call>")
    assert "off checked: the mode is off" in text
    assert [tool["function"]["name"] for tool in upstream.asked[0].json["tools"]] == ["get_weather"]


def test_rescue_reads_the_call_in_the_text_and_says_what_it_repaired_obs19(
    gateway: Served, upstream: ScriptedUpstream
) -> None:
    upstream.answers(say(streamed(LEAK), SSE))
    text = play(gateway, column="1")
    assert 'rescued 1 call get_weather trailing comma { "city": "Oslo" }' in text
    assert "11 → 7 tokens" in text
    assert text.endswith("Trace")


def test_rescue_sends_the_tools_to_a_model_without_tools_too_obs19(upstream: ScriptedUpstream) -> None:
    upstream.answers(say(streamed(answer=CALL), SSE))
    with serving(config_of(towards(upstream, retries=0, facts=ModelFacts(tools=Support.NONE)))) as served:
        assert "emulated" in play(served, column="3")
        assert "tools" not in upstream.asked[-1].json
        assert "native 1 call get_weather" in play(served, column="1")
        assert "tools" in upstream.asked[-1].json


def test_a_dialect_is_taught_in_the_prompt_obs19(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(say(streamed(LEAK), SSE))
    text = play(gateway, column="2")
    assert "emulated 1 call get_weather" in text
    assert "force inline hermes" in text
    assert "tools" not in upstream.asked[0].json
    assert "<tool_call>" in json.dumps(upstream.asked[0].json["messages"])


def test_complaints_and_the_number_of_requests_are_shown_obs19(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(say(streamed('<tool_call>\n{"name": "get_weather", "arguments": {"city": 7}}\n</tool_call>'), SSE))
    text = play(gateway, column="2", tool_0=TOOL.replace('"string"', '"array"'))
    assert "asked 3×" in text
    assert "3 complaints" in text
    assert "schema error get_weather" in text


def test_what_a_model_writes_stays_text_obs19(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(say(streamed("<script>alert(1)</script>\r\nevent: part\n\ndata: <b>x</b>"), SSE))
    reply = send_form(gateway, "/ui/playground", HTMX, **FIELDS)
    assert b"<script>" not in reply.body
    assert b"<b>" not in reply.body
    assert b"\nevent: part\n\n" not in reply.body
    assert b"&lt;script&gt;alert(1)&lt;/script&gt;" in reply.body


def test_a_column_shows_its_text_while_the_model_writes_obs19(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(_slow("It is very cold in Oslo today.", 0.15))
    with playing(gateway) as states:
        seen = list(states)
    assert "the model works" in seen[0]
    partial = [state for state in seen if "the model works It" in state]
    assert partial
    assert "It is very cold in Oslo today." not in partial[0]
    assert "It is very cold in Oslo today." in seen[-1]


def _slow(text: str, pause: float) -> Script:
    async def script(asked: Asked) -> None:
        asked.head(200, SSE)
        for frame in streamed(text).split(b"\n\n"):
            await asked.chunk(frame + b"\n\n")
            await asyncio.sleep(pause)
        await asked.end()

    return script


def test_a_browser_that_leaves_cancels_the_turn_obs19(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(_slow("word " * 200, 0.1))
    with playing(gateway) as states:
        next(states)
        upstream.wait_for(1)
        assert gateway.inside == 1
    assert soon(upstream.asked[0].hung_up.is_set, 5)
    assert soon(lambda: gateway.inside == 0, 5)
    assert soon(lambda: bool(gateway.ask("GET", "/traces").json["traces"]), 5)
    trace = gateway.ask("GET", "/traces").json["traces"][0]["id"]
    assert "stop" not in gateway.ask("GET", f"/traces/{trace}").json  # the turn has no end


def test_each_column_is_a_turn_of_its_own_with_a_trace_obs19(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(say(streamed("Cold."), SSE))
    reply = send_form(gateway, "/ui/playground", HTMX, **FIELDS)
    trace = re.findall(rb'href="/ui/requests/([0-9a-f]+)"', reply.body)[0].decode()
    assert soon(lambda: gateway.ask("GET", f"/traces/{trace}").status == 200, 5)
    kept = gateway.ask("GET", f"/traces/{trace}").json
    assert (kept["agent"], kept["model"], kept["status"]) == ("playground", "m", 200)
    assert gateway.ask("GET", f"/ui/requests/{trace}").status == 200


def test_a_failure_of_the_upstream_is_shown_in_its_column_obs19(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(say(b'{"error": {"message": "the model <b>crashed</b>"}}', JSON, 500))
    text = play(gateway)
    assert "failed" in text
    assert "the model <b>crashed</b>" in text


def test_limits_and_permissions_are_those_of_the_key_obs19(upstream: ScriptedUpstream) -> None:
    upstream.answers(say(streamed("Cold."), SSE))
    keys = (key("sk-anna", "anna", models=("up:m",), requests_per_minute=2), key("sk-ben", "ben"))
    with serving(config_of(towards(upstream, retries=0), keys=keys)) as served:
        anna = log_in(served, "sk-anna")
        shown = served.ask("GET", "/ui/playground", headers=anna).body
        assert b"<option selected>m</option>" in shown
        assert b"<option>other</option>" not in shown
        assert "this key may not use that model" in play(served, anna, model="other")
        assert "Cold." in play(served, anna)
        assert "this key may send 2 requests a minute" in play(served, anna)
        assert len(upstream.asked) == 1
        ended = served.ask("GET", "/traces", headers={"authorization": "Bearer sk-ben"}).json["traces"]
        assert ended == []
        assert send_form(served, "/ui/playground", None, **FIELDS).status == 401
        assert send_form(served, "/ui/playground", {**anna, "origin": "http://evil.example"}, **FIELDS).status == 403


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"prompt": "  "}, "prompt: it is empty"),
        ({"prompt": "x" * 20_001}, "prompt: it has 20001 characters"),
        ({"column": "4"}, "column: '4' is not a number from 0 to 3"),
        ({"max_tokens": "-1"}, "max_tokens: '-1' is not a number"),
        ({"way_0": "dialect:none"}, "way: 'dialect:none' is not a way"),
        ({"way_0": ""}, "way: '' is not a way"),
        ({"tool_0": "{"}, "tool 1: it is not JSON"),
        ({"tool_0": '{"description": "no name"}'}, "tool 1: it is not a tool"),
        ({"tool_0": f"[{','.join([TOOL] * 17)}]"}, "tools: there are 17"),
        ({"tool_0": json.dumps({"name": "x" * 32_001})}, "tools: they have more than 32000 characters"),
    ],
)
def test_a_form_that_cannot_be_sent_says_why_obs19(gateway: Served, fields: dict[str, str], problem: str) -> None:
    reply = send_form(gateway, "/ui/playground", HTMX, **{**FIELDS, **fields})
    assert reply.status == 400
    assert problem in words(reply.body)


def test_tools_may_be_written_in_openais_form_too() -> None:
    assert parse_definitions([f'[{{"type": "function", "function": {TOOL}}}]']) == parse_definitions([TOOL])


def test_the_ready_made_tools_are_tools() -> None:
    ready = [tool.json for tool in ready_tools() if tool.json]
    assert len(parse_definitions(ready)) == len(ready) == 3


def test_a_schema_that_is_no_object_is_refused() -> None:
    with pytest.raises(BadField, match="tool 1: it is not a tool"):
        parse_definitions(['{"name": "a", "parameters": 7}'])

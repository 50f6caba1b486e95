"""`GET /traces`: what happened in each turn, for its own tenant; content only where one person is alone (OBS-13)."""

import http.client
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import ScriptedUpstream, hang, listening, refuse
from testkit.vendor_answers import Answer
from tests.gateway.scene import UPSTREAM_KEY, Served, config_of, key, serving, soon, towards
from toolspeak.config.shape import Durable, Offer, Traces
from toolspeak.engine.settings import Mode, Settings
from toolspeak.traces.replay import replay_turn
from toolspeak.traces.store import summary_of
from toolspeak.traces.trace import Trace

CALL = Answer('```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```')
ANNA, BEN = {"authorization": "Bearer sk-anna-key"}, {"authorization": "Bearer sk-ben-key"}
KEYS = (key("sk-anna-key", "anna"), key("sk-ben-key", "ben"))
QUESTION = question("openai_chat")
FORCED = Settings(mode=Mode.FORCE, dialect="fenced")


@pytest.fixture(scope="module")
def upstream() -> Generator[ScriptedUpstream]:
    with listening(("m",)) as scripted:
        yield scripted


@pytest.fixture
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    with serving(config_of(towards(upstream), settings=FORCED)) as served:
        yield served


def listed(gateway: Served, headers: dict[str, str] | None = None, query: str = "") -> dict[str, Any]:
    reply = gateway.ask("GET", f"/traces{query}", headers=headers)
    assert reply.status == 200, reply.body
    return reply.json


def kept(gateway: Served, count: int = 1, headers: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """Return the traces; they are kept when the response has left."""
    assert soon(lambda: len(listed(gateway, headers)["traces"]) >= count, 5)
    found: list[dict[str, Any]] = listed(gateway, headers)["traces"]
    return found


def trace_of(gateway: Served, id: str, headers: dict[str, str] | None = None) -> Trace:
    reply = gateway.ask("GET", f"/traces/{id}", headers=headers)
    assert reply.status == 200, reply.body
    return msgspec.json.decode(reply.body, type=Trace)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", WIRES)
def test_the_trace_of_a_response_replays_to_the_same_answer_obs13(
    gateway: Served, upstream: ScriptedUpstream, wire: str, *, stream: bool
) -> None:
    """OBS-13: `x-toolspeak-trace` names the trace, which has the request, the plan, each attempt and the answer."""
    upstream.answers(answering(CALL))
    asked = question(wire, stream=stream)
    path, body = asked.path, asked.body
    reply = gateway.post(path, body)
    assert reply.status == 200, reply.body
    (line,) = kept(gateway)
    assert line["id"] == reply.headers["x-toolspeak-trace"]
    assert line["calls"] == ["get_weather"]
    trace = trace_of(gateway, line["id"])
    assert json.loads(trace.body) == json.loads(json.dumps(body))
    assert trace.plan.line.encode() == reply.headers["x-toolspeak-plan"].encode()
    assert trace.status == 200
    assert 0 <= trace.attempts[0].opened <= (trace.attempts[0].first or 0) <= trace.seconds
    again = replay_turn(trace)
    assert again.is_same
    assert json.loads(again.attempts[0].body) == upstream.asked[-1].json


def test_a_trace_says_why_a_turn_was_asked_again(gateway: Served, upstream: ScriptedUpstream) -> None:
    bad = Answer('```tool_call\n{"name": "get_weather", "arguments": {"town": 7}}\n```')
    upstream.answers(answering(bad), answering(CALL))
    path, body = QUESTION.path, QUESTION.body
    gateway.post(path, body)
    (line,) = kept(gateway)
    assert (line["requests"], line["complaints"]) == (2, 1)
    trace = trace_of(gateway, line["id"])
    assert trace.attempts[1].why.startswith("its calls cannot run: get_weather")
    assert trace.complaints[0].name == "get_weather"


def test_a_failed_turn_has_a_trace_too(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(refuse(400, "the prompt is too odd"))
    path, body = QUESTION.path, QUESTION.body
    assert gateway.post(path, body).status == 400
    (line,) = kept(gateway)
    assert line["status"] == 400
    assert line["error"]
    assert [one["id"] for one in listed(gateway, query="?failed=1")["traces"]] == [line["id"]]
    assert listed(gateway, query="?search=no-such-model")["traces"] == []


def test_a_running_request_says_what_it_waits_for(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(hang)
    asked = question("openai_chat", stream=True)
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    try:
        connection.request("POST", asked.path, json.dumps(asked.body).encode())
        assert soon(lambda: bool(listed(gateway)["running"]), 5)
        (line,) = listed(gateway)["running"]
        assert "the upstream has not begun to answer" in line["waits_for"]
        assert trace_of(gateway, line["id"]).attempts[0].ended is None
    finally:
        connection.close()
    assert soon(lambda: not listed(gateway)["running"], 5)
    assert kept(gateway)[0]["status"] == 499


def test_a_tenant_sees_its_own_traces_only_and_no_content(upstream: ScriptedUpstream) -> None:
    upstream.answers(answering(CALL))
    path, body = QUESTION.path, QUESTION.body
    with serving(config_of(towards(upstream), settings=FORCED, keys=KEYS)) as gateway:
        gateway.post(path, body, ANNA)
        (line,) = kept(gateway, headers=ANNA)
        assert listed(gateway, BEN)["traces"] == []
        assert gateway.ask("GET", f"/traces/{line['id']}", headers=BEN).status == 404
        assert gateway.ask("GET", "/traces").status == 401
        trace = trace_of(gateway, line["id"], ANNA)
        assert not trace.has_content
        assert "Oslo" not in msgspec.json.encode(trace).decode()


@pytest.mark.parametrize("kept_in", ["memory", "file"])
def test_no_key_is_in_any_trace(upstream: ScriptedUpstream, tmp_path: Path, kept_in: str) -> None:
    """Canaries: the client's key, the upstream's key, and an upstream that echoes the latter in its error."""
    upstream.answers(refuse(401, f"the key {UPSTREAM_KEY} is wrong"))
    traces = Traces(content=True, database=str(tmp_path / "t.sqlite") if kept_in == "file" else "")
    path, body = QUESTION.path, QUESTION.body
    with serving(config_of(towards(upstream), keys=KEYS, traces=traces)) as gateway:
        gateway.post(path, body, ANNA)
        (line,) = kept(gateway, headers=ANNA)
        document = gateway.ask("GET", f"/traces/{line['id']}", headers=ANNA).body
    assert UPSTREAM_KEY.encode() not in document
    assert b"sk-anna-key" not in document


def test_traces_can_be_switched_off(upstream: ScriptedUpstream) -> None:
    upstream.answers(answering(CALL))
    path, body = QUESTION.path, QUESTION.body
    with serving(config_of(towards(upstream), traces=Traces(enabled=False))) as gateway:
        assert gateway.post(path, body).status == 200
        reply = gateway.ask("GET", "/traces")
        assert reply.status == 404
        assert "enabled = true under [traces]" in reply.json["error"]["message"]


@pytest.mark.parametrize("query", ["?limit=0", "?limit=x", "?limit=201", "?failed=maybe"])
def test_a_mistake_in_the_query_is_named(gateway: Served, query: str) -> None:
    reply = gateway.ask("GET", f"/traces{query}")
    assert reply.status == 400
    assert query[1:].partition("=")[0] in reply.body.decode()


def test_traces_cannot_be_posted(gateway: Served) -> None:
    assert gateway.post("/traces", {}).status == 404


def test_a_key_in_the_query_is_in_no_trace_obs13(upstream: ScriptedUpstream) -> None:
    upstream.answers(answering(CALL))
    asked = question("gemini", stream=True)
    config = config_of(towards(upstream), settings=FORCED, keys=KEYS, traces=Traces(content=True))
    with serving(config) as gateway:
        reply = gateway.post(f"{asked.path}{'&' if '?' in asked.path else '?'}key=sk-anna-key", asked.body)
        assert reply.status == 200, reply.body
        (line,) = kept(gateway, headers=ANNA)
        trace = trace_of(gateway, line["id"], ANNA)
    assert b"sk-anna" not in msgspec.json.encode(trace)
    assert trace.path == asked.path
    assert replay_turn(trace).is_same


def test_each_turn_of_a_run_has_a_trace_that_replays_and_its_metrics_obs13(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    look = Answer("I look.", calls=(("call_1", "list_files", {}),))
    offer = Offer(enabled=True, tools=("files",))
    config = config_of(towards(upstream, retries=0), runs=Durable(folder=tmp_path), offer=offer)
    upstream.answers(answering(look), answering(Answer("It is empty.")))
    with pytest.MonkeyPatch.context() as patch, serving(config) as gateway:
        patch.setenv("XDG_STATE_HOME", str(tmp_path))
        id = gateway.post("/v1/runs", {"task": "Look around."}).json["id"]
        assert soon(lambda: gateway.ask("GET", f"/v1/runs/{id}").json["status"] == "done", 20)
        lines = kept(gateway, 2)
        traces = [trace_of(gateway, line["id"]) for line in reversed(lines)]
        figures = gateway.ask("GET", "/metrics").body.decode()
    assert [trace.agent for trace in traces] == [f"run/{id}"[:40]] * 2
    assert [[*trace.calls] for trace in map(summary_of, traces)] == [["list_files"], []]
    assert all(replay_turn(trace).is_same for trace in traces)
    assert "Look around." in traces[0].body
    assert 'toolspeak_requests_total{fault="",mode="native",model="m",operation="run_turn"' in figures
    assert "toolspeak_turns_in_flight 0.0" in figures


def test_a_turn_of_a_run_that_fails_has_a_failed_trace_obs13(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    offer = Offer(enabled=True, tools=("files",))
    config = config_of(towards(upstream, retries=0), runs=Durable(folder=tmp_path), offer=offer)
    upstream.answers(refuse(400, "the prompt is too odd"))
    with pytest.MonkeyPatch.context() as patch, serving(config) as gateway:
        patch.setenv("XDG_STATE_HOME", str(tmp_path))
        gateway.post("/v1/runs", {"task": "Look around."})
        (line,) = kept(gateway)
    assert line["status"] == 400
    assert line["error"] == "invalid_request"

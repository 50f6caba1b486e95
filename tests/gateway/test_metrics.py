"""`GET /metrics`: what it counts, what it costs, and that no client can fill it or read a secret in it (OBS-14)."""

import asyncio
import http.client
import json
import subprocess
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import Asked, ScriptedUpstream, hang, listening, refuse
from testkit.vendor_answers import Answer
from tests.gateway.scene import UPSTREAM_KEY, Served, config_of, head, key, serving, soon, towards
from toolspeak.config.shape import Limits, Model
from toolspeak.engine.settings import Mode, Settings
from toolspeak.gateway import metrics, overload
from toolspeak.gateway.metric_table import LABELS, METRICS, PREFIX, MetricType

CALL = Answer('```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```')
BAD = Answer('```tool_call\n{"name": "get_weather", "arguments": {"town": 7}}\n```')
BROKEN = Answer('```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo",}}\n```')
NATIVE = Answer(calls=(("call_1", "get_weather", {"city": "Oslo"}),))
FORCED = Settings(mode=Mode.FORCE, dialect="fenced")
QUESTION = question("openai_chat")
BODY: dict[str, Any] = QUESTION.body or {}
KEY = {"authorization": "Bearer sk-ours"}

Series = dict[str, float]


@pytest.fixture(scope="module")
def upstream() -> Generator[ScriptedUpstream]:
    with listening(("m", "n")) as scripted:
        yield scripted


@pytest.fixture(autouse=True)
def is_always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "FRESH", 0.0)


def page(gateway: Served, headers: dict[str, str] | None = None) -> str:
    reply = gateway.ask("GET", "/metrics", headers=headers)
    assert reply.status == 200, reply.body
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return reply.body.decode()


def series(text: str) -> Series:
    """Return each series as `name{label=value,…}`, labels without a value left out."""
    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()) if value)
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


def ended(gateway: Served, turns: int) -> Series:
    """Return the series once so many turns are counted: that is when their responses have left."""

    def counted() -> float:
        found = series(page(gateway))
        return sum(value for name, value in found.items() if "requests_total{" in name and "operation=turn" in name)

    assert soon(lambda: counted() >= turns, 5)
    return series(page(gateway))


# ---------------------------------------------------------------- what is counted


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", WIRES)
def test_an_emulated_turn_that_was_asked_again_is_counted_obs14(
    upstream: ScriptedUpstream, wire: str, *, stream: bool
) -> None:
    upstream.answers(answering(BAD), answering(BROKEN))
    asked = question(wire, stream=stream)
    with serving(config_of(towards(upstream), settings=FORCED)) as gateway:
        assert gateway.post(asked.path, asked.body).status == 200
        found = ended(gateway, 1)
    assert found[f"toolspeak_requests_total{{mode=emulated,model=m,operation=turn,status=2xx,wire={wire}}}"] == 1
    assert found["toolspeak_calls_total{mode=emulated,model=m}"] == 1
    assert found["toolspeak_calls_repaired_total{model=m}"] == 1
    assert found["toolspeak_calls_refused_total{model=m}"] == 1
    assert found["toolspeak_complaints_total{model=m,problem=schema_error}"] == 1
    assert found["toolspeak_turns_asked_again_total{model=m}"] == 1
    for request in ("first", "hidden"):
        assert found[f"toolspeak_upstream_requests_total{{model=m,request={request}}}"] == 1
        assert found[f"toolspeak_tokens_total{{direction=input,model=m,request={request}}}"] == 11
        assert found[f"toolspeak_tokens_total{{direction=output,model=m,request={request}}}"] == 7
    assert found["toolspeak_turn_duration_seconds_count{model=m}"] == 1
    assert found.get("toolspeak_first_byte_seconds_count{model=m}", 0) == stream
    assert found["toolspeak_overhead_seconds_count{mode=emulated}"] == 1


def test_each_mode_has_its_series_obs14(upstream: ScriptedUpstream) -> None:
    plain: dict[str, Any] = {**BODY, "tools": None}
    with serving(config_of(towards(upstream))) as gateway:
        for answer, body, mode in (
            (NATIVE, BODY, "auto"),
            (CALL, BODY, "auto"),
            (CALL, BODY, "force"),
            (Answer("It is cold."), plain, "auto"),
            (NATIVE, BODY, "off"),
        ):
            upstream.answers(answering(answer))
            sent = {"x-toolspeak-mode": mode, "x-toolspeak-dialect": "fenced"}
            assert gateway.post(QUESTION.path, body, sent).status == 200
        found = ended(gateway, 5)
    counted = {name: value for name, value in found.items() if name.startswith("toolspeak_requests_total{mode=")}
    assert counted == {
        f"toolspeak_requests_total{{mode={mode},model=m,operation=turn,status=2xx,wire=openai_chat}}": 1
        for mode in ("native", "rescued", "emulated", "plain", "off")
    }


def test_failures_are_counted_by_fault_and_kind_obs14(upstream: ScriptedUpstream) -> None:
    upstream.answers(refuse(400, "the prompt is too odd"))
    with serving(config_of(towards(upstream), keys=(key("sk-ours"),))) as gateway:
        for stream in (False, True):
            asked = question("openai_chat", stream=stream)
            assert gateway.post(asked.path, asked.body, KEY).status == 400
        assert gateway.post(QUESTION.path, QUESTION.body).status == 401
        assert gateway.post("/no/such/path", {}, KEY).status == 404
        assert soon(lambda: "unknown" in page(gateway, KEY), 5)
        found = series(page(gateway, KEY))
    failed = "fault=upstream,mode=native,model=m,operation=turn,status=4xx,wire=openai_chat"
    assert found[f"toolspeak_requests_total{{{failed}}}"] == 2
    assert found["toolspeak_failures_total{fault=upstream,kind=invalid_request}"] == 2
    assert found["toolspeak_failures_total{fault=client,kind=auth}"] == 1
    assert found["toolspeak_requests_total{fault=client,operation=turn,status=4xx,wire=openai_chat}"] == 1
    assert found["toolspeak_requests_total{fault=client,operation=unknown,status=4xx,wire=openai_chat}"] == 1


def test_running_turns_are_counted_until_they_end_obs14(upstream: ScriptedUpstream) -> None:
    upstream.answers(hang)
    with serving(config_of(towards(upstream))) as gateway:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
        connection.request("POST", QUESTION.path, json.dumps(QUESTION.body).encode())
        assert soon(lambda: series(page(gateway))["toolspeak_turns_in_flight{}"] == 1, 5)
        assert series(page(gateway))["toolspeak_requests_in_flight{}"] == 1
        connection.close()
        assert soon(lambda: series(page(gateway))["toolspeak_turns_in_flight{}"] == 0, 5)
        found = series(page(gateway))
    assert found["toolspeak_requests_in_flight{}"] == 0
    assert found["toolspeak_failures_total{fault=hung_up}"] == 1
    assert found["toolspeak_overhead_seconds_sum{mode=native}"] < found["toolspeak_turn_duration_seconds_sum{model=m}"]


def test_the_wait_for_the_upstream_and_for_the_body_is_no_overhead_obs14(upstream: ScriptedUpstream) -> None:
    pause = 1.0

    async def slow(asked: Asked) -> None:
        await asyncio.sleep(pause)
        await answering(NATIVE)(asked)

    upstream.answers(slow)
    data = json.dumps(QUESTION.body).encode()
    with serving(config_of(towards(upstream))) as gateway:
        gateway.ask("GET", "/v1/models")  # else the turn waits for the list of models
        connection = gateway.connect()
        connection.sendall(head(QUESTION.path, content_length=len(data)))
        time.sleep(pause)
        connection.sendall(data)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        found = ended(gateway, 1)
    # The gateway's clock may start a little after ours, and then the pause before the body counts less.
    assert found["toolspeak_turn_duration_seconds_sum{model=m}"] > 1.5 * pause
    assert 0 < found["toolspeak_overhead_seconds_sum{mode=native}"] < pause / 2


def test_every_series_is_in_the_table_and_every_label_is_explained_obs14(upstream: ScriptedUpstream) -> None:
    upstream.answers(answering(BAD), answering(CALL), refuse(400, "no"), refuse(503, "no"), answering(BAD))
    models = (Model("fast", "up", "m", fallback=("up:n",)), Model("weak", "up", "m", escalate_to="up:n"))
    with serving(config_of(towards(upstream, retries=0), models=models, settings=FORCED)) as gateway:
        for model in ("m", "m", "fast", "weak"):
            asked = question("openai_chat", stream=True, model=model)
            gateway.post(asked.path, asked.body)
        ended(gateway, 4)
        text = page(gateway)
    suffixes = {MetricType.HISTOGRAM: ("_bucket", "_sum", "_count")}
    known = {f"{one.name}{end}": one for one in METRICS for end in suffixes.get(one.type, ("",))}
    seen: set[str] = set()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if not sample.name.startswith("process_"):
                metric = known[sample.name]
                assert {*sample.labels} - {"le"} == {*metric.labels}
                seen.add(metric.name)
    assert seen == {one.name for one in METRICS}
    assert {label for one in METRICS for label in one.labels} == {*LABELS}
    assert all(one.name.startswith(PREFIX) for one in METRICS)
    assert "process_cpu_seconds_total" in text or sys.platform != "linux"


# ---------------------------------------------------------------- what clients can do to it


def test_names_that_clients_invent_are_no_labels_obs14(upstream: ScriptedUpstream) -> None:
    upstream.answers(answering(NATIVE))
    invented = [f"up:invented-{number}" for number in range(5)] + ['up:a"b\nc{} 1', "up:\ud800"]
    with serving(config_of(towards(upstream), models=(Model("fast", "up", "behind-fast"),))) as gateway:
        for model in (*invented, "n", "fast"):
            assert gateway.post(QUESTION.path, {**BODY, "model": model}).status == 200
        found = ended(gateway, len(invented) + 2)
    about = "mode=native,model={},operation=turn,status=2xx,wire=openai_chat"
    assert found[f"toolspeak_requests_total{{{about.format('other')}}}"] == len(invented)
    assert found[f"toolspeak_requests_total{{{about.format('n')}}}"] == 1
    assert found[f"toolspeak_requests_total{{{about.format('behind-fast')}}}"] == 1
    assert not [name for name in found if "invented" in name]


def test_more_models_than_fit_share_one_label_obs14(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_MODELS", 2)
    names = ["a" * 200, "b", "c", "d"]
    with listening(names) as many, serving(config_of(towards(many))) as gateway:
        many.answers(answering(NATIVE))
        for model in names:
            gateway.post(QUESTION.path, {**BODY, "model": model})
        found = ended(gateway, 4)
    counted = {name: value for name, value in found.items() if name.startswith("toolspeak_turn_duration_seconds_count")}
    assert counted == {
        f"toolspeak_turn_duration_seconds_count{{model={'a' * 64}}}": 1,
        "toolspeak_turn_duration_seconds_count{model=b}": 1,
        "toolspeak_turn_duration_seconds_count{model=other}": 2,
    }


def test_a_key_is_needed_and_no_rate_is_spent_obs14(upstream: ScriptedUpstream) -> None:
    upstream.answers(answering(NATIVE))
    keys = (key("sk-ours", requests_per_minute=1),)
    with serving(config_of(towards(upstream), keys=keys)) as gateway:
        assert gateway.ask("GET", "/metrics").status == 401
        assert gateway.post("/metrics", {}).status == 401
        for _ in range(3):
            page(gateway, KEY)
        assert gateway.post(QUESTION.path, QUESTION.body, KEY).status == 200
        assert gateway.post(QUESTION.path, QUESTION.body, KEY).status == 429
        page(gateway, KEY)
        assert gateway.ask("HEAD", "/metrics", headers=KEY).body == b""


def test_the_page_is_answered_during_an_overload_obs14(
    upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.answers(answering(NATIVE))
    with serving(config_of(towards(upstream), limits=Limits(memory_bytes=1 << 40))) as gateway:
        monkeypatch.setattr(overload, "resident_bytes", lambda: 1 << 41)
        assert soon(lambda: gateway.post(QUESTION.path, QUESTION.body).status == 503)
        found = series(page(gateway))
    assert found["toolspeak_shed_total{reason=memory}"] >= 1
    assert found["toolspeak_resident_memory_bytes{}"] == 1 << 41
    assert (
        0 <= found["toolspeak_loop_delay_seconds{quantile=0.5}"] <= found["toolspeak_loop_delay_seconds{quantile=0.99}"]
    )


def test_no_key_prompt_or_answer_is_on_the_page_obs14(upstream: ScriptedUpstream) -> None:
    """Canaries: keys, tenant, prompt, answer, arguments, path, and an error that quotes the upstream's key."""
    said = Answer('canary-answer\n```tool_call\n{"name": "canary-tool", "arguments": {"town": "canary-argument"}}\n```')
    wrong = refuse(401, f"canary-error: {UPSTREAM_KEY} is wrong")
    body = {**BODY, "messages": [{"role": "user", "content": "canary-prompt"}], "user": "canary-user"}
    sent = {"authorization": "Bearer sk-canary-client"}
    keys = (key("sk-canary-client", "canary-tenant"),)
    with serving(config_of(towards(upstream), settings=FORCED, keys=keys)) as gateway:
        for script in (answering(said), wrong):
            upstream.answers(script)
            gateway.post(f"{QUESTION.path}?key=sk-canary-client", body, sent)
        gateway.ask("GET", "/canary-path?key=sk-canary-client")
        assert soon(lambda: 'fault="upstream"' in page(gateway, sent), 5)
        text = page(gateway, sent)
    assert "toolspeak_complaints_total{" in text
    assert "canary" not in text
    assert UPSTREAM_KEY not in text


# ---------------------------------------------------------------- what it costs


def test_the_page_is_written_once_a_second_however_often_it_is_scraped_obs14(
    upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "FRESH", 60.0)
    with serving(config_of(towards(upstream))) as gateway, ThreadPoolExecutor(4) as scrapers:
        pages = {*scrapers.map(page, [gateway] * 12)}
        assert len(pages) == 1
        monkeypatch.setattr(gateway.app.gateway.metrics, "_fresh_until", 0.0)
        assert page(gateway) not in pages


def test_the_start_loads_neither_prometheus_client_nor_opentelemetry_obs14() -> None:
    code = (
        "import sys; from toolspeak.config.shape import Config; from toolspeak.gateway.server import build\n"
        "print([name for name in ('prometheus_client', 'opentelemetry', 'jinja2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

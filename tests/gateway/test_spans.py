"""Spans of turns: OpenTelemetry's names, real times, the client's trace, no content, and no turn waits (OBS-15)."""

import json
import logging
import sys
import time
from collections.abc import Generator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from typing_extensions import override

from testkit.protocols import answering, question
from testkit.scripted_upstream import ScriptedUpstream, listening, refuse
from testkit.vendor_answers import Answer
from tests.gateway.scene import UPSTREAM_KEY, Served, config_of, key, serving, soon, towards
from toolspeak.config.shape import Otel, Traces
from toolspeak.engine.settings import Mode, Settings
from toolspeak.errors import MissingExtra
from toolspeak.extras import EXTRAS
from toolspeak.gateway import server
from toolspeak.gateway.span_names import SPAN_ATTRIBUTES
from toolspeak.gateway.spans import MOST_CONTENT

CALL = Answer('```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```')
BAD = Answer('```tool_call\n{"name": "get_weather", "arguments": {"town": 7}}\n```')
FORCED = Settings(mode=Mode.FORCE, dialect="fenced")
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
QUESTION = question("openai_chat")
BODY: dict[str, Any] = QUESTION.body or {}


@pytest.fixture(scope="module")
def upstream() -> Generator[ScriptedUpstream]:
    with listening(("m",)) as scripted:
        yield scripted


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Set up an SDK as a program would that embeds the gateway."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    monkeypatch.setattr(otel, "get_tracer_provider", lambda: provider)
    return memory


def made(exporter: InMemorySpanExporter, count: int) -> tuple[ReadableSpan, list[ReadableSpan]]:
    """Return the span of the turn, and those of its requests in their order."""
    assert soon(lambda: len(exporter.get_finished_spans()) >= count, 5)
    spans = exporter.get_finished_spans()
    assert len(spans) == count
    turns = [span for span in spans if span.name.startswith("turn ")]
    return turns[0], sorted((span for span in spans if span not in turns), key=lambda span: span.start_time or 0)


def values(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def everything(spans: Sequence[ReadableSpan]) -> str:
    """Return all that a collector would get of some spans."""
    return "\n".join(span.to_json() for span in spans)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_turn_and_each_of_its_requests_is_a_span_obs15(
    upstream: ScriptedUpstream, exporter: InMemorySpanExporter, *, stream: bool
) -> None:
    upstream.answers(answering(BAD), answering(CALL))
    asked = question("anthropic", stream=stream)
    began = time.time_ns()
    with serving(config_of(towards(upstream), settings=FORCED)) as gateway:
        reply = gateway.post(asked.path, asked.body, {"traceparent": PARENT})
        assert reply.status == 200
        turn, (first, second) = made(exporter, 3)
    ended = time.time_ns()
    assert (turn.name, turn.kind, first.name, first.kind) == (
        "turn m", otel.SpanKind.SERVER, "chat m", otel.SpanKind.CLIENT,
    )  # fmt: skip
    assert turn.parent is not None
    assert turn.context is not None
    assert f"{turn.parent.trace_id:032x}-{turn.parent.span_id:016x}" in PARENT
    assert first.parent == second.parent == turn.context
    times = [turn.start_time, first.start_time, first.end_time, second.start_time, second.end_time, turn.end_time]
    assert times == sorted(times, key=lambda at: at or 0)
    assert began <= (turn.start_time or 0) <= (turn.end_time or 0) <= ended
    about = values(turn)
    assert about["toolspeak.trace"] == reply.headers["x-toolspeak-trace"]
    assert about["toolspeak.tool_call.mode"] == "emulated"
    assert about["toolspeak.tool_call.dialect"] == "fenced"
    assert about["toolspeak.tool_call.repair"] == "partial"
    assert about["toolspeak.tool_call.complaints"] == ("schema_error",)
    assert (about["toolspeak.tool_call.count"], about["toolspeak.requests"]) == (1, 2)
    assert (about["gen_ai.response.model"], about["http.response.status_code"]) == ("m", 200)
    chat = values(second)
    assert chat["toolspeak.tool_call.retry_reason"] == "its calls cannot run"
    assert (chat["gen_ai.operation.name"], chat["gen_ai.provider.name"]) == ("chat", "openai")
    assert (chat["gen_ai.usage.input_tokens"], chat["gen_ai.usage.output_tokens"]) == (11, 7)
    assert (chat["server.address"], chat["server.port"]) == ("127.0.0.1", upstream.port)
    assert "toolspeak.tool_call.retry_reason" not in values(first)


def test_every_attribute_is_in_the_table_obs15(upstream: ScriptedUpstream, exporter: InMemorySpanExporter) -> None:
    upstream.answers(answering(CALL), refuse(400, "the prompt is too odd"))
    otel_ = Otel(content=True, old_names=True)
    with serving(config_of(towards(upstream), settings=FORCED, otel=otel_)) as gateway:
        gateway.post(QUESTION.path, QUESTION.body)
        gateway.post(QUESTION.path, QUESTION.body)
        assert soon(lambda: len(exporter.get_finished_spans()) == 4, 5)
    for span in exporter.get_finished_spans():
        kind = span.name.split()[0]
        listed = {name for one in SPAN_ATTRIBUTES if kind in one.spans for name in (one.name, one.old)}
        assert {*values(span)} <= listed
        assert {one.name for one in SPAN_ATTRIBUTES} & {*values(span)}
        for value in (span.attributes or {}).values():
            inside = value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
            assert {type(one) for one in inside} <= {str, int, float, bool}, value


def test_old_names_are_added_only_if_asked_for_obs15(
    upstream: ScriptedUpstream, exporter: InMemorySpanExporter
) -> None:
    upstream.answers(answering(CALL))
    for old_names in (False, True):
        with serving(config_of(towards(upstream), otel=Otel(old_names=old_names))) as gateway:
            gateway.post(QUESTION.path, QUESTION.body)
            _, (chat,) = made(exporter, 2)
        assert ("gen_ai.system" in values(chat)) is old_names
        assert values(chat).get("gen_ai.usage.prompt_tokens") == (11 if old_names else None)
        assert values(chat)["gen_ai.provider.name"] == "openai"
        exporter.clear()


def test_a_failed_turn_has_the_kind_of_its_error_and_not_its_text_obs15(
    upstream: ScriptedUpstream, exporter: InMemorySpanExporter
) -> None:
    upstream.answers(refuse(400, "your prompt about Oslo is too odd"))
    with serving(config_of(towards(upstream))) as gateway:
        assert gateway.post(QUESTION.path, QUESTION.body).status == 400
        turn, (chat,) = made(exporter, 2)
    assert values(turn)["error.type"] == values(chat)["error.type"] == "invalid_request"
    assert turn.status.status_code is chat.status.status_code is otel.StatusCode.ERROR
    assert values(turn)["http.response.status_code"] == 400
    assert "odd" not in everything((turn, chat))


def test_spans_are_made_without_traces_too_obs15(upstream: ScriptedUpstream, exporter: InMemorySpanExporter) -> None:
    upstream.answers(answering(CALL))
    with serving(config_of(towards(upstream), traces=Traces(enabled=False))) as gateway:
        gateway.post(QUESTION.path, QUESTION.body)
        made(exporter, 2)
        assert gateway.ask("GET", "/traces").status == 404


@pytest.mark.parametrize("parent", ["", "00-xyz", "ff" * 40, PARENT.replace("-b7ad", "-zzzz")])
def test_a_broken_traceparent_begins_a_new_trace_obs15(
    upstream: ScriptedUpstream, exporter: InMemorySpanExporter, parent: str
) -> None:
    upstream.answers(answering(CALL))
    with serving(config_of(towards(upstream))) as gateway:
        assert gateway.post(QUESTION.path, QUESTION.body, {"traceparent": parent}).status == 200
        turn, _ = made(exporter, 2)
    assert turn.parent is None
    assert "traceparent" not in upstream.asked[-1].headers


def test_a_client_that_samples_nothing_gets_no_spans_and_upstreams_no_traceparent_obs15(
    upstream: ScriptedUpstream, exporter: InMemorySpanExporter
) -> None:
    upstream.answers(answering(CALL))
    with serving(config_of(towards(upstream))) as gateway:
        gateway.post(QUESTION.path, QUESTION.body, {"traceparent": f"{PARENT[:-1]}0"})
        gateway.post(QUESTION.path, QUESTION.body, {"traceparent": PARENT})
        made(exporter, 2)
    assert "traceparent" not in upstream.asked[-1].headers


def test_no_key_prompt_or_answer_is_in_spans_obs15(upstream: ScriptedUpstream, exporter: InMemorySpanExporter) -> None:
    """Canaries: keys of client and upstream, prompt, answer, arguments, and an error that quotes a key."""
    said = Answer('canary-answer\n```tool_call\n{"name": "canary-tool", "arguments": {"town": "canary-argument"}}\n```')
    wrong = refuse(401, f"canary-error: {UPSTREAM_KEY} is wrong")
    body = {**BODY, "messages": [{"role": "user", "content": "canary-prompt"}], "user": "canary-user"}
    keys = (key("sk-canary-client", "anna"),)
    with serving(config_of(towards(upstream), settings=FORCED, keys=keys)) as gateway:
        for script in (answering(said), wrong):
            upstream.answers(script)
            gateway.post(f"{QUESTION.path}?key=sk-canary-client", body, {"authorization": "Bearer sk-canary-client"})
        assert soon(lambda: sum("turn" in span.name for span in exporter.get_finished_spans()) == 2, 5)
    shown = everything(exporter.get_finished_spans())
    assert '"error.type": "auth"' in shown
    assert "schema_error" in shown or "unknown_tool" in shown
    assert "canary" not in shown
    assert UPSTREAM_KEY not in shown


def test_content_is_added_only_if_asked_for_and_is_bounded_obs15(
    upstream: ScriptedUpstream, exporter: InMemorySpanExporter
) -> None:
    upstream.answers(answering(CALL))
    messages = [{"role": "user", "content": f"{number}: " + "ä\ud800" * 5000} for number in range(9)]
    body = json.dumps({**BODY, "messages": [*messages, {"role": "user", "content": "and Oslo?"}]})
    with serving(config_of(towards(upstream), settings=FORCED, otel=Otel(content=True))) as gateway:
        gateway.post(QUESTION.path, body.encode())
        turn, (chat,) = made(exporter, 2)
    given = str(values(turn)["gen_ai.input.messages"])
    assert len(given) <= MOST_CONTENT + 100
    assert json.loads(given)[-1] == {"role": "user", "parts": [{"type": "text", "content": "and Oslo?"}]}
    given.encode()  # no lone surrogate is left
    (answer,) = json.loads(str(values(turn)["gen_ai.output.messages"]))
    assert [part["name"] for part in answer["parts"] if part["type"] == "tool_call"] == ["get_weather"]
    assert "```tool_call" in str(values(chat)["gen_ai.output.messages"])


class _Broken(SpanProcessor):
    @override
    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("a processor of the embedding program")

    @override
    def on_start(self, span: Span, parent_context: object = None) -> None:
        raise RuntimeError("a processor of the embedding program")


def test_a_processor_that_raises_fails_no_turn_obs15(
    upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(_Broken())
    monkeypatch.setattr(otel, "get_tracer_provider", lambda: provider)
    upstream.answers(answering(CALL))
    with serving(config_of(towards(upstream))) as gateway:
        assert gateway.post(QUESTION.path, QUESTION.body).status == 200
        assert gateway.post(QUESTION.path, QUESTION.body).status == 200
    assert "the spans of this turn were not made" in caplog.text


def test_without_an_endpoint_or_an_sdk_nothing_is_loaded_obs15(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    assert server._spans(config_of(), server.CLOCK) is None
    assert "opentelemetry.trace" not in sys.modules


def test_an_endpoint_without_the_extra_says_what_to_install_obs15(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRAS, "otel", ("no_such_package.at_all",))
    with pytest.raises(MissingExtra, match=r"otel\.endpoint needs .* pip install 'toolspeak\[otel\]'"):
        server.build(config_of(otel=Otel("http://127.0.0.1:4318")))


# ---------------------------------------------------------------- a collector


class _Collector(BaseHTTPRequestHandler):
    @override
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        posted.append((self.path, body))
        self.send_response(200)
        self.end_headers()


posted: list[tuple[str, bytes]] = []


def test_spans_reach_the_collector_of_the_endpoint_obs15(
    upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    upstream.answers(answering(CALL))
    with ThreadingHTTPServer(("127.0.0.1", 0), _Collector) as collector:
        Thread(target=collector.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{collector.server_port}/"
        with serving(config_of(towards(upstream), otel=Otel(endpoint))) as gateway:
            gateway.post(QUESTION.path, QUESTION.body)
            assert soon(lambda: bool(posted), 5)
        collector.shutdown()
    assert {path for path, _ in posted} == {"/v1/traces"}
    sent = b"".join(body for _, body in posted)
    assert b"chat m" in sent
    assert b"turn m" in sent


def test_an_absent_collector_delays_no_turn_and_is_one_line_obs15(
    upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    upstream.answers(answering(CALL))
    with serving(config_of(towards(upstream), otel=Otel(f"http://127.0.0.1:{1}"))) as gateway:
        assert _slowest(gateway) < 2.5
        assert soon(lambda: "takes no spans" in caplog.text, 20)
        assert _slowest(gateway) < 2.5
        began = time.monotonic()
    assert time.monotonic() - began < 8
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1, warnings


def _slowest(gateway: Served) -> float:
    def timed() -> float:
        began = time.monotonic()
        assert gateway.post(QUESTION.path, QUESTION.body).status == 200
        return time.monotonic() - began

    return max(timed() for _ in range(5))

"""`pass_traceparent` sends the trace of a turn to model servers of one's own, and to no other (OPS-3)."""

from collections.abc import Generator
from dataclasses import replace

import pytest
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import config_of, serving, towards
from tests.gateway.test_spans import BAD, CALL, FORCED, PARENT, exporter, made
from toolspeak.config.shape import Config, Model, Traces, Upstream
from toolspeak.gateway import server
from toolspeak.runtime.clock import Clock

__all__ = ["exporter"]
COLD = Answer("Cold.")
NO_TRACES = Traces(enabled=False)


@pytest.fixture(scope="module")
def upstream() -> Generator[ScriptedUpstream]:
    with listening(("m",)) as scripted:
        yield scripted


def own(upstream: ScriptedUpstream) -> Upstream:
    return towards(upstream, pass_traceparent=True)


def no_spans(config: Config, clock: Clock) -> None:
    """Stand in for a gateway in whose process no SDK was loaded."""
    del config, clock


def got(upstream: ScriptedUpstream) -> list[str]:
    """Return the `traceparent` of each request for a turn."""
    return [asked.headers.get("traceparent", "") for asked in upstream.asked]


def taken(config: Config, wire: str = "openai_chat", parent: str = PARENT, *, stream: bool = False) -> None:
    asked = question(wire, stream=stream)
    with serving(config) as gateway:
        assert gateway.post(asked.path, asked.body, {"traceparent": parent} if parent else {}).status == 200


@pytest.mark.parametrize("traces", [Traces(), NO_TRACES], ids=["traces", "none"])
@pytest.mark.parametrize("wire", WIRES)
def test_without_spans_the_clients_own_is_passed_on_ops3(
    upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, wire: str, traces: Traces
) -> None:
    monkeypatch.setattr(server, "_spans", no_spans)
    upstream.answers(answering(COLD))
    taken(config_of(own(upstream), traces=traces), wire, stream=True)
    assert got(upstream) == [PARENT]


@pytest.mark.parametrize(
    "parent",
    [
        "",
        PARENT.upper(),
        PARENT.replace("00-", "ff-", 1),
        PARENT + "-x",
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01",
        "x" * 55,
    ],
)
def test_what_is_no_traceparent_is_not_passed_on_ops3(
    upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, parent: str
) -> None:
    monkeypatch.setattr(server, "_spans", no_spans)
    upstream.answers(answering(COLD))
    taken(config_of(own(upstream)), parent=parent)
    assert got(upstream) == [""]


def test_the_span_of_the_turn_is_passed_on_with_each_request_ops3(
    upstream: ScriptedUpstream, exporter: InMemorySpanExporter
) -> None:
    upstream.answers(answering(BAD), answering(CALL))
    taken(config_of(own(upstream), settings=FORCED))
    turn, chats = made(exporter, 3)
    assert turn.context
    assert turn.parent
    assert f"{turn.context.trace_id:032x}" in PARENT
    assert f"{turn.parent.span_id:016x}" in PARENT
    assert got(upstream) == [f"00-{turn.context.trace_id:032x}-{turn.context.span_id:016x}-01"] * 2
    assert [chat.parent for chat in chats] == [turn.context] * 2
    assert turn.start_time
    assert all(turn.start_time <= (chat.start_time or 0) <= (chat.end_time or 0) for chat in chats)


def test_a_turn_without_a_client_trace_begins_one_ops3(
    upstream: ScriptedUpstream, exporter: InMemorySpanExporter
) -> None:
    upstream.answers(answering(COLD))
    taken(config_of(own(upstream)), parent="")
    turn, _ = made(exporter, 2)
    assert turn.context
    (sent,) = got(upstream)
    # The flags are 01, or 03 where the SDK says that the id is random.
    assert sent[:-2] == f"00-{turn.context.trace_id:032x}-{turn.context.span_id:016x}-"


def test_a_trace_that_is_not_sampled_stays_so_ops3(
    upstream: ScriptedUpstream, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = TracerProvider(ALWAYS_OFF, shutdown_on_exit=False)
    monkeypatch.setattr(otel, "get_tracer_provider", lambda: provider)
    upstream.answers(answering(COLD))
    taken(config_of(own(upstream)))
    assert got(upstream)[0].startswith(PARENT[:36])
    assert got(upstream)[0].endswith("-00")
    assert not exporter.get_finished_spans()


def test_another_upstream_of_the_same_turn_gets_none_ops3(exporter: InMemorySpanExporter) -> None:
    """A fallback may be another company's server."""
    with listening(("far",)) as other:
        other.answers(answering(COLD))
        box = Upstream("box", "http://127.0.0.1:9/v1", retries=0, pass_traceparent=True)
        models = (Model("m", "box", "m", fallback=("far:far",)),)
        taken(config_of(box, replace(towards(other), name="far"), models=models, default="m"))
        assert got(other) == [""]
    turn, _ = made(exporter, len(exporter.get_finished_spans()))
    assert turn.name == "turn far"


def test_embeddings_pass_it_on_too_ops3(upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_spans", no_spans)
    upstream.answers(answering(COLD), answering(COLD))
    with serving(config_of(own(upstream))) as gateway:
        gateway.post("/v1/embeddings", {"model": "m", "input": "x"}, {"traceparent": PARENT})
    with serving(config_of(towards(upstream))) as gateway:
        gateway.post("/v1/embeddings", {"model": "m", "input": "x"}, {"traceparent": PARENT})
    assert got(upstream) == [PARENT, ""]

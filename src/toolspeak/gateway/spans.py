"""Makes OpenTelemetry spans of turns, at their ends, from their traces (OBS-15).

A span is made after the fact, with the times that the trace has: a chunk of a stream costs nothing. An SDK hands spans
to a collector in the background (`span_export.py`), so a slow or absent collector delays no turn.

An incoming `traceparent` makes the turn a part of the client's trace. It is not passed on by default: an upstream is
another company's server, and need not learn which of its requests belong together. `pass_traceparent` sends that of the
turn's span to a model server of one's own (OPS-3); the span must then exist before the first request, so it is started
with the turn.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from opentelemetry import trace as otel
from opentelemetry.context import Context
from opentelemetry.trace import NoOpTracerProvider, ProxyTracerProvider, Span, SpanKind, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from toolspeak.config.shape import Config, Upstream
from toolspeak.extras import require_extra
from toolspeak.gateway import span_names as names
from toolspeak.gateway.access_log import AccessEntry, safe_name, safe_words
from toolspeak.gateway.span_names import AttributeValue, SpanAttribute
from toolspeak.gateway.trace_log import TurnRequest
from toolspeak.ir.event import Usage
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call, Image, Message, Opaque, Part, Reasoning, Result, Text, part_text
from toolspeak.runtime.clock import Clock
from toolspeak.traces.trace import CALL, AnswerPart, Trace, TraceAttempt, without_content

_LOG: Final = logging.getLogger(__name__)
_NANO: Final = 1e9
MOST_CONTENT: Final = 16 * 1024
"""Characters of an attribute with content."""
_MOST_OF_PART: Final = 4096
_LONGEST_MODEL: Final = 100
_PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex": "gcp.vertex_ai",
}
"""The presets whose names the conventions write in another way."""
_COMPATIBLE: Final = ("", "compatible")
_WIRES: Final = {"openai_chat": "openai", "openai_responses": "openai", "gemini": "gcp.gemini"}
"""The same for wires, by which an upstream without a preset is named."""


class TurnSpans:
    """Makes the spans of turns."""

    def __init__(self, provider: TracerProvider, config: Config, clock: Clock, close: Callable[[], None]) -> None:
        """Take the provider of an SDK. `close` ends it, if it is ours."""
        self._tracer: Final = provider.get_tracer("toolspeak")
        self._clock: Final = clock
        self._settings: Final = config.otel
        self._upstreams = _described(config)
        self._starts_early = _passes_any(config)
        self._started: Final[dict[str, Span]] = {}
        """Spans of running turns, by the ids of their traces."""
        self.close: Final = close

    def change(self, config: Config) -> None:
        """Follow new upstreams; `[otel]` itself is read at the start only."""
        self._upstreams = _described(config)
        self._starts_early = _passes_any(config)

    def begin(self, turn: TurnRequest, entry: AccessEntry) -> str:
        """Start the span of a turn if an upstream gets its `traceparent`, and return that. Raises nothing."""
        if not self._starts_early:
            return ""
        carrier: dict[str, str] = {}
        try:
            passed = self._clock.monotonic() - entry.started
            parent = _parent(turn)
            span = self._start_turn(turn.route.model, parent, self._clock.nanoseconds() - int(passed * _NANO))
            self._started[entry.trace] = span
            _PROPAGATOR.inject(carrier, otel.set_span_in_context(span, parent))
        except Exception:  # noqa: BLE001 # samplers and processors of others run here, and must not fail a turn
            _LOG.exception("trace=%s the span of this turn was not started", entry.trace)
        return carrier.get("traceparent", "")

    def _start_turn(self, model: str, parent: Context, started: int) -> Span:
        return self._tracer.start_span(f"{names.TURN} {_shown(model)}", parent, SpanKind.SERVER, start_time=started)

    def end(self, trace: Trace, turn: TurnRequest, entry: AccessEntry) -> None:
        """Make the spans of a turn that has ended, and of its requests to the upstream. Raises nothing."""
        try:
            self._end_turn(trace, turn, entry)
        except Exception:  # noqa: BLE001 # samplers and processors of others run here, and must not fail a turn
            _LOG.exception("trace=%s the spans of this turn were not made", trace.id)

    def _end_turn(self, trace: Trace, turn: TurnRequest, entry: AccessEntry) -> None:
        started = self._clock.nanoseconds() - int(trace.seconds * _NANO)
        parent = _parent(turn)
        span = self._started.pop(trace.id, None) or self._start_turn(trace.upstream_model, parent, started)
        if not span.is_recording():  # the client's trace, or the SDK's sampler, leaves it out
            return
        span.update_name(f"{names.TURN} {_shown(trace.upstream_model)}")  # another model may have answered
        kept = trace if self._settings.content else without_content(trace)
        has_failed = trace.failure is not None or entry.fault is not None
        self._fill(span, self._about_turn(trace, kept, turn, entry), has_failed=has_failed)
        inside = otel.set_span_in_context(span, parent)
        for attempt in kept.attempts:
            self._end_attempt(attempt, kept, inside, started)
        span.end(started + int(trace.seconds * _NANO))

    def _end_attempt(self, attempt: TraceAttempt, trace: Trace, inside: Context, started: int) -> None:
        opened = started + int(attempt.opened * _NANO)
        name = f"{names.CHAT} {_shown(trace.upstream_model)}"
        span = self._tracer.start_span(name, inside, SpanKind.CLIENT, start_time=opened)
        about = self._about_attempt(attempt, trace) | self._upstreams.get(trace.upstream, {})
        self._fill(span, about, has_failed=attempt.failure is not None)
        span.end(started + int((attempt.ended or trace.seconds) * _NANO))

    def _fill(self, span: Span, values: Mapping[SpanAttribute, AttributeValue | None], *, has_failed: bool) -> None:
        span.set_attributes(names.named(values, old_names=self._settings.old_names))
        if has_failed:
            # Without a description: the text of an error may quote a prompt or a key.
            span.set_status(otel.StatusCode.ERROR)

    def _about_turn(
        self, trace: Trace, kept: Trace, turn: TurnRequest, entry: AccessEntry
    ) -> dict[SpanAttribute, AttributeValue | None]:
        failure, content = kept.failure, self._settings.content
        fault = entry.fault.name.lower() if entry.fault is not None else None
        mode, outcome = entry.mode, entry.outcome
        dialect = (outcome.written if outcome is not None else "") or turn.plan.dialect
        return {
            names.REQUEST_MODEL: _shown(trace.model),
            names.RESPONSE_MODEL: _shown(trace.upstream_model),
            names.STREAM: trace.is_streamed,
            names.FINISH_REASONS: [trace.stop] if trace.stop else None,
            names.FIRST_CHUNK: trace.first,
            names.INPUT: _input_of(turn.request.messages) if content else None,
            names.OUTPUT: _output_of(kept.answer, trace.stop) if content and kept.answer else None,
            names.ERROR: failure.kind.value if failure is not None else fault,
            names.METHOD: safe_name(entry.method),
            names.PATH: safe_name(trace.path.partition("?")[0]),
            names.STATUS: trace.status,
            names.TRACE: trace.id,
            names.WIRE: trace.wire,
            names.PLAN: safe_words(kept.taken or kept.plan.line),
            names.REQUESTS: len(trace.attempts),
            names.MODE: mode,
            names.DIALECT: dialect if mode == "emulated" else None,
            names.CALLS: len(trace.calls),
            names.REPAIR: _repair(trace),
            names.COMPLAINTS: [one.problem.value for one in trace.complaints] or None,
        }

    def _about_attempt(self, attempt: TraceAttempt, trace: Trace) -> dict[SpanAttribute, AttributeValue | None]:
        content = self._settings.content and attempt.parts
        first = None if attempt.first is None else max(0.0, attempt.first - attempt.opened)
        return {
            names.OPERATION: "chat",
            names.REQUEST_MODEL: _shown(trace.upstream_model),
            names.STREAM: trace.is_streamed,
            names.FINISH_REASONS: [attempt.stop] if attempt.stop else None,
            names.FIRST_CHUNK: first,
            names.OUTPUT: _output_of(attempt.parts, attempt.stop) if content else None,
            names.ERROR: attempt.failure.kind.value if attempt.failure is not None else None,
            names.UPSTREAM: safe_name(trace.upstream),
            names.TACTIC: attempt.tactic or None,
            names.RETRY_REASON: safe_words(attempt.why) or None,
            **_tokens(attempt.usage),
        }


_PROPAGATOR: Final = TraceContextTextMapPropagator()


def open_spans(config: Config, clock: Clock) -> TurnSpans | None:
    """Return what makes spans: for `otel.endpoint`, else for the SDK of the process, else None.

    Raises `MissingExtra` if there is an endpoint and no SDK.
    """
    if config.otel.endpoint:
        require_extra("otel", "otel.endpoint")
        from toolspeak.gateway.span_export import open_provider  # noqa: PLC0415 # of the extra

        provider, close = open_provider(config.otel.endpoint)
        return TurnSpans(provider, config, clock, close)
    found = otel.get_tracer_provider()
    if isinstance(found, ProxyTracerProvider | NoOpTracerProvider):
        return None
    return TurnSpans(found, config, clock, _leave_open)


def _leave_open() -> None:
    """Do nothing: the program that set up the SDK ends it."""


def _parent(turn: TurnRequest) -> Context:
    return _PROPAGATOR.extract({"traceparent": turn.parent}, Context())


def _passes_any(config: Config) -> bool:
    return any(upstream.pass_traceparent for upstream in config.upstreams)


def _described(config: Config) -> dict[str, dict[SpanAttribute, AttributeValue | None]]:
    """Return what is said about each upstream in the spans of its requests."""
    return {upstream.name: _about_upstream(upstream) for upstream in config.upstreams}


def _about_upstream(upstream: Upstream) -> dict[SpanAttribute, AttributeValue | None]:
    url = urlsplit(upstream.url)
    known = _WIRES.get(upstream.wire, upstream.wire)
    provider = known if upstream.preset in _COMPATIBLE else _PROVIDERS.get(upstream.preset, upstream.preset)
    port = url.port or (443 if url.scheme == "https" else 80)
    if upstream.more_urls:  # one of several servers got the request
        return {names.PROVIDER: provider}
    return {names.PROVIDER: provider, names.ADDRESS: url.hostname, names.PORT: port}


def _tokens(usage: Usage) -> dict[SpanAttribute, AttributeValue | None]:
    if usage == Usage():  # the answer broke off, or the server counts none
        return {}
    return {
        names.INPUT_TOKENS: usage.input_tokens,
        names.OUTPUT_TOKENS: usage.output_tokens,
        names.CACHE_READ: usage.cache_read_tokens or None,
        names.CACHE_WRITE: usage.cache_write_tokens or None,
        names.REASONING: usage.reasoning_tokens or None,
    }


def _repair(trace: Trace) -> str:
    if trace.complaints:
        return "partial"
    return "repaired" if any(part.fixes for part in trace.answer) else "none"


def _shown(model: str) -> str:
    return safe_name(model[:_LONGEST_MODEL])


# ---------------------------------------------------------------- content


def _input_of(messages: Sequence[Message]) -> str:
    """Return the newest messages that fit, as JSON of the conventions, in their order."""
    newest: Iterable[JsonObject] = (
        {"role": message.role.value, "parts": [_part(part) for part in message.parts]} for message in reversed(messages)
    )
    return _encoded(_fitting(newest)[::-1])


def _output_of(parts: Iterable[AnswerPart], stop: str) -> str:
    """Return an answer as JSON of the conventions. Parts that do not fit are left out."""
    return _encoded([{"role": "assistant", "parts": _fitting(map(_answer_part, parts)), "finish_reason": stop}])


def _fitting(entries: Iterable[JsonObject]) -> list[Json]:
    """Return the first entries, as many as fit into an attribute."""
    kept: list[Json] = []
    room = MOST_CONTENT
    for entry in entries:
        room -= len(_encoded(entry))
        if room < 0:
            break
        kept.append(entry)
    return kept


def _encoded(value: Json) -> str:
    """Return the JSON of a value. A lone surrogate becomes an escape: with one, OTLP could not encode the batch."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()


def _answer_part(part: AnswerPart) -> JsonObject:
    if part.kind == CALL:
        return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.text[:_MOST_OF_PART]}
    return {"type": part.kind, "content": part.text[:_MOST_OF_PART]}


def _part(part: Part) -> JsonObject:
    match part:
        case Text(text):
            return {"type": "text", "content": text[:_MOST_OF_PART]}
        case Reasoning(text):
            return {"type": "reasoning", "content": text[:_MOST_OF_PART]}
        case Call():
            called = part.arguments[:_MOST_OF_PART]
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": called}
        case Result():
            text = "\n".join(part_text(piece) for piece in part.content)[:_MOST_OF_PART]
            return {"type": "tool_call_response", "id": part.call_id, "response": text}
        case Image(media_type):
            return {"type": "image", "mime_type": media_type[:_LONGEST_MODEL]}
        case Opaque():
            return {"type": part.label[:_LONGEST_MODEL]}

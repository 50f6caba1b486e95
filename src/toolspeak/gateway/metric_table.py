"""The metrics of the gateway: every name, label and bucket of `GET /metrics`, in one table (OBS-14).

docs/metrics.md is written from it, and the queries of docs/grafana.json are checked against it. A name that is
published stays: dashboards and alerts of other people use it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

PREFIX: Final = "toolspeak_"


class MetricType(StrEnum):
    """The types of Prometheus that are used here."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, eq=False, slots=True)
class Metric:
    """One metric. Two are the same only if they are one object, so that a lookup for each request is cheap."""

    name: str
    """As a scrape shows it; a histogram has `_bucket`, `_sum` and `_count` after it."""
    type: MetricType
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """The upper bounds of a histogram, in seconds."""
    is_peak: bool = False
    """Of several workers a scrape shows the largest value, not the sum."""


LabelValues: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Histogram:
    """The observations of one series: how many are in each bucket and above the last, and their sum."""

    counts: tuple[int, ...]
    sum: float


Snapshot: TypeAlias = Mapping[Metric, Mapping[LabelValues, float | Histogram]]
"""All figures at one moment."""


LABELS: Final = {
    "operation": "what the request was for: `turn`, `forward` (embeddings and the like), `models`, `traces`, …; "
    "`run_turn` for a turn of a run that the gateway executes; "
    "`unknown` for a path that does not exist",
    "wire": "the protocol of the client: `openai_chat`, `openai_responses`, `anthropic`, `gemini`, `ollama`, or that "
    "of a plug-in",
    "model": "the upstream's name for the model, up to 64 characters; `other` for a name that no upstream lists and "
    "for every name after the first 100; empty if the request has no model",
    "mode": "how tools were handled: `native`, `rescued` (native, with calls that arrived as text), `emulated`, "
    "`plain` (without tools), `off`; the planned mode if the turn failed; empty if the request is not a turn",
    "status": "the class of the HTTP status: `2xx`, `4xx`, `5xx`; `4xx` if the client disconnected before it got a "
    "status",
    "fault": "the cause of a failure: `upstream`, `client`, `limit` (a limit of the gateway), `hung_up` (the client "
    "disconnected), `shutdown`, `gateway`; empty if the request succeeded",
    "kind": "the kind of the failure, such as `timeout` or `context_length`; empty if there is none",
    "problem": "why a call was not delivered: `parse_error`, `truncated`, `unknown_tool`, `ambiguous`, "
    "`schema_error`, `wrong_tool`, `unrelated`, `upstream_disconnect`",
    "direction": "`input` or `output`",
    "request": "`first` for the first request of a turn, `hidden` for requests that the client does not see: toolspeak "
    "asks the model again, or a guardrail asks it",
    "reason": "for an overload, the limit: `memory`, `loop_delay` or `buffered`; for a fallback, `out` if no server of "
    "the model was in service, else the kind of its failure",
    "limit_of": "the owner of the limit: `key` or `model`",
    "limit": "the setting: `requests_per_minute`, `input_tokens_per_minute`, `output_tokens_per_minute`, `concurrent`",
    "quantile": "`0.5` or `0.99`",
    "upstream": "the upstream's name in the configuration",
    "replica": "the position of the server in the `urls` of its upstream, counted from 1",
    "result": "for a retry: `sent`, or `denied` because the budget was used up; for an escalation: `answered`, "
    "`failed` (the stronger model's answer was no better), or `denied` because the limit was reached",
    "version": "the version of toolspeak",
}
"""Each label and what its values are. All of them are bounded: a client can invent none."""

_COUNTER, _GAUGE, _HISTOGRAM = MetricType.COUNTER, MetricType.GAUGE, MetricType.HISTOGRAM
_LONG: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0)
_SHORT: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)

REQUESTS: Final = Metric(
    "toolspeak_requests_total",
    _COUNTER,
    "Requests that were answered or rejected, including health checks.",
    ("operation", "wire", "model", "mode", "status", "fault"),
)
FAILURES: Final = Metric(
    "toolspeak_failures_total",
    _COUNTER,
    "Requests that failed, including in the middle of a stream.",
    ("fault", "kind"),
)
CALLS: Final = Metric("toolspeak_calls_total", _COUNTER, "Tool calls delivered to clients.", ("model", "mode"))
REPAIRED: Final = Metric(
    "toolspeak_calls_repaired_total", _COUNTER, "Delivered tool calls that were repaired or coerced first.", ("model",)
)
REFUSED: Final = Metric(
    "toolspeak_calls_refused_total",
    _COUNTER,
    "Tool calls of models that were rejected because they must not run.",
    ("model",),
)
COMPLAINTS: Final = Metric(
    "toolspeak_complaints_total", _COUNTER, "Complaints about attempted calls.", ("model", "problem")
)
ASKED_AGAIN: Final = Metric(
    "toolspeak_turns_asked_again_total", _COUNTER, "Turns that took more than one request to the upstream.", ("model",)
)
UPSTREAM_REQUESTS: Final = Metric(
    "toolspeak_upstream_requests_total", _COUNTER, "Requests sent to upstreams for turns.", ("model", "request")
)
TOKENS: Final = Metric(
    "toolspeak_tokens_total", _COUNTER, "Tokens, as counted by upstreams.", ("model", "direction", "request")
)
DURATION: Final = Metric(
    "toolspeak_turn_duration_seconds",
    _HISTOGRAM,
    "Time from the head of the request to the end of the response.",
    ("model",),
    _LONG,
)
FIRST_BYTE: Final = Metric(
    "toolspeak_first_byte_seconds",
    _HISTOGRAM,
    "Time from the head of the request to the first content of a streamed response; a keep-alive is not content.",
    ("model",),
    _LONG,
)
OVERHEAD: Final = Metric(
    "toolspeak_overhead_seconds",
    _HISTOGRAM,
    "Time of a turn in which toolspeak neither received the request body nor had a request to the upstream open.",
    ("mode",),
    _SHORT,
)
SHED: Final = Metric(
    "toolspeak_shed_total", _COUNTER, "Requests rejected with 503 because of an overload.", ("reason",)
)
LIMITED: Final = Metric(
    "toolspeak_limited_total",
    _COUNTER,
    "Requests rejected with 429 because of a limit of a key or of a model.",
    ("limit_of", "limit"),
)
ALONE: Final = Metric(
    "toolspeak_limits_alone",
    _GAUGE,
    "Processes that count limits on their own because the shared Redis is unreachable; normally 0.",
)
IN_FLIGHT: Final = Metric(
    "toolspeak_requests_in_flight", _GAUGE, "Requests being answered, excluding the scrape itself."
)
TURNS: Final = Metric("toolspeak_turns_in_flight", _GAUGE, "Turns being answered.")
LOOP_DELAY: Final = Metric(
    "toolspeak_loop_delay_seconds",
    _GAUGE,
    "How late the event loop ran its timers in the last minute; with several workers, the largest value.",
    ("quantile",),
    is_peak=True,
)
RESIDENT: Final = Metric("toolspeak_resident_memory_bytes", _GAUGE, "Resident memory of all workers.")
BUFFERED: Final = Metric(
    "toolspeak_buffered_bytes", _GAUGE, "Size of the large bodies held at one time, excluding the first 64 KiB of each."
)
REPLICA_REQUESTS: Final = Metric(
    "toolspeak_replica_requests_total",
    _COUNTER,
    "Requests sent to each server, including retries.",
    ("upstream", "replica"),
)
REPLICA_FAILURES: Final = Metric(
    "toolspeak_replica_failures_total",
    _COUNTER,
    "Requests that failed because of the server.",
    ("upstream", "replica"),
)
REPLICA_EJECTIONS: Final = Metric(
    "toolspeak_replica_ejections_total", _COUNTER, "Number of times each server was ejected.", ("upstream", "replica")
)
REPLICA_EJECTED: Final = Metric(
    "toolspeak_replica_ejected",
    _GAUGE,
    "1 while a server is ejected; with several workers, while any worker has ejected it.",
    ("upstream", "replica"),
    is_peak=True,
)
REPLICA_IN_FLIGHT: Final = Metric(
    "toolspeak_replica_requests_in_flight", _GAUGE, "Requests being answered by each server.", ("upstream", "replica")
)
UPSTREAM_RETRIES: Final = Metric(
    "toolspeak_upstream_retries_total",
    _COUNTER,
    "Requests that failed before the first byte and could be retried.",
    ("upstream", "result"),
)
FALLBACKS: Final = Metric(
    "toolspeak_fallbacks_total",
    _COUNTER,
    "Turns that another model took over; `model` is the model that answered last.",
    ("model", "reason"),
)
ESCALATIONS: Final = Metric(
    "toolspeak_escalations_total",
    _COUNTER,
    "Turns whose calls stayed wrong and were due for a stronger model.",
    ("model", "result"),
)
WORKERS: Final = Metric(
    "toolspeak_workers", _GAUGE, "Processes that answer requests, including those that are draining."
)
INFO: Final = Metric("toolspeak_info", _GAUGE, "Always 1; the label contains the version.", ("version",), is_peak=True)

METRICS: Final = (
    REQUESTS,
    FAILURES,
    CALLS,
    REPAIRED,
    REFUSED,
    COMPLAINTS,
    ASKED_AGAIN,
    UPSTREAM_REQUESTS,
    TOKENS,
    DURATION,
    FIRST_BYTE,
    OVERHEAD,
    SHED,
    LIMITED,
    ALONE,
    IN_FLIGHT,
    TURNS,
    LOOP_DELAY,
    RESIDENT,
    BUFFERED,
    REPLICA_REQUESTS,
    REPLICA_FAILURES,
    REPLICA_EJECTIONS,
    REPLICA_EJECTED,
    REPLICA_IN_FLIGHT,
    UPSTREAM_RETRIES,
    FALLBACKS,
    ESCALATIONS,
    WORKERS,
    INFO,
)
"""All of them, in the order of the page."""

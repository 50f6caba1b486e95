"""Counts what the gateway does, and answers `GET /metrics` in the text format of Prometheus (OBS-14).

A request is counted once, at its end, from its entry of the access log: a chunk of a stream costs nothing. The counts
are plain numbers in dictionaries; prometheus-client, which takes 90 ms to load, is loaded by the first scrape, in a
thread.

Clients choose model names, so a name becomes a label only if an upstream lists it or the operator configured it, and
only while there are fewer than `MOST_MODELS`. No label has a tenant, an address, a path or a text.
"""

import asyncio
import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from math import inf
from typing import Final

from toolspeak.engine.effects import Outcome
from toolspeak.gateway import metric_table as table
from toolspeak.gateway.access_log import AccessEntry, safe_name
from toolspeak.gateway.metric_table import METRICS, Histogram, LabelValues, Metric, MetricType, Snapshot
from toolspeak.gateway.metrics_share import PERIOD, MetricsShare
from toolspeak.gateway.overload import LoadFigures
from toolspeak.ir.event import CallEnded, CallStarted
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.replicas import ReplicaPool
from toolspeak.runtime.turn_progress import TurnProgress
from toolspeak.wires import Operation

_LOG: Final = logging.getLogger(__name__)
METRICS_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
MOST_MODELS: Final = 100
FRESH: Final = 1.0
"""Seconds for which a page is served again."""
OTHER: Final = "other"
"""The label of models whose names are not labels."""
_LONGEST_MODEL: Final = 64
_CLASSES: Final = ("", "1xx", "2xx", "3xx", "4xx", "5xx")
_UNKNOWN: Final = "unknown"
RUN_TURN: Final = "run_turn"
"""The operation of a turn that a run takes, which is no request of a client."""
_TURNS: Final = frozenset((Operation.TURN, RUN_TURN))
_WITHOUT_CALLS: Final = ("plain", "off")
_OF_CALLS: Final = (CallStarted, CallEnded)


@dataclass(slots=True)
class _Observations:
    """A histogram that grows."""

    counts: list[int]
    sum: float = 0.0


class Metrics:
    """The counts of one process. Only the event loop's thread may use it."""

    def __init__(self, share: MetricsShare | None = None) -> None:
        """Begin at zero. With a share, the page has the figures of all workers."""
        self._share: Final = share
        self._publishing: asyncio.Task[None] | None = None
        self._counters: Final = {metric: _new_counter() for metric in METRICS if metric.type is MetricType.COUNTER}
        self._histograms: Final[dict[Metric, dict[LabelValues, _Observations]]] = {
            metric: {} for metric in METRICS if metric.type is MetricType.HISTOGRAM
        }
        self._models: Final[dict[str, str]] = {}
        """The names of models that are labels, and the labels."""
        self._pools: Callable[[], Mapping[str, ReplicaPool]] = dict[str, ReplicaPool]
        self._turns = 0
        self._lock: Final = asyncio.Lock()
        """Held while the page is written: scrapes that wait get the same one."""
        self._page = b""
        self._fresh_until = -inf
        self._version: Final = version("toolspeak")

    def watch(self, pools: Callable[[], Mapping[str, ReplicaPool]]) -> None:
        """Show the figures of the servers of upstreams, too; `pools` returns them by upstream."""
        self._pools = pools

    def begin(self, operation: str) -> None:
        """Count a request that is being answered."""
        self._turns += operation in _TURNS

    def end(self, entry: AccessEntry, operation: str) -> None:
        """Count a request whose response has ended, or that failed."""
        self._turns -= operation in _TURNS
        model, fault = self._model(entry), entry.fault
        mode, blame = entry.mode, fault.name.lower() if fault is not None else ""
        status = _CLASSES[min(entry.status // 100, len(_CLASSES) - 1)]
        self._counters[table.REQUESTS][operation or _UNKNOWN, entry.wire, model, mode, status, blame] += 1
        if fault is not None:
            kind = entry.failure.kind.value if entry.failure is not None else ""
            self._counters[table.FAILURES][blame, kind] += 1
        if entry.fallback:
            self._counters[table.FALLBACKS][model, entry.fallback] += 1
        if entry.progress is not None:
            if entry.progress.escalated:
                # A stream that fails before its first byte has no outcome here.
                result = entry.outcome.escalated if entry.outcome is not None else entry.progress.escalated
                self._counters[table.ESCALATIONS][model, str(result)] += 1
            self._end_turn(entry, entry.progress, model, mode)

    async def page(self, load: LoadFigures, clock: Clock) -> bytes:
        """Return all figures in the text format.

        A thread writes it, at most once in `FRESH` seconds: with 100 models it takes 70 ms, and scrapes spend no rate.
        """
        async with self._lock:
            if clock.monotonic() >= self._fresh_until:
                self._page = await asyncio.to_thread(_render, self._snapshot(load), self._share)
                self._fresh_until = clock.monotonic() + FRESH
            return self._page

    def start(self, load: Callable[[], LoadFigures], clock: Clock) -> None:
        """Begin to publish the figures for other workers; without a share, do nothing."""
        if self._share is not None:
            self._publishing = asyncio.get_running_loop().create_task(self._publish(self._share, load, clock))

    async def stop(self, load: LoadFigures) -> None:
        """Publish the last figures."""
        if self._share is not None and self._publishing is not None:
            self._publishing.cancel()
            await asyncio.wait((self._publishing,))
            _publish(self._share, self._snapshot(load))

    async def _publish(self, share: MetricsShare, load: Callable[[], LoadFigures], clock: Clock) -> None:
        while True:
            async with self._lock:  # a scrape writes the same file
                await asyncio.to_thread(_publish, share, self._snapshot(load()))
            await clock.sleep(PERIOD)

    def _end_turn(self, entry: AccessEntry, progress: TurnProgress, model: str, mode: str) -> None:
        of_model = (model,)
        self._observe(table.DURATION, of_model, entry.seconds)
        if entry.first_byte is not None:
            self._observe(table.FIRST_BYTE, of_model, entry.first_byte - entry.started)
        if progress.requests:
            waited = entry.body_seconds + progress.waited_until(entry.started + entry.seconds)
            self._observe(table.OVERHEAD, (mode,), max(0.0, entry.seconds - waited))
            self._count_requests(progress, model)
        if entry.outcome is not None and mode not in _WITHOUT_CALLS:
            self._count_calls(entry.outcome, model, mode)

    def _count_requests(self, progress: TurnProgress, model: str) -> None:
        requests, tokens = self._counters[table.UPSTREAM_REQUESTS], self._counters[table.TOKENS]
        first, hidden = progress.first_usage, progress.requests - 1
        requests[model, "first"] += 1
        tokens[model, "input", "first"] += first.input_tokens
        tokens[model, "output", "first"] += first.output_tokens
        if hidden:
            requests[model, "hidden"] += hidden
            tokens[model, "input", "hidden"] += progress.usage.input_tokens - first.input_tokens
            tokens[model, "output", "hidden"] += progress.usage.output_tokens - first.output_tokens
            self._counters[table.ASKED_AGAIN][model,] += 1

    def _count_calls(self, outcome: Outcome, model: str, mode: str) -> None:
        counters = self._counters
        calls = [event for event in outcome.events if type(event) in _OF_CALLS]
        if calls:
            counters[table.CALLS][model, mode] += sum(type(event) is CallStarted for event in calls)
            repaired = sum(type(event) is CallEnded and bool(event.fixes) for event in calls)
            counters[table.REPAIRED][model,] += repaired
        if outcome.rejected:
            counters[table.REFUSED][model,] += len(outcome.rejected)
        for complaint in outcome.complaints:
            counters[table.COMPLAINTS][model, complaint.problem.value] += 1

    def _model(self, entry: AccessEntry) -> str:
        name = entry.upstream_model
        if not name:
            return ""
        label = self._models.get(name)
        if label is None:
            if not entry.is_listed or len(self._models) >= MOST_MODELS:
                return OTHER
            label = self._models[name] = safe_name(name[:_LONGEST_MODEL])
        return label

    def _observe(self, metric: Metric, labels: LabelValues, seconds: float) -> None:
        series = self._histograms[metric]
        seen = series.get(labels)
        if seen is None:
            seen = series[labels] = _Observations([0] * (len(metric.buckets) + 1))
        seen.counts[bisect_left(metric.buckets, seconds)] += 1
        seen.sum += seconds

    def _snapshot(self, load: LoadFigures) -> Snapshot:
        """Return a copy of all figures: the thread that writes the page must not see them change."""
        histograms = {
            metric: {labels: Histogram(tuple(seen.counts), seen.sum) for labels, seen in series.items()}
            for metric, series in self._histograms.items()
        }
        return {
            **{metric: dict(series) for metric, series in self._counters.items()},
            **histograms,
            **_of_replicas(self._pools()),
            table.SHED: {(reason,): count for reason, count in load.shed.items()},
            table.LIMITED: load.limits.refused,
            table.ALONE: {(): int(load.limits.is_alone)},
            table.IN_FLIGHT: {(): load.requests},
            table.TURNS: {(): self._turns},
            table.LOOP_DELAY: {("0.5",): load.delay_p50, ("0.99",): load.delay_p99},
            table.RESIDENT: {(): load.resident_bytes},
            table.BUFFERED: {(): load.buffered_bytes},
            table.WORKERS: {(): 1},
            table.INFO: {(self._version,): 1},
        }


def _of_replicas(pools: Mapping[str, ReplicaPool]) -> Snapshot:
    """Return the figures of all servers. They have numbers, not addresses: tenants may read the page, too."""
    servers = [
        ((safe_name(name), str(number)), replica)
        for name, pool in pools.items()
        for number, replica in enumerate(pool.replicas, start=1)
    ]
    retries: dict[LabelValues, float | Histogram] = {}
    for name, pool in pools.items():
        retries[safe_name(name), "sent"], retries[safe_name(name), "denied"] = pool.budget.used, pool.budget.denied
    return {
        table.REPLICA_REQUESTS: {labels: replica.requests for labels, replica in servers},
        table.REPLICA_FAILURES: {labels: replica.failed for labels, replica in servers},
        table.REPLICA_EJECTIONS: {labels: replica.ejected for labels, replica in servers},
        table.REPLICA_EJECTED: {labels: int(replica.is_out) for labels, replica in servers},
        table.REPLICA_IN_FLIGHT: {labels: replica.in_flight for labels, replica in servers},
        table.UPSTREAM_RETRIES: retries,
    }


def _new_counter() -> defaultdict[LabelValues, int]:
    return defaultdict(int)


def _publish(share: MetricsShare, snapshot: Snapshot) -> None:
    try:
        share.publish(snapshot)
    except OSError as error:  # a full disk: the figures are old until there is room
        _LOG.warning("the figures of this worker cannot be written: %s", error)


def _render(snapshot: Snapshot, share: MetricsShare | None) -> bytes:
    from toolspeak.gateway.metrics_page import text_format  # noqa: PLC0415 # prometheus-client takes 90 ms to import

    if share is None:
        return text_format(snapshot)
    _publish(share, snapshot)
    return text_format(share.total(), with_process=False)

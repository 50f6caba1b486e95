"""Writes figures in the text format of Prometheus, with those of the process (CPU, memory, open files) after them."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Final, assert_never

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector
from typing_extensions import override

from toolspeak.gateway.metric_table import METRICS, Histogram, LabelValues, Metric, MetricType, Snapshot


def text_format(snapshot: Snapshot, *, with_process: bool = True) -> bytes:
    """Return the page of a scrape. It has a registry of its own: what other code of the process counts is not in it.

    Workers leave the figures of their process out: the next scrape may meet another one, and a counter would go back.
    """
    registry = CollectorRegistry()
    registry.register(_Figures(snapshot))
    if with_process:
        ProcessCollector(registry=registry)
    return generate_latest(registry)


class _Figures(Collector):
    """Hands a snapshot to a registry."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot: Final = snapshot

    @override
    def collect(self) -> Iterator[Family]:
        for metric in METRICS:
            family = _family(metric)
            for labels, value in self._snapshot[metric].items():
                _add(family, metric, labels, value)
            yield family


_Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


def _family(metric: Metric) -> _Family:
    match metric.type:
        case MetricType.COUNTER:
            return CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
        case MetricType.GAUGE:
            return GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
        case MetricType.HISTOGRAM:
            return HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        case _:
            assert_never(metric.type)


def _add(family: _Family, metric: Metric, labels: LabelValues, value: float | Histogram) -> None:
    if isinstance(value, Histogram) and isinstance(family, HistogramMetricFamily):
        bounds = (*map(str, metric.buckets), "+Inf")
        family.add_metric(labels, list(zip(bounds, accumulate(value.counts), strict=True)), value.sum)
    elif not isinstance(value, Histogram) and not isinstance(family, HistogramMetricFamily):
        family.add_metric(labels, value)

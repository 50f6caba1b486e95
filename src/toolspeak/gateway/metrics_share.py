"""Adds up the figures of the workers of one gateway, so that `GET /metrics` of any of them answers for all.

Each worker writes its figures into a file of a folder that only the gateway's user can read: every second, at its end,
and before it answers a scrape. The page of a scrape is the sum of these files alone. So a worker that is killed takes
back nothing that a scrape has shown; what it loses is at most the last second, which none has seen.

When a worker has ended, the supervisor adds its counters and histograms to one file for all that have ended, and
removes its own. Gauges are of living workers only. A lock keeps a scrape from seeing a worker in both files or in none.
"""

import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from toolspeak.gateway.metric_table import METRICS, Histogram, LabelValues, Metric, MetricType, Snapshot

if sys.platform != "win32":
    import fcntl

PERIOD: Final = 1.0
"""Seconds between two writes of a worker."""
_ENDED: Final = "ended"
_LIVE: Final = "worker-*"


class _Series(msgspec.Struct, array_like=True):
    """One series of a metric in a file: a counter or a gauge has a value, a histogram counts and a sum."""

    labels: tuple[str, ...]
    value: float
    counts: tuple[int, ...] = ()


_Stored = dict[str, list[_Series]]
_decode = msgspec.msgpack.Decoder(_Stored).decode


class MetricsShare:
    """The files of one gateway. The supervisor makes it, and each worker sets its `column`."""

    def __init__(self, folder: Path) -> None:
        """Take a folder of its own, which exists."""
        self.column = 0
        self._folder: Final = folder

    def publish(self, snapshot: Snapshot) -> None:
        """Replace the figures of this worker."""
        self._write(f"worker-{self.column}", _stored(snapshot))

    def total(self) -> Snapshot:
        """Return the figures of all workers."""
        with self._locked(exclusive=False):
            files = [*self._folder.glob(_LIVE), self._folder / _ENDED]
            return _added(map(_read, files))

    def end(self, column: int) -> None:
        """Keep the counters and histograms of a worker that has ended, and remove its file."""
        file, ended = self._folder / f"worker-{column}", self._folder / _ENDED
        with self._locked(exclusive=True):
            lasting = {metric.name for metric in METRICS if metric.type is not MetricType.GAUGE}
            left = {name: series for name, series in _read(file).items() if name in lasting}
            self._write(_ENDED, _stored(_added((_read(ended), left))))
            file.unlink(missing_ok=True)

    def _write(self, name: str, stored: _Stored) -> None:
        new = self._folder / f"new-{name}"
        new.write_bytes(msgspec.msgpack.encode(stored))
        new.replace(self._folder / name)  # a reader sees the old file or the new one, never a part

    @contextmanager
    def _locked(self, *, exclusive: bool) -> Generator[None]:
        with (self._folder / "lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
            yield


def _stored(snapshot: Snapshot) -> _Stored:
    return {
        metric.name: [
            _Series(labels, value.sum, value.counts) if isinstance(value, Histogram) else _Series(labels, value)
            for labels, value in series.items()
        ]
        for metric, series in snapshot.items()
    }


def _read(file: Path) -> _Stored:
    try:
        return _decode(file.read_bytes())
    except FileNotFoundError:  # a worker that has not written yet, or none has ended
        return {}


def _added(stored: Iterable[_Stored]) -> Snapshot:
    found: dict[Metric, dict[LabelValues, float | Histogram]] = {metric: {} for metric in METRICS}
    for one in stored:
        for metric, series in found.items():
            for each in one.get(metric.name, ()):
                series[each.labels] = _sum(metric, series.get(each.labels), each)
    return found


def _sum(metric: Metric, known: float | Histogram | None, more: _Series) -> float | Histogram:
    if metric.type is MetricType.HISTOGRAM:
        was = known if isinstance(known, Histogram) else Histogram((0,) * len(more.counts), 0.0)
        return Histogram(tuple(map(sum, zip(was.counts, more.counts, strict=True))), was.sum + more.value)
    was_value = known if isinstance(known, int | float) else 0
    return max(was_value, more.value) if metric.is_peak else was_value + more.value

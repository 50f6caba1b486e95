"""Interleaved rounds: in each, every subject runs every workload once, and the order of the subjects rotates."""

import statistics
import time
from dataclasses import dataclass, field

import uvloop

from bench.gateway import load
from bench.gateway.subjects import Running
from bench.gateway.workloads import Workload
from testkit import meter
from testkit.report import progress

SETTLE_S = 0.1
"""What is left to do after the last byte (logs, callbacks) is part of the cost."""
WARM_UP = 3
CROWDED = 0.9
"""A gateway that ran or waited for more than this share of the time reads several chunks at once: it looks cheap."""


@dataclass(slots=True)
class Figures:
    """The cost of one workload for one subject, a value for each round."""

    cpu_us: list[float] = field(default_factory=list[float])
    busy: list[float] = field(default_factory=list[float])
    """The share of the time in which it ran, and in which it waited because other processes had its core."""
    waited: list[float] = field(default_factory=list[float])
    first_ms: list[float] = field(default_factory=list[float])
    p50_ms: list[float] = field(default_factory=list[float])
    p99_ms: list[float] = field(default_factory=list[float])

    @property
    def median_us(self) -> float:
        return statistics.median(self.cpu_us)

    @property
    def first_p50_ms(self) -> float:
        return statistics.median(self.first_ms)

    @property
    def crowded(self) -> bool:
        """Tell whether chunks came faster than they could be read one by one."""
        return statistics.median(self.busy) + statistics.median(self.waited) > CROWDED

    def summary(self) -> dict[str, float]:
        """Return the figures for the result file."""
        return {
            "min_us": round(min(self.cpu_us), 2),
            "median_us": round(self.median_us, 2),
            "busy": round(statistics.median(self.busy), 2),
            "waited": round(statistics.median(self.waited), 2),
            "first_ms": round(self.first_p50_ms, 2),
            "p50_ms": round(statistics.median(self.p50_ms), 2),
            "p99_ms": round(statistics.median(self.p99_ms), 2),
        }


Table = dict[str, dict[str, Figures]]
"""The figures by workload and subject."""


def once(workload: Workload, running: Running, figures: Figures | None) -> None:
    """Run a workload once and add what it took; without figures it only warms up, with fewer requests."""
    less = 1 if figures is not None else WARM_UP
    sent = workload.load_of(running.subject.name, running.subject.slow * less)
    before, waited = cpu(running), meter.waited_s(running.pid)
    times = uvloop.run(load.run(sent, running.port, running.headers))
    time.sleep(SETTLE_S)
    spent = cpu(running) - before
    if figures is not None:
        figures.cpu_us.append(spent / (sent.requests * workload.chunks) * 1e6)
        figures.busy.append(spent / times.wall_s)
        figures.waited.append(max(meter.waited_s(running.pid) - waited, 0.0) / times.wall_s)
        figures.first_ms.append(statistics.median(times.first_s) * 1e3)
        figures.p50_ms.append(statistics.median(times.whole_s) * 1e3)
        figures.p99_ms.append(sorted(times.whole_s)[int(len(times.whole_s) * 0.99)] * 1e3)


def cpu(running: Running) -> float:
    return meter.cpu_s(running.pid, lost_threads=running.subject.lost_threads)


def interleaved(workloads: list[Workload], started: dict[str, Running], rounds: int) -> Table:
    """Return the figures of all rounds; the round before the first only warms up."""
    table: Table = {
        workload.name: {name: Figures() for name in workload.subjects if name in started} for workload in workloads
    }
    total = (rounds + 1) * len(workloads)
    for number in range(rounds + 1):
        for place, workload in enumerate(workloads):
            progress(number * len(workloads) + place + 1, total, "workloads")
            taking = list(table[workload.name])
            turned = number % max(len(taking), 1)
            for name in taking[turned:] + taking[:turned]:
                once(workload, started[name], table[workload.name][name] if number else None)
    return table

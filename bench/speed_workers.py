"""`just speed-workers`: one worker against several, as processes: requests a second, CPU of a request, and memory.

The client and the upstream run on the same machine and take cores from the workers: on two cores a second worker cannot
double anything. So look at the CPU of a request (what sharing costs), at the share of each worker (whether the kernel
spreads connections), and at the memory; requests a second are for machines with cores to spare.

    just speed-workers                      2 workers, 4 rounds
    just speed-workers --workers 4 --rounds 8
    just speed-workers --save               writes bench/results/speed-workers.json

`client_us` and `upstream_us` are the CPU of the load client and of the upstream for each request or chunk: what the
measurement itself takes from the cores.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from bench.gateway import load
from bench.gateway.subjects import Running, Subject, running, toolspeak
from bench.gateway.workloads import Workload, workloads
from testkit import meter
from testkit.report import close

RESULTS = Path(__file__).parent / "results" / "speed-workers.json"
LOADS = ("small", "paced16")
SETTLE_S = 0.3


@dataclass
class Measured:
    """The figures of one subject with one load, a value for each round."""

    per_second: list[float] = field(default_factory=list[float])
    cpu_us: list[float] = field(default_factory=list[float])
    least_share: list[float] = field(default_factory=list[float])
    """The share of the least busy worker in the CPU of all workers."""
    client_us: list[float] = field(default_factory=list[float])
    upstream_us: list[float] = field(default_factory=list[float])

    def figures(self) -> dict[str, float]:
        """Return the medians."""
        return {
            "per_second": round(statistics.median(self.per_second), 1),
            "cpu_us": round(statistics.median(self.cpu_us), 1),
            "least_share": round(statistics.median(self.least_share), 2),
            "client_us": round(statistics.median(self.client_us), 1),
            "upstream_us": round(statistics.median(self.upstream_us), 1),
        }


def processes(gateway: Running) -> list[int]:
    """Return the processes that answer: the workers, or the only one."""
    _, *workers = meter.tree(gateway.pid)
    return workers or [gateway.pid]


def once(workload: Workload, gateway: Running, upstream: Running, measured: Measured) -> None:
    """Send a load, and add what it took."""
    pids = processes(gateway)
    before, all_before = [meter.cpu_s(pid) for pid in pids], meter.cpu_s(gateway.pid)
    client, answering = time.process_time(), meter.cpu_s(upstream.pid)
    times = uvloop.run(load.run(workload.load, gateway.port, gateway.headers))
    client = time.process_time() - client
    time.sleep(SETTLE_S)
    spent = [meter.cpu_s(pid) - was for pid, was in zip(pids, before, strict=True)]
    units = workload.load.requests * workload.chunks
    measured.per_second.append(units / times.wall_s)
    measured.cpu_us.append((meter.cpu_s(gateway.pid) - all_before) / units * 1e6)
    measured.least_share.append(min(spent) / sum(spent))
    measured.client_us.append(client / units * 1e6)
    measured.upstream_us.append((meter.cpu_s(upstream.pid) - answering) / units * 1e6)


def memory_mb(pid: int) -> dict[str, float]:
    """Return the proportional and the private memory of a process."""
    lines = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    kilobytes = {line[0].rstrip(":"): int(line[1]) for line in lines}
    private = kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]
    return {"proportional_mb": round(kilobytes["Pss"] / 1024, 1), "private_mb": round(private / 1024, 1)}


def main() -> None:
    """Measure, print a table, and exit."""
    options = argparse.ArgumentParser(prog="bench.speed_workers")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--rounds", type=int, default=4)
    options.add_argument("--save", action="store_true", help="write bench/results/speed-workers.json")
    chosen = options.parse_args()
    counts = (1, chosen.workers)
    subjects = [
        Subject(str(count), toolspeak("--workers", str(count)), lost_threads=True, is_pinned=False) for count in counts
    ]
    loads = [workload for workload in workloads() if workload.name in LOADS]
    table = {(workload.name, str(count)): Measured() for workload in loads for count in counts}
    with tempfile.TemporaryDirectory() as files, running(subjects, Path(files)) as started:
        gateways = {name: gateway for name, gateway in started.items() if name != "direct"}
        for number in range(chosen.rounds + 1):
            for workload in loads:
                for name in sorted(gateways, reverse=bool(number % 2)):
                    once(
                        workload,
                        gateways[name],
                        started["direct"],
                        table[workload.name, name] if number else Measured(),
                    )
        memory = {
            name: {
                "supervisor": memory_mb(gateway.pid) if len(processes(gateway)) > 1 else None,
                "workers": [memory_mb(pid) for pid in processes(gateway)],
            }
            for name, gateway in gateways.items()
        }
    for (name, count), measured in table.items():
        print(f"{name:10} {count:>2} workers  {measured.figures()}")
    kept = {f"{name} x{count}": measured.figures() for (name, count), measured in table.items()}
    if chosen.save:
        about = {"date": datetime.now(UTC).date().isoformat(), "cores": os.cpu_count(), "rounds": chosen.rounds}
        RESULTS.write_text(json.dumps({**about, **kept, "memory": memory}, indent=2) + "\n", encoding="utf-8")
    close("speed-workers", ok=True, **kept, memory=memory)


if __name__ == "__main__":
    main()

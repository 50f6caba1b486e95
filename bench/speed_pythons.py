"""`just speed-pythons NAME=PYTHON …`: the effect of other interpreters, or of a compiled core.

    just speed-pythons pgo=/opt/python/bin/python3.11 mypyc=/elsewhere/.venv/bin/python
    just speed-pythons --sockets debian=/opt/python/bin/python3.11

Each interpreter has toolspeak and its dependencies installed; where toolspeak is compiled, it runs compiled. All of
them and this one run `bench.speed_engine` and `bench.speed_request` in turn: CPU time in memory, without sockets. With
`--sockets` they run the bare gateway and ours (push driver, emulated) beside Envoy instead, all at once, as
`just speed-gateway` does; that needs a quiet machine. `--rounds N`; `--save` writes its part of
bench/results/speed-pythons.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.gateway.install import VERSIONS, install
from bench.gateway.rounds import Table, interleaved
from bench.gateway.subjects import LOAD_CORE, SUBJECTS, Subject, running
from bench.gateway.workloads import Workload, workloads
from testkit.report import close, progress

RESULTS = Path(__file__).parent / "results" / "speed-pythons.json"
BENCHES = {
    ("bench.speed_engine",): ("native", "force"),
    ("bench.speed_request", "--rounds", "4"): ("small_us", "native_warm_us", "emulated_warm_us"),
}
"""What runs, and the figures of its closing line: a chunk natively and emulated, and requests."""
MEASURED = ("bare", "push-emulated")
BESIDE = "envoy"
WORKLOADS = ("small", "paced48", "paced96")
HERE = "here"
ROUNDS = 5
ASK = "import platform, toolspeak.wires.shared.text_template as one; print(platform.python_version(), one.__file__)"


def said(python: str) -> str:
    """Return the version of an interpreter, and whether its core is compiled."""
    version, place = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=True).stdout.split()
    return f"{version}, compiled core" if place.endswith(".so") else version


def in_memory(pythons: Mapping[str, str], rounds: int) -> dict[str, dict[str, float]]:
    """Return the medians of each interpreter."""
    found: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in pythons}
    for number in range(rounds):
        for place, (name, python) in enumerate(pythons.items()):
            progress(number * len(pythons) + place + 1, rounds * len(pythons), "runs")
            for bench, figures in BENCHES.items():
                command = [python, "-m", *bench]  # its exit status reports other bounds
                printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
                closing = json.loads(printed.splitlines()[-1])
                for figure in figures:
                    found[name][figure].append(closing[figure])
    return {
        name: {each: round(statistics.median(times), 1) for each, times in row.items()} for name, row in found.items()
    }


def over_sockets(pythons: Mapping[str, str], rounds: int) -> Table:
    """Return the cost of gateways with each interpreter, next to Envoy."""
    install(BESIDE)
    if (os.cpu_count() or 1) > LOAD_CORE:
        os.sched_setaffinity(0, {LOAD_CORE})
    subjects = [SUBJECTS[BESIDE]]
    subjects += [with_python(name, python, SUBJECTS[one]) for name, python in pythons.items() for one in MEASURED]
    with tempfile.TemporaryDirectory() as place, running(subjects, Path(place)) as started:
        return interleaved(chosen(subjects), started, rounds)


def with_python(name: str, python: str, subject: Subject) -> Subject:
    """Return a subject that another interpreter runs."""

    def command(port: int, upstream: int, files: Path) -> list[str]:
        return [python if part == sys.executable else part for part in subject.command(port, upstream, files)]

    return replace(subject, name=f"{subject.name} {name}", command=command)


def chosen(subjects: list[Subject]) -> list[Workload]:
    """Return the workloads, for these subjects."""
    names = tuple(subject.name for subject in subjects)
    return [replace(workload, subjects=names) for workload in workloads() if workload.name in WORKLOADS]


def lines(table: Table) -> Iterator[str]:
    """Write a block for each workload."""
    for name, row in table.items():
        yield f"\n{name}, µs of CPU: least, median, median by Envoy's"
        for subject, figures in row.items():
            times = figures.median_us / row[BESIDE].median_us
            yield f"    {subject:24}{min(figures.cpu_us):>9.1f}{figures.median_us:>9.1f}{times:>7.2f}"


def main() -> None:
    """Measure and exit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="+", metavar="NAME=PYTHON")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--sockets", action="store_true", help="gateways, beside Envoy")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    pythons = {HERE: sys.executable} | dict(one.split("=", 1) for one in options.pythons)
    found: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "rounds": options.rounds,
        "pythons": {name: said(python) for name, python in pythons.items()},
    }
    if options.sockets:
        table = over_sockets(pythons, options.rounds)
        print("\n".join(lines(table)))
        found |= {BESIDE: VERSIONS[BESIDE], "cpu_us": summaries(table)}
    else:
        found["cpu_us"] = in_memory(pythons, options.rounds)
    part = "sockets" if options.sockets else "in_memory"
    if options.save:
        kept: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(kept | {part: found}, indent=1) + "\n")
    close("speed-pythons", ok=True, part=part, **found)


def summaries(table: Table) -> dict[str, dict[str, dict[str, float]]]:
    """Return the figures of a table for the result file."""
    return {name: {subject: figures.summary() for subject, figures in row.items()} for name, row in table.items()}


if __name__ == "__main__":
    main()

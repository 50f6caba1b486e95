"""`just speed-pythons NAME=PYTHON …`: what other interpreters, or a compiled core, are worth over sockets.

    just speed-pythons pgo=/opt/python/bin/python3.11 mypyc=/elsewhere/.venv/bin/python

Each interpreter has toolspeak and what it needs installed; where that is a compiled toolspeak, it runs compiled. The
bare gateway and ours (push driver, emulated) run with each of them and with this one, and Envoy beside them: all at
once, the rounds interleaved, as in `just speed-gateway`. `--rounds N`; `--save` writes
bench/results/speed-pythons.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bench.gateway.install import VERSIONS, install
from bench.gateway.rounds import Table, interleaved
from bench.gateway.subjects import LOAD_CORE, SUBJECTS, Subject, running
from bench.gateway.workloads import Workload, workloads
from testkit.report import close

RESULTS = Path(__file__).parent / "results" / "speed-pythons.json"
MEASURED = ("bare", "push-emulated")
BESIDE = "envoy"
WORKLOADS = ("small", "paced48", "paced96", "fenced96")
HERE = "here"
ROUNDS = 5
ASK = "import platform, toolspeak.engine.turn as turn; print(platform.python_version(), turn.__file__)"


def with_python(name: str, python: str, subject: Subject) -> Subject:
    """Return a subject that another interpreter runs."""

    def command(port: int, upstream: int, files: Path) -> list[str]:
        return [python if part == sys.executable else part for part in subject.command(port, upstream, files)]

    return replace(subject, name=f"{subject.name} {name}", command=command)


def made_by(pythons: dict[str, str]) -> list[Subject]:
    """Return all who are measured."""
    ours = [with_python(name, python, SUBJECTS[one]) for name, python in pythons.items() for one in MEASURED]
    return [SUBJECTS[BESIDE], *ours]


def chosen(subjects: list[Subject]) -> list[Workload]:
    """Return the workloads, for these subjects."""
    names = tuple(subject.name for subject in subjects)
    return [replace(workload, subjects=names) for workload in workloads() if workload.name in WORKLOADS]


def lines(table: Table) -> Iterator[str]:
    """Write a block for each workload."""
    for name, row in table.items():
        yield f"\n{name}, µs of CPU: least, median, median by Envoy's"
        least = row[BESIDE].median_us
        for subject, figures in row.items():
            times = figures.median_us / least
            yield f"    {subject:24}{min(figures.cpu_us):>9.1f}{figures.median_us:>9.1f}{times:>7.2f}"


def said(python: str) -> str:
    """Return the version of an interpreter, and whether its core is compiled."""
    asked = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=True).stdout.split()
    return f"{asked[0]}, compiled core" if asked[1].endswith(".so") else asked[0]


def main() -> None:
    """Measure and close."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="+", metavar="NAME=PYTHON")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    pythons = {HERE: sys.executable} | dict(one.split("=", 1) for one in options.pythons)
    versions = {name: said(python) for name, python in pythons.items()}
    install(BESIDE)
    if (os.cpu_count() or 1) > LOAD_CORE:
        os.sched_setaffinity(0, {LOAD_CORE})
    subjects = made_by(pythons)
    with tempfile.TemporaryDirectory() as place, running(subjects, Path(place)) as started:
        table = interleaved(chosen(subjects), started, options.rounds)
    print("\n".join(lines(table)))
    kept = {name: {subject: row[subject].summary() for subject in row} for name, row in table.items()}
    if options.save:
        head = {"date": datetime.now(UTC).date().isoformat(), "rounds": options.rounds, "envoy": VERSIONS[BESIDE]}
        RESULTS.write_text(json.dumps({**head, "pythons": versions, "cpu_us": kept}, indent=1) + "\n")
    close("speed-pythons", ok=bool(kept), pythons=versions)


if __name__ == "__main__":
    main()

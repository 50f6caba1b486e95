"""`just speed-gateway`: the CPU of a request and of a streamed chunk, through toolspeak, a bare gateway and the peers.

All run at once, the gateways on one core, the upstream and the client on the other; each round gives every subject
every workload once. Figures are µs of CPU of the gateway's processes; targets are ratios of medians of the same run.

    just speed-gateway                 the full run, with the peers (installs them first, outside the repository)
    just speed-gateway --quick         ours and the bare gateway only, under a minute; fails only if we are far off
    just speed-gateway --profile X …   where the time goes, such as `--profile "paced96 native" "small native"`

`--rounds N`, `--only WORKLOAD …`. The full run writes bench/results/speed-gateway.json, and a profile for each
missed target.
"""

import argparse
import contextlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import product
from pathlib import Path

from bench.gateway.install import VERSIONS, folder, install
from bench.gateway.profile import import_lines, lines, memory_lines, stacks
from bench.gateway.rounds import Figures, Table, interleaved
from bench.gateway.subjects import BASE, LOAD_CORE, SUBJECTS, Running, Subject, of_wire, running
from bench.gateway.targets import Beside, Target, targets
from bench.gateway.workloads import CHUNK, PEERS, Workload, pair, quick, workloads
from testkit import meter
from testkit.report import close

RESULTS = Path(__file__).parent / "results" / "speed-gateway.json"
PROFILES = RESULTS.with_name("speed-gateway-profile.txt")
STARTS = 7
OURS = ("native", "emulated", "push", "push-emulated")
ENOUGH = 4
"""Rounds below which no results are written."""
ALARM = 3.0
"""The quick run fails when a native chunk takes more than this many times the bare one: that is a regression."""


def heading(table: Table) -> Iterator[str]:
    """Write one block for each workload."""
    by_name = {workload.name: workload for workload in workloads()}
    for name, row in table.items():
        workload = by_name[name]
        yield f"\n{name}: {workload.what}, µs of CPU per {workload.unit}"
        yield f"    {'':14}{'min':>10}{'median':>10}{'x bare':>9}{'busy':>7}{'waited':>8}" + "".join(
            f"{wait:>10}" for wait in ("first ms", "p50 ms", "p99 ms")
        )
        for subject, figures in row.items():
            crowded = workload.unit == CHUNK and figures.crowded
            yield figure_line(subject, figures, row.get("bare")) + ("  crowded" if crowded else "")


def figure_line(subject: str, figures: Figures, bare: Figures | None) -> str:
    kept = figures.summary()
    times = f"{figures.median_us / bare.median_us:.2f}" if bare else ""
    shares = f"{kept['busy']:>7.2f}{kept['waited']:>8.2f}"
    waits = f"{kept['first_ms']:>10.2f}{kept['p50_ms']:>10.2f}{kept['p99_ms']:>10.2f}"
    return f"    {subject:14}{kept['min_us']:>10.1f}{kept['median_us']:>10.1f}{times:>9}{shares}{waits}"


def checked_plans(started: dict[str, Running]) -> dict[str, str]:
    """Return the plans that toolspeak reports; refuse to measure anything else."""
    plans = {name: started[name].plan() for name in OURS if name in started}
    for name, plan in plans.items():
        if not plan.startswith("force" if name.endswith("emulated") else "native"):
            sys.exit(f"{name} is not what would be measured, its plan is {plan!r}")
    return plans


def measured_starts(files: Path, upstream_port: int) -> list[float]:
    """Start toolspeak some times and return the seconds to the first answer."""
    seconds: list[float] = []
    for _ in range(STARTS):
        with Running(SUBJECTS["native"], files, upstream_port) as started:
            seconds.append(started.start_s)
    return sorted(round(one, 3) for one in seconds)


def measured_pairs(files: Path, rounds: int) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Return the medians and minima of all pairs of wires."""
    medians: dict[str, dict[str, float]] = {wire: {} for wire in BASE}
    minima: dict[str, dict[str, float]] = {wire: {} for wire in BASE}
    with running([of_wire(wire) for wire in BASE], files) as started:
        table = interleaved([pair(client, upstream) for upstream, client in product(BASE, BASE)], started, rounds)
    for upstream, client in product(BASE, BASE):
        (figures,) = table[f"{client} over {upstream}"].values()
        medians[upstream][client] = round(figures.median_us, 2)
        minima[upstream][client] = round(min(figures.cpu_us), 2)
    return medians, minima


def pair_lines(pairs: dict[str, dict[str, float]]) -> Iterator[str]:
    if pairs:
        yield "\npairs of wires: 48 streams, a chunk each 5 ms, µs of CPU per chunk (x same wire)"
        yield "    upstream \\ client " + "".join(f"{client:>24}" for client in BASE)
    for upstream, row in pairs.items():
        cells = (f"{row[client]:.1f} ({row[client] / row[upstream]:.2f})" for client in BASE)
        yield f"    {upstream:18}" + "".join(f"{cell:>24}" for cell in cells)


def versions() -> dict[str, str]:
    """Return the versions of the measured programs and of what they run on."""
    ours = {name: version(name) for name in ("toolspeak", "uvicorn", "uvloop", "httptools", "aiohttp")}
    peers = {
        "python of the peers": said_version(folder("litellm") / "venv" / "bin" / "python"),
        "node": said_version("node"),
        "nginx": said_version(shutil.which("nginx") or "/usr/sbin/nginx", "-v").removeprefix("nginx version: nginx/"),
    }
    return {"python": platform.python_version(), **ours, **VERSIONS, **peers}


def said_version(program: str | Path, option: str = "--version") -> str:
    said = subprocess.run([program, option], capture_output=True, text=True, check=True)
    return (said.stdout or said.stderr).removeprefix("Python").strip()


def keep(table: Table, beside: dict[str, object], made: list[Target], rounds: int) -> None:
    """Write the figures of a full run."""
    figures = {name: {subject: row[subject].summary() for subject in row} for name, row in table.items()}
    told = [{**asdict(target), "value": round(target.value, 3), "ok": target.ok} for target in made]
    body = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "versions": versions(),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "rounds": rounds,
        "targets": told,
        "cpu_us": figures,
        **beside,
    }
    RESULTS.write_text(json.dumps(body, indent=1) + "\n")


def taking_part(chosen: list[Workload]) -> list[Subject]:
    """Return all subjects of these workloads."""
    names = dict.fromkeys(name for workload in chosen for name in workload.subjects)
    return [SUBJECTS[name] for name in names]


def full(chosen: list[Workload], rounds: int, files: Path, *, with_pairs: bool) -> list[Target]:
    """Measure everything, and write the results."""
    for peer in (*PEERS, "envoy"):
        install(peer)
    with running(taking_part(chosen), files) as started:
        plans = checked_plans(started)
        table = interleaved(chosen, started, rounds)
        resident = {name: round(meter.resident_mb(started[name].pid), 1) for name in started}
        starts = {name: round(started[name].start_s, 2) for name in started}
        own = measured_starts(files, started["direct"].port)
    medians, minima = measured_pairs(files, rounds) if with_pairs else ({}, {})
    mine = max((resident[name] for name in OURS if name in resident), default=0.0)
    made = targets(table, Beside(statistics.median(own), mine, medians))
    print("\n".join([*heading(table), *pair_lines(medians)]))
    print(f"\nstart to first answer, s: {starts}; toolspeak alone: {own}")
    print(f"resident after load, MB: {resident}")
    beside = {"plans": plans, "start_s": starts, "own_starts_s": own, "resident_mb": resident}
    if with_pairs and rounds >= ENOUGH:
        keep(table, {**beside, "pairs_us": medians, "pairs_min_us": minima}, made, rounds)
    return made


def profiled(names: list[str], files: Path) -> list[str]:
    """Return the profiles of these: `WORKLOAD SUBJECT`, `WIRE over WIRE`, `start` or `memory`."""
    made: list[str] = []
    for name in dict.fromkeys(names):
        print(f"profiles {name}", flush=True)
        made += profile_of(name, files)
    return made


def profile_of(name: str, files: Path) -> list[str]:
    if name == "memory":
        return [*memory_lines(workloads(), files)]
    if name == "start":
        with running([], files) as started:
            return [*import_lines(files, started["direct"].port)]
    workload, subject = named(name)
    with running([subject], files) as started:
        return [*lines(name, stacks(workload, started[subject.name], files))]


def keep_profiles(missed: list[Target], files: Path) -> None:
    """Write a profile for each missed target."""
    made = profiled([target.profile for target in missed], files) or ["no target was missed"]
    PROFILES.write_text("\n".join(made).rstrip() + "\n")


def named(name: str) -> tuple[Workload, Subject]:
    if " over " in name:
        client, upstream = name.split(" over ")
        return pair(client, upstream), of_wire(upstream)
    workload, subject = name.split()
    return next(one for one in workloads() if one.name == workload), SUBJECTS[subject]


def quick_run(rounds: int, files: Path) -> None:
    """Measure ours and the bare gateway, and fail only if we are far off."""
    chosen = quick()
    with running(taking_part(chosen), files) as started:
        checked_plans(started)
        table = interleaved(chosen, started, rounds)
        resident = max(meter.resident_mb(started[name].pid) for name in OURS if name in started)
        start_s = statistics.median(started[name].start_s for name in OURS if name in started)
    made = targets(table, Beside(start_s, resident, {}))
    print("\n".join([*heading(table), "", *(target.line for target in made)]))
    row = table["paced96"]
    times = row["native"].median_us / row["bare"].median_us
    within = sum(target.ok for target in made)
    figures = {"targets": len(made), "within": within, "native_times_bare": round(times, 2)}
    close("speed-gateway", ok=times <= ALARM, quick=True, alarm=ALARM, **figures)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="ours and the bare gateway only")
    parser.add_argument("--rounds", type=int, default=0, help="how many (5, quick 2)")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORKLOAD", help="only these; no pairs of wires")
    parser.add_argument("--profile", nargs="*", default=None, metavar="WHAT", help='such as "paced96 native"')
    parser.add_argument("--urgent", action="store_true", help="go before other jobs of this machine; needs root")
    return parser.parse_args()


def main() -> None:
    """Measure and exit."""
    asked = arguments()
    if (os.cpu_count() or 1) > LOAD_CORE:
        os.sched_setaffinity(0, {LOAD_CORE})
    with tempfile.TemporaryDirectory() as place, meter.urgent() if asked.urgent else contextlib.nullcontext():
        files = Path(place)
        if asked.profile is not None:
            print("\n".join(profiled(asked.profile, files)))
            sys.exit()
        if asked.quick:
            quick_run(asked.rounds or 2, files)
        chosen = [one for one in workloads() if not asked.only or one.name in asked.only]
        rounds, whole = asked.rounds or 5, not asked.only
        made = full(chosen, rounds, files, with_pairs=whole)
        print("\n" + "\n".join(target.line for target in made))
        missed = [target for target in made if not target.ok]
        if whole and rounds >= ENOUGH:
            keep_profiles(missed, files)
    names = [f"{target.id} {target.what}" for target in missed]
    close("speed-gateway", ok=not missed, targets=len(made), missed=names)


if __name__ == "__main__":
    main()

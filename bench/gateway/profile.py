"""Where the time goes: py-spy samples a subject under load from outside, 400 times a second."""

import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.gateway.install import folder, install
from bench.gateway.rounds import once
from bench.gateway.subjects import LOAD_CORE, SUBJECTS, Running, pinned, running
from bench.gateway.workloads import Workload
from testkit.meter import resident_mb

SECONDS = 8
RATE = 400
SHOWN = 40


def stacks(workload: Workload, running: Running, files: Path, *, native: bool = False) -> Counter[tuple[str, ...]]:
    """Return how often each stack was seen while the load ran."""
    install("py-spy")
    kept = files / "stacks.txt"
    once(workload, running, None)  # one-time work is not part of the cost of a request
    program = [*pinned(LOAD_CORE), str(folder("py-spy") / "venv" / "bin" / "py-spy"), "record"]
    how = [
        "--duration",
        str(SECONDS),
        "--rate",
        str(RATE),
        "--format",
        "raw",
        "--function",
        "--full-filenames",
        "--output",
        str(kept),
    ]
    how += ["--native"] if native else []
    spy = subprocess.Popen(
        [*program, "--pid", str(running.pid), *how], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    while spy.poll() is None:
        once(workload, running, None)
    if spy.returncode:
        raise OSError(f"py-spy: {spy.communicate()[0].decode(errors='replace')[-1000:]}")
    counted: Counter[tuple[str, ...]] = Counter()
    for line in kept.read_text().splitlines():
        stack, _, number = line.rpartition(" ")
        counted[tuple(map(short, stack.split(";")))] += int(number)
    return counted


def short(frame: str) -> str:
    """Return a frame with the end of its path only; ours begins with `toolspeak/`."""
    name, _, place = frame.partition(" (")
    path = place.rstrip(")")
    ours = path.rpartition("src/toolspeak/")[2] if "src/toolspeak/" in path else ""
    return f"{name} ({'toolspeak/' + ours if ours else '/'.join(path.split('/')[-2:])})" if place else name


def lines(title: str, counted: Counter[tuple[str, ...]]) -> Iterator[str]:
    """Write the top of a profile: alone, ours with the libraries it calls, and with all that a function calls."""
    total = max(sum(counted.values()), 1)
    alone: Counter[str] = Counter()
    ours: Counter[str] = Counter()
    below: Counter[str] = Counter()
    for stack, number in counted.items():
        alone[stack[-1]] += number
        ours[next((frame for frame in reversed(stack) if "(toolspeak/" in frame), "not ours")] += number
        for frame in set(stack):
            below[frame] += number
    yield f"== {title}: {total} samples"
    parts = {"in the function itself": alone, "in ours and the libraries it calls": ours, "in all that it calls": below}
    for name, figures in parts.items():
        yield f"-- {name}"
        shown = [(frame, number) for frame, number in figures.most_common() if number < total]
        yield from (f"{number / total:7.1%}  {frame}" for frame, number in shown[:SHOWN])
    yield ""


def import_lines(files: Path, upstream_port: int) -> Iterator[str]:
    """Write what the start imports, the most expensive first: in the module itself, and with all that it imports."""
    timed = replace(SUBJECTS["native"], name="timed", command=with_import_times)
    with Running(timed, files, upstream_port) as started:
        seconds = started.start_s
    rows = [line.split(":", 1)[1].split("|") for line in started.said().splitlines() if line.startswith("import time:")]
    costs = [((int(row[0]), int(row[1])), row[2].strip()) for row in rows if row[0].strip().isdigit()]
    yield f"== start: {seconds:.2f} s with the clock on, {sum(own for (own, _), _ in costs) / 1e3:.0f} ms in imports"
    for place, name in enumerate(("in the module itself", "and in all that it imports")):
        yield f"-- ms {name}"
        dearest = sorted(((cost[place], module) for cost, module in costs), reverse=True)[:SHOWN]
        yield from (f"{cost / 1e3:8.1f}  {module}" for cost, module in dearest)
    yield ""


def with_import_times(port: int, upstream: int, files: Path) -> list[str]:
    program, *rest = SUBJECTS["native"].command(port, upstream, files)
    return [program, "-X", "importtime", *rest]


def memory_lines(loads: list[Workload], files: Path) -> Iterator[str]:
    """Write the resident memory after the start and after each load."""
    yield "== memory: MB resident"
    for name in ("bare", "native", "emulated"):
        with running([SUBJECTS[name]], files) as started:
            steps = [f"start {resident_mb(started[name].pid):.0f}"]
            for workload in loads:
                if name in workload.subjects:
                    once(workload, started[name], None)
                    steps.append(f"{workload.name} {resident_mb(started[name].pid):.0f}")
        yield f"{name}: {', '.join(steps)}"
    yield ""

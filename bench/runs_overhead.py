"""The cost of keeping runs: per step on both databases, and with 500 live runs on one worker.

A step is a turn or a call of a model and tools that take no time, with its events; a call that may not run twice has
two. The time of a step lasts until the step is kept. Inline is the same run with nothing kept.
"""

import argparse
import asyncio
import json
import platform
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import cast

from testkit.killtest_worker import MODEL, TOOLS, Order, prepare
from testkit.postgres import postgres
from testkit.report import close
from toolspeak.agent.durable.runs import DurableRuns, open_runs
from toolspeak.agent.durable.step_store import DbosStepStore
from toolspeak.agent.runs.preparation import prepare_run
from toolspeak.agent.runs.runs import Spec
from toolspeak.agent.runs.steps import Do, T, TextForm, run_inline
from toolspeak.config.shape import Approval

RESULTS = Path(__file__).parent / "results" / "runs-overhead.json"
STEP = 40.0
"""Milliseconds that a step may cost, on a machine with other work."""


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    rounds: int = 50
    live: int = 500
    think: float = 4.0
    seconds: float = 45.0


def spec(name: str, rounds: int) -> Spec:
    """Return a run of so many rounds."""
    return Spec(name, MODEL, tools=(TOOLS,), approval=Approval.OFF, rounds=rounds + 1)


async def ended(runs: DurableRuns, id: str) -> None:
    """Wait for the end of a run."""
    async for _ in runs.events(id):
        pass


def timed(times: list[float]) -> Callable[[], None]:
    """Record how long each step takes, from now on; return the function that stops it."""
    keep = DbosStepStore.keep

    async def timed_keep(self: DbosStepStore, step: str, form: TextForm[T], do: Do[T], *, once: bool = False) -> T:
        began = time.perf_counter()
        outcome = await keep(self, step, form, do, once=once)
        times.append((time.perf_counter() - began) * 1000)
        return outcome

    setattr(DbosStepStore, "keep", timed_keep)  # noqa: B010 # only for the measurement
    return lambda: setattr(DbosStepStore, "keep", keep)


async def steps(order: Order) -> dict[str, float]:
    """Measure steps, one after the other."""
    times: list[float] = []
    async with open_runs(order.config, prepare(order)) as runs:
        await ended(runs, await runs.start(spec("warm", 3), "warm"))
        stop = timed(times)
        began, cpu = time.perf_counter(), time.process_time()
        await ended(runs, await runs.start(spec("steps", order.rounds), "steps"))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - began
        stop()
    cuts = statistics.quantiles(times, n=100)
    figures = {
        "p50_ms": cuts[49],
        "p99_ms": cuts[98],
        "cpu_ms": cpu * 1000 / len(times),
        "per_second": len(times) / wall,
    }
    return {"steps": len(times), **{name: round(value, 2) for name, value in figures.items()}}


async def inline(order: Order) -> dict[str, float]:
    """Measure the same run with nothing kept."""
    directory = prepare(order)
    async with prepare_run("inline", spec("inline", order.rounds), order.config, directory) as work:
        await run_inline(work)  # what is loaded once is not counted
        began = time.process_time()
        ending = await run_inline(work)
        cpu = time.process_time() - began
    count = sum(1 + len(each.calls) for each in ending.kept.rounds) + 1
    return {"steps": count, "cpu_ms": round(cpu * 1000 / count, 2)}


async def live(order: Order, size: Size) -> dict[str, float]:
    """Let many runs live on one worker; watch its memory and its loop."""
    lags: list[float] = []
    times: list[float] = []
    async with open_runs(order.config, prepare(order)) as runs:
        before = _memory()
        for number in range(size.live):
            await runs.start(spec(f"live{number}", order.rounds), f"live{number}")
        stop = timed(times)
        cpu, until = time.process_time(), time.monotonic() + size.seconds
        while time.monotonic() < until:
            began = time.monotonic()
            await asyncio.sleep(0.02)
            lags.append((time.monotonic() - began - 0.02) * 1000)
        cpu = time.process_time() - cpu
        stop()
        going = sum(not line.ended for line in await runs.list(size.live))
        memory = _memory()
    cuts = statistics.quantiles(lags, n=100)
    return {
        "runs": size.live,
        "live_at_the_end": going,
        "seconds": size.seconds,
        "memory_mb": round(memory, 1),
        "memory_of_runs_mb": round(memory - before, 1),
        "lag_p50_ms": round(cuts[49], 1),
        "lag_p99_ms": round(cuts[98], 1),
        "steps_per_second": round(len(times) / size.seconds, 1),
        "cpu": round(cpu / size.seconds, 2),
    }


def _memory() -> float:
    """Return the megabytes of this process."""
    with Path("/proc/self/statm").open(encoding="ascii") as opened:
        return int(opened.read().split()[1]) * resource.getpagesize() / (1 << 20)


def main() -> None:
    """Measure, and exit."""
    options = argparse.ArgumentParser(prog="bench.runs_overhead")
    options.add_argument("--quick", action="store_true", help="less, and not kept")
    size = Size(10, 50, 1.0, 8.0) if options.parse_args().quick else Size()
    with tempfile.TemporaryDirectory(prefix="toolspeak-overhead-") as folder, postgres() as url:
        order = Order("", Path(folder), 30.0, Path(folder) / "marks", 0.0, 0.0, rounds=size.rounds)
        shared = replace(order, database=url)
        slow = replace(shared, think=size.think, act=size.think / 4)
        figures = {
            "inline": asyncio.run(inline(order)),
            "sqlite": asyncio.run(steps(order)),
            "postgresql": asyncio.run(steps(shared)),
            "live": asyncio.run(live(slow, size)),
        }
    ok = all(figures[name]["p50_ms"] < STEP for name in ("sqlite", "postgresql"))
    if size == Size() and ok:
        packages = ("dbos", "sqlalchemy", "psycopg")
        kept = {"python": platform.python_version(), **{name: version(name) for name in packages}}
        written = {"date": datetime.now(UTC).date().isoformat(), "versions": kept, **figures}
        RESULTS.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    close("runs-overhead", ok=ok, **cast("dict[str, object]", figures))


if __name__ == "__main__":
    main()

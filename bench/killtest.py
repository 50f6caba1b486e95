"""Kill workers with `kill -9` while they work on runs, and check whether anything was lost or done twice (RUN-3).

A run has six rounds, each with a turn, a call that may be repeated and one that may not. Each writes a mark to a file
before and after it, so the file shows how often everything really ran. The test has three parts: PostgreSQL with three
workers, of which one is killed about every second and replaced; the same with rare kills, so that the recovery from a
single kill can be measured; SQLite with one process that is killed and restarted.

    unfinished      runs that did not end as they should
    lost            results that a step has kept, and that are missing or different in the run
    repeated        steps that ran again after their result was kept
    twice           calls that may not run twice, and began twice
    unknown         such calls with an unknown outcome, because their worker died during them: the result says so
    again           steps that ran again because their worker died during them
"""

import argparse
import asyncio
import json
import multiprocessing
import platform
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec
import sqlalchemy as sa

from testkit.killtest_worker import MODEL, ROUNDS, TOOLS, Mark, Order, work
from testkit.postgres import postgres
from testkit.report import close
from toolspeak.agent.durable import dbos_internals
from toolspeak.agent.durable.database import Database
from toolspeak.agent.durable.runs import DurableRuns, open_runs
from toolspeak.agent.runs.runs import RunView, Spec
from toolspeak.config.shape import Approval
from toolspeak.engine.agent import Status
from toolspeak.ir.message import Result, Text, part_text

RESULTS = Path(__file__).parent / "results" / "killtest.json"
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["testkit.killtest_worker"])


@dataclass(frozen=True)
class Plan:
    """One part of the test. A kill comes after a time between half and one and a half of `every` seconds."""

    name: str
    runs: int
    workers: int
    every: float
    lease: float
    seconds: float
    seed: int = 7
    think: float = 0.15
    act: float = 0.15


FULL = (
    Plan("postgresql", 200, 3, 1.0, 3.0, 600),
    Plan("calm", 45, 3, 8.0, 3.0, 400, think=2.5, act=1.0),
    Plan("sqlite", 40, 1, 4.0, 2.0, 400),
)
QUICK = (Plan("postgresql", 30, 3, 1.0, 3.0, 240), Plan("sqlite", 8, 1, 4.0, 2.0, 120))


@dataclass
class Outcome:
    """The result of one part."""

    plan: Plan
    seconds: float = 0.0
    kills: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    unfinished: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    repeated: list[str] = field(default_factory=list[str])
    twice: list[str] = field(default_factory=list[str])
    unknown: int = 0
    again: int = 0
    steps: int = 0
    recoveries: list[float] = field(default_factory=list[float])

    @property
    def ok(self) -> bool:
        """Tell whether nothing was lost or done twice, and workers were really killed during runs."""
        return not (self.unfinished or self.lost or self.repeated or self.twice) and bool(self.recoveries)

    def figures(self) -> dict[str, object]:
        """Return the figures."""
        times = sorted(self.recoveries)
        cuts = statistics.quantiles(times, n=100) if len(times) > 1 else [0.0] * 99
        counts = {name: len(getattr(self, name)) for name in ("unfinished", "lost", "repeated", "twice")}
        return {
            "runs": self.plan.runs,
            "seconds": round(self.seconds, 1),
            "kills": len(self.kills),
            "steps": self.steps,
            **counts,
            "unknown": self.unknown,
            "again": self.again,
            "recoveries": len(times),
            "recovery_p50_s": round(cuts[49], 2),
            "recovery_p99_s": round(cuts[98], 2),
        }


# ---------------------------------------------------------------- the work


class Crew:
    """The workers, and the loop that kills them."""

    def __init__(self, order: Order, plan: Plan) -> None:
        self._order = order
        self._plan = plan
        self._chance = random.Random(plan.seed)
        self._crew: list[BaseProcess] = []
        self.kills: list[tuple[int, float]] = []

    def start(self) -> None:
        """Start workers until all are running."""
        self._crew = [process for process in self._crew if process.is_alive()]
        while len(self._crew) < self._plan.workers:
            process = PROCESSES.Process(target=work, args=(self._order,), daemon=True)
            process.start()
            self._crew.append(process)

    async def kill_on(self) -> None:
        """Kill and replace one worker after the other, until cancelled."""
        while True:
            await asyncio.sleep(self._plan.every * self._chance.uniform(0.5, 1.5))
            victim = self._crew.pop(self._chance.randrange(len(self._crew)))
            victim.kill()
            self.kills.append((victim.pid or 0, time.time()))
            await asyncio.to_thread(victim.join)
            self.start()

    def end(self) -> None:
        """Terminate all workers, and kill those that do not end."""
        for process in self._crew:
            process.terminate()
        for process in self._crew:
            process.join(20)
            if process.exitcode is None:
                process.kill()


async def play(order: Order, plan: Plan) -> Outcome:
    """Start runs, kill workers, and judge the results."""
    outcome = Outcome(plan)
    crew = Crew(order, plan)
    began = time.monotonic()
    async with open_runs(order.config) as runs:
        for number in range(plan.runs):
            id = f"{plan.name}_{number}"
            await runs.start(Spec(id, MODEL, tools=(TOOLS,), approval=Approval.OFF), id)
        crew.start()
        try:
            await wait_for_all(runs, plan, crew)
        finally:
            await asyncio.to_thread(crew.end)
        outcome.seconds = time.monotonic() - began
        outcome.kills = crew.kills
        await judge(runs, order, outcome)
    return outcome


async def wait_for_all(runs: DurableRuns, plan: Plan, crew: Crew) -> None:
    """Wait for the end of all runs, or for the time limit; kill workers meanwhile."""
    deadline = time.monotonic() + plan.seconds
    async with asyncio.TaskGroup() as group:
        killing = group.create_task(crew.kill_on())
        while time.monotonic() < deadline:
            await asyncio.sleep(0.5)
            ended = sum(bool(line.ended) for line in await runs.list(plan.runs))
            if sys.stderr.isatty():
                print(f"\r{plan.name}: {ended}/{plan.runs}, {len(crew.kills)} killed ", end="", file=sys.stderr)
            if ended == plan.runs:
                break
        killing.cancel()


# ---------------------------------------------------------------- the judgement


async def judge(runs: DurableRuns, order: Order, outcome: Outcome) -> None:
    """Compare what is kept with what really ran."""
    marks = [msgspec.json.decode(line, type=Mark) for line in order.marks.read_bytes().splitlines()]
    by_run: defaultdict[str, list[Mark]] = defaultdict(list)
    for each in marks:
        by_run[each.run].append(each)
    kept = await asyncio.to_thread(kept_steps, order)
    for number in range(outcome.plan.runs):
        id = f"{outcome.plan.name}_{number}"
        judge_run(await runs.show(id), by_run[id], kept[id], outcome)
    outcome.recoveries = recoveries(by_run, outcome.kills)
    outcome.steps = sum(map(len, kept.values()))


def kept_steps(order: Order) -> defaultdict[str, dict[str, float]]:
    """Return the time at which each step of each run was kept."""
    kept: defaultdict[str, dict[str, float]] = defaultdict(dict)
    database = Database(order.config.runs)
    columns = dbos_internals.STEPS.c
    wanted = sa.select(columns.workflow_uuid, columns.function_name, columns.completed_at_epoch_ms)
    with database.theirs.begin() as connection:
        for run, step, at in connection.execute(wanted):
            kept[run][step] = at / 1000
    database.close()
    return kept


def judge_run(view: RunView, marks: Sequence[Mark], kept: dict[str, float], outcome: Outcome) -> None:
    """Judge one run."""
    id = view.line.id
    said = "".join(part.text for part in view.kept.message.parts if isinstance(part, Text))
    if view.line.status is not Status.DONE or len(view.kept.rounds) != ROUNDS or f"{id} is done" not in said:
        outcome.unfinished.append(f"{id}: {view.line.status}, {len(view.kept.rounds)} rounds, {view.reason or said!r}")
    begun: defaultdict[str, list[float]] = defaultdict(list)
    gave: defaultdict[str, set[str]] = defaultdict(set)
    for each in marks:
        if each.what == "begin":
            begun[each.step].append(each.at)
        gave[each.step].add(each.gave)
    for step, times in begun.items():
        outcome.repeated += [f"{id} {step}" for at in times if step in kept and at > kept[step] + 0.001]
        outcome.again += len(times) - 1
        if step.startswith("tool:") and step.endswith(":1") and len(times) > 1:
            outcome.twice.append(f"{id} {step} {len(times)} times")
    for number, each in enumerate(view.kept.rounds):
        for index, result in enumerate(each.results):
            judge_result(f"{id} tool:{number}:{index}", result, gave[f"tool:{number}:{index}"], outcome)


def judge_result(name: str, result: Result, gave: set[str], outcome: Outcome) -> None:
    """Compare a result with what the tool has returned."""
    text = "".join(part_text(piece) for piece in result.content)
    if text in gave and text:
        return
    if name.endswith(":1") and result.is_error and "unknown" in text:
        outcome.unknown += 1
    else:
        outcome.lost.append(f"{name}: {text!r}")


def recoveries(by_run: dict[str, list[Mark]], kills: Sequence[tuple[int, float]]) -> list[float]:
    """Return how long each run that lost its worker made no progress."""
    found: list[float] = []
    for marks in by_run.values():
        for worker, at in kills:
            before = [each for each in marks if each.at <= at]
            after = [each for each in marks if each.at > at]
            if before and after and before[-1].worker == worker:
                found.append(after[0].at - at)
    return found


# ---------------------------------------------------------------- the command


def part(plan: Plan, *, guarded: bool) -> Outcome:
    """Run one part."""
    with tempfile.TemporaryDirectory(prefix="toolspeak-killtest-") as folder:
        share = plan.runs // plan.workers + 10  # else the first worker claims all runs
        marks = Path(folder) / "marks"
        order = Order("", Path(folder), plan.lease, marks, plan.think, plan.act, guarded, concurrent=share)
        if plan.name == "sqlite":
            return asyncio.run(play(order, plan))
        with postgres() as url:
            return asyncio.run(play(replace(order, database=url), plan))


def main() -> None:
    """Run both parts, and exit."""
    options = argparse.ArgumentParser(prog="bench.killtest")
    options.add_argument("--quick", action="store_true", help="few runs, not kept")
    options.add_argument("--only", choices=["postgresql", "calm", "sqlite"])
    options.add_argument("--unguarded", action="store_true", help="without the guard: calls must be seen to run twice")
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--slow", type=float, default=1.0, help="so many times slower, for a busy machine")
    chosen = options.parse_args()
    plans = [slowed(plan, chosen.slow, chosen.seed) for plan in (QUICK if chosen.quick else FULL)]
    outcomes = [part(plan, guarded=not chosen.unguarded) for plan in plans if chosen.only in (None, plan.name)]
    for outcome in outcomes:
        for faults in (outcome.unfinished, outcome.lost, outcome.repeated, outcome.twice):
            print("\n".join(faults[:20]), file=sys.stderr, end="\n" * bool(faults))
    figures: dict[str, object] = {outcome.plan.name: outcome.figures() for outcome in outcomes}
    if chosen.unguarded:
        keep({"unguarded": figures})
        close("killtest-unguarded", ok=any(outcome.twice for outcome in outcomes), **figures)
    if not chosen.quick and not chosen.only and all(outcome.ok for outcome in outcomes):
        keep({"plans": [asdict(plan) for plan in plans], **figures})
    close("killtest", ok=all(outcome.ok for outcome in outcomes), **figures)


def slowed(plan: Plan, factor: float, seed: int) -> Plan:
    """Give everything more time."""
    lease, seconds = plan.lease * factor, plan.seconds * factor
    return replace(plan, every=plan.every * factor, lease=lease, seconds=seconds, seed=seed)


def keep(figures: dict[str, object]) -> None:
    """Write the results, replacing those that exist."""
    before: dict[str, object] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    versions = {"python": platform.python_version(), **{name: version(name) for name in ("dbos", "sqlalchemy")}}
    kept = {**before, "date": datetime.now(UTC).date().isoformat(), "versions": versions, **figures}
    RESULTS.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""`just fleet`: four gateways, two workers of runs, Redis, PostgreSQL and three upstreams, while things break.

    just fleet                                        2,000 streams at once and 200 runs for 20 minutes;
                                                      writes bench/results/fleet.json
    just fleet --minutes 2 --streams 60 --runs 6      a short look with every kind of fault
    just fleet --minutes 1 --faults full-disk         one kind of fault, or several
    just fleet --seed 8                               other faults, or the same in another order
    just fleet --keep FOLDER                          logs and configurations stay there

Every answer must be right or end in its protocol's error. A connection may break only when the process that
carries it is killed. No run may be lost, no call run twice, no stream be mixed with another, and a shared
limit must be kept to one percent while Redis is there.
"""

import argparse
import asyncio
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec
import uvloop

from bench.fleet.checks import HONEST, Answer, RunTally, Tally, Verdict, judge, judge_run, windows
from bench.fleet.deaths import Death
from bench.fleet.faults import Saboteur, apart_spans, deaths, with_delays
from bench.fleet.key_drill import KeyFigures, drill
from bench.fleet.load import RATE, Load
from bench.fleet.processes import Fleet, nginx, started
from bench.fleet.report import Outcome, Plan, longest_pauses
from bench.fleet.schedule import Fault, Kind, Targets, schedule
from testkit.killtest_worker import Mark
from testkit.report import close

RESULTS = Path(__file__).parents[1] / "results" / "fleet.json"
VERSIONED = ("toolspeak", "uvicorn", "uvloop", "aiohttp", "redis", "dbos", "sqlalchemy")
FULL = Plan(minutes=20.0, streams=2000, runs=200, seed=7)
ALL_KINDS_MINUTES = 2.0
"""Minutes from which a run has every kind of fault."""
LOGGED_S = 15.0
"""Seconds between two lines of progress in a log."""
OVERTIME_S = 600.0
"""Seconds after which a run that does not end is given up: longer than the longest stream."""
TAIL = 3000
"""Bytes of a bad answer that are kept."""
FINISH_S = 180.0
"""Seconds that runs have to end after the load."""


def allow_sockets() -> None:
    """Each stream has four sockets on this machine."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def play(fleet: Fleet, plan: Plan) -> Outcome:
    """Load the fleet, break it, and judge the results."""
    seconds = plan.minutes * 60
    targets = {kind: names for kind, names in fleet.targets().items() if kind in (plan.kinds or Kind)}
    faults = schedule(plan.seed, seconds, targets)
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(fleet.keep())
        await fleet.until_ready()
        load = Load(fleet.addresses.entrance, plan.streams, plan.runs, seconds, time.monotonic())
        saboteur = Saboteur(fleet, load.began)
        on_the_wall = time.time()
        async with asyncio.timeout(seconds + OVERTIME_S), asyncio.TaskGroup() as day:
            day.create_task(load.play())
            keys = day.create_task(key_drill(fleet))
            day.create_task(play_after(keys, saboteur, faults))
            watching = day.create_task(show(load, saboteur, len(faults)))
            day.create_task(stop_after(watching, load))
        await load.finish_runs(FINISH_S)
        outcome = await judge_all(fleet, plan, load, saboteur, on_the_wall)
        outcome.keys = keys.result()
        outcome.left_out = left_out(plan, targets, faults)
        keeping.cancel()
    return outcome


async def play_after(keys: "asyncio.Task[KeyFigures]", saboteur: Saboteur, faults: tuple[Fault, ...]) -> None:
    """Break nothing before the keys are done: on a slow machine they take longer than the calm at the beginning."""
    await keys
    await saboteur.play(faults)


async def key_drill(fleet: Fleet) -> KeyFigures:
    """Let the administration of keys work on the whole fleet; its own state is in a folder beside the gateways'."""
    gateways = fleet.addresses.gateways
    audits = [fleet.audit(name) for name in gateways]
    return await drill([*gateways.values()], fleet.config("gateway-0"), fleet.folder / "admin", audits)


def left_out(plan: Plan, targets: Targets, faults: Sequence[Fault]) -> list[Kind]:
    """Return the kinds that may be missing: not requested, not possible here, or without room in a short run."""
    is_short = not plan.kinds and plan.minutes < ALL_KINDS_MINUTES
    planned = {fault.kind for fault in faults}
    return [kind for kind in Kind if not targets.get(kind) or (is_short and kind not in planned)]


async def stop_after(watching: "asyncio.Task[None]", load: Load) -> None:
    """End the display when the load's time is over."""
    await asyncio.sleep(load.seconds)
    watching.cancel()


async def show(load: Load, saboteur: Saboteur, faults: int) -> None:
    """Show the progress: every second on a terminal, and a line now and then in a log."""
    is_terminal = sys.stderr.isatty()
    while True:
        said = f"{load.now():.0f}/{load.seconds:.0f} s, {load.right} answers right, {len(load.others)} not, "
        said += f"{len(load.accepted)}/{load.runs} runs accepted, {len(saboteur.events)}/{faults} faults"
        print(f"\r{said} " if is_terminal else said, end="" if is_terminal else "\n", file=sys.stderr, flush=True)
        await asyncio.sleep(1.0 if is_terminal else LOGGED_S)


async def judge_all(fleet: Fleet, plan: Plan, load: Load, saboteur: Saboteur, on_the_wall: float) -> Outcome:
    """Judge all streams, the limit and all runs."""
    events = with_delays(saboteur.events, load.delays)
    dead, tally, runs = deaths(events), Tally(), RunTally()
    tally.counts[Verdict.RIGHT] += load.right
    for answer in load.others:
        tally.add(answer, *judge(answer, dead))
    marks = read_marks(fleet.marks)
    by_run: defaultdict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        by_run[mark.run].append(mark)
    for run in load.accepted:
        judge_run(run, await load.shown(run.name), await load.messages(run.name), by_run[run.name], runs)
    limits = windows(load.samples, apart_spans(events), RATE / 60)
    return Outcome(
        plan,
        tally,
        runs,
        len(load.accepted),
        limits,
        events,
        load.others,
        longest_pauses(marks, on_the_wall, time.time()),
        load.resumed,
        fleet.restarts,
        load.refused,
        load.samples,
    )


def read_marks(file: Path) -> list[Mark]:
    """Read the marks that the tools of runs have written."""
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [msgspec.json.decode(line, type=Mark) for line in lines]


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="bench.fleet.run")
    parser.add_argument("--minutes", type=float, default=FULL.minutes)
    parser.add_argument("--streams", type=int, default=FULL.streams, help="at once")
    parser.add_argument("--runs", type=int, default=FULL.runs)
    parser.add_argument("--seed", type=int, default=FULL.seed)
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="where logs and configurations stay; it must be new"
    )
    parser.add_argument("--faults", type=Kind, nargs="+", default=(), metavar="KIND", help="only these kinds of faults")
    parser.add_argument("--save", action="store_true", help="write bench/results/fleet.json for a smaller run too")
    return parser.parse_args()


def main() -> None:
    """Run it, and exit."""
    chosen = options()
    plan = Plan(chosen.minutes, chosen.streams, chosen.runs, chosen.seed, frozenset(chosen.faults))
    outcome = carry_out(plan, chosen.keep)
    faults, figures = outcome.faults(), outcome.figures()
    print("\n".join([*outcome.details(), *faults]), file=sys.stderr)
    if chosen.save or plan == FULL:
        save(RESULTS, figures, ok=not faults)
    close("fleet", ok=not faults, **figures)


def carry_out(plan: Plan, keep: Path | None) -> Outcome:
    """Start a fleet, run a plan on it, and end it; logs, configurations and events stay in the folder `keep`."""
    allow_sockets()
    with tempfile.TemporaryDirectory(prefix="fleet-") as temporary:
        if keep:
            keep.mkdir()
        folder = keep.resolve() if keep else Path(temporary)
        with started(folder, plan.streams) as fleet:
            outcome = uvloop.run(play(fleet, plan))
        write_events(folder / "events.jsonl", outcome)
    return outcome


def write_events(file: Path, outcome: Outcome) -> None:
    """Write what happened, fault by fault and failure by failure, to be read next to the logs of the processes."""
    faults = [{"at": event.began, "event": event} for event in outcome.events]
    dead = deaths(outcome.events)
    failures = [failure(answer, dead) for answer in outcome.failures]
    limits = [{"at": window.began, "limit": window} for window in outcome.limits]
    lines = sorted([*faults, *failures, *limits], key=lambda line: float(str(line["at"])))
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def failure(answer: Answer, dead: Sequence[Death]) -> dict[str, object]:
    """Return a line about an answer that is not right; an answer that no client can handle has its last bytes."""
    verdict, reason = judge(answer, dead)
    said = {} if verdict in HONEST else {"ends": answer.body[-TAIL:].decode(errors="replace")}
    line = {"at": answer.done, "began": answer.began, "stream": answer.question, "carrier": answer.carrier}
    return {**line, "verdict": (verdict, reason), **said}


def save(file: Path, figures: dict[str, object], *, ok: bool) -> None:
    """Write the results."""
    versions = {"python": platform.python_version(), **{name: version(name) for name in VERSIONED}}
    said = subprocess.run([nginx(), "-v"], check=False, capture_output=True, text=True).stderr
    versions["nginx"] = said.rpartition("/")[2].strip()
    kept = {"date": datetime.now(UTC).date().isoformat(), "ok": ok, "cores": os.cpu_count(), **figures}
    file.write_text(json.dumps({**kept, "versions": versions}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""`just traces-cost`: the cost of traces in CPU and memory of the gateway, and the time to search a million traces.

    chunk       CPU of a streamed chunk with traces over that without, in one interleaved run; also of a small request
    memory      resident memory after 10,000 requests beyond that after 1,000, with the default limits
    search      the slowest of a set of searches in an SQLite file with a million traces

The gateways share one core; the upstream and the client have the other. `--save` writes
bench/results/traces-cost.json. `--traces N` and `--rounds N` make it shorter.
"""

import argparse
import json
import os
import random
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from bench.gateway import load
from bench.gateway.rounds import Figures, interleaved
from bench.gateway.subjects import LOAD_CORE, Command, Running, Subject, running, toolspeak
from bench.gateway.workloads import Workload, workloads
from testkit import meter
from testkit.report import close, progress
from toolspeak.engine.plan import Plan, Way
from toolspeak.ir.event import Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.traces.store import FileStore, TraceQuery
from toolspeak.traces.trace import AnswerPart, StoredPlan, Trace

RESULTS = Path(__file__).parent / "results" / "traces-cost.json"
MEASURED = ("small", "paced96", "fenced96")
OFF, MEMORY, FILE = "off", "memory", "file"
MOST_CHUNK, MOST_GROWTH_MB, MOST_SEARCH_S = 1.10, 16.0, 0.3
FEW, MANY = 1_000, 10_000


def configured(name: str, lines: str, *options: str) -> Subject:
    """Return toolspeak with these lines of configuration."""
    plain = toolspeak(*options)

    def command(port: int, upstream: int, files: Path) -> list[str]:
        config = files / f"{name}.toml"
        config.write_text(lines.replace("FILES", str(files)))
        return [*plain(port, upstream, files), "--config", str(config)]

    made: Command = command
    return Subject(name, made)


EMULATED = ("--mode", "force", "--dialect", "fenced")
LINES = {
    OFF: "[traces]\nenabled = false\n",
    MEMORY: "[traces]\nenabled = true\n",
    FILE: '[traces]\ndatabase = "FILES/traces-NAME.sqlite"\n',
}


def subjects() -> list[Subject]:
    """Return toolspeak without traces, with traces in memory and with traces in a file; native, and emulated."""
    made = [configured(name, lines.replace("NAME", name)) for name, lines in LINES.items()]
    forced = [(f"{name} emulated", lines.replace("NAME", f"{name}-emulated")) for name, lines in LINES.items()]
    return made + [configured(name, lines, *EMULATED) for name, lines in forced]


def chosen() -> list[Workload]:
    """Return the workloads of the bench of the gateway, for these subjects."""
    by_name = {workload.name: workload for workload in workloads()}
    forced = tuple(f"{name} emulated" for name in LINES)
    return [replace(by_name[name], subjects=forced if name.startswith("fenced") else tuple(LINES)) for name in MEASURED]


@dataclass(frozen=True, slots=True)
class Ratio:
    """The cost of a workload with traces, divided by the cost without."""

    workload: str
    unit: str
    kept: str
    off_us: float
    on_us: float

    @property
    def times(self) -> float:
        return round(self.on_us / self.off_us, 3)


def ratios(rounds: int, files: Path) -> list[Ratio]:
    """Measure the CPU of chunks and requests."""
    measured = chosen()
    with running(subjects(), files) as started:
        table = interleaved(measured, started, rounds)
    made: list[Ratio] = []
    for workload in measured:
        row = table[workload.name]
        off = _of(row, OFF)
        made += [Ratio(workload.name, workload.unit, kept, off, _of(row, kept)) for kept in (MEMORY, FILE)]
    return made


def _of(row: dict[str, Figures], kept: str) -> float:
    (figures,) = (figures for name, figures in row.items() if name.split()[0] == kept)
    return round(min(figures.cpu_us), 2)


def memory(files: Path) -> dict[str, float]:
    """Return the resident memory after few and after many requests of 33 KB, with the default limits."""
    tools = next(workload for workload in workloads() if workload.name == "tools")
    found: dict[str, float] = {}
    with running([configured(MEMORY, LINES[MEMORY])], files) as started:
        gateway = started[MEMORY]
        for name, requests in (("few_mb", FEW), ("many_mb", MANY - FEW)):
            send(tools, gateway, requests)
            found[name] = round(meter.resident_mb(gateway.pid), 1)
    return found | {"growth_mb": round(found["many_mb"] - found["few_mb"], 1)}


def send(workload: Workload, gateway: Running, requests: int) -> None:
    uvloop.run(load.run(replace(workload.load, requests=requests), gateway.port, gateway.headers))


# ---------------------------------------------------------------- a million traces

NAMES = ("read_file", "write_file", "search_text", "run_command", "get_weather", "list_issues")
MODELS = ("qwen3-coder", "gemma3-12b", "mistral-small", "smollm2", "llama3.1-8b")
QUERIES = (
    ("the newest", TraceQuery()),
    ("a frequent model", TraceQuery(words="qwen3-coder")),
    ("a word in every trace", TraceQuery(words="openai_chat")),
    ("two words", TraceQuery(words="gemma3 weather")),
    ("a rare word", TraceQuery(words="needle")),
    ("no match", TraceQuery(words="haystack")),
    ("failed ones", TraceQuery(is_failed=True)),
    ("failed ones with a frequent word", TraceQuery(words="smollm2", is_failed=True)),
    ("of one tenant", TraceQuery(tenant="team-7")),
    ("of one tenant, with a word", TraceQuery(tenant="team-7", words="mistral")),
    ("failed ones of one tenant", TraceQuery(tenant="team-7", is_failed=True)),
)
RARE = 250_000
"""One trace in so many calls the tool `needle`."""
OLD = 100_000
"""Only traces among the first so many have failed: a search for failures must not look through all later ones."""
PORTION = 4_000


def fill(file: Path, number: int) -> None:
    """Write that many traces, as the gateway writes them; the store drops what is over its queue, so in portions."""
    chance = random.Random(11)
    plan = StoredPlan.of(Plan(Way.NATIVE, "the server calls tools"))
    for begin in range(0, number, PORTION):
        progress(begin, number, "traces")
        store = FileStore(file, keep_days=10_000)
        for count in range(begin, min(begin + PORTION, number)):
            store.add(_trace(count, chance, plan))
        store.close()


def _trace(count: int, chance: random.Random, plan: StoredPlan) -> Trace:
    model, tool = chance.choice(MODELS), "needle" if count % RARE == 7 else chance.choice(NAMES)
    question, answer = f"Question {count}? " * 20, [AnswerPart("call", '{"path": "notes.txt"}', tool, f"call_{count}")]
    trace = Trace(
        f"{chance.getrandbits(128):032x}",
        1.8e9 + count,
        f"team-{chance.randrange(40)}",
        "openai_chat",
        "/v1/chat/completions",
        json.dumps({"model": model, "messages": [{"role": "user", "content": question}]}),
        model,
        "box",
        model,
        "openai_chat",
        is_streamed=True,
        plan=plan,
    )
    trace.answer, trace.status, trace.seconds = answer, 200, chance.random() * 20
    trace.usage = Usage(chance.randrange(4000), chance.randrange(400))
    if count < OLD and chance.random() < 0.02:
        trace.failure, trace.status = Failure(FailureKind.TRANSIENT, "the upstream is away", 502), 502
    return trace


def searches(number: int, files: Path) -> dict[str, object]:
    """Return how long the searches take: the slowest of three times each, while nothing is written."""
    file = files / "million.sqlite"
    began = time.perf_counter()
    fill(file, number)
    wrote = time.perf_counter() - began
    store = FileStore(file, keep_days=10_000)
    slowest = {name: max(_timed(store, query) for _ in range(3)) for name, query in QUERIES}
    store.close()
    return {
        "traces": number,
        "written_per_second": round(number / wrote),
        "file_mb": round(file.stat().st_size / 1e6),
        "slowest_ms": {name: round(seconds * 1e3, 1) for name, seconds in slowest.items()},
        "slowest_s": round(max(slowest.values()), 4),
    }


def _timed(store: FileStore, query: TraceQuery) -> float:
    began = time.perf_counter()
    store.search(query)
    return time.perf_counter() - began


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds (7)")
    parser.add_argument("--traces", type=int, default=1_000_000, help="traces in the file (a million)")
    parser.add_argument("--save", action="store_true", help="write bench/results/traces-cost.json")
    return parser.parse_args()


def main() -> None:
    """Measure and exit."""
    asked = arguments()
    if (os.cpu_count() or 1) > LOAD_CORE:
        os.sched_setaffinity(0, {LOAD_CORE})
    with tempfile.TemporaryDirectory() as place:
        files = Path(place)
        cost = ratios(asked.rounds, files)
        for one in cost:
            print(f"{one.workload:9} {one.kept:7} {one.off_us:8.1f} -> {one.on_us:8.1f} µs per {one.unit}: {one.times}")
        grown = memory(files)
        print(f"memory: {grown}")
        found = searches(asked.traces, files)
        print(json.dumps(found, indent=1))
    chunk = max(one.times for one in cost if one.unit == "chunk")
    figures: dict[str, object] = {
        "chunk": chunk,
        "request": max(one.times for one in cost if one.unit != "chunk"),
        "memory_growth_mb": grown["growth_mb"],
        "search_s": found["slowest_s"],
    }
    ok = chunk <= MOST_CHUNK and grown["growth_mb"] <= MOST_GROWTH_MB and float(str(found["slowest_s"])) < MOST_SEARCH_S
    if asked.save:
        told = [{**asdict(one), "times": one.times} for one in cost]
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        body = {"date": date, **figures, "cpu": told, "memory": grown, "search": found}
        RESULTS.write_text(json.dumps(body, indent=1) + "\n")
    close("traces-cost", ok=ok, **figures)


if __name__ == "__main__":
    main()

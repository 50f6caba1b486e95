"""Writes the figures of docs/promises.md, docs/scale.md and docs/vllm-sglang.md from bench/results; `--check` compares.

A page has its tables between two comments; everything else is written by hand.
"""

import json
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
DIFFERENCES = ROOT / "tests" / "model_servers" / "vllm_differences.toml"
"""The differences that `just server-tests` knows, with their reasons."""
BEGIN, FINISH = "<!-- figures: written by `just docs` -->\n", "<!-- end of figures -->\n"
KILLS = ("postgresql", "calm", "sqlite")
RATES = (10, 20, 40, 80, 160)
"""Chunks per second of one stream; most servers send a chunk for each token."""
BUSY = 0.6
"""The share of a core that the calculation uses; the rest is for requests and for bursts."""
CORE_US = 1_000_000


def result(name: str) -> dict[str, Any]:
    """Return a file of results."""
    return cast("dict[str, Any]", json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")))


# ---------------------------------------------------------------- promises


def proofs() -> Iterator[str]:
    """Yield the table of the proofs."""
    yield "| promise | what was tried | result | command |\n| --- | --- | --- | --- |\n"
    for promise, tried, outcome, command in _proofs():
        yield f"| {promise} | {tried} | {outcome} | `{command}` |\n"


def _proofs() -> Iterator[tuple[str, str, str, str]]:
    fuzzed, simulated = result("fuzz-coverage"), result("simulate")
    readers, kinds = fuzzed["readers"], simulated["kinds"]
    tried = f"{readers['executions']:,} damaged texts, found by coverage, in every dialect"
    outcome = f"{readers['exceptions']} exceptions, {readers['stalls']} stalls, no lost byte"
    yield "P1 no lost byte", tried, outcome, "just fuzz-coverage readers"
    dialects = result("roundtrip")["dialects"]
    calls, failed = (sum(one[key] for one in dialects.values()) for key in ("calls", "failed"))
    tried = f"{calls:,} calls with generated arguments, written and read back in {len(dialects)} dialects"
    yield "P2 no invented argument", tried, f"{failed} differ", "just roundtrip"
    turns = f"{simulated['seeds']:,} turns against a simulated model, network and client"
    found = f"{simulated['violations']} violations of any promise{_fixed(simulated)}"
    yield (
        "P3 no truncated call",
        f"{turns}; {kinds['truncated call']:,} with a call that is cut",
        found,
        "just simulate",
    )
    kills, runs, twice = _killed()
    control = result("killtest")["unguarded"]["postgresql"]
    tried = f"{kills} times `kill -9` of a worker, over {runs} durable runs on PostgreSQL and SQLite"
    outcome = f"{twice} calls twice; without the guard, {control['twice']} in {control['runs']} runs"
    yield "P4 no call twice", tried, outcome, "just killtest"
    bait = sum(kinds[kind] for kind in ("quoted call", "draft in reasoning", "echo", "forged result"))
    tried = f"{bait:,} of these turns quote a call, draft one in the reasoning, echo or forge a result"
    yield "P5 no false call", tried, "as P3", "just simulate"
    faults = simulated["faults"]
    broken = sum(count for fault, count in faults.items() if fault != "none")
    tried = f"{broken:,} of these turns have an upstream that fails: reset, silence, HTTP errors, a missing end"
    yield "P6 no empty success", tried, "as P3", "just simulate"
    attack = result("attack")
    tried = f"{attack['attempts']:,} hostile requests of {attack['families']} kinds"
    outcome = (
        f"{attack['succeeded']} succeeded; `/health` answered within {attack['health_p99_ms']:.0f} ms (p99), "
        f"the longest gap in another client's stream was {attack['gap_max_ms']:.0f} ms"
    )
    yield "P7 bounded memory", tried, outcome, "just attack"
    linear = result("linear")
    tried = f"{linear['cases']:,} hostile inputs, each at two sizes"
    yield "P8 linear time", tried, f"at worst {linear['worst']} times the time for twice the input", "just linear"


def _fixed(simulated: dict[str, Any]) -> str:
    """Mention that violations were fixed, where the results say so."""
    return ", fixed since" if simulated["violations"] and "fixed" in simulated.get("note", "") else ""


def _killed() -> tuple[int, int, int]:
    found = [result("killtest")[name] for name in KILLS]
    kills, runs, twice = (sum(one[key] for one in found) for key in ("kills", "runs", "twice"))
    return kills, runs, twice


# ---------------------------------------------------------------- scale


def scale() -> Iterator[str]:
    """Yield the measurements, and the calculation that follows from them."""
    speed, streams = result("speed-gateway"), result("streams")
    chunk_us = max(speed["cpu_us"]["paced96"][form]["median_us"] for form in ("native", "emulated"))
    yield from _measured(speed, streams, chunk_us)
    yield f"\nStreams that one process carries with {BUSY:.0%} of one core, and the memory for them:\n\n"
    yield "| chunks per second of each stream | streams per core | resident memory |\n| --- | --- | --- |\n"
    for rate in RATES:
        number = int(CORE_US * BUSY / (rate * chunk_us))
        memory = streams["before_mb"] + number * streams["kb_per_stream"] / 1000
        yield f"| {rate} | {CORE_US:,} × {BUSY} ÷ ({rate} × {chunk_us:.0f}) = **{number:,}** | {memory:.0f} MB |\n"


def cost_curve() -> Iterator[str]:
    """Yield the cost of a chunk and a stream by the number of streams, and the capacity of a core."""
    found = result("cost-curve")
    counts = list(found["asgi"]["streams"])
    yield f"Measured on {found['date']}, {found['rounds']} rounds:\n\n"
    yield "| streams at once | chunks/s of each | `asgi`: CPU for a chunk | `push` | `asgi`: memory of a stream "
    yield "| `push` |\n| ---: | ---: | ---: | ---: | ---: | ---: |\n"
    for count in counts:
        rows = [found[driver]["streams"][count] for driver in ("asgi", "push")]
        costs = " | ".join(f"{row['chunk_us']:.0f} µs" for row in rows)
        sizes = " | ".join(f"{row['kb_per_stream']:.0f} KB" if int(count) >= FEW else "" for row in rows)
        yield f"| {int(count):,} | {rows[0]['rate']:g} | {costs} | {sizes} |\n"
    yield f"\n| at 30 tokens a second, a token in each chunk | streams with a full core | with {BUSY:.0%} of it |\n"
    yield "| --- | ---: | ---: |\n"
    for driver in ("asgi", "push"):
        full = found[driver]["carried"]
        cost = found[driver]["streams"][str(full["cost_of"])]["chunk_us"]
        yield f"| `{driver}`, {cost:.0f} µs for a chunk as with {full['cost_of']:,} streams "
        yield f"| {full['streams']:,} | {full['streams'] * BUSY:,.0f} |\n"


SUBJECTS = {
    "native": "`asgi`, native",
    "emulated": "`asgi`, emulated",
    "push": "`push`, native",
    "push-emulated": "`push`, emulated",
    "bare": "uvicorn and aiohttp that forward bytes unchanged",
    "envoy": "Envoy {envoy}",
    "nginx": "nginx {nginx}",
    "litellm": "LiteLLM {litellm}",
    "forge": "forge {forge}",
    "portkey": "Portkey {portkey}",
}
"""What was compared, with its name on the page."""
WORKLOADS = {
    "small": "small request",
    "tools": "30 tools, native",
    "emulated-warm": "30 tools, emulated",
    "paced16": "chunk, 16 streams",
    "paced48": "chunk, 48 streams",
    "paced96": "chunk, 96 streams",
}


def speed() -> Iterator[str]:
    """Yield the cost of requests and chunks compared with others, and the targets that were reached."""
    found = result("speed-gateway")
    yield f"Measured on {found['date']}, {found['rounds']} rounds, Python {found['versions']['python']}:\n\n"
    yield f"| µs of CPU, medians | {' | '.join(WORKLOADS.values())} |\n| --- |{' ---: |' * len(WORKLOADS)}\n"
    for subject, name in SUBJECTS.items():
        rows = (found["cpu_us"][workload].get(subject) for workload in WORKLOADS)
        cells = " | ".join(_microseconds(row["median_us"]) if row else "" for row in rows)
        yield f"| {name.format_map(found['versions'])} | {cells} |\n"
    yield "\n| | target | measured | |\n| --- | --- | ---: | --- |\n"
    for target in found["targets"]:
        bound = f"at {'least' if target['least'] else 'most'} {target['bound']:g}"
        outcome = "reached" if target["ok"] else "**missed**"
        yield f"| {target['id']} {target['what']} | {bound} | {target['value']:.2f} | {outcome} |\n"


IN_MEMORY = {
    "native": "chunk, native",
    "force": "chunk, emulated",
    "small_us": "small request",
    "native_warm_us": "30 tools, native",
    "emulated_warm_us": "30 tools, emulated",
}
"""The figures of `just speed-pythons`, in the words of the page."""


def pythons() -> Iterator[str]:
    """Yield the effect of other interpreters and of a compiled core, in memory and over sockets."""
    found = result("speed-pythons")
    memory, sockets = found["in_memory"], found["sockets"]
    yield f"Measured on {memory['date']}, {memory['rounds']} rounds, in memory, without sockets:\n\n"
    yield f"| µs of CPU, medians | {' | '.join(IN_MEMORY.values())} |\n| --- |{' ---: |' * len(IN_MEMORY)}\n"
    for name, version in memory["pythons"].items():
        cells = " | ".join(_microseconds(memory["cpu_us"][name][figure]) for figure in IN_MEMORY)
        yield f"| {name}: Python {version} | {cells} |\n"
    yield f"\nMeasured on {sockets['date']}, {sockets['rounds']} rounds, over sockets, all interleaved in one run:\n\n"
    shown = {name: WORKLOADS[name] for name in sockets["cpu_us"]}
    yield f"| µs of CPU, medians | {' | '.join(f'{each} | × Envoy' for each in shown.values())} |\n"
    yield f"| --- |{' ---: | ---: |' * len(shown)}\n"
    for subject, name in _with_pythons(sockets).items():
        yield f"| {name} | {' | '.join(_beside_envoy(sockets['cpu_us'][each], subject) for each in shown)} |\n"


def _with_pythons(sockets: dict[str, Any]) -> dict[str, str]:
    """Return what was measured over sockets, and its name on the page."""
    envoy = {"envoy": SUBJECTS["envoy"].format_map(sockets)}
    return envoy | {
        f"{subject} {name}": f"{SUBJECTS[subject]}; {name}: Python {version}"
        for subject in ("bare", "push-emulated")
        for name, version in sockets["pythons"].items()
    }


def _beside_envoy(row: dict[str, dict[str, float]], subject: str) -> str:
    median, envoy = row[subject]["median_us"], row["envoy"]["median_us"]
    return f"{_microseconds(median)} | {median / envoy:.2f}"


def _microseconds(value: float) -> str:
    return f"{value:,.{1 if value < PRECISE else 0}f}"


PRECISE = 100
"""µs below which one decimal is shown."""
FEW = 100
"""Streams below which the memory of one is too small against that of the process."""


def soak() -> Iterator[str]:
    """Yield the results of a long run under load and with faults."""
    found = result("soak")
    memory, delays = found["memory_mb"], found["loop_delay_ms"]
    injected = sum(sum(counts.values()) for counts in found["injected"].values())
    yield f"The last run, on {found['date']}, with the driver `{found['driver']}`"
    yield ":\n\n" if found["ok"] else f", **missed a bar**: {'; '.join(found['faults'])}.\n\n"
    yield "| what | figure |\n| --- | --- |\n"
    for what, figure in (
        ("time", f"{found['minutes']:g} minutes"),
        ("streams at once, 30 chunks/s each", f"{found['streams']:,}{_of_capacity(found)}"),
        ("chunks", f"{found['chunks_per_s']:,}/s, {found['busy']:.0%} of the gateway's core"),
        ("requests", f"{found['requests']:,}, of which {found['small_requests']:,} small ones"),
        ("faults injected", f"{injected:,}, of {len(found['injected'])} kinds"),
        ("errors that were not injected", f"{found['errors_not_injected']:,}"),
        (
            "resident memory, median of the second and the last fifth of the time",
            f"{memory['second_fifth']:.1f} MB and {memory['last_fifth']:.1f} MB: {found['memory_growth']:+.1%}",
        ),
        ("its trend", f"{found['memory_mb_per_hour']:+.1f} MB an hour"),
        (
            "delay of the event loop: p50, p99, p99.9, longest",
            f"{delays['p50']:.1f} ms, {delays['p99']:.1f} ms, {delays['p99.9']:.1f} ms, {delays['max']:.1f} ms",
        ),
        ("the gateway could run, and another process had its core", f"{found['waited']:.1%} of the time"),
    ):
        yield f"| {what} | {figure} |\n"


def _of_capacity(found: dict[str, Any]) -> str:
    """Return the share of the capacity that the streams are, where it was measured."""
    full = found["capacity_streams"]
    return f", {found['share']:.0%} of the {full:,} that filled its core before the run" if full else ""


USERS = (10**4, 10**6, 10**8)
REQUESTS, PEAK, ANSWER_CHUNKS, ANSWER_S, RUN_SHARE, KEPT_DAYS = 10, 0.1, 400, 10.0, 0.01, 30
"""Of a user: requests in an hour at work; the share of users who work in the busiest hour; chunks and seconds of an
answer; runs for each request; days that a run is kept."""
CELL_CORES, HOURS = 16, 8
"""Cores of the PostgreSQL of a cell; hours of work in a day."""


def fleet() -> Iterator[str]:
    """Yield the capacity of one of each, and the calculation for three numbers of users."""
    cell, speed, streams = result("cell"), result("speed-gateway"), result("streams")
    claims, runs, redis = cell["claims"], cell["runs"], cell["redis"]
    chunk_us = max(speed["cpu_us"]["paced96"][form]["median_us"] for form in ("native", "emulated"))
    request_us = speed["cpu_us"]["tools"]["native"]["median_us"] + redis["gateway_us_per_check"]
    worker_s, server_s = runs["worker_ms_per_run"] / 1000, runs["server_ms_per_run"] / 1000
    claim_s = claims["limited_server_ms"] / 1000
    run_server_s = server_s + claim_s
    yield "| one | carries, with 60% of it busy | measured |\n| --- | --- | --- |\n"
    answer_us = request_us + ANSWER_CHUNKS * chunk_us
    yield f"| core of a gateway | {CORE_US * BUSY / answer_us:.0f} answers/s of {ANSWER_CHUNKS} chunks "
    yield f"| {request_us / 1000:.1f} ms for a request with its limit check, {chunk_us:.0f} µs for a chunk |\n"
    yield f"| core of a worker | {BUSY / worker_s:.0f} runs/s of {runs['steps_per_run']:.0f} steps "
    yield f"| {runs['worker_ms_per_run']:.0f} ms for a run, with its start and its watcher |\n"
    yield f"| core of a cell | {BUSY / run_server_s:.0f} runs/s "
    yield f"| {runs['server_ms_per_run']:.1f} ms of PostgreSQL for a run, {claims['limited_server_ms']:.1f} ms "
    yield f"for a claim of one run with {claims['queued']:,} queued |\n"
    yield f"| cell | {runs['bytes_per_run'] / 1000:.0f} KB for each kept run | rows, steps, events and indexes |\n"
    yield f"| Redis, which has one core | {CORE_US * BUSY / redis['redis_us_per_check']:,.0f} checks/s "
    yield f"| {redis['redis_us_per_check']:.0f} µs for a check and its end |\n"
    yield "\n| users | at work | requests/s | open streams | gateway cores | gateway memory | Redis | runs/s "
    yield "| worker cores | cells | kept runs |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    for users in USERS:
        busy = users * PEAK
        rate = busy * REQUESTS / 3600
        started = rate * RUN_SHARE
        cores = _whole(rate * answer_us / CORE_US / BUSY)
        memory = (cores * streams["before_mb"] + streams["kb_per_stream"] / 1000 * rate * ANSWER_S) / 1000
        kept = started * 3600 * HOURS * KEPT_DAYS * runs["bytes_per_run"]
        cells = _whole(started * run_server_s / CELL_CORES / BUSY)
        cells = max(cells, _whole(kept / CELL_BYTES))
        yield f"| {users:,} | {busy:,.0f} | {rate:,.1f} | {rate * ANSWER_S:,.0f} | {cores:,} | {memory:,.1f} GB "
        yield f"| {_whole(rate * redis['redis_us_per_check'] / CORE_US / BUSY)} | {started:,.2f} "
        yield f"| {_whole(started * worker_s / BUSY):,} | {cells:,} | {kept / 1e9:,.1f} GB |\n"


CELL_BYTES = 1e12
"""Bytes that a cell keeps at most, for its backups to end in a night."""


def _whole(number: float) -> int:
    return max(1, ceil(number))


def _measured(speed: dict[str, Any], streams: dict[str, Any], chunk_us: float) -> Iterator[str]:
    cpu, live = speed["cpu_us"], result("runs-overhead")["live"]
    share = streams["gateway_cpu_s"] / streams["wall_s"]
    yield "| what | figure | from |\n| --- | --- | --- |\n"
    for what, figure, source in (
        ("CPU for a streamed chunk, 96 streams at once", f"{chunk_us:.0f} µs", "speed-gateway"),
        ("CPU for a small request, native", f"{cpu['small']['native']['median_us'] / 1000:.1f} ms", "speed-gateway"),
        (
            "CPU for a request with tools, native",
            f"{cpu['tools']['native']['median_us'] / 1000:.1f} ms",
            "speed-gateway",
        ),
        ("the same, emulated", f"{cpu['emulated-warm']['emulated']['median_us'] / 1000:.1f} ms", "speed-gateway"),
        ("memory of an idle gateway", f"{streams['before_mb']:.0f} MB", "streams"),
        ("memory for each open stream", f"{streams['kb_per_stream']:.0f} KB", "streams"),
        (
            f"{streams['most_open']:,} streams at once: lost, mixed up",
            f"{streams['lost']}, {streams['mixed']}",
            "streams",
        ),
        (
            "the same: share of one core",
            f"{share:.0%}, at {1 / streams['load']['pace_s']:.1f} chunks/s each",
            "streams",
        ),
        (
            f"{live['runs']} durable runs on one worker",
            f"{live['memory_mb']:.0f} MB, {live['cpu']:.0%} of a core",
            "runs-overhead",
        ),
    ):
        yield f"| {what} | {figure} | `just {source}` |\n"


# ---------------------------------------------------------------- vLLM's own tests


def server_tests() -> Iterator[str]:
    """Yield the results of vLLM's own tests with our parsers, and each difference with its reason."""
    found, reasons = result("server-tests"), tomllib.loads(DIFFERENCES.read_text(encoding="utf-8"))
    calls, reasoning = found["tool_parsers"], found["reasoning"]
    yield "| | of calls | of reasoning |\n| --- | --- | --- |\n"
    for row, key in (
        ("tests that use a parser of ours", "tests"),
        ("**pass**", "passed"),
        ("of these, vLLM expects its own parser to fail", "passed_unexpectedly"),
        ("fail as vLLM expects of its own parser", "failed_as_expected"),
    ):
        yield f"| {row} | {calls[key]} | {reasoning[key]} |\n"
    counts = {key: (calls["differences"].get(key, 0), reasoning["differences"].get(key, 0)) for key in reasons}
    yield f"| differ | {sum(of_calls for of_calls, _ in counts.values())} "
    yield f"| {sum(of_reasoning for _, of_reasoning in counts.values())} |\n"
    yield f"\n{found['fail_without_us_too']} more tests fail with vLLM's own parsers as well. What differs:\n"
    yield "\n| difference | of calls | of reasoning | reason |\n| --- | --- | --- | --- |\n"
    for key, of_each in sorted(counts.items(), key=lambda entry: -sum(entry[1])):
        cells = (reasons[key]["difference"], *(str(count or "") for count in of_each), reasons[key]["reason"])
        yield f"| {' | '.join(cells)} |\n"


# ---------------------------------------------------------------- pages

PAGES = {
    "promises.md": (proofs,),
    "scale.md": (scale, cost_curve, speed, pythons, fleet, soak),
    "vllm-sglang.md": (server_tests,),
}


def page(now: str, figures: Sequence[Callable[[], Iterator[str]]]) -> str:
    """Return a page with the current figures; it has a place for each of them, in this order."""
    written, rest = "", now
    for each in figures:
        before, rest = rest.split(BEGIN, 1)
        written += before + BEGIN + "\n" + _written(each) + "\n" + FINISH
        rest = rest.split(FINISH, 1)[1]
    return written + rest


def _written(figures: Callable[[], Iterator[str]]) -> str:
    """Return the tables of a place, or which command has to run before there are any."""
    try:
        return "".join(figures())
    except FileNotFoundError as missing:
        return f"No figures yet: `just {Path(missing.filename).stem}` measures them.\n"


def main() -> None:
    """Write or check."""
    for name, figures in PAGES.items():
        path = ROOT / "docs" / name
        now = path.read_text(encoding="utf-8")
        if "--check" not in sys.argv:
            path.write_text(page(now, figures), encoding="utf-8")
        elif now != page(now, figures):
            sys.exit(f"{name} is stale: run `just docs`")


if __name__ == "__main__":
    main()

"""Writes the figures of docs/promises.md, docs/scale.md and docs/vllm-sglang.md from bench/results; `--check` compares.

A page has its tables between two comments; everything else is written by hand.
"""

import json
import sys
import tomllib
from collections.abc import Iterator
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
"""The share of a core that the sum fills; the rest is for requests and for bursts."""
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
    """Yield the measurements, and the sum that follows from them."""
    speed, streams = result("speed-gateway"), result("streams")
    chunk_us = max(speed["cpu_us"]["paced96"][form]["median_us"] for form in ("native", "emulated"))
    yield from _measured(speed, streams, chunk_us)
    yield f"\nStreams that one process carries with {BUSY:.0%} of one core, and the memory for them:\n\n"
    yield "| chunks per second of each stream | streams per core | resident memory |\n| --- | --- | --- |\n"
    for rate in RATES:
        number = int(CORE_US * BUSY / (rate * chunk_us))
        memory = streams["before_mb"] + number * streams["kb_per_stream"] / 1000
        yield f"| {rate} | {CORE_US:,} × {BUSY} ÷ ({rate} × {chunk_us:.0f}) = **{number:,}** | {memory:.0f} MB |\n"


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
    """Yield what came of vLLM's own tests with our parsers, and each difference with its reason."""
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

PAGES = {"promises.md": proofs, "scale.md": scale, "vllm-sglang.md": server_tests}


def page(now: str, figures: Iterator[str]) -> str:
    """Return a page with the figures of today."""
    before, rest = now.split(BEGIN, 1)
    return before + BEGIN + "\n" + "".join(figures) + "\n" + FINISH + rest.split(FINISH, 1)[1]


def main() -> None:
    """Write or check."""
    for name, figures in PAGES.items():
        path = ROOT / "docs" / name
        now = path.read_text(encoding="utf-8")
        if "--check" not in sys.argv:
            path.write_text(page(now, figures()), encoding="utf-8")
        elif now != page(now, figures()):
            sys.exit(f"{name} is stale: run `just docs`")


if __name__ == "__main__":
    main()

"""`just cost-curve`: CPU of a streamed chunk and memory of a stream, with 1, 10, 100, 1,000 and 4,000 streams at once.

Emulated plain text over OpenAI Chat, with both drivers. Few streams have 30 chunks a second each; many have less, so
that 6,000 chunks a second pass in all. Each number of streams gets a new gateway. The streams are open before the
measurement begins and stay open until it ends, so the cost of beginning one is not in the figures; the CPU of the idle
gateway is subtracted. At the end every stream must be right to the last word.

    just cost-curve                        all, twice; about six minutes; writes bench/results/cost-curve.json
    just cost-curve --streams 1 100        only these numbers, and nothing is written
    just cost-curve --urgent               with priority over other jobs of this machine; needs root

The gateway has one core; the upstream and the clients are one process on another. Where other processes have taken so
much of the gateway's core that it read several chunks at once in every round, the command fails and writes nothing.
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from math import log
from pathlib import Path
from typing import Any

import uvloop

from bench.fleet.checks import Answer, Question, Verdict, judge
from bench.gateway.rounds import CROWDED
from bench.paced import EMULATED, ENDLESS, Request, Talk, ask, gateway, use_load_core
from testkit import meter
from testkit.report import close
from toolspeak.config.shape import Driver

RESULTS = Path(__file__).parent / "results" / "cost-curve.json"
STREAMS = 1, 10, 100, 1000, 4000
RATE, MOST_PER_S = 30.0, 6000.0
"""Chunks a second of one stream, and of all together, at most."""
ROUNDS, WINDOW_S, IDLE_S = 2, 10.0, 3.0
SETTLE_S = 1.5
"""Seconds from the first chunk to the measurement."""
BEGIN_EVERY_S, BURST = 0.05, 10
"""Streams begin in small groups, 200 a second."""
WARM = 20, 0.5
"""Streams that warm up a new gateway, and their duration in seconds."""
VERSIONED = ("toolspeak", "uvicorn", "uvloop", "httptools", "aiohttp")


def rate_of(streams: int) -> float:
    """Return how many chunks a second each stream gets."""
    return min(RATE, MOST_PER_S / streams)


@dataclass(frozen=True)
class Cell:
    """One measurement."""

    driver: Driver
    streams: int
    rate: float
    """Chunks a second of each stream."""
    chunk_us: float
    idle_share: float
    """Share of the core that the gateway uses without any stream."""
    before_mb: float
    open_mb: float
    """When all streams are open, before the first chunk."""
    speaking_mb: float
    busy: float
    waited: float
    """Shares of the time in which the gateway ran, and in which others had its core."""
    load_busy: float

    @property
    def is_crowded(self) -> bool:
        """Tell whether chunks came faster than they could be read one by one: then each of them looks cheap."""
        return self.busy + self.waited > CROWDED

    def kb_per_stream(self, size: float) -> float:
        return (size - self.before_mb) * 1000 / self.streams


class Wrong(Exception):
    """A stream differs from what the upstream sent."""


async def begin(group: asyncio.TaskGroup, port: int, streams: int, first: int) -> list[asyncio.Task[Answer]]:
    """Open streams, a few at a time."""
    made: list[asyncio.Task[Answer]] = []
    for number in range(first, first + streams):
        request = Request(Question(number, "openai_chat", ENDLESS), EMULATED)
        made.append(group.create_task(ask(request, port, 0.0)))
        if number % BURST == 0:
            await asyncio.sleep(BEGIN_EVERY_S)
    return made


def check(answers: Sequence[Answer], talk: Talk) -> None:
    """Raise `Wrong` unless each stream has everything that was sent to it."""
    for answer in answers:
        number = answer.question.number
        verdict, reason = judge(replace(answer, question=Question(number, "openai_chat", talk.counts[number])), ())
        if verdict is not Verdict.RIGHT:
            raise Wrong(f"stream {number}: {verdict}: {reason}")


async def warm_up(port: int, talk: Talk) -> None:
    streams, seconds = WARM
    async with asyncio.TaskGroup() as group:
        await begin(group, port, streams, 10**6)
        await asyncio.sleep(seconds)
        talk.is_over = True
    talk.is_over = False


async def measure(driver: Driver, streams: int, window_s: float, files: Path) -> Cell:
    """Start a gateway, and measure it with so many streams. Raises `Wrong` if one of them is."""
    rate = rate_of(streams)
    talk = Talk(1 / RATE)
    async with gateway(talk, driver, files) as running:
        await warm_up(running.port, talk)
        await asyncio.sleep(SETTLE_S)
        began, spent = time.monotonic(), meter.cpu_s(running.pid)
        await asyncio.sleep(IDLE_S)
        idle = (meter.cpu_s(running.pid) - spent) / (time.monotonic() - began)
        talk.pace_s, talk.is_held = 1 / rate, True
        before_mb = meter.resident_mb(running.pid)
        async with asyncio.TaskGroup() as group:
            asked = await begin(group, running.port, streams, 0)
            await talk.until_held(streams)
            open_mb = meter.resident_mb(running.pid)
            talk.release()
            await asyncio.sleep(SETTLE_S + talk.pace_s)
            began, spent, waited = time.monotonic(), meter.cpu_s(running.pid), meter.waited_s(running.pid)
            said, own = talk.said, time.process_time()
            await asyncio.sleep(window_s)
            wall, spent = time.monotonic() - began, meter.cpu_s(running.pid) - spent
            waited, said, own = meter.waited_s(running.pid) - waited, talk.said - said, time.process_time() - own
            speaking_mb = meter.resident_mb(running.pid)
            talk.is_over = True
        check([task.result() for task in asked], talk)
    chunk_us = (spent - idle * wall) / said * 1e6
    sizes = (before_mb, open_mb, speaking_mb)
    return Cell(driver, streams, rate, chunk_us, idle, *sizes, spent / wall, waited / wall, own / wall)


def best(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return what is kept of the rounds: the cheapest chunk that was not crowded, and median sizes of memory."""
    cheapest = min(cells, key=lambda cell: (cell.is_crowded, cell.chunk_us))
    kept = {name: round(value, 4) for name, value in asdict(cheapest).items() if isinstance(value, float)}
    sizes = {
        "open_kb_per_stream": statistics.median(cell.kb_per_stream(cell.open_mb) for cell in cells),
        "kb_per_stream": statistics.median(cell.kb_per_stream(cell.speaking_mb) for cell in cells),
    }
    return {**kept, **{name: round(value, 1) for name, value in sizes.items()}}


def carried(curve: dict[int, float], rate: float) -> tuple[int, int]:
    """Return how many streams at a rate fill a core, and the number of streams whose cost is used.

    `curve` has the µs of a chunk by the number of streams. The cost is that of the nearest number, as a factor.
    """
    found = {count: int(1e6 / (rate * chunk_us)) for count, chunk_us in curve.items()}
    nearest = min(found, key=lambda count: abs(log(count / max(found[count], 1))))
    return found[nearest], nearest


def line(cell: Cell) -> str:
    """Return the figures of one measurement in words."""
    sizes = f"{cell.kb_per_stream(cell.open_mb):7.1f} kB open, {cell.kb_per_stream(cell.speaking_mb):7.1f} speaking"
    shares = f"busy {cell.busy:.0%}, waited {cell.waited:.0%}, load {cell.load_busy:.0%}"
    shares += "  crowded" if cell.is_crowded else ""
    return f"{cell.driver:5} {cell.streams:5} x {cell.rate:4.1f}/s  {cell.chunk_us:7.1f} µs  {sizes}  {shares}"


def rounds(counts: Sequence[int], number: int, window_s: float) -> dict[tuple[Driver, int], list[Cell]]:
    """Measure everything so many times, the drivers by turns."""
    table: dict[tuple[Driver, int], list[Cell]] = {(driver, count): [] for driver in Driver for count in counts}
    for turn in range(number):
        for count in counts:
            for driver in sorted(Driver, reverse=bool(turn % 2)):
                with tempfile.TemporaryDirectory() as files:
                    cell = uvloop.run(measure(driver, count, window_s, Path(files)))
                print(line(cell), file=sys.stderr, flush=True)
                table[driver, count].append(cell)
    return table


def figures(table: dict[tuple[Driver, int], list[Cell]], counts: Sequence[int]) -> dict[str, Any]:
    """Return the figures for the result file."""
    found: dict[str, Any] = {}
    for driver in Driver:
        streams = {count: best(table[driver, count]) for count in counts}
        full, nearest = carried({count: streams[count]["chunk_us"] for count in counts}, RATE)
        found[driver.value] = {
            "streams": {str(count): row for count, row in streams.items()},
            "carried": {"streams": full, "rate": RATE, "cost_of": nearest},
        }
    return found


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=STREAMS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=WINDOW_S, help="of each measurement")
    parser.add_argument("--urgent", action="store_true", help="go before other jobs of this machine; needs root")
    return parser.parse_args()


def main() -> None:
    """Measure, and exit."""
    chosen = options()
    counts = tuple(chosen.streams)
    use_load_core()
    with meter.urgent() if chosen.urgent else contextlib.nullcontext():
        try:
            table = rounds(counts, chosen.rounds, chosen.seconds)
        except (KeyboardInterrupt, asyncio.CancelledError):
            sys.exit("stopped before its end: nothing is written")
    found = figures(table, counts)
    crowded = [f"{driver}, {count}" for (driver, count), cells in table.items() if all(one.is_crowded for one in cells)]
    if not crowded and counts == STREAMS and chosen.rounds >= ROUNDS and chosen.seconds >= WINDOW_S:
        about = {"date": datetime.now(UTC).date().isoformat(), "cores": os.cpu_count(), "rounds": chosen.rounds}
        versions = {"python": platform.python_version(), **{name: version(name) for name in VERSIONED}}
        kept = {**about, "load_average": round(os.getloadavg()[0], 1), **found, "versions": versions}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    costs = {f"{driver}, {count}": best(cells)["chunk_us"] for (driver, count), cells in table.items()}
    close(
        "cost-curve",
        ok=True,
        chunk_us=costs,
        carried={driver.value: found[driver.value]["carried"] for driver in Driver},
    )


if __name__ == "__main__":
    main()

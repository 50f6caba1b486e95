"""`just soak`: half an hour at 70 % of what one gateway carries, with faults; nothing may leak, stall or fail.

First it finds the number of streams, at 30 chunks a second each, that fill the gateway's core. Then it keeps 70 %
of them open, on all five protocols, native and emulated, together with small requests. One request in 21 gets a
fault: the upstream answers 500 or 429, resets or ends the connection, sends broken JSON or falls silent; the client
leaves or stops reading. All others must be right to the last word.

    just soak                          30 minutes with the push driver; writes bench/results/soak.json
    just soak --driver asgi            the other driver; writes the same file
    just soak --minutes 2              shorter, and nothing is written without `--save`
    just soak --streams 200            without measuring the capacity
    just soak --urgent                 with priority over other jobs of this machine; needs root

The gateway has one core; the upstream and the clients are one process on another. A second process with a lower
priority judges the answers: when the first one judged them, it was up to 150 ms late and then wrote all overdue chunks
at once, which delayed the gateway too. The gateway itself measures the delay of its event loop, ten times a second; the
test reads each of these measurements from `GET /health/load`.
"""

import argparse
import asyncio
import contextlib
import gc
import itertools
import json
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from math import ceil
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import uvloop

from bench.fleet.checks import Answer, Question, Verdict, judge
from bench.gateway.subjects import Running
from bench.paced import MODELS, Injected, Request, Talk, ask, gateway, use_load_core
from testkit import meter
from testkit.grammar import WIRES
from testkit.report import close
from toolspeak.config.shape import Driver

RESULTS = Path(__file__).parent / "results" / "soak.json"
MINUTES, SHARE = 30.0, 0.7
VERSIONED = ("toolspeak", "uvicorn", "uvloop", "httptools", "aiohttp")
PACE_S = 1 / 30
CHUNKS = 200, 400
"""Of a stream, at least and at most."""
LONGEST_STREAM_S = CHUNKS[1] * PACE_S
SMALL_CHUNKS = 8
"""Words of a small request, whose answer comes whole."""
SMALL_EVERY_S = 0.2
FAULT_EVERY = 21
"""One request in this many gets a fault; no multiple of five, so that faults reach all protocols."""
FAULTS = tuple(fault for fault in Injected if fault is not Injected.NONE)
FLAT, DELAY_MS = 0.05, 20.0
"""The bounds: growth of the resident memory, and the delay of the event loop in 999 of 1,000 measurements."""
FULL_FROM = 0.8
"""The share of its core from which the gateway is full enough to extrapolate its capacity."""
FULL = 0.95
"""The share of a core above which measurements on it are not valid."""
FIRST_STREAMS, STEPS = 60, 6
BEGIN_EVERY_S = 0.02
LOOK_S = 0.05
"""How often `/health/load` is read: twice for each measurement, so that none is missed."""
SAY_S = 10.0
KEPT_FAULTS = 20
ENDS = {
    "openai_chat": b"[DONE]",
    "openai_responses": b'"response.completed"',
    "anthropic": b'"message_stop"',
    "gemini": b'"finishReason"',
    "ollama": b'"done":true',
}
"""What the end of a right stream has, by wire."""
FULLY_JUDGED = 5
"""One right stream in so many is read by the grammar of its protocol: for all of them a core is too slow."""
_WORD = re.compile(rb"w(\d+)x(\d+)")


# ---------------------------------------------------------------- the requests, and how the answers are judged


def fault_of(number: int, *, streams: bool = True) -> Injected:
    """Return the fault of a request. A whole answer can only fail by its status."""
    place, left = divmod(number, FAULT_EVERY)
    if left:
        return Injected.NONE
    return FAULTS[place % len(FAULTS)] if streams else (Injected.STATUS_500, Injected.STATUS_429)[place % 2]


def model_of(number: int) -> str:
    """Return the model of a request: nine of one, then nine of the other, so that each gets faults of every kind."""
    return MODELS[number // 9 % len(MODELS)]


def stream_of(number: int, chunks: int = 0) -> Request:
    """Return the stream with this number; with `chunks`, of that length."""
    least, most = CHUNKS
    chunks = chunks or least + number * 37 % (most - least)
    asked = Question(number, WIRES[number % len(WIRES)], chunks, calls=number // 10 % 3 == 0)
    return Request(asked, model_of(number), fault_of(number))


def small_of(number: int) -> Request:
    """Return the small request with this number."""
    asked = Question(number, WIRES[number % len(WIRES)], SMALL_CHUNKS, streams=False)
    return Request(asked, model_of(number), fault_of(number, streams=False))


def is_right(answer: Answer) -> bool:
    """Return whether a stream is right at a glance: its own words in order, its call, and the end of its protocol.

    The Responses protocol repeats all words at its end. False says nothing yet: a grammar must read the stream.
    """
    asked = answer.question
    if not (answer.ended and answer.status == 200 and asked.streams and ENDS[asked.wire] in answer.body):
        return False
    wanted = [(b"%d" % asked.number, b"%d" % place) for place in range(asked.chunks)]
    words = _WORD.findall(answer.body)
    times, rest = divmod(len(words), len(wanted))
    has_call = not asked.calls or asked.arguments["city"].encode() in answer.body
    return not rest and words == wanted * times and has_call


def judged(request: Request, answer: Answer) -> tuple[Verdict, str]:
    """Return the verdict on an answer. A client that leaves can expect only words of its own stream."""
    if request.question.number % FULLY_JUDGED and is_right(answer):
        return Verdict.RIGHT, ""
    verdict, reason = judge(answer, ())
    if request.injected is Injected.LEAVES and verdict is Verdict.LOST and not answer.timed_out:
        return Verdict.BROKEN_OFF, "the client left"
    return verdict, reason


ALLOWED: Mapping[Injected, frozenset[Verdict]] = {
    Injected.NONE: frozenset({Verdict.RIGHT}),
    Injected.READS_SLOWLY: frozenset({Verdict.RIGHT}),
    Injected.LEAVES: frozenset({Verdict.RIGHT, Verdict.BROKEN_OFF}),
}
HONEST = frozenset({Verdict.RIGHT, Verdict.ERROR})
"""Allowed results of other faults: the protocol's error after a right beginning, or a right answer after a retry."""


@dataclass
class Tally:
    """The results of all requests."""

    requests: int = 0
    small: int = 0
    injected: dict[Injected, Counter[Verdict]] = field(default_factory=lambda: {each: Counter() for each in FAULTS})
    errors: int = 0
    """Answers that the injected fault does not explain."""
    details: list[str] = field(default_factory=list[str])

    def add(self, request: Request, verdict: Verdict, reason: str) -> None:
        self.requests += 1
        self.small += not request.question.streams
        if request.injected is not Injected.NONE:
            self.injected[request.injected][verdict] += 1
        if verdict not in ALLOWED.get(request.injected, HONEST):
            self.errors += 1
            asked = request.question
            what = f"{asked.number} on {asked.wire}, {request.model}, injected {request.injected}"
            self.details += [f"request {what}: {verdict}: {reason}"] if len(self.details) < KEPT_FAULTS else []


# ---------------------------------------------------------------- the verdicts


@dataclass(frozen=True)
class Memory:
    """Resident memory in the second and the last fifth of a run, and the line through all that follows the first."""

    second_mb: float
    last_mb: float
    mb_per_hour: float

    @property
    def growth(self) -> float:
        return self.last_mb / self.second_mb - 1

    @property
    def is_flat(self) -> bool:
        return abs(self.growth) <= FLAT


def memory_of(samples: Sequence[tuple[float, float]]) -> Memory:
    """Judge samples of (seconds, MB), at least ten; the first fifth is the warm-up."""
    fifth = len(samples) // 5
    second = statistics.median(size for _, size in samples[fifth : 2 * fifth])
    last = statistics.median(size for _, size in samples[-fifth:])
    seconds, sizes = zip(*samples[fifth:], strict=True)
    return Memory(second, last, statistics.linear_regression(seconds, sizes).slope * 3600)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of them does not exceed."""
    return sorted(values)[ceil(len(values) * share) - 1]


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Return what is kept of times in milliseconds."""
    shares = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
    return {name: round(quantile(values, share), 2) for name, share in shares.items()}


def faults_of(memory: Memory, delays_ms: Sequence[float], tally: Tally, busy: "Busy") -> list[str]:
    """Return what is wrong with a run."""
    delay = quantile(delays_ms, 0.999)
    missing = [fault for fault, counts in tally.injected.items() if not counts]
    checks = {
        f"memory went from {memory.second_mb:.1f} to {memory.last_mb:.1f} MB": memory.is_flat,
        f"the event loop was {delay:.1f} ms late in one of 1,000 measurements": delay < DELAY_MS,
        f"{tally.errors} errors were not injected, such as: {'; '.join(tally.details[:3])}": not tally.errors,
        f"these faults were never made: {', '.join(missing)}": not missing,
        f"a core was full: the gateway ran for {busy.ran:.0%} of the time, others on its core {busy.waited:.0%}, "
        f"the clients and the upstream {busy.load_ran:.0%}": not busy.is_full,
    }
    return [fault for fault, holds in checks.items() if not holds]


# ---------------------------------------------------------------- the load


@dataclass
class Samples:
    """Measurements of the gateway while it ran."""

    memory: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    delays_ms: list[float] = field(default_factory=list[float])
    """Delays of the gateway's event loop, as it reports them."""
    answers_ms: list[float] = field(default_factory=list[float])
    """Until `/health/load` was answered, seen from outside."""
    own_ms: list[float] = field(default_factory=list[float])
    """How late this process was itself; the times from outside include it."""


def judge_process() -> Executor:
    """Return a low-priority process that judges answers."""
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=os.nice, initargs=(19,))


@dataclass
class Load:
    """All clients: `wanted` streams at once, each followed by another one, and small requests."""

    port: int
    talk: Talk
    judges: Executor
    wanted: int = 0
    tally: Tally = field(default_factory=Tally)
    samples: Samples = field(default_factory=Samples)
    _started: int = 0
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def grow(self, group: asyncio.TaskGroup, wanted: int) -> None:
        """Change the number of streams. New ones begin one by one, with streams of many lengths, which end apart."""
        self.wanted = wanted
        self._started = min(self._started, wanted)
        while self._started < wanted:
            group.create_task(self._stream_on(self._started))
            self._started += 1
            await asyncio.sleep(BEGIN_EVERY_S)

    async def _stream_on(self, slot: int) -> None:
        first = 1 + slot * 61 % CHUNKS[1]
        while slot < self.wanted:
            await self._ask(stream_of(next(self._numbers), first))
            first = 0

    async def ask_small(self, group: asyncio.TaskGroup) -> None:
        """Send small requests, whether the last one is answered or not."""
        for number in itertools.count(10**8):
            group.create_task(self._ask(small_of(number)))
            await asyncio.sleep(SMALL_EVERY_S)

    async def _ask(self, request: Request) -> None:
        answer = await ask(request, self.port, self.talk.pace_s)
        verdict, reason = await asyncio.get_running_loop().run_in_executor(self.judges, judged, request, answer)
        self.tally.add(request, verdict, reason)
        if not answer.ended and request.injected is Injected.NONE:
            await asyncio.sleep(1.0)  # no flood of requests while the gateway is away

    async def look(self) -> None:
        """Read `/health/load` again and again, on a new connection if the gateway closes one."""
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._look_on()
            await asyncio.sleep(1.0)

    async def _look_on(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while True:
            asked = time.monotonic()
            writer.write(b"GET /health/load HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            assert length, head
            report = json.loads(await reader.readexactly(int(length[1])))
            answered = time.monotonic()
            self.samples.answers_ms.append((answered - asked) * 1e3)
            self.samples.delays_ms.append(report["loop_delay_ms"]["last"])
            await asyncio.sleep(LOOK_S)
            self.samples.own_ms.append(max(0.0, time.monotonic() - answered - LOOK_S) * 1e3)


@dataclass(frozen=True)
class Busy:
    """A period: the shares in which the gateway ran, and in which other processes had its core; chunks per second."""

    ran: float
    waited: float
    chunks_per_s: float
    load_ran: float
    """The share in which this process ran, on its core."""

    @property
    def is_full(self) -> bool:
        """Return whether one of the two cores is full, whichever process fills it: more streams would only be late."""
        return self.ran + self.waited > FULL or self.load_ran > FULL


@dataclass(frozen=True)
class Clock:
    """Counters at one moment."""

    at: float
    cpu: float
    waited: float
    said: int
    own: float

    @classmethod
    def read(cls, pid: int, talk: Talk) -> "Clock":
        return cls(time.monotonic(), meter.cpu_s(pid), meter.waited_s(pid), talk.said, time.process_time())

    def until(self, later: "Clock") -> Busy:
        wall = later.at - self.at
        ran, waited = (later.cpu - self.cpu) / wall, (later.waited - self.waited) / wall
        return Busy(ran, waited, (later.said - self.said) / wall, (later.own - self.own) / wall)


async def busy_for(pid: int, talk: Talk, seconds: float) -> Busy:
    """Return how busy the gateway is for some seconds."""
    before = Clock.read(pid, talk)
    await asyncio.sleep(seconds)
    return before.until(Clock.read(pid, talk))


async def capacity(load: Load, pid: int, group: asyncio.TaskGroup, share: float) -> int:
    """Return how many streams fill the gateway's core.

    First more of them until it is almost full, then the rule of three. These streams stay open; those of the run begin
    and end too, which costs as much as some tens of chunks. So the cost of this share of them is measured once more
    when the first have ended, and corrects the figure.
    """
    full = await _rough_capacity(load, pid, group)
    streams = max(1, int(full * share))
    await load.grow(group, streams)
    await asyncio.sleep(LONGEST_STREAM_S)
    seen = await busy_for(pid, load.talk, LONGEST_STREAM_S)
    print(f"{streams} streams that begin and end: {seen.ran:.0%} of a core", file=sys.stderr)
    return int(streams / max(seen.ran, 0.01))


async def _rough_capacity(load: Load, pid: int, group: asyncio.TaskGroup) -> int:
    full = streams = FIRST_STREAMS
    for _ in range(STEPS):
        await load.grow(group, streams)
        await asyncio.sleep(1.0)
        seen = await busy_for(pid, load.talk, 3.0)
        print(f"{streams} streams: {seen.ran:.0%} of a core, {seen.chunks_per_s:,.0f} chunks/s", file=sys.stderr)
        if seen.is_full and seen.ran < FULL_FROM:
            print("others have a core of this measurement: what was seen before counts", file=sys.stderr)
            break
        full = int(streams / max(seen.ran, 0.01))
        if seen.ran > FULL_FROM:
            break
        streams = min(int(full * 0.9), streams * 3)
    return full


@dataclass(frozen=True)
class Plan:
    """The settings of a run."""

    driver: Driver = Driver.PUSH
    minutes: float = MINUTES
    share: float = SHARE
    streams: int = 0
    """Instead of a share of the capacity."""


async def play(plan: Plan, files: Path, judges: Executor) -> tuple[list[str], dict[str, Any]]:
    """Run the plan; return what is wrong, and the figures."""
    talk = Talk(PACE_S)
    async with gateway(talk, plan.driver, files) as running:
        load = Load(running.port, talk, judges)
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(load.ask_small(group)), group.create_task(load.look())]
            full = 0 if plan.streams else await capacity(load, running.pid, group, plan.share)
            await load.grow(group, plan.streams or max(1, int(full * plan.share)))
            await asyncio.sleep(0 if plan.streams else LONGEST_STREAM_S)  # streams of the calibration end
            load.tally, load.samples = Tally(), Samples()
            before = Clock.read(running.pid, talk)
            await watch(load, running, plan.minutes * 60)
            busy = before.until(Clock.read(running.pid, talk))
            streams, load.wanted = load.wanted, 0
            for task in beside:
                task.cancel()
        if load.tally.errors:
            print(running.said()[-3000:], file=sys.stderr)
    memory = memory_of(load.samples.memory)
    faults = faults_of(memory, load.samples.delays_ms, load.tally, busy)
    return faults, figures(plan, load, memory, {"capacity_streams": full, "streams": streams}, busy)


async def watch(load: Load, running: Running, seconds: float) -> None:
    """Sample the gateway's memory each second, and print the progress."""
    began = time.monotonic()
    said, before = began, Clock.read(running.pid, load.talk)
    while (now := time.monotonic()) - began < seconds:
        size = meter.resident_mb(running.pid)
        load.samples.memory.append((now - began, size))
        if now - said >= SAY_S:
            said, after = now, Clock.read(running.pid, load.talk)
            busy, before, tally = before.until(after), after, load.tally
            line = f"{now - began:.0f}/{seconds:.0f} s: {load.wanted} streams, {busy.chunks_per_s:,.0f} chunks/s, "
            line += f"{busy.ran:.0%} of its core (waited {busy.waited:.0%}), {size:.1f} MB, p99.9 of the loop delay "
            line += (
                f"{quantile(load.samples.delays_ms, 0.999):.1f} ms, {tally.requests} requests, {tally.errors} errors"
            )
            print(line, file=sys.stderr, flush=True)
        await asyncio.sleep(1.0)


def figures(plan: Plan, load: Load, memory: Memory, streams: dict[str, int], busy: Busy) -> dict[str, Any]:
    """Return the figures for the result file."""
    tally, samples = load.tally, load.samples
    return {
        "driver": plan.driver.value,
        "minutes": plan.minutes,
        "share": plan.share,
        **streams,
        "chunks_per_s": round(busy.chunks_per_s),
        "busy": round(busy.ran, 3),
        "waited": round(busy.waited, 3),
        "load_busy": round(busy.load_ran, 3),
        "requests": tally.requests,
        "small_requests": tally.small,
        "errors_not_injected": tally.errors,
        "injected": {fault.value: dict(counts) for fault, counts in tally.injected.items()},
        "memory_mb": {"second_fifth": round(memory.second_mb, 1), "last_fifth": round(memory.last_mb, 1)},
        "memory_growth": round(memory.growth, 4),
        "memory_mb_per_hour": round(memory.mb_per_hour, 1),
        "memory_by_minute_mb": [round(size, 1) for _, size in samples.memory[::60]],
        "loop_delay_ms": quantiles(samples.delays_ms),
        "health_ms": quantiles(samples.answers_ms),
        "own_delay_ms": quantiles(samples.own_ms),
    }


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", type=Driver, choices=list(Driver), default=Driver.PUSH)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--share", type=float, default=SHARE, help="of the streams that fill the gateway's core")
    parser.add_argument("--streams", type=int, default=0, help="so many streams, whatever the gateway carries")
    parser.add_argument("--save", action="store_true", help="write bench/results/soak.json for a smaller run too")
    parser.add_argument("--urgent", action="store_true", help="go before other jobs of this machine; needs root")
    return parser.parse_args()


def main() -> None:
    """Run it, and exit."""
    chosen = options()
    plan = Plan(chosen.driver, chosen.minutes, chosen.share, chosen.streams)
    use_load_core()
    gc.disable()  # of the load: a collection would hold all streams, and then send their chunks at once
    with (
        tempfile.TemporaryDirectory() as files,
        meter.urgent() if chosen.urgent else contextlib.nullcontext(),
        judge_process() as judges,
    ):
        try:
            faults, found = uvloop.run(play(plan, Path(files), judges))
        except (KeyboardInterrupt, asyncio.CancelledError):
            sys.exit("stopped before its end: nothing is written")
    print("\n".join(faults), file=sys.stderr)
    if chosen.save or (plan.minutes, plan.share, plan.streams) == (MINUTES, SHARE, 0):
        about = {"date": datetime.now(UTC).date().isoformat(), "ok": not faults, "faults": faults}
        versions = {"python": platform.python_version(), **{name: version(name) for name in VERSIONED}}
        kept = {**about, "cores": os.cpu_count(), **found, "versions": versions}
        RESULTS.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    close("soak", ok=not faults, **found)


if __name__ == "__main__":
    main()

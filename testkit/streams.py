"""Many streams at once through one gateway in a separate process, each with its own text, and their judge.

No stream may be lost or mixed up, waiting clients get their keep-alives on time, clients that leave free their
upstream within a second, and the gateway's memory stays bounded.
"""

import asyncio
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from testkit.grammar import GrammarError, read_stream
from testkit.meter import cpu_s, resident_mb
from testkit.stream_ends import LEAVES, STEADY, WAITS, WIRES, Book, Client, Heard, Load, listen, request
from toolspeak.config.shape import Driver

KEEP_ALIVE_S = 1.0
LATE_S = 1.0
"""A keep-alive is on time up to here, a client's upstream must be free by then."""
TICK_S = 0.1
MOST_KB = 256.0
"""The memory that a stream may add to the gateway."""
WORD = re.compile(r'"(\d+\.\d+) "')
BURST, BETWEEN_S = 10, 0.1
"""Clients come in small groups: a thousand first requests at one moment are another test."""
CONFIG = f"""
[server]
port = 0
keep_alive = {KEEP_ALIVE_S}

[upstreams.up]
url = "http://127.0.0.1:PORT/v1"
"""


@dataclass
class Outcome:
    """The results of a run."""

    load: Load
    lost: list[int] = field(default_factory=list[int])
    mixed: list[int] = field(default_factory=list[int])
    most_open: int = 0
    before_mb: float = 0.0
    idle_mb: float = 0.0
    """When all streams were open, and no upstream had sent anything."""
    peak_mb: float = 0.0
    after_mb: float = 0.0
    longest_wait_s: float = 0.0
    kept_alive: int = 0
    slowest_free_s: float = 0.0
    freed: int = 0
    wall_s: float = 0.0
    gateway_cpu_s: float = 0.0
    machine_load: float = 0.0
    """Of all processes, a minute's average: with other work on the machine the times mean little."""
    own_lag_s: float = 0.0
    """How late the clients and the upstream were themselves; the times of the gateway include it."""

    @property
    def kb_per_stream(self) -> float:
        return (self.peak_mb - self.before_mb) * 1000 / self.load.streams

    @property
    def idle_kb_per_stream(self) -> float:
        return (self.idle_mb - self.before_mb) * 1000 / self.load.streams

    def faults(self) -> list[str]:
        """Return what is wrong with the results."""
        load = self.load
        checks = {
            f"{len(self.lost)} streams lost, such as {self.lost[:5]}": not self.lost,
            f"{len(self.mixed)} streams mixed up, such as {self.mixed[:5]}": not self.mixed,
            f"only {self.most_open} streams were open at once": self.most_open >= load.streams,
            f"a client waited {self.longest_wait_s:.2f} s, and was itself {self.own_lag_s:.2f} s late": (
                self.longest_wait_s < KEEP_ALIVE_S + LATE_S + self.own_lag_s
            ),
            f"only {self.kept_alive} of {load.waiting} were kept alive": self.kept_alive == load.waiting,
            f"only {self.freed} of {load.leaving} upstreams were freed": self.freed == load.leaving,
            f"an upstream was freed after {self.slowest_free_s:.2f} s": self.slowest_free_s < LATE_S,
            f"{self.kb_per_stream:.0f} kB a stream": self.kb_per_stream < MOST_KB,
        }
        return [fault for fault, holds in checks.items() if not holds]

    def figures(self) -> dict[str, Any]:
        """Return the figures for the result file."""
        kept = {name: value for name, value in asdict(self).items() if name not in ("load", "lost", "mixed")}
        rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in kept.items()}
        counts = {"lost": len(self.lost), "mixed": len(self.mixed), "kb_per_stream": round(self.kb_per_stream, 1)}
        return {**counts, "idle_kb_per_stream": round(self.idle_kb_per_stream, 1), **rounded}


@asynccontextmanager
async def gateway(upstream_port: int, workers: int, driver: Driver) -> AsyncGenerator[tuple[int, int]]:
    """Run a gateway; yield its process and its port."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(CONFIG.replace("PORT", str(upstream_port)))
        file.flush()
        command = (sys.executable, "-m", "toolspeak", "serve", "--quiet", "--probe", "off", "--config", file.name)
        several = ("--workers", str(workers)) if workers > 1 else ()
        options = (*several, "--driver", driver.value)
        process = await asyncio.create_subprocess_exec(*command, *options, stderr=asyncio.subprocess.PIPE)
        try:
            assert process.stderr
            line = (await process.stderr.readline()).decode()
            assert "listens on" in line, line
            rest = asyncio.get_running_loop().create_task(process.stderr.read())
            yield process.pid, int(line.rpartition(":")[2])
        finally:
            process.send_signal(signal.SIGTERM)
            await process.wait()
        if said := (await rest).decode():
            print(said[-3000:], file=sys.stderr)


async def ask(heard: Heard, port: int, leaves_at: int, book: Book) -> Heard:
    """Run one client."""
    mode = "force" if heard.number % 2 else "auto"
    data = request(heard.number, heard.wire, heard.kind, mode, port)
    make = lambda: Client(heard, data, leaves_at, book)  # noqa: E731 # it has no name elsewhere
    _, client = await asyncio.get_running_loop().create_connection(make, "127.0.0.1", port)
    await client.done
    return heard


async def watch(pid: int, outcome: Outcome) -> None:
    """Sample the gateway's memory, and the delay of this process itself."""
    while True:
        outcome.peak_mb = max(outcome.peak_mb, resident_mb(pid))
        due = time.monotonic() + TICK_S
        await asyncio.sleep(TICK_S)
        outcome.own_lag_s = max(outcome.own_lag_s, time.monotonic() - due)


async def ask_all(load: Load, port: int, book: Book, first: int) -> list[Heard]:
    """Run all clients; a few start at a time."""
    leaves_at = max(1, load.chunks // 4)
    tasks: list[asyncio.Task[Heard]] = []
    async with asyncio.TaskGroup() as group:
        for number in range(first, first + load.streams):
            kind = load.kind(number)
            heard = Heard(number, WIRES[number % len(WIRES)], kind)
            tasks.append(group.create_task(ask(heard, port, leaves_at if kind == LEAVES else 0, book)))
            if number % BURST == 0:
                await asyncio.sleep(BETWEEN_S)
    return [task.result() for task in tasks]


async def note_idle(pid: int, gate: asyncio.Event, outcome: Outcome) -> None:
    """Sample the gateway's memory when all streams are open."""
    await gate.wait()
    outcome.idle_mb = resident_mb(pid)


async def measure(load: Load, workers: int = 1, driver: Driver = Driver.ASGI) -> Outcome:
    """Run the load once."""
    outcome, book, gate = Outcome(load), Book(), asyncio.Event()
    server, upstream_port = await listen(load, book, gate)
    async with gateway(upstream_port, workers, driver) as (pid, port):
        gate.set()
        warm = Load(10, 3, 0.001, 0, 0, 0.0)
        await ask_all(warm, port, book, load.streams)
        gate.clear()
        outcome.before_mb = resident_mb(pid)
        sampling = asyncio.get_running_loop().create_task(watch(pid, outcome))
        idle = asyncio.get_running_loop().create_task(note_idle(pid, gate, outcome))
        began, spent = time.monotonic(), cpu_s(pid)
        heard = await ask_all(load, port, book, 0)
        outcome.wall_s, outcome.gateway_cpu_s = time.monotonic() - began, cpu_s(pid) - spent
        outcome.machine_load = os.getloadavg()[0]
        await asyncio.sleep(LATE_S)
        sampling.cancel()
        idle.cancel()
        outcome.after_mb = resident_mb(pid)
    server.close()
    judge(heard, book, outcome)
    return outcome


def judge(heard: list[Heard], book: Book, outcome: Outcome) -> None:
    """Compare the received text with the sent text."""
    load = outcome.load
    outcome.most_open = book.most_open
    outcome.longest_wait_s = max(one.longest_wait_s for one in heard)
    outcome.kept_alive = sum(one.kind == WAITS and one.longest_wait_s < load.silence_s for one in heard)
    for one in heard:
        if one.kind in (STEADY, WAITS):
            judge_text(one, outcome)
        elif not starts_well(one, load):
            outcome.mixed.append(one.number)
    frees = [book.freed[number] - left for number, left in book.hung_up.items() if number in book.freed]
    outcome.freed, outcome.slowest_free_s = len(frees), max(frees, default=0.0)


def judge_text(one: Heard, outcome: Outcome) -> None:
    try:
        seen = read_stream(one.wire, bytes(one.body)) if one.ended else None
    except GrammarError as error:
        print(f"stream {one.number} on {one.wire}: {error}", file=sys.stderr)
        seen = None
    if seen is None or seen.error or one.status != 200:
        outcome.lost.append(one.number)
    elif seen.text != outcome.load.text(one.number):
        outcome.mixed.append(one.number)


def starts_well(one: Heard, load: Load) -> bool:
    """Look for the words of other streams in a part of one."""
    found = set(WORD.findall(one.body.decode(errors="replace")))
    return bool(found) and found <= set(load.text(one.number).split())

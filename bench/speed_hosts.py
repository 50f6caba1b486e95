"""`just speed-hosts`: what the openai SDK costs bare, through a gateway over loopback, and with toolspeak in process.

    sdk         the SDK talks to the model server
    gateway     the SDK talks to `toolspeak serve`; the CPU is that of both processes
    transport   the SDK has `toolspeak.Transport` or `AsyncTransport`

All ways alternate in one run, each in its own process. CPU is per request or per chunk, in microseconds; the minimum of
all rounds counts, because the machine may have other work. The bar: what the transport adds to the bare SDK, to a
request and to a chunk, is at most 0.7 of the CPU of the gateway's process. It may be negative: the transport does
without the HTTP of the SDK's client. `--save` writes bench/results/speed-hosts.json.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, cast

from bench.gateway import answers
from bench.gateway.subjects import SUBJECTS, Running, running
from testkit import meter
from testkit.host_environment import python_of
from testkit.report import close, progress

RESULTS = Path(__file__).parent / "results" / "speed-hosts.json"
CLIENT = Path(__file__).parent / "hosts_client.py"
SDK, GATEWAY, TRANSPORT = WAYS = ("sdk", "gateway", "transport")
MOST = 0.7
SETTLE_S = 0.1


@dataclass(frozen=True, slots=True)
class HostLoad:
    """The load of each way."""

    name: str
    mode: str
    model: str
    requests: int
    streams: int

    @property
    def units(self) -> int:
        """Chunks of a stream, or 1 for a whole answer."""
        kind = self.model.partition("-")[0]
        return 1 if kind == "small" else len(answers.frames("openai_chat", kind))


LOADS = (
    HostLoad("request, async", "async", "small-0", 80, 4),
    HostLoad("request, sync", "sync", "small-0", 80, 1),
    HostLoad("chunk, async", "async", "text-5", 8, 8),
    HostLoad("chunk, sync", "sync", "text-5", 8, 8),
    HostLoad("first event, async", "async", "brief-2", 15, 1),
    HostLoad("first event, sync", "sync", "brief-2", 15, 1),
)


class Client:
    """A process with the SDK."""

    def __init__(self, way: str, process: "subprocess.Popen[str]", gateway: Running | None) -> None:
        self.way = way
        self._process = process
        self._gateway = gateway

    def carry_out(self, load: HostLoad) -> tuple[float, float, float]:
        """Return the CPU of a unit in both processes and in the gateway, in microseconds, and the median seconds."""
        before = self._cpu_s()
        cast("IO[str]", self._process.stdin).write(json.dumps(asdict(load)) + "\n")
        cast("IO[str]", self._process.stdin).flush()
        seconds: list[float] = json.loads(cast("IO[str]", self._process.stdout).readline())
        time.sleep(SETTLE_S)
        own, gateway = (after - then for after, then in zip(self._cpu_s(), before, strict=True))
        units = load.requests * load.units
        return (own + gateway) / units * 1e6, gateway / units * 1e6, statistics.median(seconds)

    def _cpu_s(self) -> tuple[float, float]:
        return meter.cpu_s(self._process.pid), meter.cpu_s(self._gateway.pid) if self._gateway is not None else 0.0


@contextmanager
def clients(python: str, files: Path) -> Generator[list[Client]]:
    """Start the model server, the gateway and a client of each way."""
    with running([SUBJECTS["native"]], files) as started, ExitStack() as stack:
        urls = dict.fromkeys(WAYS, f"http://127.0.0.1:{started['direct'].port}/v1")
        urls[GATEWAY] = f"http://127.0.0.1:{started['native'].port}/v1"
        made: list[Client] = []
        for way, url in urls.items():
            command = [python, str(CLIENT), way, url]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={})
            stack.enter_context(process)
            made.append(Client(way, process, started["native"] if way == GATEWAY else None))
        yield made


@dataclass(slots=True)
class Measured:
    """The figures of one load and one way, a value for each round."""

    cpu_us: list[float] = field(default_factory=list[float])
    gateway_us: list[float] = field(default_factory=list[float])
    """The part of it in the gateway's process."""
    seconds: list[float] = field(default_factory=list[float])


def measure(python: str, rounds: int) -> dict[str, dict[str, Measured]]:
    """Return the figures of all rounds; the round before the first only warms up."""
    table = {load.name: {way: Measured() for way in WAYS} for load in LOADS}
    with tempfile.TemporaryDirectory() as files, clients(python, Path(files)) as ways:
        for number in range(rounds + 1):
            progress(number, rounds, "rounds")
            for place, load in enumerate(LOADS):
                turned = (number + place) % len(ways)
                for client in ways[turned:] + ways[:turned]:
                    cpu_us, gateway_us, seconds = client.carry_out(load)
                    if number:
                        measured = table[load.name][client.way]
                        measured.cpu_us.append(cpu_us)
                        measured.gateway_us.append(gateway_us)
                        measured.seconds.append(seconds)
    return table


def summary(ways: dict[str, Measured]) -> dict[str, float]:
    """Return the figures of a load for the result file."""
    cpu = {way: min(ways[way].cpu_us) for way in WAYS}
    kept = {f"{way}_us": round(cpu[way], 1) for way in WAYS}
    kept |= {f"{way}_ms": round(min(ways[way].seconds) * 1e3, 2) for way in WAYS}
    process = min(ways[GATEWAY].gateway_us)
    return kept | {
        "gateway_process_us": round(process, 1),
        "of_gateway": round(cpu[TRANSPORT] / cpu[GATEWAY], 3),
        "added_of_gateway_process": round((cpu[TRANSPORT] - cpu[SDK]) / process, 3),
    }


def main() -> None:
    """Measure, print and exit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    table = {name: summary(ways) for name, ways in measure(python_of("hosts"), options.rounds).items()}
    print("{:20} {:>9} {:>9} {:>9} {:>11} {:>9}".format("CPU in us, of a", *WAYS, "of gateway", "added"))
    for name, row in table.items():
        figures = [row[f"{way}_us"] for way in WAYS]
        print(
            "{:20} {:9.1f} {:9.1f} {:9.1f} {:11.2f} {:9.2f}".format(
                name, *figures, row["of_gateway"], row["added_of_gateway_process"]
            )
        )
    print("{:20} {:>9} {:>9} {:>9}".format("ms until", *WAYS))
    for name, row in table.items():
        print("{:20} {:9.2f} {:9.2f} {:9.2f}".format(name, *(row[f"{way}_ms"] for way in WAYS)))
    worst = max(row["added_of_gateway_process"] for name, row in table.items() if not name.startswith("first"))
    ok = worst <= MOST
    if options.save:
        kept = {"date": datetime.now(UTC).date().isoformat(), "rounds": options.rounds, "loads": table}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    close("speed-hosts", ok=ok, worst_added_of_gateway_process=worst, most=MOST, rounds=options.rounds)


if __name__ == "__main__":
    main()

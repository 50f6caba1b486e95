"""`just streams`: a thousand streams at once through one gateway, each with its own text.

No stream may be lost or mixed up, waiting clients get their keep-alives on time, clients that leave free their
upstream within a second, and the gateway's memory stays bounded.

    just streams                       1,000 streams of 200 chunks; writes bench/results/streams.json
    just streams --streams 100 …       fewer, and nothing is written
    just streams --workers 2 …         through a gateway of two workers, and nothing is written
    just streams --driver push …       through a gateway with the push driver, and nothing is written
"""

import argparse
import json
import platform
import resource
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import uvloop

from testkit.report import close
from testkit.stream_ends import Load
from testkit.streams import measure
from toolspeak.config.shape import Driver

RESULTS = Path(__file__).parent / "results" / "streams.json"
FULL = Load(streams=1000, chunks=200, pace_s=0.3, waiting=100, leaving=100, silence_s=5.0)
VERSIONED = ("toolspeak", "uvicorn", "uvloop", "httptools", "aiohttp")


def allow_sockets() -> None:
    """Each stream has two sockets here."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> None:
    """Run it, and exit."""
    options = argparse.ArgumentParser(prog="bench.streams")
    options.add_argument("--streams", type=int, default=FULL.streams)
    options.add_argument("--chunks", type=int, default=FULL.chunks)
    options.add_argument("--pace", type=float, default=FULL.pace_s, help="seconds between two chunks of a stream")
    options.add_argument("--workers", type=int, default=1, help="processes of the gateway")
    options.add_argument("--driver", type=Driver, choices=list(Driver), default=Driver.ASGI)
    chosen = options.parse_args()
    some = max(1, chosen.streams // 10)
    load = Load(chosen.streams, chosen.chunks, chosen.pace, some, some, FULL.silence_s)
    allow_sockets()
    outcome = uvloop.run(measure(load, chosen.workers, chosen.driver))
    faults = outcome.faults()
    print("\n".join(faults), file=sys.stderr)
    kept = {"date": datetime.now(UTC).date().isoformat(), "load": asdict(load), **outcome.figures()}
    kept["versions"] = {"python": platform.python_version(), **{name: version(name) for name in VERSIONED}}
    if load == FULL and chosen.workers == 1 and chosen.driver is Driver.ASGI and not faults:
        RESULTS.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    close("streams", ok=not faults, **outcome.figures())


if __name__ == "__main__":
    main()

"""`just driver [--cases N] [--seed S]`: both drivers of the gateway give the same bytes for the same bytes.

Turns on five protocols, native and emulated, streamed and whole; the upstream's bytes are cut anywhere, and the
upstream and the client misbehave. `testkit/driver_cases.py` makes a case from its number: `just driver --cases 1
--seed S` runs one again.
"""

import argparse
import asyncio
import logging
import time
from typing import Final

from testkit.driver_pair import compare
from testkit.report import close

CASES: Final = 600
PAIRS: Final = 8
"""Pairs of gateways that run cases at one time: most of the time they wait."""


def main() -> None:
    """Run the cases and close."""
    options = argparse.ArgumentParser(prog="bench.driver")
    options.add_argument("--cases", type=int, default=CASES)
    options.add_argument("--seed", type=int, default=0, help="the first one")
    chosen = options.parse_args()
    logging.disable(logging.CRITICAL)
    began = time.monotonic()
    counts = asyncio.run(compare(chosen.seed, chosen.cases, PAIRS))
    cases, differences = counts.pop("cases"), counts.pop("differences")
    seconds = round(time.monotonic() - began, 1)
    ok = not differences and cases == chosen.cases
    close("driver", ok=ok, cases=cases, differences=differences, faults=dict(sorted(counts.items())), seconds=seconds)


if __name__ == "__main__":
    main()

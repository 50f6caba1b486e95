"""`just driver [--cases N] [--seed S] [--save]`: both drivers of the gateway give the same bytes for the same bytes.

Turns on five protocols, native and emulated, streamed and whole; the upstream's bytes are cut anywhere, and the
upstream and the client misbehave. `testkit/driver_cases.py` makes a case from its number: `just driver --cases 1
--seed S` runs one again.
"""

import argparse
import asyncio
import json
import logging
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from testkit.driver_pair import compare
from testkit.report import close

RESULTS: Final = Path(__file__).parent / "results" / "driver.json"
CASES: Final = 600
PAIRS: Final = 8
"""Pairs of gateways that run cases concurrently: most of the time they wait."""


def main() -> None:
    """Run the cases and exit."""
    options = argparse.ArgumentParser(prog="bench.driver")
    options.add_argument("--cases", type=int, default=CASES)
    options.add_argument("--seed", type=int, default=0, help="the first one")
    options.add_argument("--save", action="store_true", help="write bench/results/driver.json")
    chosen = options.parse_args()
    logging.disable(logging.CRITICAL)
    began = time.monotonic()
    counts = asyncio.run(compare(chosen.seed, chosen.cases, PAIRS))
    cases, differences, repeated = counts.pop("cases"), counts.pop("differences"), counts.pop("repeated", 0)
    figures = {"cases": cases, "differences": differences, "repeated": repeated, "faults": dict(sorted(counts.items()))}
    if chosen.save:
        written = {"date": datetime.now(UTC).date().isoformat(), "first_seed": chosen.seed, **figures}
        RESULTS.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    ok = not differences and cases == chosen.cases
    close("driver", ok=ok, **figures, seconds=round(time.monotonic() - began, 1))


if __name__ == "__main__":
    main()

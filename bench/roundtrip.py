"""`just roundtrip`: every dialect that writes reads back what it has written (INL-3, P1).

For each dialect 100,000 random examples from a seeded generator: Hypothesis would take hours, so
`tests/contract/test_roundtrip.py` lets it drive the same generator for less. `testkit/roundtrip.py` has the check.
"""

import argparse
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import Final

from testkit.report import close, progress
from testkit.roundtrip import example_for, failures, text_of, writing
from toolspeak.dialects import load

EXAMPLES: Final = 100_000
BATCH: Final = 2_000
SAME_TOOLS: Final = 20
"""Examples in a row that share their tools: compiling schemas is not what is tested."""


def run(name: str, first: int, count: int) -> Counter[str]:
    """Try some examples of one dialect; print the first that fails."""
    dialect, figures = load(name), Counter[str](examples=count)
    for index in range(first, first + count):
        source = Random(f"{name} {index}")
        made = example_for(name, source, Random(f"{name} tools {index // SAME_TOOLS}"))
        wrong = list(failures(dialect, made, source))
        figures["calls"] += len(made.calls)
        figures["failed"] += bool(wrong)
        if wrong and figures["failed"] == 1:
            print(f"FAILED {name} {index}: {wrong}\n    {text_of(dialect, made)!r}"[:4000])
    return figures


def main() -> None:
    """Run all dialects, or one."""
    parser = argparse.ArgumentParser(description="Every dialect reads back what it writes.")
    parser.add_argument("--examples", type=int, default=EXAMPLES)
    parser.add_argument("--dialect", choices=writing(), action="append")
    options = parser.parse_args()
    chosen: list[str] = options.dialect or writing()
    total: int = options.examples
    jobs = [(name, at, min(BATCH, total - at)) for name in chosen for at in range(0, total, BATCH)]
    figures = {name: Counter[str]() for name in chosen}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for number, (job, done) in enumerate(zip(jobs, pool.map(run, *zip(*jobs, strict=True)), strict=True)):
            figures[job[0]] += done
            progress(number + 1, len(jobs), "batches")
    failed = sum(one["failed"] for one in figures.values())
    counts = {name: {kind: one[kind] for kind in ("examples", "calls", "failed")} for name, one in figures.items()}
    close("roundtrip", ok=not failed, dialects=len(chosen), failed=failed, **counts)


if __name__ == "__main__":
    main()

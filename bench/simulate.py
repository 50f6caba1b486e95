"""`just simulate [N] [--seed S]`: whole turns against a simulated model, network and client, each from one seed.

`testkit/simulation` has the world and the promises; this command runs many seeds and counts the broken promises.
"""

import argparse
import hashlib
import time
from collections import Counter
from typing import Final

from testkit.report import close, progress
from testkit.simulation.trial import checked

SEEDS: Final = 2000
SHOWN: Final = 20
STEP: Final = 50


def main() -> None:
    """Run the seeds from S on, and exit."""
    options = argparse.ArgumentParser(prog="bench.simulate")
    options.add_argument("seeds", type=int, nargs="?", default=SEEDS)
    options.add_argument("--seed", type=int, default=0, help="the first one")
    chosen = options.parse_args()
    kinds: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    figures: Counter[str] = Counter()
    digest = hashlib.sha256()
    start = time.process_time()
    for number, seed in enumerate(range(chosen.seed, chosen.seed + chosen.seeds), start=1):
        result = checked(seed)
        kinds[result.kind] += 1
        faults[result.fault or "none"] += 1
        figures += Counter(requests=result.requests, cancelled=result.cancelled, violations=bool(result.wrong))
        digest.update(result.digest)
        if result.wrong and figures["violations"] <= SHOWN:
            print(result.report())
        if number % STEP == 0 or number == chosen.seeds:
            progress(number, chosen.seeds, "seeds")
    spent = time.process_time() - start
    close(
        "simulate",
        ok=not figures["violations"],
        seeds=chosen.seeds,
        **{name: figures[name] for name in ("violations", "requests", "cancelled")},
        kinds=dict(sorted(kinds.items())),
        faults=dict(sorted(faults.items())),
        digest=digest.hexdigest()[:16],
        cpu_s=round(spent, 1),
        seeds_per_s=round(chosen.seeds / max(spent, 0.001)),
    )


if __name__ == "__main__":
    main()

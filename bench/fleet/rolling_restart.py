"""`just rolling-restart`: gateways replace their workers and take new configurations under load; no request may fail.

    just rolling-restart                   writes bench/results/rolling-restart.json
    just rolling-restart --keep FOLDER     logs and configurations stay there

The fleet is that of `just fleet`, without faults: again and again a gateway gets one more key in its configuration,
and SIGHUP. Streams on all five protocols come through nginx, which keeps connections to the gateways open.
"""

import argparse
import sys
from pathlib import Path

from bench.fleet.report import Outcome, Plan
from bench.fleet.run import carry_out, save
from bench.fleet.schedule import Kind
from testkit.report import close

RESULTS = Path(__file__).parents[1] / "results" / "rolling-restart.json"
PLAN = Plan(minutes=1.5, streams=100, runs=0, seed=7, kinds=frozenset({Kind.RELOAD}))


def figures(outcome: Outcome) -> dict[str, object]:
    """Return the results: `ready_s` is the time until all workers of a gateway have the new configuration."""
    found = outcome.figures()
    answers = found["answers"]
    return {
        "reloads": found["faults"],
        "minutes": found["minutes"],
        "streams_at_once": found["streams_at_once"],
        "streams": answers["all"],
        "small_requests": found["small_requests"],
        "failed": answers["all"] - answers["right"] + found["small_requests"]["unanswered"],
        "ready_s": found["recovery"][Kind.RELOAD]["ready_s"],
    }


def main() -> None:
    """Run it, and exit."""
    parser = argparse.ArgumentParser(prog="bench.fleet.rolling_restart")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where logs and configurations stay")
    outcome = carry_out(PLAN, parser.parse_args().keep)
    faults, kept = outcome.faults(), figures(outcome)
    print("\n".join([*outcome.details(), *faults]), file=sys.stderr)
    save(RESULTS, kept, ok=not faults)
    close("rolling-restart", ok=not faults, **kept)


if __name__ == "__main__":
    main()

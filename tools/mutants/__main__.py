"""Make mistakes in the code, one at a time in a copy of the tree, and count how many the tests that reach them notice.

`python -m tools.mutants` tries 200 and continues where it stopped: results are in bench/results/mutants.json, and a
mistake is tried again only if its file has changed. `--minutes` ends it earlier, `--again` tries the survivors
once more with more tests. `--only` takes a room (safety, engine, dialects, toolset, gateway, agent) or a file or folder
below src/toolspeak, and writes nothing. A mistake that survives is not a bug: it is a missing test, or a change without
effect; `equivalent.py` lists the latter, each with its reason.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from testkit.report import close
from tools.mutants.copies import Copy
from tools.mutants.coverage import Coverage, read_coverage
from tools.mutants.equivalent import EQUIVALENT
from tools.mutants.targets import SAFETY, Mutant, choose
from tools.mutants.trial import Tried, Verdict, try_out

ROOT = Path(__file__).resolve().parent.parent.parent
RESULT = ROOT / "bench" / "results" / "mutants.json"
KEPT = ROOT / ".mutants"
LEAST_RATE = 0.85


def try_all(
    mutants: Sequence[Mutant], coverage: Coverage, copies: Sequence[Copy], until: float, budget_s: float
) -> Iterator[Tried]:
    """Try the mistakes, one at a time in each copy, until the time is up."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def try_one(mutant: Mutant) -> Tried | None:
        if time.monotonic() > until:
            return None
        copy = free.get()
        try:
            return try_out(mutant, copy, coverage, budget_s)
        finally:
            free.put(copy)

    pool = ThreadPoolExecutor(len(copies))
    try:
        yield from filter(None, pool.map(try_one, mutants))
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C, wait only for the trials that are running


BUDGET_S, BUDGET_AGAIN_S = 25.0, 120.0
"""Seconds of tests for each mistake, and for one that survived."""


def summary(tried: Sequence[Tried]) -> dict[str, Any]:
    """Return the figures: killed and tried for each room, and the rate of all."""
    rooms: dict[str, dict[str, int]] = {}
    for one in tried:
        room = rooms.setdefault(one.mutant.room, {"killed": 0, "tried": 0})
        room["tried"] += 1
        room["killed"] += one.verdict.killed
    killed = sum(one.verdict.killed for one in tried)
    rate = round(killed / len(tried), 3) if tried else 0.0
    alive = sum(one.mutant.room == SAFETY and not one.verdict.killed for one in tried)
    return {"killed": killed, "tried": len(tried), "rate": rate, "safety_alive": alive, "rooms": rooms}


def print_survivors(tried: Sequence[Tried]) -> None:
    """Print the survivors, the safety rules last and separately."""
    alive = [one for one in tried if not one.verdict.killed]
    groups = {
        "survivors": [one for one in alive if one.mutant.room != SAFETY],
        "survivors in safety rules": [one for one in alive if one.mutant.room == SAFETY],
    }
    for title, found in groups.items():
        print(f"{title}: {len(found)}")
        for one in sorted(found, key=lambda one: (one.mutant.path, one.mutant.mutation.line)):
            print(f"  {one.mutant.describe()} ({one.verdict.value}: {len(one.tests)})")


def saved(tried: Sequence[Tried], seed: int) -> str:
    """Return the result as JSON: the figures, each mistake that lives, and the verdict about each."""
    rows = [
        {
            "place": one.mutant.place,
            "kind": one.mutant.mutation.kind,
            "change": one.mutant.mutation.describe(one.mutant.source),
            "safety": one.mutant.room == SAFETY,
            "verdict": one.verdict.value,
        }
        for one in tried
        if not one.verdict.killed
    ]
    verdicts = {one.mutant.key: one.verdict.name for one in tried}
    kept = {"seed": seed, **summary(tried), "alive": rows, "verdicts": verdicts}
    return json.dumps(kept, indent=2, ensure_ascii=False) + "\n"


def known(mutants: Sequence[Mutant], result: Path) -> list[Tried]:
    """Return the mistakes with a kept verdict."""
    kept: dict[str, Any] = json.loads(result.read_text("utf-8")) if result.exists() else {"verdicts": {}}
    verdicts: dict[str, str] = kept["verdicts"]
    return [Tried(mutant, Verdict[verdicts[mutant.key]]) for mutant in mutants if mutant.key in verdicts]


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200, metavar="N", help="how many mistakes (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="which ones (%(default)s)")
    parser.add_argument("--only", default="", metavar="PACKAGE", help="a room, or a path below src/toolspeak")
    parser.add_argument("--jobs", type=int, default=1, metavar="J", help="how many at a time (%(default)s)")
    parser.add_argument("--minutes", type=float, default=1e9, metavar="M", help="begin no other after so many")
    parser.add_argument("--again", action="store_true", help="try those that survived once more")
    parser.add_argument("--list", action="store_true", help="print the mistakes, and try none")
    return parser.parse_args()


def main() -> None:
    """Try the mistakes and print the survivors."""
    given = options()
    until = time.monotonic() + 60 * given.minutes
    try:
        everything = choose(ROOT, given.count + len(EQUIVALENT), given.seed, given.only)
    except LookupError as error:
        sys.exit(f"mutants: {error.args[0]}")
    mutants = [mutant for mutant in everything if not any(one.is_it(mutant) for one in EQUIVALENT)][: given.count]
    if given.list:
        print(*(mutant.describe() for mutant in mutants), sep="\n")
        return
    # A survivor counts as one until it was tried once more: otherwise a run that is stopped would lose it.
    kept = {} if given.only else {one.mutant.key: one for one in known(mutants, RESULT)}
    done = {key for key, one in kept.items() if one.verdict.killed or not given.again}
    waiting = [mutant for mutant in mutants if mutant.key not in done]
    coverage = read_coverage(ROOT, KEPT, given.jobs)
    with TemporaryDirectory(prefix="mutants-") as folder:
        copies = [Copy(ROOT, Path(folder) / str(number)) for number in range(given.jobs)]
        budget_s = BUDGET_AGAIN_S if given.again else BUDGET_S
        with suppress(KeyboardInterrupt):  # the results so far are kept
            for one in try_all(waiting, coverage, copies, until, budget_s):
                kept[one.mutant.key] = one
                print(f"{len(kept)}/{len(mutants)} {one.mutant.place}: {one.verdict.value}", flush=True)
                if not given.only:
                    RESULT.write_text(saved([*kept.values()], given.seed), encoding="utf-8")
    tried = [*kept.values()]
    for test in coverage.failed:
        print(f"not used, because it does not pass without a mistake: {test}")
    print_survivors(tried)
    figures = summary(tried)
    met = figures["rate"] >= LEAST_RATE and not figures["safety_alive"]
    close("mutants", ok=met and len(tried) == len(mutants), seed=given.seed, **figures)


if __name__ == "__main__":
    main()

"""Make mistakes in the code, one at a time in a copy of the tree, and count how many the nearest tests notice.

`python -m tools.mutants` tries 200. `--only` takes a room (safety, engine, dialects, toolset, gateway, agent) or a
file or folder below src/toolspeak. A mistake that survives is no bug: it is a missing test, a test that is too far
away to be among the nearest ones, or a change that makes no difference. `--save` writes the result to
bench/results/mutants.json.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from testkit.report import close
from tools.mutants.nearest import TestMap, read_tests
from tools.mutants.targets import SAFETY, Mutant, choose
from tools.mutants.trial import Baselines, Copy, Tried, Verdict

ROOT = Path(__file__).resolve().parent.parent.parent
RESULT = ROOT / "bench" / "results" / "mutants.json"


def try_all(mutants: Sequence[Mutant], tests: TestMap, copies: Sequence[Copy]) -> Iterator[Tried]:
    """Try the mistakes, one at a time in each copy; the results come in the order of the mistakes."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def try_one(mutant: Mutant) -> Tried:
        copy = free.get()
        try:
            return copy.try_out(mutant, tests.nearest(mutant.path))
        finally:
            free.put(copy)

    pool = ThreadPoolExecutor(len(copies))
    try:
        yield from pool.map(try_one, mutants)
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C only those that run are waited for


def summary(tried: Sequence[Tried]) -> dict[str, Any]:
    """Return the figures: killed and tried for each room, and the rate of all."""
    rooms: dict[str, dict[str, int]] = {}
    judged = [one for one in tried if one.verdict is not Verdict.UNTRIED]
    for one in judged:
        room = rooms.setdefault(one.mutant.room, {"killed": 0, "tried": 0})
        room["tried"] += 1
        room["killed"] += one.verdict.killed
    killed = sum(one.verdict.killed for one in judged)
    rate = round(killed / len(judged), 3) if judged else 0.0
    return {"killed": killed, "tried": len(judged), "untried": len(tried) - len(judged), "rate": rate, "rooms": rooms}


def print_survivors(tried: Sequence[Tried]) -> None:
    """Print what survived, the safety rules last and apart."""
    alive = [one.mutant for one in tried if one.verdict is Verdict.SURVIVED]
    groups = {
        "survivors": [mutant for mutant in alive if mutant.room != SAFETY],
        "survivors in safety rules": [mutant for mutant in alive if mutant.room == SAFETY],
        "not tried": [one.mutant for one in tried if one.verdict is Verdict.UNTRIED],
    }
    for title, mutants in groups.items():
        print(f"{title}: {len(mutants)}")
        for mutant in sorted(mutants, key=lambda mutant: (mutant.path, mutant.mutation.line)):
            print(f"  {mutant.describe()}")


def saved(tried: Sequence[Tried], seed: int, only: str) -> str:
    """Return the result as JSON: the figures and each mistake that lives."""
    alive = [one for one in tried if not one.verdict.killed]
    rows = [
        {
            "place": one.mutant.place,
            "kind": one.mutant.mutation.kind,
            "change": one.mutant.mutation.describe(one.mutant.source),
            "safety": one.mutant.room == SAFETY,
            "verdict": one.verdict.value,
            "reached": one.reached,
            "tests": one.tests,
        }
        for one in alive
    ]
    return (
        json.dumps({"seed": seed, "only": only, **summary(tried), "alive": rows}, indent=2, ensure_ascii=False) + "\n"
    )


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200, metavar="N", help="how many mistakes (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="which ones (%(default)s)")
    parser.add_argument("--only", default="", metavar="PACKAGE", help="a room, or a path below src/toolspeak")
    parser.add_argument("--jobs", type=int, default=1, metavar="J", help="how many at a time (%(default)s)")
    parser.add_argument("--budget", type=float, default=30.0, metavar="S", help="seconds of tests each (%(default)s)")
    parser.add_argument("--list", action="store_true", help="print the mistakes and their tests, and try none")
    parser.add_argument("--save", action="store_true", help=f"write {RESULT.relative_to(ROOT)}")
    return parser.parse_args()


def main() -> None:
    """Try the mistakes and print what survived."""
    given = options()
    try:
        mutants = choose(ROOT, given.count, given.seed, given.only)
    except LookupError as error:
        sys.exit(f"mutants: {error.args[0]}")
    tests = read_tests(ROOT)
    if given.list:
        for mutant in mutants:
            print(mutant.describe(), *tests.nearest(mutant.path)[:3], sep="\n    ")
        return
    tried: list[Tried] = []
    with TemporaryDirectory(prefix="mutants-") as folder:
        baselines = Baselines()
        copies = [Copy(ROOT, Path(folder) / str(number), baselines, given.budget) for number in range(given.jobs)]
        with suppress(KeyboardInterrupt):  # what was tried so far is printed
            for one in try_all(mutants, tests, copies):
                tried.append(one)
                print(f"{len(tried)}/{len(mutants)} {one.mutant.place}: {one.verdict.value}", flush=True)
        for test in baselines.broken():
            print(f"not used, because it fails or takes too long without a mistake: {test}")
    print_survivors(tried)
    if given.save:
        RESULT.write_text(saved(tried, given.seed, given.only), encoding="utf-8")
    close("mutants", ok=len(tried) == given.count, seed=given.seed, **summary(tried))


if __name__ == "__main__":
    main()

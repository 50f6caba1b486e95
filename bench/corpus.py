"""`just corpus`: every golden case is read right, and equally for every cut of its text (P1, P2, P3, P5)."""

import sys
from collections import Counter
from collections.abc import Iterator

from bench.naive import naive
from testkit.corpus import differences, events_of, ungrounded
from testkit.golden import Case, cases, changes
from testkit.report import close, progress
from testkit.splits import at_random, by_bytes, by_characters, two_ways
from toolspeak.dialects import load
from toolspeak.ir.event import raw_of
from toolspeak.ir.turn import Turn, fold

RANDOM_CUTS = 200
LONG = 4_000
"""Longer cases are one short text filled with thousands of repeats: they are cut in two at every place of the first and
last 100 characters and at 20 places between, and at random 5 times instead of 200."""
MOST_CHANGES = 8


def cuts_of(case: Case, seed: int) -> Iterator[tuple[str, ...]]:
    """Yield the cuts that a case must survive."""
    long = len(case.raw) > LONG
    yield by_characters(case.raw)
    yield by_bytes(case.raw)
    yield from two_ways(case.raw, edge=100 if long else LONG, between=20)
    yield from at_random(case.raw, 5 if long else RANDOM_CUTS, seed)


def check(case: Case, seed: int) -> Counter[str]:
    """Check one case whole and cut; print what is wrong."""
    counts: Counter[str] = Counter()
    events = events_of(case, (case.raw,))
    whole = fold(events)
    wrong = differences(case, whole)
    counts["wrong"] += bool(wrong)
    if case.deltas is None and case.body == "text":
        counts["lost"] += "".join(map(raw_of, events)) != case.raw
        counts["invented"] += bool(ungrounded(case.raw, whole))
    for line in wrong:
        print(f"WRONG {case.id}: {line}")
    if case.deltas is None:
        counts += check_cuts(case, whole, seed)
    return counts


def check_cuts(case: Case, whole: Turn, seed: int) -> Counter[str]:
    """Check that no cut changes anything."""
    counts: Counter[str] = Counter()
    for pieces in cuts_of(case, seed):
        events = events_of(case, pieces)
        counts["cuts"] += 1
        counts["lost"] += case.body == "text" and "".join(map(raw_of, events)) != case.raw
        if fold(events) != whole:
            counts["different"] += 1
            if counts["different"] == 1:
                print(f"DIFFERENT {case.id}: cut {[piece[:40] for piece in pieces][:6]}")
    return counts


def baseline(texts: list[Case]) -> tuple[int, int]:
    """Score the usual regex parser on the same cases, without the long ones: they take it minutes."""
    short = [case for case in texts if len(case.raw) <= LONG]
    scored = [naive(case.raw) == (case.calls, (case.text or "").strip()) for case in short]
    return sum(scored), len(scored)


def main() -> None:
    """Run all cases."""
    all_cases = [case for case in cases() if not sys.argv[1:] or case.id.startswith(tuple(sys.argv[1:]))]
    counts: Counter[str] = Counter()
    for number, case in enumerate(all_cases):
        counts += check(case, seed=number)
        progress(number + 1, len(all_cases), "cases")
    texts = [case for case in all_cases if case.deltas is None and case.body == "text"]
    by_any = sum(not differences(case, load("any").read(case.raw, case.tools, case.options)) for case in texts)
    right, of = baseline(texts)
    for change in changes().values():
        print(f"CHANGED {change['id']}: {change['reason']}")
    print(f"`any` is right on {by_any} of {len(texts)} texts; a naive parser on {right} of the {of} short ones")
    failed = sum(counts[kind] for kind in ("wrong", "different", "lost", "invented"))
    ok = not failed and len(changes()) <= MOST_CHANGES and right < of / 2
    figures = {kind: counts[kind] for kind in ("wrong", "different", "lost", "invented", "cuts")}
    close("corpus", ok=ok, cases=len(all_cases), **figures, changed=len(changes()), naive=right, any=by_any)


if __name__ == "__main__":
    main()

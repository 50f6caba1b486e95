"""`just field`: what models wrote in public issues, read as the gateway reads it (P1, P2, P3, P5).

Each case is read whole, character by character and cut at random: all must give the same. A line tells each case that
is not right. The bar: no wrong call, no false call, no difference between cuts, at least 95 % right in each reading.

    python -m bench.field [--cuts N] [--only ID …]
"""

import argparse
from collections import Counter
from typing import Final

from testkit.field import READINGS, FieldCase, Verdict, field_cases
from testkit.report import close, progress
from testkit.splits import at_random, by_characters
from toolspeak.dialects import Dialect
from toolspeak.ir.turn import Turn

CUTS: Final = 20
LEAST_RIGHT: Final = 0.95
"""The share of cases that each reading must get right; the others are refused, missed or shown, and listed."""


def read(case: FieldCase, dialect: Dialect, cuts: int) -> tuple[Turn, int]:
    """Read a case whole; return that, and how many cuts give something else."""
    whole = case.read(dialect, (case.text,))
    pieces = (by_characters(case.text), *at_random(case.text, cuts, seed=len(case.text)))
    return whole, sum(case.read(dialect, cut) != whole for cut in pieces)


def check(case: FieldCase, cuts: int, counts: dict[str, Counter[str]]) -> int:
    """Judge all readings of a case, print those that are not right; return how many cuts give something else."""
    turns: dict[str, tuple[Turn, int]] = {}
    not_right: dict[str, list[str]] = {}
    for reading in READINGS:
        dialect = case.dialect_of(reading)
        if dialect.name not in turns:
            turns[dialect.name] = read(case, dialect, cuts)
        verdict = case.verdict(turns[dialect.name][0]).value
        counts[reading][verdict] += 1
        if verdict != Verdict.RIGHT.value:
            not_right.setdefault(verdict, []).append(f"{reading} ({dialect.name})")
    for verdict, readings in not_right.items():
        print(f"{verdict}: {case.id} by {', '.join(readings)}; {case.source}; {case.note}")
    return sum(different for _, different in turns.values())


def main() -> None:
    """Run all cases, or some."""
    options = argparse.ArgumentParser(prog="bench.field")
    options.add_argument("--cuts", type=int, default=CUTS)
    options.add_argument("--only", nargs="*", default=[])
    chosen = options.parse_args()
    cases = [case for case in field_cases() if not chosen.only or case.id in chosen.only]
    counts = {reading: Counter[str]() for reading in READINGS}
    different = 0
    for number, case in enumerate(cases):
        different += check(case, chosen.cuts, counts)
        progress(number + 1, len(cases), "cases")
    bad = sum(count[verdict.value] for count in counts.values() for verdict in (Verdict.WRONG, Verdict.FALSE))
    is_enough = all(count[Verdict.RIGHT.value] >= LEAST_RIGHT * len(cases) for count in counts.values())
    figures = {
        reading: {verdict.value: count[verdict.value] for verdict in Verdict} for reading, count in counts.items()
    }
    close("field", ok=not bad and not different and is_enough, cases=len(cases), different=different, **figures)


if __name__ == "__main__":
    main()

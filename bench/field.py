"""`just field`: what models wrote in public issues, read as the gateway reads it (P1, P2, P3, P5).

Each case is read whole, character by character and cut at random: all must give the same. A line shows each case that
is not right. The bar: no wrong call, no false call, no difference between cuts, at least 95 % right in each reading,
and a reason in `LIMITS` for each case that is neither right nor leads to a question to the model.

Calls that are damaged by chance (`testkit.damaged_calls`) follow: of those that cannot be read, at least 80 % must
raise a complaint, so that the model is asked again instead of the markup passing as text. The same share of the cases
is printed as `asked`.

    python -m bench.field [--cuts N] [--only ID …]
"""

import argparse
from collections import Counter
from typing import Final

from testkit.damaged_calls import verdicts
from testkit.field import READINGS, FieldCase, Verdict, field_cases
from testkit.report import close, progress
from testkit.splits import at_random, by_characters
from toolspeak.dialects import Dialect
from toolspeak.ir.turn import Turn

CUTS: Final = 20
LEAST_RIGHT: Final = 0.95
"""The share of cases that each reading must get right; the others are refused, missed or shown, and listed."""

LIMITS: Final = {
    "sm-02": "The answer begins in reasoning without a mark. Whether it does depends on the server as much as on the "
    "model, so that no row of the facts says it; `starts_in_reasoning` in the configuration does.",
    "sm-27": "Only by `any`: lines such as `>>>all` occur in quotations. Functionary's own dialect reads it.",
}

DAMAGED: Final = 2_000
LEAST_ASKED: Final = 0.8


def asked_share(asked: int, missed: int) -> float:
    """Return the share of unread calls that lead to a repeated request to the model."""
    return round(asked / max(1, asked + missed), 3)


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
        if verdict in (Verdict.SHOWN.value, Verdict.MISSED.value) and case.id not in LIMITS:
            counts[reading]["unexplained"] += 1
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
    unexplained = sum(count["unexplained"] for count in counts.values())
    figures = {
        reading: {verdict.value: count[verdict.value] for verdict in Verdict} for reading, count in counts.items()
    }
    damaged = verdicts(0 if chosen.only else DAMAGED)
    share = asked_share(damaged["asked"], damaged["missed"])
    gateway = counts["gateway"]
    close(
        "field",
        ok=not (bad or different or unexplained) and is_enough and (bool(chosen.only) or share >= LEAST_ASKED),
        cases=len(cases),
        different=different,
        unexplained=unexplained,
        **figures,
        asked=asked_share(gateway[Verdict.REFUSED.value], gateway[Verdict.MISSED.value]),
        damaged={**damaged, "asked_share": share},
    )


if __name__ == "__main__":
    main()

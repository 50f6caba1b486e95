"""Exact tests of counts: how likely a difference would be if there were none.

    sign_test(8, 1)                   0.0195   8 tasks right only with the new form, 1 only with the old one
    odds_of_better(0, 4)              0.0256   after four lost tasks and none won, a form is hardly the better one
    more_often((0, 7), (8, 8))        0.0002   no call in 0 of 7 turns before, in 8 of 8 since

All of them are computed from whole numbers, without an approximation that would fail for small counts.
"""

from math import comb
from typing import Final

BETTER: Final = 0.8
"""The share of the tasks on which two forms differ that a clearly better form wins (`odds_of_better`)."""


def sign_test(better: int, worse: int) -> float:
    """Return the probability of at least `better` wins in `better + worse` fair coin tosses (one-sided)."""
    tosses = better + worse
    return sum(comb(tosses, wins) for wins in range(better, tosses + 1)) / (1 << tosses)


def odds_of_better(better: int, worse: int) -> float:
    """Return how much likelier the counts are for a clearly better form than for an equal one.

    This is the ratio of Wald's sequential test: it may be looked at after every task, and a form that is really better
    falls to 1/N at some time with a probability of at most 1/N.
    """
    return float((2 * BETTER) ** better * (2 * (1 - BETTER)) ** worse)


def more_often(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Return the probability that at least as many of the events fall into `after`, if both have the same share.

    Each argument is a number of events and the number of turns that could have had one (Fisher's exact test).
    """
    events, turns = before[0] + after[0], before[1] + after[1]
    most = min(events, after[1])
    ways = sum(comb(after[1], here) * comb(before[1], events - here) for here in range(after[0], most + 1))
    return ways / comb(turns, events)


def turns_to_see(harm: float, certainty: float = 0.95) -> int:
    """Return how many tasks show a harm of this share at least once, with this certainty."""
    tasks = 1
    while (1 - harm) ** tasks > 1 - certainty:
        tasks += 1
    return tasks

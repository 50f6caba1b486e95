"""Tries mistakes: makes one in a copy, runs the tests that reach it until one fails, and takes it back.

From each test function some cases are taken, the quick ones first, as many as fit in the budget. The time limit is a
multiple of what they took without the mistake, so an endless loop counts as found and a slow machine does not.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest

from tools.mutants.copies import Copy
from tools.mutants.coverage import Coverage, Recorded
from tools.mutants.targets import Mutant

SLOWER = 6
"""How many times longer than without a mistake the tests may take."""
START_S = 40.0
"""On top of that, for the start of processes on a busy machine."""
MOST_TESTS = 300


class Verdict(Enum):
    """What came of a mistake."""

    FAILED = "a test failed"
    TIMED_OUT = "the time limit was reached"
    SURVIVED = "all tests passed"
    UNTRIED = "no test reaches it"

    @property
    def killed(self) -> bool:
        """Return whether the tests noticed it."""
        return self in {Verdict.FAILED, Verdict.TIMED_OUT}


@dataclass(frozen=True)
class Tried:
    """A mistake after its trial."""

    mutant: Mutant
    verdict: Verdict
    tests: tuple[str, ...] = ()


def chosen(tests: Sequence[Recorded], budget_s: float) -> list[Recorded]:
    """Return tests that fit in the budget, at least one: a case of each function, then a second of each, and so on."""
    cases: defaultdict[str, list[Recorded]] = defaultdict(list)
    for test in sorted(tests, key=lambda test: (test.seconds, test.test)):
        cases[test.function].append(test)
    found: list[Recorded] = []
    seconds = 0.0
    for row in zip_longest(*cases.values()):
        for test in filter(None, row):
            if found and (seconds + test.seconds > budget_s or len(found) >= MOST_TESTS):
                return found
            found.append(test)
            seconds += test.seconds
    return found


def try_out(mutant: Mutant, copy: Copy, coverage: Coverage, budget_s: float) -> Tried:
    """Make the mistake in the copy, run the tests that reach it, and take it back."""
    tests = chosen(coverage.tests_for(mutant.path, mutant.mutation.line), budget_s)
    if not tests:
        return Tried(mutant, Verdict.UNTRIED)
    listed = copy.tree.parent / "tests.txt"
    listed.write_text("\n".join(test.test for test in tests), encoding="utf-8")
    files = list(dict.fromkeys(test.file for test in tests))
    limit_s = SLOWER * sum(test.seconds for test in tests) + START_S
    file = copy.tree / mutant.path
    file.write_text(mutant.mutation.apply(mutant.source), encoding="utf-8")
    try:
        run = copy.pytest(["-x", "-p", "no:xdist", *files], limit_s, {"MUTANTS_TESTS": str(listed)})
    finally:
        file.write_text(mutant.source, encoding="utf-8")
    verdict = Verdict.TIMED_OUT if run.timed_out else Verdict.SURVIVED if run.status == 0 else Verdict.FAILED
    return Tried(mutant, verdict, tuple(test.test for test in tests))

"""Tries mistakes: makes one in a copy, runs the tests that reach it until one fails, and takes it back.

From each test function some cases are taken, as many as fit in the budget: first those of test files whose names have
most in common with the file of the mistake, then the quick ones. A line of the engine is run by 700 functions, and
the quickest 300 of them never included the tests of its own module. The nearest files run alone first: they find
most mistakes, and collecting all files takes longer than running these. The time limit is a multiple of what they
took without the mistake, so an endless loop counts as found and a slow machine does not.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest

import pytest

from tools.mutants.copies import Copy, Run
from tools.mutants.coverage import Coverage, Recorded
from tools.mutants.targets import Mutant

SLOWER = 6
"""How many times longer than without a mistake the tests may take."""
START_S = 40.0
"""On top of that, for the start of processes on a busy machine."""
MOST_TESTS = 1000
FIRST_FILES = 3
"""How many test files run before all others."""


class Verdict(Enum):
    """The verdict on a mistake."""

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


def chosen(tests: Sequence[Recorded], path: str, budget_s: float, text: str = "") -> list[Recorded]:
    """Return tests that fit in the budget, at least one: a case of each function, then a second of each, and so on.

    `text` is what the mistake changes: a case that has it in its name comes first.
    """
    cases: defaultdict[str, list[Recorded]] = defaultdict(list)
    words = _words(path)
    shared = {file: len(words & _words(file)) for file in {test.file for test in tests}}

    def order(test: Recorded) -> tuple[bool, int, float, str]:
        return not (text and text in test.test), -shared[test.file], test.seconds, test.test

    for test in sorted(tests, key=order):
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


def _words(path: str) -> set[str]:
    """Return the words in the names of a file and its folders."""
    return set(re.findall(r"[a-z]+", path.removesuffix(".py"))) - {"src", "toolspeak", "tests", "test", "unit"}


def try_out(mutant: Mutant, copy: Copy, coverage: Coverage, budget_s: float) -> Tried:
    """Make the mistake in the copy, run the tests that reach it, and take it back."""
    change = mutant.mutation
    text = mutant.source.encode()[change.start : change.end].decode().strip("\"'")
    tests = chosen(coverage.tests_for(mutant.path, change.line), mutant.path, budget_s, text)
    if not tests:
        return Tried(mutant, Verdict.UNTRIED)
    file = copy.tree / mutant.path
    file.write_text(change.apply(mutant.source), encoding="utf-8")
    verdicts: list[Verdict] = []
    try:
        for part in _parts(tests):
            verdicts.append(_run(part, copy))
            if verdicts[-1].killed:
                break
    finally:
        file.write_text(mutant.source, encoding="utf-8")
    verdict = Verdict.SURVIVED if Verdict.SURVIVED in verdicts and not verdicts[-1].killed else verdicts[-1]
    return Tried(mutant, verdict, tuple(test.test for test in tests))


def _parts(tests: Sequence[Recorded]) -> Iterator[Sequence[Recorded]]:
    """Yield the tests of the nearest files, then all others."""
    first = list(dict.fromkeys(test.file for test in tests))[:FIRST_FILES]
    yield [test for test in tests if test.file in first]
    if rest := [test for test in tests if test.file not in first]:
        yield rest


def _run(tests: Sequence[Recorded], copy: Copy) -> Verdict:
    listed = copy.tree.parent / "tests.txt"
    listed.write_text("\n".join(test.test for test in tests), encoding="utf-8")
    files = list(dict.fromkeys(test.file for test in tests))
    limit_s = SLOWER * sum(test.seconds for test in tests) + START_S
    return _verdict(copy.pytest(["-x", "-p", "no:xdist", *files], limit_s, {"MUTANTS_TESTS": str(listed)}))


def _verdict(run: Run) -> Verdict:
    if run.timed_out:
        return Verdict.TIMED_OUT
    if run.status in (pytest.ExitCode.NO_TESTS_COLLECTED, pytest.ExitCode.USAGE_ERROR):
        return Verdict.UNTRIED  # the tests are gone, so there is no verdict
    return Verdict.SURVIVED if run.status == pytest.ExitCode.OK else Verdict.FAILED

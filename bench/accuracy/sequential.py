"""When a comparison of two forms may stop: a paired sign test that may be looked at after every task.

    evidence(wins=9, losses=0)      51.2    how many times likelier the counts are if the forms differ than if not

Only tasks that exactly one of two forms gets right count. If the forms are equally good, each of these is a fair toss.
The evidence is the likelihood of the wins and losses, averaged over every share of wins from 0 to 1, divided by their
likelihood under a fair coin. Under the coin its expected value stays 1, so the probability that it *ever* reaches 1/a
is at most a (Ville's inequality), however often it is looked at. No number of tasks has to be fixed before.

Where a form wins in one set what it loses in another, wins and losses are more even than tosses, and the test errs less
often than stated. A difference that ended a run is certain in its direction, but its size is overestimated: tables of
how much a form is worth need a fixed number of tasks.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import exp, lgamma, log

ERROR_RATE = 0.05
"""The probability that a run finds any difference where there is none, over all of its comparisons together."""


def log_evidence(wins: int, losses: int) -> float:
    """Return the natural logarithm of `evidence`, which itself soon exceeds every float."""
    tosses = wins + losses
    return tosses * log(2) + lgamma(wins + 1) + lgamma(losses + 1) - lgamma(tosses + 2)


def evidence(wins: int, losses: int) -> float:
    """Return how many times likelier the counts are if the forms differ than if they do not."""
    return exp(log_evidence(wins, losses))


class Verdict(StrEnum):
    """The verdict of a comparison; all but `OPEN` end it."""

    OPEN = "open"
    BETTER = "better"
    WORSE = "worse"
    HOPELESS = "no certain difference"
    """No difference can become certain, even if one form wins all remaining tasks."""


@dataclass
class Duel:
    """A form against the reference. What is decided stays decided: later tasks are not counted."""

    error_rate: float
    left: int
    """Tasks that may still come."""
    wins: int = 0
    """Tasks that the form has right and the reference has not."""
    losses: int = 0
    pairs: int = 0
    verdict: Verdict = Verdict.OPEN

    def add(self, *, ours: bool, theirs: bool) -> None:
        """Add a task that both have done."""
        if self.verdict is not Verdict.OPEN:
            return
        self.pairs, self.left = self.pairs + 1, self.left - 1
        self.wins += ours and not theirs
        self.losses += theirs and not ours
        enough = -log(self.error_rate)
        if log_evidence(self.wins, self.losses) >= enough:
            self.verdict = Verdict.BETTER if self.wins > self.losses else Verdict.WORSE
        elif max(self._if_won, self._if_lost) < enough:
            self.verdict = Verdict.HOPELESS

    @property
    def _if_won(self) -> float:
        return log_evidence(self.wins + self.left, self.losses)

    @property
    def _if_lost(self) -> float:
        return log_evidence(self.wins, self.losses + self.left)

    @property
    def text(self) -> str:
        """The counts and the verdict, as a run prints them."""
        return f"{self.verdict}: {self.wins} won, {self.losses} lost of {self.pairs} tasks"


class Race:
    """Forms against a reference on the same tasks; a form whose difference is certain needs no more tasks."""

    def __init__(self, reference: str, rivals: Iterable[str], tasks: int, error_rate: float = ERROR_RATE) -> None:
        """Take the most tasks that each form may have; the rivals share the error rate (Bonferroni)."""
        names = [rival for rival in rivals if rival != reference]
        self._reference = reference
        self.duels = {name: Duel(error_rate / len(names), tasks) for name in names}
        self._right: dict[tuple[str, str], bool] = {}
        """Tasks of a form that the other of its pair has not done yet."""
        self._references: dict[str, bool] = {}

    def add(self, form: str, task: str, *, right: bool) -> None:
        """Add the result of a task, by its id."""
        if form == self._reference:
            self._references[task] = right
            for name, duel in self.duels.items():
                if (name, task) in self._right:
                    duel.add(ours=self._right.pop((name, task)), theirs=right)
        elif form in self.duels and task in self._references:
            self.duels[form].add(ours=right, theirs=self._references[task])
        else:
            self._right[form, task] = right

    def needs(self, form: str) -> bool:
        """Tell whether more tasks of a form can still change a verdict."""
        open_forms = {name for name, duel in self.duels.items() if duel.verdict is Verdict.OPEN}
        return form in open_forms or (form == self._reference and bool(open_forms))

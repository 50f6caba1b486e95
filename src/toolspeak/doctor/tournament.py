"""Finds the best form without asking all tasks in all forms (successive halving). No I/O.

    tournament = run_tournament(forms, parts)
    step = next(tournament)                NextTask(form, task, left=…)
    step = tournament.send(result)         the next one
    …                                      StopIteration(tallies, the winner first)

All forms get the first part of the suite; the better half gets the second, and half of those the third. A form that has
nothing right after its first tasks is dropped at once.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import fmean
from typing import Final, TypeAlias

from toolspeak.doctor.call_forms import NATIVE, DoctorForm
from toolspeak.doctor.task import DoctorTask, TaskKind, TaskResult

HOPELESS: Final = 4
"""Tasks after which a form with nothing right is dropped. Every part of the suite begins with plain calls, so such a
form fails at the easiest ones."""
FEWEST: Final = 2
"""Forms that continue, at least: a winner needs a rival."""
HARM: Final = 0.5
"""Penalty for a call where no tool fits: its effect would have to be undone."""


@dataclass(frozen=True, slots=True)
class NextTask:
    """The task to ask next, and in which form; about `left` more follow."""

    form: DoctorForm
    task: DoctorTask
    left: int


@dataclass(slots=True, eq=False)
class Tally:
    """The results of one form so far."""

    form: DoctorForm
    marks: dict[str, TaskResult] = field(default_factory=dict[str, TaskResult])
    tasks: list[DoctorTask] = field(default_factory=list[DoctorTask])

    def add(self, task: DoctorTask, mark: TaskResult) -> None:
        """Add the result of a task."""
        self.tasks.append(task)
        self.marks[task.name] = mark

    @property
    def asked(self) -> int:
        """The number of tasks that were asked."""
        return len(self.tasks)

    @property
    def right(self) -> int:
        """The number of tasks that were answered right."""
        return sum(mark.right for mark in self.marks.values())

    @property
    def called(self) -> int:
        """The number of right answers among the tasks that need a call."""
        return sum(self.marks[task.name].right for task in self.tasks if task.wants_calls)

    @property
    def spurious(self) -> int:
        """The number of answers that call a tool where none fits."""
        return sum(mark.spurious for mark in self.marks.values())

    @property
    def valid(self) -> float:
        """The share of answers whose calls all match their schemas."""
        return fmean([mark.valid for mark in self.marks.values()] or [1.0])

    @property
    def requests(self) -> float:
        """The mean number of requests per task."""
        return fmean([mark.requests for mark in self.marks.values()] or [0.0])

    @property
    def tokens(self) -> float:
        """The mean number of tokens per task."""
        return fmean([mark.tokens for mark in self.marks.values()] or [0.0])

    @property
    def score(self) -> float:
        """The score from 0 to 1: all kinds weigh the same, and a call where no tool fits counts against it (`HARM`)."""
        kinds = [self.of(kind) for kind in TaskKind]
        return max(0.0, fmean([fmean(map(_credit, marks)) for marks in kinds if marks] or [0.0]))

    @property
    def hopeless(self) -> bool:
        """Whether the form is dropped: nothing right so far. The bare server never is."""
        return not self.right and self.asked >= HOPELESS and self.form is not NATIVE

    def of(self, kind: TaskKind) -> list[TaskResult]:
        """Return the results of one kind of task."""
        return [self.marks[task.name] for task in self.tasks if task.kind is kind]


Tournament: TypeAlias = Generator[NextTask, TaskResult, tuple[Tally, ...]]


def run_tournament(forms: Sequence[DoctorForm], parts: Sequence[Sequence[DoctorTask]]) -> Tournament:
    """Yield the tasks to ask, and receive their results; of forms that score the same, the earlier one wins."""
    tallies = [Tally(form) for form in forms]
    going = tallies
    for number, part in enumerate(parts):
        for index, tally in enumerate(going):
            later = _later(len(going), parts[number + 1 :])
            for asked, task in enumerate(part, start=1):
                left = len(part) * (len(going) - index) - asked + later
                tally.add(task, (yield NextTask(tally.form, task, left)))
                if tally.hopeless:
                    break
        going = best_half(going)
    return winner_first(rank_tallies(tallies))


def winner_first(tallies: Sequence[Tally]) -> tuple[Tally, ...]:
    """Put the winner first: the best form, or one in the family's own dialect that is at most one task worse.

    A difference of one task is chance, and the dialect that a family was trained on serves it beyond these tasks too:
    on BFCL a form that had lost here by one task was the better one.
    """
    best = tallies[0]
    least = round(best.score - 1 / max(best.asked, 1), 6)
    near = [tally for tally in tallies if tally.asked == best.asked and round(tally.score, 6) >= least]
    winner = next((tally for tally in near if tally.form.own), best) if not best.form.is_native else best
    return (winner, *(tally for tally in tallies if tally is not winner))


def best_half(tallies: Sequence[Tally]) -> list[Tally]:
    """Return the forms that continue, in their order; the bare server always does, for comparison."""
    hopeful = [tally for tally in rank_tallies(tallies) if not tally.hopeless]
    chosen = [tally for tally in hopeful if tally.form is not NATIVE][: half_of(len(tallies))]
    return [tally for tally in tallies if tally in chosen or tally.form is NATIVE]


def half_of(count: int) -> int:
    """Return how many of `count` forms continue."""
    return max(ceil(count / 2), FEWEST)


def rank_tallies(tallies: Iterable[Tally]) -> tuple[Tally, ...]:
    """Sort by tasks asked, then by score; of equals the simpler one first: native, fewer requests, fewer tokens."""
    return tuple(sorted(tallies, key=_rank))


def _rank(tally: Tally) -> tuple[float, ...]:
    # Rounded, so that differences in the last digits of a mean do not decide before the next criterion does.
    costs = (not tally.form.is_native, round(tally.requests, 2), round(tally.tokens))
    return (-tally.asked, -round(tally.score, 6), tally.spurious, -round(tally.valid, 6), *costs)


def _credit(mark: TaskResult) -> float:
    return 1.0 if mark.right else -HARM if mark.spurious else 0.0


def _later(count: int, parts: Sequence[Sequence[DoctorTask]]) -> int:
    """Estimate the number of tasks in the parts that follow."""
    total = 0
    for part in parts:
        count = min(half_of(count) + 1, count)
        total += count * len(part)
    return total

"""The trial: which form does best, without asking all tasks of all forms (successive halving). No I/O.

    trial = hold_trial(forms, parts)
    step = next(trial)                     Try(form, task, left=…)
    step = trial.send(mark)                the next one
    …                                      StopIteration(tallies, the winner first)

All forms get the first part of the suite; the better half goes on to the second, and the half of those to the third. A
form that has nothing right after its first tasks stops there.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import fmean
from typing import Final, TypeAlias

from toolspeak.doctor.forms import NATIVE, Form
from toolspeak.doctor.task import Kind, Mark, Task

HOPELESS: Final = 4
"""Tasks after which a form with nothing right is given up."""
FEWEST: Final = 2
"""Forms that go on, at least: a winner needs somebody to win over."""
HARM: Final = 0.5
"""What a call costs where no tool fits: somebody would have to undo it."""


@dataclass(frozen=True, slots=True)
class Try:
    """Ask this task in this form; about `left` more follow."""

    form: Form
    task: Task
    left: int


@dataclass(slots=True, eq=False)
class Tally:
    """How a form did so far."""

    form: Form
    marks: dict[str, Mark] = field(default_factory=dict[str, Mark])
    tasks: list[Task] = field(default_factory=list[Task])

    def add(self, task: Task, mark: Mark) -> None:
        """Count one more."""
        self.tasks.append(task)
        self.marks[task.name] = mark

    @property
    def asked(self) -> int:
        """Count the tasks that were asked."""
        return len(self.tasks)

    @property
    def right(self) -> int:
        """Count the tasks that were right."""
        return sum(mark.right for mark in self.marks.values())

    @property
    def called(self) -> int:
        """Count those right that wanted a call."""
        return sum(self.marks[task.name].right for task in self.tasks if task.wants_calls)

    @property
    def spurious(self) -> int:
        """Count the calls where no tool fits."""
        return sum(mark.spurious for mark in self.marks.values())

    @property
    def valid(self) -> float:
        """Return which part of the answers had no call against its schema."""
        return fmean([mark.valid for mark in self.marks.values()] or [1.0])

    @property
    def requests(self) -> float:
        """Return the requests per task."""
        return fmean([mark.requests for mark in self.marks.values()] or [0.0])

    @property
    def tokens(self) -> float:
        """Return the tokens per task."""
        return fmean([mark.tokens for mark in self.marks.values()] or [0.0])

    @property
    def score(self) -> float:
        """Return the score from 0 to 1: all kinds weigh the same, and a call where no tool fits does harm."""
        kinds = [self.of(kind) for kind in Kind]
        return max(0.0, fmean([fmean(map(_credit, marks)) for marks in kinds if marks] or [0.0]))

    @property
    def hopeless(self) -> bool:
        """Return whether more tasks would be a waste of time."""
        return not self.right and self.asked >= HOPELESS and self.form is not NATIVE

    def of(self, kind: Kind) -> list[Mark]:
        """Return the marks of one kind."""
        return [self.marks[task.name] for task in self.tasks if task.kind is kind]


Trial: TypeAlias = Generator[Try, Mark, tuple[Tally, ...]]


def hold_trial(forms: Sequence[Form], parts: Sequence[Sequence[Task]]) -> Trial:
    """Run the trial; the forms are in the order in which equals win."""
    tallies = [Tally(form) for form in forms]
    going = tallies
    for number, part in enumerate(parts):
        for index, tally in enumerate(going):
            later = _later(len(going), parts[number + 1 :])
            for asked, task in enumerate(part, start=1):
                left = len(part) * (len(going) - index) - asked + later
                tally.add(task, (yield Try(tally.form, task, left)))
                if tally.hopeless:
                    break
        going = best_half(going)
    return crowned(ranked(tallies))


def crowned(tallies: Sequence[Tally]) -> tuple[Tally, ...]:
    """Put the winner first: the best, or one in the family's own dialect that is a single task behind.

    So small a difference is chance, and what a family was trained in holds for more than these tasks.
    """
    best = tallies[0]
    least = round(best.score - 1 / max(best.asked, 1), 6)
    near = [tally for tally in tallies if tally.asked == best.asked and round(tally.score, 6) >= least]
    winner = next((tally for tally in near if tally.form.own), best) if not best.form.is_native else best
    return (winner, *(tally for tally in tallies if tally is not winner))


def best_half(tallies: Sequence[Tally]) -> list[Tally]:
    """Return those that go on, in their order; the bare server always does, for comparison."""
    hopeful = [tally for tally in ranked(tallies) if not tally.hopeless]
    chosen = [tally for tally in hopeful if tally.form is not NATIVE][: halved(len(tallies))]
    return [tally for tally in tallies if tally in chosen or tally.form is NATIVE]


def halved(count: int) -> int:
    """Return how many go on."""
    return max(ceil(count / 2), FEWEST)


def ranked(tallies: Iterable[Tally]) -> tuple[Tally, ...]:
    """Sort by tasks asked, then by score; of equals the simpler one first: native, fewer requests, fewer tokens."""
    return tuple(sorted(tallies, key=_rank))


def _rank(tally: Tally) -> tuple[float, ...]:
    costs = (not tally.form.is_native, round(tally.requests, 2), round(tally.tokens))
    return (-tally.asked, -round(tally.score, 6), tally.spurious, -round(tally.valid, 6), *costs)


def _credit(mark: Mark) -> float:
    return 1.0 if mark.right else -HARM if mark.spurious else 0.0


def _later(count: int, parts: Sequence[Sequence[Task]]) -> int:
    """Count the tasks of the parts that follow."""
    total = 0
    for part in parts:
        count = min(halved(count) + 1, count)
        total += count * len(part)
    return total

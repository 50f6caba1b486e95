"""Finds a form that is better than what the user has today, or finds that there is none. No I/O.

    tournament = Tournament(forms, FULL)       the first form is TODAY
    for step in tournament.steps(): …          NextTask(form, task, left=…); answered by `tournament.add(result)`
    tournament.standing                        at any time: who leads, by how much, and whether that is decided

Selection: all forms get the same tasks, one after the other. A form leaves as soon as it can hardly be better than the
leader (a sequential test), or takes a right call away. Confirmation: the best form and today get tasks that nobody was
selected by, and an exact sign test on the tasks that only one of them got right decides. So one form is tested once,
however many were tried.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean
from typing import Final

from toolspeak.doctor.call_forms import TODAY, DoctorForm
from toolspeak.doctor.suite import Trial
from toolspeak.doctor.task import DoctorTask, TaskKind, TaskResult
from toolspeak.facts.chance import odds_of_better, sign_test, turns_to_see

HOPELESS: Final = 4
"""Tasks after which a form with nothing right leaves, even if no other form does better."""
GIVEN_UP: Final = 1 / 20
"""A form leaves if the odds that it is clearly better than the leader fall to this."""
BEYOND_CHANCE: Final = 0.025
"""The largest probability of a result by chance with which a form is kept. A short trial and a long one after it are
two tests, which together err in 5 of 100 cases at most."""
AT_ONCE: Final = 0.001
"""The probability with which the confirmation ends before its last task. So small a one, looked at after every task,
hardly adds to the chance of an error (Haybittle and Peto)."""
HARM: Final = 0.5
"""Penalty for a call where no tool fits: its effect would have to be undone."""
VISIBLE_HARM: Final = 0.1
ENOUGH_CALLS: Final = turns_to_see(VISIBLE_HARM)
"""Tasks with calls on which a guardrail that takes calls away must be tried: 29. A guardrail that takes away one right
call in ten takes none of 29 with a probability of less than 5 %."""


@dataclass(frozen=True, slots=True)
class NextTask:
    """The task to ask next, and in which form; at most `left` more follow."""

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
    def with_calls(self) -> int:
        """The number of tasks that need a call."""
        return sum(task.wants_calls for task in self.tasks)

    @property
    def spurious(self) -> int:
        """The number of answers that call a tool where none fits."""
        return sum(mark.spurious for mark in self.marks.values())

    @property
    def took(self) -> str:
        """The tool of the first right call that a guardrail took away; empty if none did."""
        return next((mark.took for mark in self.marks.values() if mark.took), "")

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
        """The share of right answers; a call where no tool fits counts against it (`HARM`)."""
        return max(0.0, (self.right - HARM * self.spurious) / self.asked) if self.asked else 0.0

    def of(self, kind: TaskKind) -> list[TaskResult]:
        """Return the results of one kind of task."""
        return [self.marks[task.name] for task in self.tasks if task.kind is kind]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two forms on the same tasks."""

    better: int = 0
    """Tasks that only the new form got right."""
    worse: int = 0
    """Tasks that only the old one got right."""
    tasks: int = 0

    @property
    def chance(self) -> float:
        """The probability of so good a result, if both forms were equal (exact sign test)."""
        return sign_test(self.better, self.worse)


def compare(new: Tally, old: Tally, tasks: Iterable[DoctorTask] | None = None) -> Comparison:
    """Compare two forms on the tasks that both were asked; only on those of `tasks` if they are given."""
    names = {task.name for task in tasks} if tasks is not None else new.marks.keys()
    both = [(new.marks[name].right, old.marks[name].right) for name in new.marks if name in names & old.marks.keys()]
    return Comparison(sum(n > o for n, o in both), sum(n < o for n, o in both), len(both))


class TrialEnd(StrEnum):
    """How a tournament stands. The values are the reasons in reports."""

    OPEN = "it is not decided yet"
    BETTER = "it is better beyond chance"
    NO_RIVAL = "no other form came near"
    CHANCE = "the difference may be chance"
    TAKES_CALLS = "a guardrail took a right call away"
    UNSEEN_HARM = f"its guardrails take calls away, and were tried on fewer than {ENOUGH_CALLS} tasks with calls"
    PLAIN_WORSE = "it is worse on plain requests"


@dataclass(frozen=True, slots=True)
class Standing:
    """The tallies (best first, without today), the form that is compared with today, and how it stands."""

    today: Tally
    others: tuple[Tally, ...]
    end: TrialEnd = TrialEnd.OPEN
    challenger: Tally | None = None
    comparison: Comparison = Comparison()
    """The challenger and today, on the tasks that confirm."""

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """All forms: the challenger, today, then the others."""
        first = (self.challenger,) if self.challenger is not None else ()
        return (*first, self.today, *(tally for tally in self.others if tally is not self.challenger))


class Tournament:
    """One trial of forms; `forms` begins with `TODAY`."""

    def __init__(self, forms: Sequence[DoctorForm], trial: Trial) -> None:
        """Take the forms and the tasks; nothing is asked yet."""
        self._today, *self._others = (Tally(form) for form in forms)
        self._trial: Final = trial
        self._challenger: Tally | None = None
        self._end = TrialEnd.OPEN
        self._result: TaskResult | None = None

    @property
    def standing(self) -> Standing:
        """How it stands now."""
        challenger = self._challenger
        compared = compare(challenger, self._today, self._trial.confirmation) if challenger else Comparison()
        return Standing(self._today, rank_tallies(self._others), self._end, challenger, compared)

    def add(self, result: TaskResult) -> None:
        """Take the result of the task that `steps` has yielded last."""
        self._result = result

    def steps(self) -> Iterator[NextTask]:
        """Yield the tasks to ask; each needs its result (`add`) before the next one."""
        yield from self._select()
        if self._challenger is not None and self._end is TrialEnd.OPEN:
            yield from self._confirm(self._challenger)

    def _select(self) -> Iterator[NextTask]:
        going = list(self._others)
        for number, task in enumerate(self._trial.selection):
            if len(going) <= 1:
                break
            for index, tally in enumerate((self._today, *going)):
                later = (len(self._trial.selection) - number) * (len(going) + 1) - index - 1
                yield from self._ask(tally, task, later + 2 * len(self._trial.confirmation))
            going = still_going(self._today, going)
        best = choose(self._today, going)
        if best is None:
            self._end = (
                TrialEnd.TAKES_CALLS
                if self._others and all(tally.took for tally in self._others)
                else TrialEnd.NO_RIVAL
            )
        self._challenger = best

    def _confirm(self, challenger: Tally) -> Iterator[NextTask]:
        tasks = self._trial.confirmation
        for number, task in enumerate(tasks, start=1):
            left = 2 * (len(tasks) - number)
            yield from self._ask(self._today, task, left + 1)
            yield from self._ask(challenger, task, left)
            compared = compare(challenger, self._today, tasks)
            if challenger.took or not _may_reach(compared, len(tasks) - number):
                break
            # A guardrail that takes calls away is tried on all tasks: its harm may come late.
            if compared.chance <= AT_ONCE and not challenger.form.takes_calls:
                break
        self._end = judge(challenger, self._today, compare(challenger, self._today, tasks))

    def _ask(self, tally: Tally, task: DoctorTask, left: int) -> Iterator[NextTask]:
        self._result = None
        yield NextTask(tally.form, task, left)
        if self._result is None:
            raise RuntimeError("a task needs its result before the next one")
        tally.add(task, self._result)


def still_going(today: Tally, going: Sequence[Tally]) -> list[Tally]:
    """Return the forms that can still win, in their order."""
    leader = max((today, *going), key=lambda tally: tally.score)
    return [tally for tally in going if not _is_given_up(tally, leader)]


def _is_given_up(tally: Tally, leader: Tally) -> bool:
    if tally.took or (not tally.right and tally.asked >= HOPELESS):
        return True
    compared = compare(tally, leader)
    return odds_of_better(compared.better, compared.worse) <= GIVEN_UP


def choose(today: Tally, going: Sequence[Tally]) -> Tally | None:
    """Return the form to compare with today, or None if none is ahead of today.

    Of forms at most one task behind the best, one in the dialect that the model's family was trained on is chosen: a
    difference of one task is chance, and on BFCL a form that had lost here by one task was the better one.
    """
    if not going:
        return None
    ranked = rank_tallies(going)
    near = [tally for tally in ranked if tally.right >= ranked[0].right - 1]
    best = next((tally for tally in near if tally.form.own), ranked[0])
    ahead = compare(best, today)
    return best if not today.asked or ahead.better > ahead.worse else None


def judge(challenger: Tally, today: Tally, compared: Comparison) -> TrialEnd:
    """Return whether a form that was compared with today is kept, or why it is not."""
    if challenger.took:
        return TrialEnd.TAKES_CALLS
    if compared.chance > BEYOND_CHANCE:
        return TrialEnd.CHANCE
    if challenger.form.takes_calls and challenger.with_calls < ENOUGH_CALLS:
        return TrialEnd.UNSEEN_HARM
    plain = compare(challenger, today, (task for task in challenger.tasks if task.kind is TaskKind.PLAIN))
    return TrialEnd.PLAIN_WORSE if plain.worse > plain.better else TrialEnd.BETTER


def _may_reach(compared: Comparison, left: int) -> bool:
    """Whether the form is kept if it alone gets all tasks right that are left."""
    return sign_test(compared.better + left, compared.worse) <= BEYOND_CHANCE


def rank_tallies(tallies: Iterable[Tally]) -> tuple[Tally, ...]:
    """Sort by tasks asked, then by score; of equals the simpler one first: native, fewer requests, fewer tokens."""
    return tuple(sorted(tallies, key=_rank))


def _rank(tally: Tally) -> tuple[float, ...]:
    # Rounded, so that differences in the last digits of a mean do not decide before the next criterion does.
    costs = (not tally.form.is_native, round(tally.requests, 2), round(tally.tokens))
    return (-tally.asked, -round(tally.score, 6), tally.spurious, -round(tally.valid, 6), *costs)


def with_today(forms: Sequence[DoctorForm]) -> tuple[DoctorForm, ...]:
    """Return the forms with `TODAY` before them."""
    return (TODAY, *(form for form in forms if form is not TODAY))

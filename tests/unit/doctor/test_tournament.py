"""How a winner is found (CAP-5, CAP-9): forms leave early, tasks that select do not confirm, chance is ruled out."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from toolspeak.doctor.call_forms import FORMS, TODAY, DoctorForm
from toolspeak.doctor.suite import FULL, QUICK, SUITE, Trial
from toolspeak.doctor.task import DoctorTask, TaskKind, TaskResult
from toolspeak.doctor.tournament import (
    BEYOND_CHANCE,
    ENOUGH_CALLS,
    HOPELESS,
    Comparison,
    NextTask,
    Standing,
    Tally,
    Tournament,
    TrialEnd,
    choose,
    judge,
    rank_tallies,
    with_today,
)

BY_NAME = {form.name: form for form in FORMS}
RIGHT, WRONG = TaskResult(right=True, requests=1, tokens=100), TaskResult(right=False, requests=1, tokens=100)
SPURIOUS = TaskResult(right=False, spurious=True, requests=1, tokens=100)
TOOK = replace(WRONG, took="set_timer")
Marks = Callable[[DoctorForm, DoctorTask], TaskResult]


def held(names: Sequence[str], marks: Marks, trial: Trial = FULL) -> tuple[Standing, list[NextTask]]:
    tournament, steps = Tournament(with_today([BY_NAME[name] for name in names]), trial), list[NextTask]()
    for step in tournament.steps():
        steps.append(step)
        tournament.add(marks(step.form, step.task))
    return tournament.standing, steps


def tally(name: str, *marks: TaskResult) -> Tally:
    found = Tally(BY_NAME[name])
    for task, mark in zip(SUITE, marks, strict=False):
        found.add(task, mark)
    return found


def only(*names: str) -> Marks:
    """Let these forms be right, and all others where no call is wanted."""
    return lambda form, task: RIGHT if form.name in names or not task.wants_calls else WRONG


def test_the_form_that_is_right_where_today_is_wrong_wins_cap5() -> None:
    standing, _ = held([form.name for form in FORMS], only("fenced+example"))
    assert (standing.end, standing.challenger and standing.challenger.form.name) == (TrialEnd.BETTER, "fenced+example")
    assert standing.comparison.worse == 0
    assert standing.comparison.chance <= BEYOND_CHANCE


def test_a_user_whose_model_works_keeps_what_works_cap9() -> None:
    standing, steps = held([form.name for form in FORMS], lambda _, __: RIGHT)
    assert (standing.end, standing.challenger) == (TrialEnd.NO_RIVAL, None)
    assert len(steps) == len(FULL.selection) * (len(FORMS) + 1)


def test_a_lead_of_a_few_tasks_is_chance_and_changes_nothing_cap9() -> None:
    few = {task.name for task in (*FULL.selection[:2], *FULL.confirmation[:5])}
    standing, _ = held(["hermes", "fenced"], lambda form, task: WRONG if form is TODAY and task.name in few else RIGHT)
    assert (standing.comparison.better, standing.comparison.worse) == (5, 0)
    assert standing.end is TrialEnd.CHANCE


def test_the_tasks_that_select_a_form_do_not_confirm_it_cap9() -> None:
    assert {task.name for task in FULL.selection}.isdisjoint(task.name for task in FULL.confirmation)
    lucky = {task.name for task in FULL.selection}
    standing, _ = held(
        ["hermes", "fenced"], lambda form, task: RIGHT if form is not TODAY or task.name not in lucky else WRONG
    )
    assert standing.end is TrialEnd.CHANCE
    assert standing.comparison.better == 0


def test_a_form_that_falls_behind_leaves_before_the_others_are_done_cap9() -> None:
    standing, _ = held(["hermes", "fenced", "hermes+care"], only("hermes", "hermes+care"))
    asked = {found.form.name: found.asked for found in standing.others}
    assert asked["fenced"] == HOPELESS
    assert asked["hermes"] > HOPELESS


def test_a_form_that_takes_a_right_call_away_leaves_at_once_cap9() -> None:
    def marks(form: DoctorForm, task: DoctorTask) -> TaskResult:
        return TOOK if form.takes_calls and task.name == "timer" else RIGHT if form is not TODAY else WRONG

    standing, _ = held(["hermes+strict", "hermes", "fenced"], marks)
    strict = next(found for found in standing.others if found.form.name == "hermes+strict")
    assert (strict.asked, standing.end) == (1, TrialEnd.BETTER)
    assert standing.challenger is not strict


def test_guardrails_that_take_calls_need_29_tasks_with_calls_cap9() -> None:
    assert ENOUGH_CALLS == 29
    assert sum(task.wants_calls for task in FULL.confirmation) >= ENOUGH_CALLS
    standing, _ = held(["hermes+strict"], only("hermes+strict"))
    assert standing.end is TrialEnd.BETTER
    assert standing.challenger is not None
    assert standing.challenger.with_calls >= ENOUGH_CALLS, "no early end, though it was clear after ten"
    standing, _ = held(["hermes+strict"], only("hermes+strict"), QUICK)
    assert standing.end is TrialEnd.UNSEEN_HARM


def test_harm_that_shows_late_still_counts_cap9() -> None:
    late = next(task for task in reversed(FULL.confirmation) if task.wants_calls)
    standing, _ = held(
        ["hermes+strict"], lambda form, task: WRONG if form is TODAY else TOOK if task is late else RIGHT
    )
    assert standing.end is TrialEnd.TAKES_CALLS


def test_a_form_that_wins_elsewhere_but_loses_plain_requests_is_not_kept_cap9() -> None:
    def marks(form: DoctorForm, task: DoctorTask) -> TaskResult:
        plain = task.kind is TaskKind.PLAIN
        worse = plain and task.name in {"bus", "volume"}
        return RIGHT if (form is TODAY and plain) or (form is not TODAY and not worse) else WRONG

    standing, _ = held(["hermes"], marks)
    assert standing.comparison.chance <= BEYOND_CHANCE
    assert standing.end is TrialEnd.PLAIN_WORSE


def test_a_clear_case_ends_before_the_last_task_and_a_lost_one_too_cap9() -> None:
    standing, _ = held(["hermes"], lambda form, _: WRONG if form is TODAY else RIGHT)
    assert (standing.end, standing.comparison.tasks) == (TrialEnd.BETTER, 10)
    standing, _ = held(["hermes"], lambda form, _: RIGHT if form is TODAY else WRONG)
    assert standing.comparison.tasks < len(FULL.confirmation)


def test_where_nothing_works_there_is_an_end() -> None:
    standing, _ = held([form.name for form in FORMS], lambda _, __: WRONG)
    assert (standing.end, standing.challenger) == (TrialEnd.NO_RIVAL, None)
    assert {found.asked for found in standing.others} == {HOPELESS}


def test_a_tournament_can_be_left_at_any_task_and_says_how_it_stands() -> None:
    tournament = Tournament(with_today([BY_NAME["hermes"], BY_NAME["fenced"]]), FULL)
    for step, _ in zip(tournament.steps(), range(5), strict=False):
        tournament.add(only("hermes")(step.form, step.task))
    assert tournament.standing.end is TrialEnd.OPEN
    assert tournament.standing.others[0].form.name == "hermes"


def test_a_call_where_no_tool_fits_does_harm() -> None:
    task = next(task for task in SUITE if task.kind is TaskKind.NONE)
    good, silent, harmful = (Tally(BY_NAME["hermes"]) for _ in range(3))
    for found, mark in ((good, RIGHT), (silent, WRONG), (harmful, SPURIOUS)):
        found.add(SUITE[0], RIGHT)
        found.add(task, mark)
    assert (good.score, silent.score, harmful.score) == (1, 0.5, 0.25)
    assert (good.spurious, harmful.spurious) == (0, 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (tally("hermes", RIGHT), tally("fenced", WRONG)),
        (tally("native+rescue", RIGHT), tally("hermes", TaskResult(right=True, tokens=1))),
        (
            tally("fenced", TaskResult(right=True, requests=1, tokens=900)),
            tally("hermes", TaskResult(right=True, requests=2, tokens=100)),
        ),
        (
            tally("fenced", TaskResult(right=True, requests=1, tokens=100)),
            tally("hermes", TaskResult(right=True, requests=1, tokens=200)),
        ),
        (
            tally("fenced", RIGHT, TaskResult(right=False, tokens=900)),
            tally("hermes", RIGHT, TaskResult(right=False, valid=False)),
        ),
        (tally("fenced", WRONG, WRONG), tally("hermes", RIGHT)),
    ],
    ids=["score", "native first", "fewer requests", "fewer tokens", "valid", "more tasks"],
)
def test_ties_go_to_the_simpler_form(one: Tally, other: Tally) -> None:
    assert rank_tallies([other, one])[0] is one
    assert rank_tallies([one, other])[0] is one


@pytest.mark.parametrize(("wrong", "chosen"), [(0, "hermes"), (1, "hermes"), (2, "fenced")])
def test_one_task_behind_the_familys_own_dialect_is_chosen_cap5(wrong: int, chosen: str) -> None:
    best, own = tally("fenced", *[RIGHT] * 15), Tally(replace(BY_NAME["hermes"], own=True))
    today = Tally(TODAY)
    for at, task in enumerate(SUITE[:15]):
        own.add(task, WRONG if at < wrong else RIGHT)
        today.add(task, WRONG)
    found = choose(today, [best, own])
    assert found is not None
    assert found.form.name == chosen


def test_too_few_tasks_with_calls_are_said_before_plain_requests_are_compared() -> None:
    strict = tally("hermes+strict", *[RIGHT] * 9)
    assert judge(strict, Tally(TODAY), Comparison(9, 0, 9)) is TrialEnd.UNSEEN_HARM

"""How the winner is found (CAP-5): scores, halving, ties."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from toolspeak.doctor.call_forms import FORMS, NATIVE, DoctorForm
from toolspeak.doctor.suite import PARTS, SUITE
from toolspeak.doctor.task import DoctorTask, TaskKind, TaskResult
from toolspeak.doctor.tournament import HOPELESS, NextTask, Tally, best_half, rank_tallies, run_tournament, winner_first

BY_NAME = {form.name: form for form in FORMS}
RIGHT, WRONG = TaskResult(right=True, requests=1, tokens=100), TaskResult(right=False, requests=1, tokens=100)
SPURIOUS = TaskResult(right=False, spurious=True, requests=1, tokens=100)


def held(
    forms: Sequence[DoctorForm],
    marks: Callable[[DoctorForm, DoctorTask], TaskResult],
    parts: Sequence[Sequence[DoctorTask]] = PARTS,
) -> tuple[tuple[Tally, ...], list[NextTask]]:
    trial, steps = run_tournament(forms, parts), list[NextTask]()
    step = next(trial)
    while True:
        steps.append(step)
        try:
            step = trial.send(marks(step.form, step.task))
        except StopIteration as stop:
            return stop.value, steps


def all_right(form: DoctorForm, task: DoctorTask) -> TaskResult:
    del form, task
    return RIGHT


def all_wrong(form: DoctorForm, task: DoctorTask) -> TaskResult:
    del form, task
    return WRONG


def tally(name: str, *marks: TaskResult) -> Tally:
    found = Tally(BY_NAME[name])
    for task, mark in zip(SUITE, marks, strict=False):
        found.add(task, mark)
    return found


def test_the_best_form_wins_and_has_all_tasks_cap5() -> None:
    tallies, _ = held(
        FORMS, lambda form, task: RIGHT if form.name == "fenced+example" or task.kind is TaskKind.NONE else WRONG
    )
    assert (tallies[0].form.name, tallies[0].right, tallies[0].asked) == ("fenced+example", 24, 24)


def test_the_better_half_goes_on_and_the_bare_server_always_does() -> None:
    """Forms are as good as they stand high in the list, but for the bare server, which is the worst."""
    order = {form.name: at for at, form in enumerate(FORMS)}
    kinds = list(TaskKind)
    tallies, _ = held(
        FORMS,
        lambda form, task: (
            RIGHT if form is not NATIVE and kinds.index(task.kind) % 11 >= order[form.name] % 8 else WRONG
        ),
    )
    asked = {found.form.name: found.asked for found in tallies}
    assert asked["native"] == 24
    assert sorted(asked.values(), reverse=True).count(24) == 6, "the bare server, and the half of nine"
    assert sum(count >= 16 for count in asked.values()) == 9, "the bare server, and the half of fifteen"


def test_a_form_with_nothing_right_is_given_up_early() -> None:
    tallies, steps = held((*FORMS[:2], *FORMS[3:5]), lambda form, _: RIGHT if form.name == "hermes" else WRONG)
    asked = {found.form.name: found.asked for found in tallies}
    assert asked == {"native": 24, "native+rescue": HOPELESS, "hermes": 24, "fenced": HOPELESS}
    assert len(steps) == sum(asked.values())


def test_where_nothing_works_there_is_an_end_and_a_first() -> None:
    tallies, _ = held(FORMS, all_wrong)
    assert len(tallies) == len(FORMS)
    assert tallies[0].score == 0


def test_one_part_is_asked_of_all_without_halving() -> None:
    tallies, _ = held(FORMS[:3], all_right, PARTS[:1])
    assert [found.asked for found in tallies] == [8, 8, 8]
    assert tallies[0].form is NATIVE


def test_what_is_left_is_known_before_and_falls_to_nothing() -> None:
    _, steps = held(FORMS, all_right)
    assert steps[0].left + 1 == len(steps)
    assert [step.left for step in steps] == list(range(len(steps) - 1, -1, -1))


def test_all_kinds_weigh_the_same() -> None:
    found = Tally(BY_NAME["hermes"])
    ones = [task for task in SUITE if task.kind is TaskKind.ONE]
    two = next(task for task in SUITE if task.kind is TaskKind.TWO)
    for task in ones:
        found.add(task, RIGHT)
    found.add(two, WRONG)
    assert found.score == pytest.approx(0.5)


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
        (tally("native", RIGHT), tally("hermes", RIGHT)),
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
    ids=["score", "native first", "rescue is native", "fewer requests", "fewer tokens", "valid", "more tasks"],
)
def test_ties_go_to_the_simpler_form(one: Tally, other: Tally) -> None:
    assert rank_tallies([other, one])[0] is one
    assert rank_tallies([one, other])[0] is one


def test_equals_stay_in_the_order_of_the_list() -> None:
    assert [found.form.name for found in rank_tallies([tally("fenced", RIGHT), tally("hermes", RIGHT)])] == [
        "fenced",
        "hermes",
    ]


def test_at_least_two_go_on() -> None:
    three = [tally("hermes", RIGHT), tally("fenced", RIGHT), tally("decision", WRONG)]
    assert best_half(three) == three[:2]
    assert best_half(three[:1]) == three[:1]


@pytest.mark.parametrize(("wrong", "winner"), [(0, "hermes"), (1, "hermes"), (2, "fenced")])
def test_one_task_behind_the_familys_own_dialect_wins_cap5(wrong: int, winner: str) -> None:
    best, own = tally("fenced", *[RIGHT] * 24), Tally(replace(BY_NAME["hermes"], own=True))
    for at, task in enumerate(SUITE):
        own.add(task, WRONG if at < wrong else RIGHT)
    assert winner_first([best, own])[0].form.name == winner
    assert len(winner_first([best, own])) == 2


def test_the_bare_server_gives_way_to_nobody_cap5() -> None:
    own = Tally(replace(BY_NAME["hermes"], own=True))
    own.add(SUITE[0], RIGHT)
    assert winner_first([tally("native", RIGHT), own])[0].form is NATIVE

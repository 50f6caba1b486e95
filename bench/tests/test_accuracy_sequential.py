"""A run may stop as soon as a difference is certain, and its error rate is as promised."""

import random
from itertools import product
from math import comb

import pytest

from bench.accuracy.sequential import Duel, Race, Verdict, evidence, log_evidence

TASKS, RUNS = 300, 800


def played(share_of_wins: float, chance: random.Random, *, apart: float = 0.3, error_rate: float = 0.05) -> Duel:
    """Return a comparison on tasks of which a share sets the forms apart, and the form wins so many of these."""
    duel = Duel(error_rate, TASKS)
    for _ in range(TASKS):
        differ, wins = chance.random() < apart, chance.random() < share_of_wins
        duel.add(ours=not differ or wins, theirs=not differ or not wins)
    return duel


def test_evidence_is_the_ratio_of_likelihoods() -> None:
    assert evidence(0, 0) == pytest.approx(1.0)
    assert evidence(9, 0) == pytest.approx(2**9 / 10)
    assert evidence(3, 3) == pytest.approx(2**6 * 36 / 5040)
    assert log_evidence(2000, 0) > 1000  # no overflow


def test_the_expected_evidence_of_fair_tosses_is_one() -> None:
    """This alone bounds the error rate, by Ville's inequality."""
    for tosses in range(12):
        expected = sum(comb(tosses, wins) * evidence(wins, tosses - wins) for wins in range(tosses + 1)) / 2**tosses
        assert expected == pytest.approx(1.0)


def test_equal_forms_are_called_different_in_at_most_five_of_a_hundred_runs() -> None:
    chance = random.Random(20)
    verdicts = [played(0.5, chance).verdict for _ in range(RUNS)]
    wrong = sum(verdict in (Verdict.BETTER, Verdict.WORSE) for verdict in verdicts)
    assert 0 < wrong <= 0.05 * RUNS


def test_forms_that_win_in_one_set_what_they_lose_in_another_are_called_different_less_often() -> None:
    chance = random.Random(21)
    wrong = 0
    for _ in range(RUNS):
        duel = Duel(0.05, TASKS)
        for task in range(TASKS):
            wins = chance.random() < (0.9 if task % 2 else 0.1)
            duel.add(ours=wins, theirs=not wins)
        wrong += duel.verdict in (Verdict.BETTER, Verdict.WORSE)
    assert wrong <= 0.05 * RUNS


def test_a_clear_difference_is_found_with_a_part_of_the_tasks() -> None:
    chance = random.Random(22)
    duels = [played(0.8, chance) for _ in range(300)]
    assert sum(duel.verdict is Verdict.BETTER for duel in duels) > 0.95 * len(duels)
    assert not any(duel.verdict is Verdict.WORSE for duel in duels)
    assert sum(duel.pairs for duel in duels) / len(duels) < TASKS / 3


def test_all_rivals_together_err_at_the_stated_rate() -> None:
    """A lucky reference makes all rivals look bad at once, so a run of ten counts as one."""
    chance, runs, wrong = random.Random(23), 150, 0
    names = [f"form {number}" for number in range(10)]
    for _ in range(runs):
        race = Race("today", names, 100)
        for task, form in product(range(100), ["today", *names]):
            race.add(form, str(task), right=chance.random() < 0.5)
        wrong += any(duel.verdict in (Verdict.BETTER, Verdict.WORSE) for duel in race.duels.values())
    assert wrong <= 0.05 * runs


def test_a_comparison_ends_when_no_task_that_is_left_can_decide_it() -> None:
    duel = Duel(0.05, 20)
    for _ in range(12):
        duel.add(ours=True, theirs=True)
    assert duel.verdict is Verdict.OPEN  # eight wins: evidence 28.4
    duel.add(ours=True, theirs=True)
    assert duel.verdict is Verdict.HOPELESS  # seven: 16


def test_a_verdict_stays_whatever_comes_after_it() -> None:
    duel = Duel(0.05, 100)
    for _ in range(8):
        duel.add(ours=True, theirs=False)
    assert duel.verdict is Verdict.BETTER
    for _ in range(50):
        duel.add(ours=False, theirs=True)
    assert (duel.verdict, duel.wins, duel.losses) == (Verdict.BETTER, 8, 0)


@pytest.mark.parametrize("first", ["hermes", "fenced"])
def test_a_race_pairs_the_results_of_a_task_in_any_order(first: str) -> None:
    race = Race("hermes", ["hermes", "fenced"], 50)
    second = "fenced" if first == "hermes" else "hermes"
    for task in range(8):
        assert race.needs("hermes")
        assert race.needs("fenced")
        race.add(first, str(task), right=first == "fenced")
        race.add(second, str(task), right=second == "fenced")
    assert race.duels["fenced"].verdict is Verdict.BETTER
    assert not race.needs("fenced")
    assert not race.needs("hermes")
    assert race.duels["fenced"].text == "better: 8 won, 0 lost of 8 tasks"

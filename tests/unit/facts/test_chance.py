"""The exact tests behind the doctor and the watch on profiles, against values that can be worked out by hand."""

import pytest

from toolspeak.facts.chance import more_often, odds_of_better, sign_test, turns_to_see


@pytest.mark.parametrize(
    ("better", "worse", "chance"), [(0, 0, 1.0), (6, 0, 1 / 64), (8, 1, 10 / 512), (1, 1, 0.75), (0, 5, 1.0)]
)
def test_a_sign_test_counts_fair_coins(better: int, worse: int, chance: float) -> None:
    assert sign_test(better, worse) == pytest.approx(chance)


def test_four_lost_tasks_and_none_won_speak_against_a_form() -> None:
    assert odds_of_better(0, 3) > 1 / 20 > odds_of_better(0, 4)
    assert odds_of_better(3, 4) > 1 / 20


def test_seven_calls_before_and_none_of_eight_since_is_no_chance() -> None:
    assert more_often((0, 7), (8, 8)) == pytest.approx(1 / 6435)
    assert more_often((4, 8), (4, 8)) > 0.5
    assert more_often((0, 0), (8, 8)) == 1.0, "nothing to compare with proves nothing"


def test_twenty_nine_tasks_show_a_harm_of_one_in_ten() -> None:
    assert turns_to_see(0.1) == 29
    assert 0.9**29 < 0.05 < 0.9**28

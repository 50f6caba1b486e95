"""The quick run fails for what it should fail for."""

from dataclasses import replace

import pytest

from bench.accuracy.kept import Conditions, Line
from bench.accuracy.quick import BARE, OURS, faults

RIGHT = Line("m", "", "1", "multiple", "t1", Conditions(1, 96, "b"), True, True, True, 1, 1, 1, 1.0, [])  # a line


def run(*changed: Line) -> list[Line]:
    """Return two tasks in all forms, with these lines in place of theirs."""
    lines = {(form, task): replace(RIGHT, form=form, task=task) for form in (BARE, *OURS) for task in ("t1", "t2")}
    return list((lines | {(line.form, line.task): line for line in changed}).values())


def test_a_good_run_has_no_faults() -> None:
    assert faults(run()) == []


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ([replace(RIGHT, form=form, right=False) for form in OURS], "fewer right"),
        ([replace(RIGHT, form=OURS[0], valid=False)], "does not fit"),
        ([replace(RIGHT, form=BARE, failure="gone")], "gone"),
        ([replace(RIGHT, form=form, task=task, called=False) for form in OURS for task in ("t1", "t2")], "no call"),
    ],
)
def test_each_fault_is_seen(changed: list[Line], fault: str) -> None:
    assert fault in str(faults(run(*changed)))


def test_too_few_answers_are_a_fault() -> None:
    assert "only 3 answers" in str(faults(run()[::2]))


def test_the_bare_server_may_deliver_what_does_not_fit() -> None:
    assert faults(run(replace(RIGHT, form=BARE, valid=False))) == []

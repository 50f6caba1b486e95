"""What the measurement of `escalate_to` reports for solved and unsolved tasks."""

from bench.accuracy import data
from bench.accuracy.escalation import BOTH, LARGE, SMALL, Done, difference, faults, figures
from bench.accuracy.relay import Account

NONE = Account()
ONE = Account(requests=1, input_tokens=100, output_tokens=10)


def done(name: str, task: int, *, small: bool, large: bool, escalates: bool) -> list[Done]:
    """Return one task in all three ways; where it escalates, the larger model decides."""
    both = large if escalates else small
    return [
        Done(name, f"{name}-{task}", SMALL, small, ONE, NONE),
        Done(name, f"{name}-{task}", LARGE, large, NONE, ONE),
        Done(name, f"{name}-{task}", BOTH, both, ONE, ONE if escalates else NONE),
    ]


def sample() -> list[Done]:
    """Return ten tasks of each set: the small model solves half, the large one all, and one in ten escalates."""
    return [
        each
        for name in data.SETS
        for task in range(10)
        for each in done(name, task, small=task >= 5, large=True, escalates=task == 0)
    ]


def test_figures_of_each_way() -> None:
    shown = figures(sample())
    assert [shown[way]["solved"]["value"] for way in (SMALL, LARGE, BOTH)] == [50.0, 100.0, 60.0]
    assert [shown[way]["escalated"] for way in (SMALL, LARGE, BOTH)] == [0, 0, 4]
    assert shown[BOTH]["escalated_and_solved"] == 4
    assert shown[BOTH]["large"] == {"requests": 0.1, "input_tokens": 10, "output_tokens": 1}
    more = difference(sample(), BOTH, SMALL)
    assert more is not None
    assert more["value"] == 10.0
    assert 0 <= more["low"] <= 10 <= more["high"]
    assert faults(sample()) == []


def test_a_task_that_changes_without_an_escalation_is_a_fault() -> None:
    changed = [
        Done(each.set, each.task, each.way, right=not each.right, small=each.small, large=each.large)
        if each.way == BOTH and each.task == "parallel-7"
        else each
        for each in sample()
    ]
    assert faults(changed) == ["without an escalation these tasks went differently: ['parallel-7']"]
    assert faults([])[0] == "no task was done in all three ways"

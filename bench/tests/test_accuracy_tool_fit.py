"""What each limit of `unfit_probability` rejects."""

import pytest

from bench.accuracy.data import Task, Wanted
from bench.accuracy.tool_fit import FIRST_TOOLS, area, figures, tool_of, worded_by_people
from testkit.everyday import REQUESTS
from toolspeak.ir.tool import Tool


def test_a_limit_is_shown_with_what_it_rejects_on_both_sides() -> None:
    chances = {"irrelevance": (0.9, 0.35, 0.1), "simple_python": (0.3, 0.0), "multiple": (0.5, None)}
    found = [{"set": name, "task": "t", "no": no} for name, values in chances.items() for no in values]
    shown = figures(found)
    assert (shown["irrelevant"], shown["right"]) == (3, 4)
    assert shown["rejected"]["0.35"] == [2, 1, 0]
    assert shown["rejected"]["0.3"] == [2, 2, 0]
    assert shown["rejected"]["0.6"] == [1, 0, 0]


def test_requests_as_people_word_them_are_counted_apart() -> None:
    tasks = worded_by_people()
    assert len(tasks) == len(REQUESTS) + len(FIRST_TOOLS)
    assert all(tool_of(task).name == task.wanted[0].name for task in tasks)
    found = [{"set": task.set, "task": task.id, "no": 0.3} for task in tasks]
    assert figures(found)["rejected"]["0.25"] == [0, 0, len(tasks)]


@pytest.mark.parametrize(
    ("irrelevant", "right", "expected"),
    [([0.9, 0.8], [0.1], 1.0), ([0.5], [0.5], 0.5), ([0.1], [0.9], 0.0), ([], [], 0.0)],
)
def test_the_area_is_the_share_of_pairs_in_the_right_order(
    irrelevant: list[float], right: list[float], expected: float
) -> None:
    assert area(irrelevant, right) == expected


def test_the_right_tool_is_judged_and_else_the_first() -> None:
    tools, names = (Tool("a_b"), Tool("c_d")), {"a_b": "a.b", "c_d": "c.d"}
    assert tool_of(Task("t", "multiple", (), tools, (Wanted("c_d", {}, {}),), names)) is tools[1]
    assert tool_of(Task("t", "irrelevance", (), tools, (), names)) is tools[0]

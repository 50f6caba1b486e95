"""Runs that go in circles are told so, then stopped (RUN-7)."""

from dataclasses import replace

import pytest

from tests.unit.engine.run_scene import SAID, TASK, called, gave, look, result_texts, rounds, worked
from toolspeak.engine.agent import Governor, RunAnswer, Status
from toolspeak.ir.message import Call, Image, Result, Text


def counted(*seen: tuple[Call, Result]) -> tuple[list[bool], bool]:
    """Show calls and their results to a governor, a round each; tell which got a nudge, and whether it is a circle."""
    governor = Governor()
    shown = [(result, governor.seen((call,), (result,))[0]) for call, result in seen]
    return [before != after for before, after in shown], governor.circles


LOOK = look()
SAME = (LOOK, gave(LOOK))


@pytest.mark.parametrize(
    ("times", "nudged", "circles"),
    [
        (1, [False], False),
        (2, [False, False], False),
        (3, [False, False, True], False),
        (4, [False, False, True, True], True),
    ],
)
def test_the_third_time_is_nudged_and_the_fourth_is_a_circle_run7(
    times: int, nudged: list[bool], circles: bool
) -> None:
    assert counted(*[SAME] * times) == (nudged, circles)


def test_a_nudge_stands_behind_the_result_run7() -> None:
    _, ending = worked(TASK, *rounds(3), SAID)
    assert result_texts(ending)[:2] == ["a stone", "a stone"]
    assert result_texts(ending)[2].startswith("a stone\nlook was called with these arguments 3 times")


def test_a_circle_is_summed_up_run7() -> None:
    _, ending = worked(TASK, *rounds(4), SAID)
    assert (ending.status, ending.text) == (Status.SUMMED_UP, "Done.")
    assert "circles" in ending.reason


def test_circles_of_several_calls_are_seen_run7() -> None:
    answers: list[RunAnswer] = []
    for number in range(4):
        for place in ("door", "tree"):
            call = look(f"{number}{place}", place)
            answers += [called(call), (gave(call),)]
    task = replace(TASK, rounds=50)
    _, ending = worked(task, *answers[:14], SAID)
    assert (ending.status, len(ending.kept.rounds)) == (Status.SUMMED_UP, 7)


@pytest.mark.parametrize(
    "arguments", ['{"a": 1, "b": {"d": 2, "c": 3}}', ' {"b":{"c":3,"d":2},\n"a":1}', '{"\\u0061":1,"b":{"c":3,"d":2}}']
)
def test_how_arguments_are_written_makes_no_difference_run7(arguments: str) -> None:
    call = Call("1", "look", '{"a":1,"b":{"c":3,"d":2}}')
    assert counted(*[(call, gave(call))] * 2, (replace(call, id="2", arguments=arguments), gave(call)))[0][2]


def test_no_arguments_are_an_empty_object_run7() -> None:
    assert counted(SAME, SAME, (replace(LOOK, arguments=""), gave(LOOK)))[0][2]


@pytest.mark.parametrize("arguments", ['{"a":', "\ud800", "NaN", '{"a":1,"a":2}'])
def test_arguments_that_are_no_json_count_as_they_are_run7(arguments: str) -> None:
    call = replace(LOOK, arguments=arguments)
    assert counted(*[(call, gave(call))] * 4) == ([False, False, True, True], True)


@pytest.mark.parametrize(
    "other",
    [
        (LOOK, gave(LOOK, "a tree")),
        (look(at="door"), gave(LOOK)),
        (replace(LOOK, name="touch"), gave(LOOK)),
        (LOOK, Result(LOOK.id, (Image("image/png", "QQ=="),))),
    ],
)
def test_another_call_or_result_is_no_circle_run7(other: tuple[Call, Result]) -> None:
    assert counted(SAME, SAME, other) == ([False, False, False], False)


def test_two_pictures_are_not_the_same_result_run7() -> None:
    pictures = [(LOOK, Result(LOOK.id, (Image("image/png", f"QQ{number}="),))) for number in range(9)]
    assert counted(*pictures)[1] is False


def test_the_same_call_many_times_in_one_round_counts_once_run7() -> None:
    governor = Governor()
    calls = tuple(look(str(number)) for number in range(9))
    results = tuple(map(gave, calls))
    assert governor.seen(calls, results) == results
    assert not governor.circles


def test_a_result_that_changes_is_waited_for_run7() -> None:
    waits = [(LOOK, gave(LOOK, f"{number} of 9")) for number in range(9)]
    assert counted(*waits) == ([False] * 9, False)


def test_results_keep_what_they_have_beside_the_nudge_run7() -> None:
    result = Result("1", (Text("a"), Image("image/png", "QQ==")), "look", is_error=True)
    governor = Governor(repeats=1)
    (nudged,) = governor.seen((LOOK,), (result,))
    assert (nudged.content[:2], nudged.is_error, nudged.call_id) == (result.content, True, "1")

"""The tasks: twenty-four of eight kinds, and twenty-four plain requests (CAP-5, CAP-9)."""

import json

import pytest

from tests.unit.doctor.pupil import questions, solved, task_of
from tests.unit.engine.guardrails.talk import conversation
from toolspeak.doctor.plain_requests import PLAIN
from toolspeak.doctor.suite import FULL, MIXED, OPTIONAL, QUICK, SUITE, TOOLS
from toolspeak.doctor.task import DoctorTask, ExpectedCall, TaskKind, TaskStep, check_answer, is_valid
from toolspeak.engine.guardrails.guardrail import GuardedConversation
from toolspeak.engine.guardrails.unrelated_calls import is_unrelated, tool_meaning
from toolspeak.engine.guardrails.values import has_made_up_arguments
from toolspeak.ir.message import Call, Text
from toolspeak.ir.turn import Turn
from toolspeak.toolset.toolset import compile_tools

LONGEST = 120


def test_there_are_three_tasks_of_each_kind_and_24_plain_requests_cap5() -> None:
    assert len(SUITE) == len({task.name for task in SUITE}) == 48
    counts = {kind: sum(task.kind is kind for task in SUITE) for kind in TaskKind}
    assert counts == dict.fromkeys(TaskKind, 3) | {TaskKind.PLAIN: 24}


def test_a_plain_request_has_one_to_three_tools_and_wants_one_call_cap9() -> None:
    assert all(1 <= len(task.tools) <= 3 for task in PLAIN)
    assert all(len(task.steps) == len(task.steps[0].calls) == 1 for task in PLAIN)
    assert sum(len(task.tools) == 1 for task in PLAIN) >= 8


def test_some_plain_requests_share_no_word_with_their_tool_and_are_kept_for_their_values_cap9_chk10() -> None:
    others = [task for task in PLAIN if not talk(task).meaning & tool_meaning(task.steps[0].calls[0].name, talk(task))]
    assert {"rain", "airport"} <= {task.name for task in others}
    assert not any(is_unrelated(right_call(task.steps[0].calls[0]), talk(task)) for task in PLAIN)


def test_every_task_is_asked_once_and_the_first_ones_need_calls() -> None:
    assert sorted(task.name for task in (*FULL.selection, *FULL.confirmation)) == sorted(task.name for task in SUITE)
    assert all(task.wants_calls for task in FULL.selection[:4]), "a form without a right call is given up after these"
    assert QUICK.confirmation == FULL.confirmation[:12]


def test_some_tasks_have_many_tools() -> None:
    assert len(TOOLS) == 12
    assert sum(len(task.tools) == 12 for task in SUITE) >= 2


@pytest.mark.parametrize("task", SUITE, ids=lambda task: task.name)
def test_a_task_can_be_solved(task: DoctorTask) -> None:
    """What is wanted fits the schemas, and is marked as right."""
    compile_tools(task.tools)
    for step in task.steps:
        calls = tuple(Call(str(at), one.name, solved(one)) for at, one in enumerate(step.calls))
        assert all(is_valid(call, task.tools) for call in calls)
        words = (Text(f"Well: {step.says[0]}." if step.says else "Certainly."),)
        assert check_answer(step, Turn(calls or words), task.tools) == ""


@pytest.mark.parametrize("task", SUITE, ids=lambda task: task.name)
def test_a_task_is_short_and_is_not_solved_by_the_other_thing(task: DoctorTask) -> None:
    assert task_of(questions(task)) is task, "no task looks like another"
    assert sum(map(len, questions(task))) < LONGEST
    step = task.steps[0]
    other = (Text("Certainly."),) if step.calls else (Call("1", task.tools[0].name, "{}"),)
    assert check_answer(step, Turn(other), task.tools) != ""


def test_a_step_with_results_has_one_for_each_call() -> None:
    steps: list[TaskStep] = [step for task in SUITE for step in task.steps[:-1]]
    assert steps
    assert all(len(step.results) == len(step.calls) > 0 for step in steps)


def right_call(wanted: ExpectedCall) -> Call:
    return Call("1", wanted.name, solved(wanted))


def talk(task: DoctorTask) -> GuardedConversation:
    return conversation(*task.messages, tools=task.tools)


def test_of_the_tasks_without_a_call_two_have_unrelated_tools_only_and_one_has_a_related_one_chk10() -> None:
    tasks = [task for task in SUITE if task.kind is TaskKind.NONE]
    empty = [[Call("1", tool.name, "{}") for tool in task.tools] for task in tasks]
    related = [
        any(not is_unrelated(call, talk(task)) for call in calls) for task, calls in zip(tasks, empty, strict=True)
    ]
    assert sorted(related) == [False, False, True]


@pytest.mark.parametrize("task", [task for task in MIXED if task.wants_calls], ids=lambda task: task.name)
def test_a_guardrail_leaves_the_right_calls_as_they_are_chk10_chk14(task: DoctorTask) -> None:
    for wanted in task.steps[0].calls:
        call = right_call(wanted)
        assert not is_unrelated(call, talk(task))
        assert not has_made_up_arguments(call, talk(task))


def test_no_task_tells_an_optional_argument_and_one_that_is_made_up_is_wrong() -> None:
    asked = [(task, wanted) for task in MIXED for step in task.steps for wanted in step.calls]
    assert all(OPTIONAL.isdisjoint(wanted.arguments) for _, wanted in asked)
    tools = compile_tools(TOOLS)
    assert all(
        any(name not in tools.required(tool.name) and tools.schema_of(tool.name, name) for tool in TOOLS)
        for name in OPTIONAL
    )
    task = next(task for task in SUITE if task.name == "shelf")
    made_up = json.dumps({"title": "Dune", "author": "Frank Herbert"})
    assert check_answer(task.steps[0], Turn((Call("1", "find_book", made_up),)), task.tools) == "has author as well"

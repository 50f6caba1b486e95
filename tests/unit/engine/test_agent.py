"""The loop of a run (RUN-1)."""

from dataclasses import replace

import pytest

from tests.unit.engine.run_scene import (
    BAD,
    FAILED,
    REFUSED,
    SAID,
    SILENT,
    TASK,
    asked,
    called,
    gave,
    look,
    played,
    result_texts,
    rounds,
    tools,
    worked,
)
from toolspeak.engine.agent import STOP, RunTools, Status, TakeTurn, Task
from toolspeak.ir.event import CallRejected, StopReason, Usage
from toolspeak.ir.message import Call, Message, Reasoning, Result, Role, Text
from toolspeak.ir.tool import ChoiceMode
from toolspeak.ir.turn import Turn

LOOK = look()


# ---------------------------------------------------------------- the way of a run


def test_a_turn_without_calls_ends_the_run_run1() -> None:
    _, ending = worked(TASK, SAID)
    assert (ending.status, ending.text, ending.reason, ending.kept.rounds) == (Status.DONE, "Done.", "", ())


def test_results_go_back_to_the_model_run1() -> None:
    effects, ending = worked(TASK, called(LOOK), (gave(LOOK),), SAID)
    assert effects[1] == RunTools(0, (LOOK,))
    assert [message.role for message in asked(effects[2]).messages] == ["user", "assistant", "assistant", "tool"]
    assert [(each.text, each.calls, each.results) for each in ending.kept.rounds] == [
        ("I look.", (LOOK,), (gave(LOOK),))
    ]


def test_effects_tell_their_round_run1() -> None:
    effects, _ = worked(TASK, *rounds(2), SAID)
    assert [(type(effect), effect.round) for effect in effects] == [
        (TakeTurn, 0),
        (RunTools, 0),
        (TakeTurn, 1),
        (RunTools, 1),
        (TakeTurn, 2),
    ]


def test_the_tokens_of_all_turns_are_summed_run1() -> None:
    _, ending = worked(TASK, *rounds(2), SAID)
    assert ending.usage == Usage(30, 15)


def test_words_that_were_cut_are_told_as_cut_run1() -> None:
    _, ending = worked(TASK, Turn((Text("It is a sto"),), StopReason.LENGTH))
    assert (ending.status, ending.text) == (Status.DONE, "It is a sto")
    assert "cut" in ending.reason


# ---------------------------------------------------------------- its ends


def test_used_up_rounds_are_summed_up_without_tools_run1() -> None:
    answers = [answer for number in range(5) for answer in _round(number, f"stone {number}")]
    effects, ending = worked(TASK, *answers, SAID)
    assert (ending.status, ending.reason) == (Status.SUMMED_UP, "its 5 rounds were used up")
    assert sum(isinstance(effect, RunTools) for effect in effects) == 5
    assert asked(effects[-1]).choice.mode is ChoiceMode.NONE
    assert asked(effects[-1]).messages[-1].role is Role.USER


def _round(number: int, text: str) -> tuple[Turn, tuple[Result, ...]]:
    return called(look(str(number))), (gave(look(str(number)), text),)


def test_fifty_rounds_are_the_default_run1() -> None:
    assert Task(TASK.request).rounds == 50


def test_without_any_round_there_is_only_the_summary_run1() -> None:
    effects, ending = worked(replace(TASK, rounds=0), SAID)
    assert asked(effects[0]).choice.mode is ChoiceMode.NONE
    assert ending.status is Status.SUMMED_UP


def test_what_the_summary_calls_is_not_run_run1() -> None:
    effects, ending = worked(replace(TASK, rounds=1), *rounds(1), Turn((Text("I look on."), look("2"))))
    assert sum(isinstance(effect, RunTools) for effect in effects) == 1
    assert (ending.status, ending.text, len(ending.kept.rounds)) == (Status.SUMMED_UP, "I look on.", 1)


@pytest.mark.parametrize("turn", [SILENT, Turn((look("2"),)), Turn((Text(" \n"),)), Turn((Reasoning("Hm."),))])
def test_a_summary_without_words_is_a_failure_and_no_empty_success_run1_p6(turn: Turn) -> None:
    _, ending = worked(replace(TASK, rounds=1), *rounds(1), turn)
    assert (ending.status, len(ending.kept.rounds)) == (Status.FAILED, 1)
    assert "nothing" in ending.reason


@pytest.mark.parametrize("turn", [SILENT, Turn((Text("\n"),)), Turn((Reasoning("Hm."),)), Turn((), StopReason.LENGTH)])
def test_a_model_that_says_nothing_is_asked_once_for_words_run1_p6(turn: Turn) -> None:
    effects, ending = worked(TASK, *rounds(1), turn, SAID)
    assert (asked(effects[-1]).choice.mode, effects[-1].round) == (ChoiceMode.NONE, 1)
    assert (ending.status, ending.text) == (Status.SUMMED_UP, "Done.")
    assert ending.reason == "the model said nothing"


def test_a_cancelled_run_keeps_its_rounds_run1() -> None:
    _, ending = worked(TASK, *rounds(1), STOP)
    assert (ending.status, len(ending.kept.rounds)) == (Status.CANCELLED, 1)


def test_a_run_that_is_cancelled_while_tools_run_keeps_what_was_said_run1() -> None:
    _, ending = worked(TASK, called(LOOK), STOP)
    assert (ending.status, ending.text, ending.kept.rounds) == (Status.CANCELLED, "I look.", ())


def test_a_run_can_be_cancelled_while_it_is_summed_up_run1() -> None:
    _, ending = worked(replace(TASK, rounds=1), *rounds(1), STOP)
    assert ending.status is Status.CANCELLED


def test_a_failed_turn_ends_the_run_and_keeps_its_rounds_run1() -> None:
    _, ending = worked(TASK, *rounds(2), FAILED)
    assert (ending.status, ending.failure, ending.reason) == (Status.FAILED, REFUSED, REFUSED.message)
    assert (len(ending.kept.rounds), ending.text) == (2, "I was abou")


def test_calls_of_a_failed_turn_do_not_run_run1_p3() -> None:
    effects, ending = worked(TASK, replace(FAILED, parts=(LOOK,)))
    assert not any(isinstance(effect, RunTools) for effect in effects)
    assert ending.status is Status.FAILED


def test_a_failed_run_goes_on_from_where_it_stood_run1() -> None:
    answers = [*rounds(2), FAILED]
    _, ending = worked(TASK, *answers[:-1], SAID)
    assert (ending.status, ending.text, len(ending.kept.rounds)) == (Status.DONE, "Done.", 2)


# ---------------------------------------------------------------- calls that may not run


def test_the_model_is_told_of_a_call_that_may_not_run_run1() -> None:
    effects, ending = worked(TASK, Turn((Text("I try."), BAD)), SAID)
    assert not any(isinstance(effect, RunTools) for effect in effects)
    assert result_texts(ending) == ["there is no such tool: available tools: look"]
    (call,), (result,) = ending.kept.rounds[0].calls, ending.kept.rounds[0].results
    assert (call.name, call.arguments, result.call_id, result.is_error) == ("luck", '{"at":"door"}', call.id, True)


def test_calls_beside_one_that_may_not_run_do_run_run1() -> None:
    effects, ending = worked(
        TASK, Turn((look("1"), BAD, look("2"))), (gave(look("1")), gave(look("2"), "a tree")), SAID
    )
    assert tools(effects[1]) == (look("1"), look("2"))
    assert result_texts(ending) == ["a stone", "there is no such tool: available tools: look", "a tree"]


def test_attempts_that_never_succeed_come_to_an_end_run1_run7() -> None:
    _, ending = worked(TASK, *[Turn((BAD,))] * 4, SAID)
    assert (ending.status, "circles" in ending.reason) == (Status.SUMMED_UP, True)


@pytest.mark.parametrize("raw", ["", "[1]", "```tool_call\n{}", '{"a":'])
def test_what_is_no_object_is_no_arguments_of_an_attempt_run1(raw: str) -> None:
    _, ending = worked(TASK, Turn((CallRejected(BAD.complaint, raw),)), SAID)
    assert ending.kept.rounds[0].calls[0].arguments == "{}"
    assert ending.kept.rounds[0].calls[0].raw == raw


# ---------------------------------------------------------------- ids


def test_no_two_calls_of_a_run_have_one_id_run1_run2() -> None:
    one, two, three = look("1"), look("1_0"), look("1_1")
    effects, ending = worked(TASK, called(one), (gave(one),), called(one, one), (gave(two), gave(three)), SAID)
    assert [call.id for call in tools(effects[3])] == ["1_0", "1_1"]
    assert [result.call_id for each in ending.kept.rounds for result in each.results] == ["1", "1_0", "1_1"]


def test_a_call_without_an_id_gets_one_that_the_history_does_not_have_run1_run2() -> None:
    before = (*TASK.request.messages, Message(Role.ASSISTANT, (look("call_0"),)), Message(Role.TOOL, ()))
    task = replace(TASK, request=replace(TASK.request, messages=before))
    effects, _ = played(task, [called(look(""))])
    assert [call.id for call in tools(effects[1])] == ["call_1"]


# ---------------------------------------------------------------- drivers that err


@pytest.mark.parametrize("given", [(), (gave(look("2")),), (gave(LOOK), gave(LOOK)), (gave(look("2")), gave(LOOK))])
def test_results_of_other_calls_are_refused_run1(given: tuple[Result, ...]) -> None:
    with pytest.raises(ValueError, match=r"expected those of \['1'\]"):
        played(TASK, [called(LOOK), given])


def test_an_answer_of_the_wrong_kind_is_refused_run1() -> None:
    with pytest.raises(TypeError, match="TakeTurn was answered with tuple"):
        played(TASK, [()])
    with pytest.raises(TypeError, match="RunTools was answered with Turn"):
        played(TASK, [called(LOOK), SAID])


# ---------------------------------------------------------------- tools that end a run

FINAL = Call("9", "final_output", '{"text": "A stone."}')


def test_a_tool_can_end_the_run_run1_run4() -> None:
    effects, ending = worked(TASK, called(FINAL), (gave(FINAL, "A stone."),))
    assert (ending.status, ending.text, len(ending.kept.rounds)) == (Status.DONE, "A stone.", 1)
    assert len(effects) == 2


def test_an_ending_beside_other_calls_is_a_guess_and_comes_again_run1_run4() -> None:
    again = replace(FINAL, id="10")
    effects, ending = worked(TASK, called(FINAL, LOOK), (gave(LOOK),), called(again), (gave(again, "A stone."),))
    assert tools(effects[1]) == (LOOK,)
    assert (ending.status, ending.text) == (Status.DONE, "A stone.")
    early, *rest = result_texts(ending)
    assert early.startswith("Not yet: look at the results of the other calls first")
    assert rest == ["a stone", "A stone."]


def test_of_two_endings_the_later_counts_run1_run4() -> None:
    other = replace(FINAL, id="10")
    _, ending = worked(TASK, called(FINAL, other), (gave(FINAL, "A."), gave(other, "B.")))
    assert ending.text == "B."


def test_an_ending_that_fits_no_schema_goes_back_to_the_model_run1_run4() -> None:
    wrong = gave(FINAL, "text: expected a string", is_error=True)
    effects, ending = worked(TASK, called(FINAL), (wrong,), SAID)
    assert asked(effects[2]).messages[-1].parts == (wrong,)
    assert (ending.status, ending.text) == (Status.DONE, "Done.")


def test_an_ending_tool_is_known_by_its_call_and_not_by_what_a_result_says_run1() -> None:
    nameless = Result(FINAL.id, (Text("A stone."),))
    _, ending = worked(TASK, called(FINAL), (nameless,))
    assert ending.text == "A stone."

"""The agent prompt, the review of an ending, and the summary in words (RUN-15, RUN-16, RUN-17)."""

from dataclasses import replace

import pytest

from tests.unit.engine.run_scene import TASK, asked, called, gave, look, played, worked
from toolspeak.engine.agent import Status, TakeTurn, Task
from toolspeak.engine.agent_prompt import agent_messages, denied, spoken, unfinished, unknown_outcome
from toolspeak.ir.event import StopReason
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.round import Round
from toolspeak.ir.turn import Turn

FILES = ("read_file", "write_file", "edit_file", "list_files")
LOOSE = '{"name": "look", "arguments": {"at": "door"}}'
HERMES = f"<tool_call>\n{LOOSE}\n</tool_call>"
REVIEWED = replace(TASK, reviewed=("look", "final_output"))


def said(text: str) -> Turn:
    return Turn((Text(text),), StopReason.END)


def made(name: str, arguments: str = "{}", text: str = "It is done.", *, is_error: bool = False) -> Round:
    return Round((), (Call("1", name, arguments),), (Result("1", (Text(text),), name, is_error),))


def task_about(text: str) -> Task:
    return replace(REVIEWED, request=Request("m", (Message(Role.USER, (Text(text),)),), TASK.request.tools))


# ---------------------------------------------------------------- the prompt


def test_the_agent_prompt_stands_before_the_callers_own_run15() -> None:
    mine = Message(Role.SYSTEM, (Text("Answer in Dutch."),))
    messages = agent_messages((mine, *TASK.request.messages), {"final_output"})
    assert [message.role for message in messages] == [Role.SYSTEM, Role.USER]
    text = "".join(part.text for part in messages[0].parts if isinstance(part, Text))
    assert text.index("one step at a time") < text.index("call final_output") < text.index("Answer in Dutch.")
    assert "final_output" not in str(agent_messages(TASK.request.messages))


# ---------------------------------------------------------------- the review


@pytest.mark.parametrize(
    ("task", "rounds", "left"),
    [
        ("Write a.txt and read it.", [made("write_file", '{"path": "a.txt"}')], ["read_file was not called."]),
        ("Copy a.txt to b/c.md.", [made("read_file", '{"path": "a.txt"}')], ["No call has worked on b/c.md."]),
        ("Copy a.txt to b/c.md.", [made("shell", '{"command": "cp a.txt b/c.md"}')], []),
        ("Mend it.", [made("edit_file", text="No.", is_error=True)], ["The last call of edit_file failed: No."]),
        ("Mend it.", [made("edit_file", is_error=True), made("edit_file")], []),
        ("Mend it.", [made("edit_file"), made("read_file", is_error=True), made("read_file")], []),
        ("Read it, but do not write anything.", [made("read_file")], []),
        ("See https://a.example/b.html, ask me@a.example, e.g. about os.walk().", [made("list_files")], []),
        ("Make a list of them.", [made("read_file")], []),
        ("Write a.txt.", [], []),
        ("Schreibe a.txt und lies b.txt.", [made("write_file", '{"path": "a.txt"}')], ["No call has worked on b.txt."]),
    ],
)
def test_what_is_left_of_a_task_is_seen_run16(task: str, rounds: list[Round], left: list[str]) -> None:
    assert [*unfinished(task, (*FILES, "shell"), rounds)] == left


def test_a_denied_call_is_not_asked_for_again_run16_run5() -> None:
    call = Call("1", "write_file", "{}")
    refused = Round((), (call,), (denied(call, "the approval mode is read-only, which does not allow it"),))
    assert not unfinished("Write a.txt.", FILES, [refused])


def test_a_call_with_an_unknown_outcome_is_not_asked_for_again_run16_run3_p4() -> None:
    call = Call("1", "edit_file", "{}")
    lost = Round((), (call,), (unknown_outcome(call),))
    assert not unfinished("Edit a.txt.", FILES, [lost])


def test_words_that_leave_a_part_out_do_not_end_a_run_at_once_run16() -> None:
    task = replace(task_about("Look at it, and read a.txt."), reviewed=("look", "read_file", "final_output"))
    effects, ending = worked(task, called(look()), (gave(look()),), said("I looked."), said("I cannot read it."))
    (*_, before, reply) = asked(effects[-1]).messages
    assert (before.role, reply.role) == (Role.ASSISTANT, Role.USER)
    assert "- No call has worked on a.txt.\n- read_file was not called." in str(reply.parts[0].text)  # type: ignore[union-attr]
    assert "The task was: Look at it, and read a.txt." in str(reply.parts[0].text)  # type: ignore[union-attr]
    assert (ending.status, ending.text, len(ending.kept.rounds)) == (Status.DONE, "I cannot read it.", 1)


def test_what_was_said_in_a_review_keeps_its_place_in_the_conversation_run16() -> None:
    task = replace(task_about("Look at a.txt."), reviewed=("look", "file", "final_output"))
    answers = (called(look("1")), (gave(look("1")),), said("Done."), called(look("2", "a.txt")), (gave(look("2")),))
    effects, _ = played(task, answers)
    first, second = (asked(effect).messages for effect in (effects[3 - 1], effects[-1]))
    assert second[: len(first)] == first, "the prefix is stable"
    assert [message.role for message in second][len(first) :][:2] == [Role.ASSISTANT, Role.USER]


def test_a_call_that_would_end_a_run_too_early_gets_what_is_left_as_its_error_run16() -> None:
    task = replace(task_about("Look at a.txt."), reviewed=("look", "file", "final_output"))
    end, again = Call("9", "final_output", '{"summary": "So."}'), Call("10", "final_output", '{"summary": "So."}')
    effects, ending = worked(
        task,
        *(called(look()), (gave(look()),), called(end), called(again)),
        (Result("10", (Text("So."),), "final_output"),),
    )
    assert [type(effect).__name__ for effect in effects] == ["TakeTurn", "RunTools", "TakeTurn", "TakeTurn", "RunTools"]
    assert "No call has worked on a.txt." in str(ending.kept.rounds[1].results[0].content)
    assert (ending.status, ending.text) == (Status.DONE, "So.")


# ---------------------------------------------------------------- the summary


@pytest.mark.parametrize("markup", [LOOSE, HERMES, f"{LOOSE}\n{LOOSE}", f"```json\n{LOOSE}\n```"])
def test_markup_is_no_summary_and_is_asked_for_again_run17(markup: str) -> None:
    task = replace(REVIEWED, rounds=1)
    effects, ending = worked(task, called(look()), (gave(look()),), said(markup), said("I looked once."))
    assert (ending.status, ending.text) == (Status.SUMMED_UP, "I looked once.")
    assert "plain sentences" in str(asked(effects[-1]).messages[-1])
    assert asked(effects[-1]).choice == asked(effects[-2]).choice


def test_a_model_that_only_writes_markup_fails_without_it_as_text_run17_p6() -> None:
    task = replace(REVIEWED, rounds=1)
    _, ending = worked(task, called(look()), (gave(look()),), said(HERMES), said(HERMES))
    assert (ending.status, ending.text, len(ending.kept.rounds)) == (Status.FAILED, "", 1)
    assert ending.reason.endswith("asked twice to sum up, the model wrote tool calls instead")


def test_of_a_summary_with_markup_the_words_stay_run17() -> None:
    task = replace(REVIEWED, rounds=1)
    _, ending = worked(task, called(look()), (gave(look()),), said(HERMES), said(f"I looked.\n{HERMES}"))
    assert (ending.status, ending.text) == (Status.SUMMED_UP, "I looked.")


def test_a_call_as_text_does_not_end_a_run_as_done_run17() -> None:
    effects, ending = worked(REVIEWED, said(LOOSE), said("Nothing was done."))
    assert isinstance(effects[-1], TakeTurn)
    assert (ending.status, ending.reason) == (Status.SUMMED_UP, "the model wrote tool calls or results as text")


@pytest.mark.parametrize(
    "result",
    [
        "<tool_response>\n'a.txt' was made: 3 lines.\n</tool_response>",
        f"<tool_response>\n{LOOSE}\n</tool_response>\n",
        "<tool_result>red\ngreen",
    ],
)
def test_a_forged_result_does_not_end_a_run_as_done_run17(result: str) -> None:
    _, ending = worked(REVIEWED, said(result), said("Nothing was done."))
    assert (ending.status, ending.text) == (Status.SUMMED_UP, "Nothing was done.")


def test_after_markup_the_model_is_told_what_is_left_and_does_not_see_it_again_run16_run17() -> None:
    task = replace(task_about("Look at a.txt."), reviewed=("look", "file", "final_output"))
    forged = said("<tool_response>\nIt is open.\n</tool_response>")
    effects, ending = worked(
        task,
        called(look("1")),
        (gave(look("1")),),
        forged,
        called(look("2", "a.txt")),
        (gave(look("2")),),
        said("Open."),
    )
    told = asked(effects[3]).messages
    assert "No call has worked on a.txt." in str(told[-1])
    assert "tool_response" not in str(told)
    assert (ending.status, ending.text, len(ending.kept.rounds)) == (Status.DONE, "Open.", 2)


@pytest.mark.parametrize(
    "text",
    [
        "I called look, and saw a door.",
        "<tool_response>red</tool_response>\nSo it is red.",
        "The tag <tool_response> comes before a result.",
        'The file has {"name": "Ada"} in it.',
        'Use {"name": "look"} for that: it helps.',
    ],
)
def test_words_about_calls_are_words_run17(text: str) -> None:
    assert spoken(text, ("look",)) == (text, False)

"""Calls are held against what was said (CHK-10, CHK-11)."""

import pytest

from tests.unit.engine.scene import (
    DECISION,
    FORCE,
    HISTORY,
    LONG,
    NATIVE,
    OSLO,
    REQUIRED,
    ask,
    run,
    user,
    words,
    written,
)
from toolspeak.engine.plan import Settings
from toolspeak.engine.told import LEFT_OUT, Told
from toolspeak.ir.complaint import Problem
from toolspeak.ir.event import CallEnded
from toolspeak.ir.message import Call
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.testing import called
from toolspeak.toolset.toolset import ToolSet

RELATED = Settings(drop_unrelated_calls=True)
TOLD = Settings(drop_unmentioned_arguments=True)
JOKE = ask(user("Tell me a joke about penguins in the zoo."))
FIND = Tool(
    "find_books",
    "Find books by a writer.",
    {
        "type": "object",
        "properties": {
            "writer": {"type": "string"},
            "genre": {"type": "string"},
            "order": {"enum": ["new", "old"]},
            "limit": {"type": "integer"},
            "signed": {"type": "boolean"},
            "years": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["writer"],
    },
)
BOOKS = ask(user("Which books of Selma Lagerlöf came out in 1901 and 1902, in the order of three lists?"), tools=[FIND])


def kept(arguments: str) -> str:
    """Let a model call with these arguments."""
    ran = run(TOLD.over(FORCE), written(Call("c", "find_books", arguments), tools=[FIND]), request=BOOKS)
    return ran.turn.calls[0].arguments


def test_a_call_that_has_nothing_to_do_with_the_question_is_set_aside_chk10() -> None:
    ran = run(RELATED.over(FORCE), written(OSLO), "Two penguins meet.", request=JOKE)
    assert (ran.calls, ran.turn.text) == ([], "Two penguins meet.")
    assert [complaint.problem for complaint in ran.outcome.complaints] == [Problem.UNRELATED]
    assert (ran.outcome.requests, ran.sent[1].tools) == (2, ())
    assert "get_weather" not in words(ran.sent[1])


@pytest.mark.parametrize("strategy", [NATIVE, DECISION])
def test_native_calls_and_decisions_are_held_against_it_too_chk10(strategy: Settings) -> None:
    first = (
        called(OSLO.name, OSLO.arguments)
        if strategy is NATIVE
        else '{"tools": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}'
    )
    ran = run(RELATED.over(strategy), first, "Two penguins meet.", request=JOKE)
    assert (ran.calls, ran.turn.text) == ([], "Two penguins meet.")


def test_a_call_about_the_question_stays_chk10() -> None:
    assert run(RELATED.over(FORCE), written(OSLO)).calls == [("get_weather", {"city": "Oslo"})]


def test_a_parameter_may_be_what_a_question_is_about_chk10() -> None:
    asked = ask(user("How many days are there in the year?"))
    assert run(RELATED.over(FORCE), written(OSLO), request=asked).calls


def test_without_the_setting_every_call_stays_chk10() -> None:
    assert run(FORCE, written(OSLO), request=JOKE).calls


@pytest.mark.parametrize(
    "request_",
    [ask(*JOKE.messages, choice=REQUIRED), ask(user("Berätta en rolig historia.")), ask(user("a joke " + LONG * 9))],
    ids=["a call must come", "not English", "too long"],
)
def test_what_cannot_be_judged_stays_chk10(request_: Request) -> None:
    ran = run(RELATED.over(FORCE), written(OSLO), request=request_)
    assert ran.calls == [("get_weather", {"city": "Oslo"})]


def test_a_call_that_was_answered_just_now_is_answered_in_words_chk10() -> None:
    ran = run(RELATED.over(FORCE), written(OSLO), "It is 3 °C.", request=ask(*HISTORY))
    assert (ran.calls, ran.turn.text, ran.outcome.requests) == ([], "It is 3 °C.", 2)
    assert "get_weather" not in words(ran.sent[1]).partition("<user>")[0]


def test_text_that_was_shown_is_the_answer_chk10() -> None:
    ran = run(RELATED.over(FORCE), f"Penguins are birds.\n\n{written(OSLO)}", request=JOKE)
    assert (ran.calls, ran.turn.text.strip(), ran.outcome.requests) == ([], "Penguins are birds.", 1)


def test_an_optional_argument_that_nobody_told_is_left_out_chk11() -> None:
    assert kept('{"writer": "Selma Lagerlöf", "genre": "novel", "limit": 25}') == '{"writer":"Selma Lagerlöf"}'


@pytest.mark.parametrize(
    "arguments",
    [
        '{"writer": "Nobody"}',
        '{"writer": "Selma Lagerlöf", "order": "new"}',
        '{"writer": "Selma Lagerlöf", "limit": 3}',
        '{"writer": "Selma Lagerlöf", "signed": true}',
        '{"writer": "Selma Lagerlöf", "years": [1901, 1907]}',
        '{"writer": "Selma Lagerlöf", "genre": "lists of books"}',
    ],
)
def test_what_is_needed_chosen_or_told_stays_chk11(arguments: str) -> None:
    assert kept(arguments) == arguments


def test_what_was_left_out_is_a_fix_chk11() -> None:
    call = Call("c", "find_books", '{"writer": "Selma Lagerlöf", "genre": "novel"}')
    ran = run(TOLD.over(FORCE), written(call, tools=[FIND]), request=BOOKS)
    (ended,) = (event for event in ran.events if isinstance(event, CallEnded))
    assert [(fix.what, fix.path) for fix in ended.fixes] == [(LEFT_OUT, "/genre")]


def test_arguments_that_are_no_object_are_nobodys_to_judge_chk11() -> None:
    told = Told("What is the time?", ToolSet.of([FIND]), told=True)
    assert told.kept("find_books", "[1]") == ("[1]", ())
    assert told.kept("find_books", "{") == ("{", ())

"""Calls whose tool has nothing to do with the conversation are dropped (CHK-10)."""

import pytest

from tests.unit.engine.scene import (
    DECISION,
    FORCE,
    HISTORY,
    LONG,
    NATIVE,
    OSLO,
    REQUIRED,
    TOOLS,
    ask,
    run,
    user,
    words,
    written,
)
from toolspeak.engine.guardrails.guardrail import FEW_TOOLS
from toolspeak.engine.settings import Settings
from toolspeak.ir.complaint import Problem
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.testing import called

RELATED = Settings(drop_unrelated_calls=True)
JOKE = ask(user("Tell me a joke about penguins in the zoo."))


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


def test_with_many_tools_a_call_may_be_a_step_that_no_word_mentions_chk10() -> None:
    few = (*TOOLS, *(Tool(f"t{index}") for index in range(FEW_TOOLS - len(TOOLS))))
    many = (*few, Tool("one_more"))
    answers = (written(OSLO), "Two penguins meet.")
    assert not run(RELATED.over(FORCE), *answers, request=ask(*JOKE.messages, tools=few)).calls
    assert run(RELATED.over(FORCE), *answers, request=ask(*JOKE.messages, tools=many)).calls


def test_a_call_that_was_answered_just_now_is_answered_in_words_chk10() -> None:
    ran = run(RELATED.over(FORCE), written(OSLO), "It is 3 °C.", request=ask(*HISTORY))
    assert (ran.calls, ran.turn.text, ran.outcome.requests) == ([], "It is 3 °C.", 2)
    assert "get_weather" not in words(ran.sent[1]).partition("<user>")[0]


def test_text_that_was_shown_is_the_answer_chk10() -> None:
    ran = run(RELATED.over(FORCE), f"Penguins are birds.\n\n{written(OSLO)}", request=JOKE)
    assert (ran.calls, ran.turn.text.strip(), ran.outcome.requests) == ([], "Penguins are birds.", 1)

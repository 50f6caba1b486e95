"""Calls that the user did not ask for are dropped: before any result, and after one (CHK-10)."""

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
    answered,
    ask,
    run,
    said,
    user,
    words,
    written,
)
from toolspeak.engine.guardrails.guardrail import FEW_TOOLS
from toolspeak.engine.settings import Settings
from toolspeak.ir.complaint import Problem
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.testing import called
from toolspeak.text.strict import dump

RELATED = Settings(drop_unrelated_calls=True)


def a_tool(name: str, description: str, /, **parameters: str) -> Tool:
    properties: JsonObject = {key: {"type": kind} for key, kind in parameters.items()}
    return Tool(name, description, {"type": "object", "properties": properties, "required": list(parameters)})


ROOM = a_tool("read_sensor", "Report degrees.", place="string")
READ = Call("c1", "read_sensor", '{"place": "Oslo"}')
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


def test_a_call_with_a_value_of_the_question_stays_though_its_tool_shares_no_word_with_it_chk10() -> None:
    asked = ask(user("How warm is it in Oslo?"), tools=(ROOM,))
    assert run(RELATED.over(FORCE), written(READ, tools=(ROOM,)), request=asked).calls


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


# ---------------------------------------------------------------- after results

BALANCE = a_tool("get_balance", "Look up how much is on an account.", account="string")
TRANSFER = a_tool("transfer", "Move money between accounts.", source="string", target="string", amount="number")
EVENTS = a_tool("list_events", "List the events of a day.", day="string")
CANCEL = a_tool("cancel_event", "Take an event out of the calendar.", day="string", time="string")
PERSON = a_tool("find_person", "Look up the team and the manager of somebody.", name="string")
PLACE = a_tool("room_of", "Tell where somebody sits.", name="string")
MAIL = a_tool("send_mail", "Send a mail.", recipient="string", body="string")
HOW_MUCH = "How much is on my savings account?"


def after(words: str, first: Call, result: str, then: Call, *tools: Tool) -> list[tuple[str, JsonObject]]:
    """Return the calls that the client gets if the model makes one more after a result."""
    request = ask(user(words), said("", first), answered(first, result), tools=tools)
    return run(RELATED.over(FORCE), written(then, tools=tools), "It is so.", request=request).calls


def made(tool: str, /, **arguments: Json) -> Call:
    return Call("c9", tool, dump(arguments))


@pytest.mark.parametrize(
    ("words", "first", "result", "then"),
    [
        (
            HOW_MUCH,
            made("get_balance", account="savings"),
            "8300",
            made("transfer", source="savings", target="checking", amount=200),
        ),
        (HOW_MUCH, made("get_balance", account="savings"), "8300", made("get_balance", account="checking")),
        (
            "Which events are on Monday?",
            made("list_events", day="Monday"),
            "09:30 dentist",
            made("cancel_event", day="Monday", time="09:30"),
        ),
        (
            "Cancel my event on Monday at 09:30.",
            made("cancel_event", day="Monday", time="09:30"),
            "done",
            made("list_events", day="Monday"),
        ),
        (
            "Transfer 500 from travel to checking.",
            made("transfer", source="travel", target="checking", amount=500),
            "only 90",
            made("get_balance", account="travel"),
        ),
    ],
    ids=["a value that nobody said", "another account", "takes away what it lists", "looks again", "after an error"],
)
def test_a_call_that_goes_on_after_the_result_is_dropped_chk10(
    words: str, first: Call, result: str, then: Call
) -> None:
    assert after(words, first, result, then, BALANCE, TRANSFER, EVENTS, CANCEL) == []


@pytest.mark.parametrize(
    ("words", "first", "result", "then"),
    [
        (
            "Set it: 500 from savings to travel, then 40 from checking to travel.",
            made("transfer", source="savings", target="travel", amount=500),
            "ok",
            made("transfer", source="checking", target="travel", amount=40),
        ),
        (
            "What is on savings and checking?",
            made("get_balance", account="savings"),
            "8300",
            made("get_balance", account="checking"),
        ),
        (
            "Which room has the manager of Linus?",
            made("find_person", name="Linus"),
            "Margaret",
            made("room_of", name="Margaret"),
        ),
        (
            "Look up Linus, and mail me at lin@example.org.",
            made("find_person", name="Linus"),
            "kernel",
            made(
                "send_mail", recipient="lin@example.org", body="Linus is in the team that writes the kernel of it all."
            ),
        ),
    ],
    ids=["values that no call had", "the second of two", "a value of the result", "a text that the model writes"],
)
def test_a_call_that_the_message_still_asks_for_stays_chk10(words: str, first: Call, result: str, then: Call) -> None:
    tools = (BALANCE, TRANSFER, PERSON, PLACE) if then.name != "send_mail" else (PERSON, MAIL)
    assert [name for name, _ in after(words, first, result, then, *tools)] == [then.name]


def test_with_many_tools_or_a_demand_the_second_call_stays_too_chk10() -> None:
    first, then = made("list_events", day="Monday"), made("cancel_event", day="Monday", time="09:30")
    messages = (user("Which events are on Monday?"), said("", first), answered(first, "09:30 dentist"))
    many = (EVENTS, CANCEL, BALANCE, TRANSFER, PERSON)
    for request in (ask(*messages, tools=many), ask(*messages, tools=(EVENTS, CANCEL), choice=REQUIRED)):
        assert run(RELATED.over(FORCE), written(then, tools=request.tools), request=request).calls


@pytest.mark.parametrize("then", [made("get_balance", account="Girokonto"), made("get_balance", account="Zürich")])
def test_in_other_languages_values_alone_decide_chk10(then: Call) -> None:
    """Only the value that the message has is still to be looked up."""
    words = "Wie viel ist auf dem Sparkonto und auf dem Girokonto?"
    kept = after(words, made("get_balance", account="Sparkonto"), "8300", then, BALANCE)
    assert bool(kept) is ("Girokonto" in then.arguments)

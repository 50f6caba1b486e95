"""Before a call goes out the model is asked whether the tool can do what was asked (CHK-14)."""

import json
from dataclasses import replace

import pytest

from tests.unit.engine.scene import (
    BERGEN,
    CLOCK,
    DECISION,
    FALLBACK,
    FORCE,
    HISTORY,
    NATIVE,
    OSLO,
    QUESTION,
    REQUIRED,
    TOOLS,
    WEATHER,
    ask,
    run,
    said,
    system,
    user,
    words_of,
    written,
)
from toolspeak.engine.guardrails.guardrail import FEW_TOOLS
from toolspeak.engine.guardrails.tool_fit import UNFIT, fit_question, may_confirm, no_probability, says_no
from toolspeak.engine.plan import decide
from toolspeak.engine.settings import Release, Settings
from toolspeak.ir.complaint import Problem
from toolspeak.ir.event import Event, Finished, FirstToken, StopReason, TextDelta
from toolspeak.ir.message import Call, Role
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import Tool
from toolspeak.testing import called

FITS = Settings(confirm_tool_fit=True).over(FORCE)
WEATHER_OF_BERGEN = [("get_weather", {"city": "Bergen"})]
"""What nobody asked for: the question is about Oslo."""
TIME = Tool("get_time", "Tell the time of a city.", WEATHER.parameters)


@pytest.mark.parametrize("settings", [FORCE, DECISION, NATIVE, FALLBACK])
def test_by_the_models_own_word_a_call_is_set_aside_chk14(settings: Settings) -> None:
    answer = called("get_weather", '{"city": "Bergen"}')
    if settings in (FORCE, DECISION):
        answer = written(BERGEN, dialect="decision_json" if settings is DECISION else "fenced")
    ran = run(Settings(confirm_tool_fit=True).over(settings), answer, "No.", "Shakespeare did.")
    assert (ran.calls, ran.turn.text, ran.outcome.requests) == ([], "Shakespeare did.", 3)
    assert [(one.problem, one.name, one.detail) for one in ran.outcome.complaints] == [
        (Problem.UNRELATED, "get_weather", UNFIT)
    ]


@pytest.mark.parametrize("settings", [FORCE, NATIVE])
def test_what_is_answered_instead_is_not_empty_chk14_p6(settings: Settings) -> None:
    answer = written(BERGEN) if settings is FORCE else called("get_weather", '{"city": "Bergen"}')
    assert run(Settings(confirm_tool_fit=True).over(settings), answer, "no", "\n\n").turn.failure is not None


@pytest.mark.parametrize("word", ["yes", "Yes.", "", "Not only that", "I cannot say", "no doubt", "nothing else"])
def test_only_a_clear_no_counts_chk14(word: str) -> None:
    ran = run(FITS, written(BERGEN), word)
    assert (ran.calls, ran.outcome.requests, ran.outcome.complaints) == (WEATHER_OF_BERGEN, 2, ())
    assert not says_no(word)


def test_the_question_is_short_and_plain_chk14() -> None:
    ran = run(FITS, written(BERGEN), "yes")
    asked = ran.sent[1]
    assert words_of(asked.messages[-1]) == (
        "Request: Weather in Oslo?\nTool: get_weather(city, days): Tell the weather of a city."
    )
    assert (asked.tools, asked.constraint, asked.sampling) == ((), None, Sampling(16, temperature=0.0))
    assert [message.role for message in asked.messages[:2]] == [Role.SYSTEM, Role.USER]


def test_each_tool_is_asked_about_once_chk14() -> None:
    rome, time = replace(BERGEN, arguments='{"city": "Rome"}'), replace(BERGEN, name="get_time")
    ran = run(FITS, written(BERGEN, time, rome), "yes", "no", request=ask(tools=(WEATHER, TIME)))
    assert [name for name, _ in ran.calls] == ["get_weather", "get_weather"]
    assert (ran.outcome.requests, len(ran.outcome.complaints)) == (3, 1)


DEFINED = '{"name": "get_weather", "description": "Tell the weather.", "parameters": %s}'


@pytest.mark.parametrize(("word", "calls"), [("yes", 1), ("no", 0)])
def test_a_call_after_a_copied_definition_is_questioned_chk14(word: str, calls: int) -> None:
    """No value in it is made up: the question is about Oslo."""
    filled_in = run(FITS, DEFINED % '{"city": "Oslo"}', word, "It is cold.")
    assert (len(filled_in.calls), filled_in.outcome.requests) == (calls, 3 - calls)
    copied = run(FITS, DEFINED % json.dumps(WEATHER.parameters), written(OSLO), word, "It is cold.")
    assert (len(copied.calls), words_of(copied.sent[1].messages[-2])) == (calls, "I will call get_weather.")
    assert "Tool: get_weather" in words_of(copied.sent[2].messages[-1])
    assert copied.turn.text == ("" if calls else "It is cold.")


def test_nothing_streams_before_the_verdict_chk14() -> None:
    assert decide(ask(), FITS).release is Release.BUFFERED
    assert decide(ask(), FORCE).release is Release.CHECKED
    assert decide(ask(*HISTORY), FITS).release is Release.CHECKED  # what is not doubted is not held


def test_what_must_be_called_is_not_doubted_chk14() -> None:
    ran = run(FITS, written(BERGEN), request=ask(choice=REQUIRED))
    assert (ran.calls, ran.outcome.requests) == (WEATHER_OF_BERGEN, 1)


def test_only_the_first_calls_on_short_words_are_doubted_chk14() -> None:
    assert may_confirm(ask())
    assert not may_confirm(ask(*HISTORY))
    assert not may_confirm(ask(user("Look. " * 1000)))
    assert run(FITS, written(BERGEN), request=ask(*HISTORY)).outcome.requests == 1


def test_an_agent_with_its_tools_and_instructions_is_not_doubted_chk14() -> None:
    few = (*TOOLS, *(Tool(f"t{index}") for index in range(FEW_TOOLS - len(TOOLS))))
    assert may_confirm(ask(tools=few))
    assert not may_confirm(ask(tools=(*few, Tool("one_more"))))
    assert not may_confirm(ask(system("You are an agent. " * 300), QUESTION))


def test_what_the_user_said_before_belongs_to_it_chk14() -> None:
    asked = fit_question(ask(QUESTION, said("Cold."), user("And in Bergen?")), WEATHER)
    assert "Request: Weather in Oslo?\nAnd in Bergen?\nTool: " in words_of(asked.messages[-1])


@pytest.mark.parametrize(
    ("words", "call", "requests"),
    [
        ("What is the weather in the city of Oslo?", OSLO, 1),
        ("What is it like in Oslo?", OSLO, 1),  # no word in common, but its value
        ("What time is it?", CLOCK, 1),  # it has no value
        ("What is the weather in the city of Oslo?", BERGEN, 2),
        ("Tell me a joke.", OSLO, 2),
    ],
)
def test_only_a_call_with_a_made_up_value_is_doubted_chk14(words: str, call: Call, requests: int) -> None:
    ran = run(FITS, written(call), "yes", request=ask(user(words)))
    assert (len(ran.calls), ran.outcome.requests) == (1, requests)


def test_a_long_description_is_cut_chk14() -> None:
    asked = fit_question(ask(), replace(WEATHER, description="word " * 1000))
    assert len(words_of(asked.messages[-1])) < 500


LIKELY = replace(FITS, unfit_probability=0.3)


def word(text: str, *first_token: tuple[str, float]) -> list[Event]:
    return [TextDelta(text), Finished(StopReason.END, first_token=first_token)]


@pytest.mark.parametrize(("no", "requests", "calls"), [(0.29, 2, 1), (0.31, 3, 0), (0.9, 3, 0)])
def test_the_probability_of_no_decides_about_every_first_call_chk14(no: float, requests: int, calls: int) -> None:
    said = word("yes" if no < 0.5 else "no", ("yes", 1 - no), ("no", no))
    ran = run(LIKELY, written(OSLO), said, "I do not know.")
    assert (len(ran.calls), ran.outcome.requests) == (calls, requests)
    assert ran.sent[1].top_tokens > 0


@pytest.mark.parametrize(("no", "calls"), [(0.14, 1), (0.16, 0)])
def test_half_the_probability_is_enough_against_a_made_up_value_chk14(no: float, calls: int) -> None:
    said = word("yes", ("yes", 1 - no), ("no", no))
    assert len(run(LIKELY, written(BERGEN), said, "I do not know.").calls) == calls


@pytest.mark.parametrize(("call", "calls"), [(OSLO, 1), (BERGEN, 0)])
def test_without_probabilities_the_word_decides_about_made_up_values_only_chk14(call: Call, calls: int) -> None:
    assert len(run(LIKELY, written(call), "no", "I do not know.").calls) == calls


def test_where_the_word_decides_no_probability_is_asked_for_chk14() -> None:
    assert run(FITS, written(BERGEN), "yes").sent[1].top_tokens == 0


@pytest.mark.parametrize(
    "request_", [ask(user("Wie ist das Wetter in Oslo?")), ask(QUESTION, said("Cold."), user("And in Oslo tomorrow?"))]
)
def test_the_probability_counts_for_first_messages_in_english_only_chk14(request_: Request) -> None:
    assert run(LIKELY, written(OSLO), request=request_).outcome.requests == 1


@pytest.mark.parametrize(
    ("first_token", "probability"),
    [
        ((("yes", 0.6), ("no", 0.2), ("maybe", 0.2)), 0.25),
        ((("Yes", 0.25), (" yes", 0.25), ("No", 0.25), ("\nno", 0.25)), 0.5),
        ((("<think>", 0.9), ("no", 0.1)), None),
        ((), None),
    ],
)
def test_all_spellings_of_yes_and_no_count_and_nothing_else_chk14(
    first_token: FirstToken, probability: float | None
) -> None:
    assert no_probability(first_token) == probability


def test_a_verdict_that_fails_lets_the_call_go_chk14() -> None:
    ran = run(FITS, written(BERGEN))  # the script has nothing more to say: the upstream fails
    assert ran.calls == WEATHER_OF_BERGEN


@pytest.mark.parametrize("settings", [FORCE, NATIVE])
def test_a_user_whose_call_was_taken_away_can_read_which_guardrail_did_it_and_why_chk16(settings: Settings) -> None:
    answer = written(BERGEN) if settings is FORCE else called("get_weather", '{"city": "Bergen"}')
    ran = run(Settings(confirm_tool_fit=True).over(settings), answer, "No.", "I cannot help with that.")
    assert ran.outcome.taken.why.endswith(
        "(calls set aside), then words; "
        "get_weather dropped by confirm_tool_fit: the model says that it cannot do the request"
    )


def test_a_call_that_is_kept_is_not_reported_as_dropped_chk16() -> None:
    ran = run(FITS, written(BERGEN), "yes")
    assert ran.outcome.taken is ran.outcome.plan

"""Calls in a form that nobody taught are taken, or asked for (CHK-13)."""

from itertools import count

import pytest

from testkit.timing import BAR, growth
from tests.unit.engine.scene import BERGEN, FORCE, OSLO, ask, run, user, words_of, written
from toolspeak.engine.guardrails.untaught_calls import MADE_UP
from toolspeak.engine.loose_calls import LooseCalls, loose_calls
from toolspeak.engine.settings import Settings
from toolspeak.engine.trouble import AROUND
from toolspeak.ir.complaint import Problem
from toolspeak.ir.event import StopReason
from toolspeak.ir.tool import ChoiceMode, ToolChoice

UNTAUGHT = Settings(accept_untaught_calls=True).over(FORCE)
CAREFUL = Settings(drop_unrelated_calls=True, drop_unmentioned_arguments=True).over(UNTAUGHT)
ONE = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
TWO = '{"name": "get_weather", "arguments": {"city": "Bergen"}}'
CUT = '{"name": "get_weather", "arguments": {"city": "Mo'
WHERE = ask(user("What is the weather like where I am?"))
ECHOED = ask(user(f"Say this and nothing else: {ONE}\ndone"))


def found(text: str) -> LooseCalls:
    return loose_calls(text, {"get_weather"}, (f"id{index}" for index in count()))


@pytest.mark.parametrize(
    ("text", "calls"),
    [(f"{ONE}\ndone", 1), (f"{ONE}\n{CUT}", 1), (f"{ONE}\n{ONE}\n{TWO}\n{CUT}", 2), (f"```json\n{ONE}\n```\nDone", 0)],
)
def test_objects_that_stand_alone_are_calls_chk13(text: str, calls: int) -> None:
    ran = run(Settings(retries=0).over(UNTAUGHT), text)
    assert len(ran.calls) == calls
    assert run(Settings(retries=0).over(FORCE), text).calls == []
    assert (ran.turn.text == "") is bool(calls)
    assert (ran.turn.stop is StopReason.CALLS) is bool(calls)


def test_with_words_around_the_model_is_asked_chk13() -> None:
    ran = run(UNTAUGHT, f"Sure! I would call this:\n\n{ONE}\n\nShall I?", written(OSLO))
    assert ran.calls == [("get_weather", {"city": "Oslo"})]
    assert AROUND in words_of(ran.sent[1].messages[-1])


def test_who_insists_on_words_is_taken_at_them_chk13() -> None:
    quoting = f"A call looks like this:\n\n{ONE}\n\nThat is all."
    ran = run(UNTAUGHT, quoting, quoting, quoting)
    assert (ran.calls, ran.turn.text, ran.turn.failure) == ([], quoting, None)


def test_what_was_only_repeated_is_no_call_chk13() -> None:
    assert run(UNTAUGHT, f"{ONE}\ndone", request=ECHOED).calls == []


def test_arguments_that_do_not_fit_are_complained_of_chk13() -> None:
    ran = run(UNTAUGHT, '{"name": "get_weather", "arguments": {"town": 5}}\ndone', written(BERGEN))
    assert ran.calls == [("get_weather", {"city": "Bergen"})]


def test_what_needs_made_up_values_is_answered_in_words_chk13() -> None:
    made_up = run(CAREFUL, f"{TWO}\ndone", "I do not know where you are.", request=WHERE)
    assert (made_up.calls, made_up.turn.text) == ([], "I do not know where you are.")
    assert [(one.problem, one.detail) for one in made_up.outcome.complaints] == [(Problem.UNRELATED, MADE_UP)]
    assert run(UNTAUGHT, f"{TWO}\ndone", request=WHERE).calls == [("get_weather", {"city": "Bergen"})]


def test_what_was_told_is_a_call_beside_what_is_made_up_chk13() -> None:
    asked = ask(user("What is the weather in Oslo?"))
    assert run(CAREFUL, f"{ONE}\n{TWO}\ndone", request=asked).calls == [("get_weather", {"city": "Oslo"})]


def test_an_object_that_names_two_tools_is_left_to_the_checker_chk13() -> None:
    """Only the outer name was looked up, and the inner one of a tool that does not exist broke the turn."""
    nested = '{"name": "get_weather", "function": {"name": "get_tides", "arguments": {"city": "Oslo"}}}'
    ran = run(CAREFUL, f"{nested}\ndone", written(OSLO))
    assert ran.calls == [("get_weather", {"city": "Oslo"})]
    assert [one.problem for one in ran.outcome.complaints] == [Problem.UNKNOWN_TOOL]


def test_words_around_what_is_made_up_stay_words_chk13() -> None:
    quoting = f"You could call this:\n\n{TWO}\n\nwith your own town."
    ran = run(CAREFUL, quoting, request=WHERE)
    assert (ran.calls, ran.turn.text, ran.outcome.requests) == ([], quoting, 1)


def test_where_a_call_must_come_it_may_be_made_up_chk13() -> None:
    required = ask(user("What is the weather like where I am?"), choice=ToolChoice(ChoiceMode.REQUIRED))
    assert run(CAREFUL, f"{TWO}\ndone", request=required).calls == [("get_weather", {"city": "Bergen"})]


def test_answers_in_words_stay_as_they_are_chk13() -> None:
    ran = run(UNTAUGHT, "It is cold in Oslo.")
    assert (ran.turn.text, ran.outcome.requests) == ("It is cold in Oslo.", 1)


def test_only_the_names_of_tools_make_calls() -> None:
    assert found('{"name": "Ada", "arguments": {}}').calls == ()
    assert found('{"tool": "get_weather", "args": {"city": "Oslo"}}').calls[0].arguments == '{"city":"Oslo"}'
    assert found(f"{ONE} {ONE}").calls == found(ONE).calls
    assert not found(f"first {ONE}").alone
    assert found("").calls == ()


def test_twice_the_text_takes_about_twice_the_time_p8() -> None:
    opened = '{"name": "get_weather", "arguments": {'
    assert growth(found, opened * 400, opened * 800) < BAR

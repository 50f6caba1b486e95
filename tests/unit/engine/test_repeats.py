"""A call that was answered just now, and comes again as text: the model is asked once whether it meant to (CHK-9)."""

from dataclasses import replace

import pytest

from testkit.roundtrip import writing
from tests.unit.engine.scene import (
    BERGEN,
    DECISION,
    FORCE,
    HISTORY,
    NATIVE,
    ONE,
    OSLO,
    QUESTION,
    REQUIRED,
    answered,
    ask,
    run,
    said,
    user,
    words_of,
    writer,
    written,
)
from toolspeak.engine.prompt import ANSWER_NOW, CONTINUE
from toolspeak.engine.trouble import ANSWERED
from toolspeak.ir.message import Message, Result, Role, Text
from toolspeak.ir.request import Request
from toolspeak.testing import called
from toolspeak.toolset.toolset import ToolSet

COLD = "It is 3 °C."
AFTER = ask(*HISTORY)
FAILED = Message(Role.TOOL, (Result("c1", (Text("busy"),), "get_weather", is_error=True),))
AGAIN = [("get_weather", {"city": "Oslo"})]


@pytest.mark.parametrize("dialect", [name for name in writing() if name != "decision_json"])
def test_a_repeated_call_is_asked_about_and_the_answer_in_words_is_taken_chk9(dialect: str) -> None:
    call = writer(dialect).write_calls([OSLO], ToolSet.of(AFTER.tools))
    ran = run(replace(FORCE, dialect=dialect), call, COLD, request=AFTER)
    assert (ran.calls, ran.turn.text) == ([], COLD)
    assert words_of(ran.sent[1].messages[-1]) == ANSWERED
    assert ran.sent[1].messages[-2] == Message(Role.ASSISTANT, (Text(call),))


def test_a_leaked_call_of_a_native_upstream_too_chk9() -> None:
    leaked = '<tool_call>{"name": "get_weather", "arguments": {"city":"Oslo"}}</tool_call>'
    ran = run(NATIVE, leaked, COLD, request=AFTER)
    assert (ran.calls, ran.turn.text) == ([], COLD)


def test_of_a_loop_only_the_first_round_is_quoted_chk9() -> None:
    line = '{"name": "get_weather", "arguments": {"city": "Oslo"}}\n'
    ran = run(NATIVE, line * 20, COLD, request=AFTER)
    assert ran.turn.text == COLD
    assert words_of(ran.sent[1].messages[-2]) == line


@pytest.mark.parametrize("dialect", ["hermes", "fenced"])
def test_with_a_guardrail_the_model_is_not_asked_about_it_chk9_chk10(dialect: str) -> None:
    call = writer(dialect).write_calls([OSLO], ToolSet.of(AFTER.tools))
    ran = run(replace(FORCE, dialect=dialect, drop_unrelated_calls=True), call, COLD, request=AFTER)
    assert (ran.calls, ran.turn.text) == ([], COLD)
    assert ANSWERED not in words_of(ran.sent[1].messages[-1])


def test_who_insists_is_taken_at_its_word_chk9() -> None:
    ran = run(FORCE, written(OSLO), written(OSLO), request=AFTER)
    assert ran.calls == AGAIN
    assert ran.outcome.requests == 2


def test_a_native_call_is_never_held_chk9() -> None:
    ran = run(NATIVE, called("get_weather", '{"city": "Oslo"}'), request=AFTER)
    assert ran.calls == AGAIN
    assert ran.outcome.requests == 1


def test_another_call_is_none_and_brings_the_repeated_one_with_it_chk9() -> None:
    assert run(FORCE, written(BERGEN), request=AFTER).outcome.requests == 1
    both = run(FORCE, written(OSLO) + "\n" + written(BERGEN), request=AFTER)
    assert [city["city"] for _, city in both.calls] == ["Oslo", "Bergen"]
    assert both.outcome.requests == 1


def test_held_calls_count_where_only_one_is_allowed_chk1_chk9() -> None:
    one = ask(*HISTORY, choice=ONE)
    assert run(replace(FORCE, retries=0), f"{written(OSLO)}\n{written(OSLO)}", request=one).calls == AGAIN
    assert run(replace(FORCE, retries=0), f"{written(OSLO)}\n{written(BERGEN)}", request=one).calls == AGAIN


def test_after_words_have_left_it_is_not_asked_chk9() -> None:
    ran = run(FORCE, "Let me look again, to be quite sure of it.\n" + written(OSLO), request=AFTER)
    assert ran.calls == AGAIN


def test_without_retries_it_is_not_asked_chk9() -> None:
    assert run(replace(FORCE, retries=0), written(OSLO), request=AFTER).calls == AGAIN


@pytest.mark.parametrize(
    "request_",
    [
        ask(*HISTORY, choice=REQUIRED),
        ask(*HISTORY, user("And now?")),
        ask(QUESTION, said("", OSLO), FAILED),
    ],
    ids=["required", "the user asks again", "it failed"],
)
def test_where_the_same_call_makes_sense_it_is_not_asked_chk9(request_: Request) -> None:
    ran = run(FORCE, written(OSLO), request=request_)
    assert ran.calls == AGAIN
    assert ran.outcome.requests == 1


def test_a_request_for_words_says_nothing_of_calling_dec4() -> None:
    """A small model calls whatever it reads of calling."""
    ran = run(DECISION, '{"tools": []}', COLD, request=ask(*HISTORY, answered(BERGEN, "5 °C")))
    last = words_of(ran.sent[1].messages[-1])
    assert last.endswith(ANSWER_NOW)
    assert CONTINUE not in last

"""Modes and strategies: what goes upstream, how often, and what comes back (MODE-1 to MODE-9)."""

from dataclasses import dataclass, replace

import pytest

from testkit.roundtrip import writing
from tests.unit.engine.scene import (
    ASK,
    DECISION,
    FALLBACK,
    FORCE,
    HISTORY,
    NATIVE,
    NONE,
    OSLO,
    REQUIRED,
    WEATHER,
    Ran,
    ask,
    run,
    texts,
    user,
    words,
    written,
)
from toolspeak.engine.effects import EMULATED
from toolspeak.engine.settings import Mode, Release, Settings, Strategy
from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts, Support
from toolspeak.ir.event import Failed, Finished, ReasoningDelta, StopReason, TextDelta, Usage
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.message import Call, Result, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import AUTO
from toolspeak.ir.turn import fold
from toolspeak.testing import Scripted, called, failed

NATIVE_CALL = called("get_weather", '{"city": "Oslo"}')
CALLED = written(OSLO)
DECIDED = written(OSLO, dialect="decision_json")
NO_TOOL = '{"tools": []}'
COLD = "It is cold."
LATER = "It is still cold."
OFF = Settings(mode=Mode.OFF)
NOT_SUPPORTED = failed(FailureKind.TOOLS_UNSUPPORTED)
WITHOUT_TOOLS = ModelFacts(tools=Support.NONE)


@dataclass(frozen=True)
class Row:
    """A mode, a strategy, what the upstream says, how often it is asked, and which text comes back if no call does."""

    mode: Mode
    strategy: Strategy
    answers: tuple[Scripted, ...]
    requests: int
    text: str | None = None
    facts: ModelFacts = UNKNOWN_MODEL

    def run(self) -> Ran:
        settings = Settings(mode=self.mode, strategy=self.strategy, retries=0)
        return run(settings, *self.answers, request=ask(), facts=self.facts)


INLINE, DECIDE = Strategy.INLINE, Strategy.DECISION
ROWS = {
    "off, inline, calls": Row(Mode.OFF, INLINE, (NATIVE_CALL,), 1),
    "off, inline, no calls": Row(Mode.OFF, INLINE, (COLD,), 1, COLD),
    "off, inline, empty": Row(Mode.OFF, INLINE, ("",), 1, ""),
    "off, decision, calls": Row(Mode.OFF, DECIDE, (NATIVE_CALL,), 1),
    "off, decision, no calls": Row(Mode.OFF, DECIDE, (COLD,), 1, COLD),
    "off, decision, empty": Row(Mode.OFF, DECIDE, ("",), 1, ""),
    "force, inline, calls": Row(Mode.FORCE, INLINE, (CALLED,), 1),
    "force, inline, no calls": Row(Mode.FORCE, INLINE, (COLD,), 1, COLD),
    "force, inline, empty": Row(Mode.FORCE, INLINE, ("",), 1, ""),
    "force, decision, calls": Row(Mode.FORCE, DECIDE, (DECIDED,), 1),
    "force, decision, no calls": Row(Mode.FORCE, DECIDE, (NO_TOOL, COLD), 2, COLD),
    "force, decision, empty": Row(Mode.FORCE, DECIDE, ("", COLD), 2, COLD),
    "fallback, inline, native calls": Row(Mode.FALLBACK, INLINE, (NATIVE_CALL,), 1),
    "fallback, inline, emulated calls": Row(Mode.FALLBACK, INLINE, (COLD, CALLED), 2),
    "fallback, inline, emulated calls after nothing": Row(Mode.FALLBACK, INLINE, ("", CALLED), 2),
    "fallback, inline, no calls": Row(Mode.FALLBACK, INLINE, (COLD, LATER), 2, COLD),
    "fallback, inline, empty": Row(Mode.FALLBACK, INLINE, ("", LATER), 2, LATER),
    "fallback, inline, tools refused": Row(Mode.FALLBACK, INLINE, (NOT_SUPPORTED, CALLED), 2),
    "fallback, decision, native calls": Row(Mode.FALLBACK, DECIDE, (NATIVE_CALL,), 1),
    "fallback, decision, emulated calls": Row(Mode.FALLBACK, DECIDE, (COLD, DECIDED), 2),
    "fallback, decision, emulated calls after nothing": Row(Mode.FALLBACK, DECIDE, ("", DECIDED), 2),
    "fallback, decision, no calls": Row(Mode.FALLBACK, DECIDE, (COLD, NO_TOOL), 2, COLD),
    "fallback, decision, empty": Row(Mode.FALLBACK, DECIDE, ("", NO_TOOL, LATER), 3, LATER),
    "fallback, decision, tools refused": Row(Mode.FALLBACK, DECIDE, (NOT_SUPPORTED, NO_TOOL, LATER), 3, LATER),
    "auto, inline, calls": Row(Mode.AUTO, INLINE, (NATIVE_CALL,), 1),
    "auto, inline, no calls": Row(Mode.AUTO, INLINE, (COLD,), 1, COLD),
    "auto, inline, empty": Row(Mode.AUTO, INLINE, ("",), 1, ""),
    "auto, inline, tools refused": Row(Mode.AUTO, INLINE, (NOT_SUPPORTED, CALLED), 2),
    "auto, decision, calls": Row(Mode.AUTO, DECIDE, (NATIVE_CALL,), 1),
    "auto, decision, no calls": Row(Mode.AUTO, DECIDE, (COLD,), 1, COLD),
    "auto, decision, empty": Row(Mode.AUTO, DECIDE, ("",), 1, ""),
    "auto without tools, inline, calls": Row(Mode.AUTO, INLINE, (CALLED,), 1, None, WITHOUT_TOOLS),
    "auto without tools, inline, no calls": Row(Mode.AUTO, INLINE, (COLD,), 1, COLD, WITHOUT_TOOLS),
    "auto without tools, inline, empty": Row(Mode.AUTO, INLINE, ("",), 1, "", WITHOUT_TOOLS),
    "auto without tools, decision, calls": Row(Mode.AUTO, DECIDE, (DECIDED,), 1, None, WITHOUT_TOOLS),
    "auto without tools, decision, no calls": Row(Mode.AUTO, DECIDE, (NO_TOOL, COLD), 2, COLD, WITHOUT_TOOLS),
    "auto without tools, decision, empty": Row(Mode.AUTO, DECIDE, ("", COLD), 2, COLD, WITHOUT_TOOLS),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_the_upstream_is_asked_exactly_as_often_as_the_rule_says_mode7(row: Row) -> None:
    ran = row.run()
    assert ran.outcome.requests == len(ran.sent) == row.requests
    if row.text is None:
        assert ran.calls == [("get_weather", {"city": "Oslo"})]
        assert (ran.turn.text, ran.turn.stop) == ("", StopReason.CALLS)
    else:
        assert (ran.calls, ran.turn.text) == ([], row.text)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_usage_is_the_sum_over_all_hidden_requests_mode9(row: Row) -> None:
    answered = sum(answer is not NOT_SUPPORTED for answer in row.answers)
    assert row.run().turn.usage == Usage(10 * answered, 5 * answered)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_the_outcome_is_what_was_emitted_and_nothing_else_mode9(row: Row) -> None:
    ran = row.run()
    assert ran.turn == fold(ran.events)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_exactly_the_emulated_responses_say_so_mode9(row: Row) -> None:
    emulated = row.mode is Mode.FORCE or row.facts is WITHOUT_TOOLS or row.requests > 1
    assert row.run().outcome.warnings == ((EMULATED,) if emulated else ())
    assert EMULATED == "tool calls emulated"


def test_an_empty_answer_costs_one_more_request_only_where_retries_allow_it_chk5() -> None:
    assert run(FORCE, "", COLD).outcome.requests == 2
    assert run(replace(FORCE, retries=0), "", COLD).outcome.requests == 1


# ---------------------------------------------------------------- off, chat, none


@pytest.mark.parametrize("request_", [ASK, ask(*HISTORY), ask(choice=REQUIRED), ask(choice=NONE), ask(tools=())])
def test_off_sends_the_request_as_it_is_mode2(request_: Request) -> None:
    assert run(OFF, COLD, request=request_).sent == [request_]


def test_off_returns_the_answer_as_it_is_mode2() -> None:
    answer = [ReasoningDelta("hm"), TextDelta(CALLED), *called("shell", '{"a": 1}'), Finished(StopReason.LENGTH)]
    ran = run(OFF, answer)
    assert ran.events == answer
    assert ran.outcome.warnings == ()


def test_off_delivers_no_truncated_call_either_p3() -> None:
    assert run(OFF, [*called("get_weather", '{"city": "Os'), Finished(StopReason.LENGTH)]).turn.calls == ()


def test_chat_sends_no_tools_whatever_the_client_sends_mode6() -> None:
    ran = run(Settings(chat=True, mode=Mode.FORCE), COLD, request=ask(choice=REQUIRED))
    assert ran.sent == [replace(ASK, tools=(), choice=AUTO)]
    assert (ran.turn.text, ran.outcome.warnings) == (COLD, ())


def test_chat_sends_no_tools_with_a_history_that_has_calls_mode6() -> None:
    sent = run(Settings(chat=True), COLD, request=ask(*HISTORY)).sent[0]
    assert sent.tools == ()
    assert "3 °C" in words(sent)


@pytest.mark.parametrize("settings", [Settings(chat=True), FORCE, FALLBACK, NATIVE])
def test_without_tools_on_offer_no_call_is_delivered_mode6(settings: Settings) -> None:
    ran = run(settings, [TextDelta(CALLED), *NATIVE_CALL], request=ask(choice=NONE))
    assert ran.turn.calls == ()
    assert ran.turn.text == CALLED


def test_a_request_without_tools_goes_through_as_a_chat_mode3() -> None:
    request = ask(user("Hello"), tools=())
    assert {words(run(settings, COLD, request=request).sent[0]) for settings in (FORCE, FALLBACK, NATIVE)} == {
        "<user>Hello"
    }


# ---------------------------------------------------------------- fallback


@pytest.mark.parametrize("strategy", Strategy)
def test_fallback_asks_with_the_request_as_it_is_first_mode3(strategy: Strategy) -> None:
    ran = run(replace(FALLBACK, strategy=strategy), COLD, NO_TOOL)
    assert ran.sent[0] == ASK
    assert ran.sent[1].tools == ()


@pytest.mark.parametrize("kind", [FailureKind.TOOLS_UNSUPPORTED, FailureKind.TOO_MANY_TOOLS])
@pytest.mark.parametrize("settings", [FALLBACK, NATIVE])
def test_an_upstream_that_refuses_tools_is_emulated_mode3(settings: Settings, kind: FailureKind) -> None:
    ran = run(settings, failed(kind), CALLED)
    assert ran.calls == [("get_weather", {"city": "Oslo"})]
    assert ran.outcome.warnings == (EMULATED,)


@pytest.mark.parametrize("settings", [FALLBACK, NATIVE, FORCE, DECISION])
@pytest.mark.parametrize("kind", [FailureKind.AUTH, FailureKind.RATE_LIMITED, FailureKind.CONTEXT_LENGTH])
def test_any_other_failure_is_the_client_s_error_at_once_p6(settings: Settings, kind: FailureKind) -> None:
    ran = run(settings, failed(kind, "no", 418), CALLED)
    assert ran.outcome.requests == 1
    assert ran.turn.failure == failed(kind, "no", 418)


@pytest.mark.parametrize("strategy", Strategy)
def test_the_first_answer_is_returned_also_if_the_second_request_fails_mode7(strategy: Strategy) -> None:
    ran = run(replace(FALLBACK, strategy=strategy), COLD, failed(FailureKind.TRANSIENT))
    assert (ran.turn.text, ran.turn.stop, ran.turn.failure) == (COLD, StopReason.END, None)


def test_a_bad_native_call_is_asked_again_natively_before_it_is_emulated_mode3() -> None:
    ran = run(FALLBACK, called("get_weather", "{}"), NATIVE_CALL)
    assert ran.calls == [("get_weather", {"city": "Oslo"})]
    assert ran.outcome.warnings == ()


def test_nothing_of_the_first_answer_leaves_before_it_is_known_to_stand_mode3() -> None:
    assert run(FALLBACK, COLD, CALLED).turn.text == ""


# ---------------------------------------------------------------- force


@pytest.mark.parametrize("request_", [ASK, ask(*HISTORY), ask(*HISTORY, tools=()), ask(choice=REQUIRED)])
@pytest.mark.parametrize("settings", [FORCE, DECISION])
def test_force_never_sends_tools_nor_calls_nor_results_mode4(settings: Settings, request_: Request) -> None:
    for sent in run(settings, COLD, "", COLD, request=request_).sent:
        assert (sent.tools, sent.choice) == ((), AUTO)
        assert not [part for message in sent.messages for part in message.parts if isinstance(part, Call | Result)]


@pytest.mark.parametrize("settings", [FORCE, DECISION])
def test_what_else_the_client_asked_for_goes_upstream_mode4(settings: Settings) -> None:
    sampling = replace(ASK.sampling, max_tokens=50, temperature=0.5, seed=1)
    request = replace(ASK, sampling=sampling, extra={"openai_chat": {"user": "u"}})
    sent = run(settings, CALLED, request=request).sent[0]
    assert replace(sent.sampling, stop=()) == sampling
    assert (sent.model, sent.stream, sent.extra) == (request.model, request.stream, request.extra)


# ---------------------------------------------------------------- auto


def test_native_tools_go_upstream_as_the_client_sent_them_mode5() -> None:
    assert run(NATIVE, NATIVE_CALL).sent == [ASK]


def test_auto_without_native_tools_is_emulated_in_the_family_s_dialect_mode5() -> None:
    facts = ModelFacts(tools=Support.NONE, dialect="hermes")
    ran = run(NATIVE, written(OSLO, dialect="hermes"), facts=facts)
    assert ran.calls == [("get_weather", {"city": "Oslo"})]
    assert "<tool_call>" in words(ran.sent[0])


# ---------------------------------------------------------------- rescue


@pytest.mark.parametrize("dialect", writing())
def test_a_call_leaked_as_text_becomes_a_call_mode8(dialect: str) -> None:
    ran = run(NATIVE, written(OSLO, dialect=dialect), facts=ModelFacts(Support.LEAKS, leaks_as=dialect))
    assert ran.calls == [("get_weather", {"city": "Oslo"})]
    assert (ran.turn.stop, ran.outcome.requests) == (StopReason.CALLS, 1)


@pytest.mark.parametrize("dialect", ["hermes", "qwen_xml", "mistral", "kimi", "deepseek", "glm", "invoke_xml"])
def test_a_leaked_call_of_an_unknown_family_is_found_too_mode8(dialect: str) -> None:
    ran = run(NATIVE, written(OSLO, dialect=dialect))
    assert ran.calls == [("get_weather", {"city": "Oslo"})]


def test_rescue_can_be_switched_off_mode8() -> None:
    leaked = written(OSLO, dialect="hermes")
    ran = run(Settings(rescue=False), leaked)
    assert (ran.turn.text, ran.calls) == (leaked, [])
    assert run(Settings(rescue=False), NATIVE_CALL).calls == [("get_weather", {"city": "Oslo"})]


def test_fallback_rescues_before_it_emulates_mode8() -> None:
    ran = run(FALLBACK, written(OSLO, dialect="hermes"))
    assert (ran.calls, ran.outcome.requests) == ([("get_weather", {"city": "Oslo"})], 1)
    assert ran.outcome.warnings == ()


def test_text_and_reasoning_around_a_rescued_call_stay_mode8() -> None:
    answer = [ReasoningDelta("hm"), *texts("Let me look.\n", written(OSLO, dialect="hermes"))]
    ran = run(NATIVE, answer)
    assert (ran.turn.reasoning, ran.turn.text.strip()) == ("hm", "Let me look.")
    assert ran.calls == [("get_weather", {"city": "Oslo"})]


# ---------------------------------------------------------------- what an upstream cannot do


def test_a_tool_choice_that_the_upstream_does_not_know_is_left_out_and_checked_here_chk1() -> None:
    ran = run(NATIVE, failed(FailureKind.TOOL_CHOICE_UNSUPPORTED), NATIVE_CALL, request=ask(choice=REQUIRED))
    assert [sent.choice for sent in ran.sent] == [REQUIRED, AUTO]
    assert ran.calls == [("get_weather", {"city": "Oslo"})]
    ran = run(NATIVE, failed(FailureKind.TOOL_CHOICE_UNSUPPORTED), COLD, request=ask(choice=REQUIRED))
    assert ran.turn.failure is not None


def test_an_upstream_that_cannot_stream_with_tools_is_asked_without_streaming_mode5() -> None:
    ran = run(NATIVE, failed(FailureKind.STREAMING_TOOLS_UNSUPPORTED), NATIVE_CALL)
    assert [sent.stream for sent in ran.sent] == [True, False]
    assert ran.calls == [("get_weather", {"city": "Oslo"})]


def test_an_upstream_that_wants_the_tools_of_its_history_gets_them_inl4() -> None:
    refused = failed(FailureKind.HISTORY_NEEDS_TOOLS)
    ran = run(NATIVE, refused, COLD, request=ask(*HISTORY, tools=()), remembered=(WEATHER,))
    assert [sent.tools for sent in ran.sent] == [(), (WEATHER,)]
    assert ran.turn.text == COLD


def test_an_upstream_that_knows_no_results_gets_them_as_text_inl3() -> None:
    ran = run(NATIVE, failed(FailureKind.ROLE_ORDER), COLD, request=ask(*HISTORY))
    assert (ran.turn.text, ran.outcome.warnings) == (COLD, (EMULATED,))
    assert not [part for message in ran.sent[1].messages for part in message.parts if isinstance(part, Call | Result)]


def test_a_call_that_the_server_could_not_read_is_read_out_of_its_error_mode8() -> None:
    salvage = written(OSLO, dialect="hermes")
    ran = run(NATIVE, failed(FailureKind.NATIVE_PARSER_FAILED, salvage=salvage))
    assert (ran.calls, ran.outcome.requests) == ([("get_weather", {"city": "Oslo"})], 1)


@pytest.mark.parametrize("salvage", ["", "nothing that is a call"])
def test_without_a_call_in_the_error_it_is_emulated_mode8(salvage: str) -> None:
    ran = run(NATIVE, failed(FailureKind.NATIVE_PARSER_FAILED, salvage=salvage), CALLED)
    assert (ran.calls, ran.outcome.requests) == ([("get_weather", {"city": "Oslo"})], 2)


def test_after_text_has_left_a_failure_is_the_end_p6() -> None:
    broken = [*map(TextDelta, ("The weather ", "in Oslo is ", "cold."))]
    ran = run(NATIVE, [*broken, Failed(failed(FailureKind.TOOLS_UNSUPPORTED))], CALLED)
    assert ran.outcome.requests == 1
    assert ran.turn.failure is not None
    assert Text("The weather in Oslo is cold.") in ran.turn.parts


@pytest.mark.parametrize("release", [Release.EAGER, Release.CHECKED])
def test_after_a_call_has_left_a_failure_is_the_end_p6(release: Release) -> None:
    ran = run(Settings(release=release), [*NATIVE_CALL, Failed(failed(FailureKind.TOOLS_UNSUPPORTED))], CALLED)
    assert ran.outcome.requests == 1
    assert ran.turn.failure is not None


def test_the_outcome_tells_what_the_upstream_refused_cap4() -> None:
    refuses = failed(FailureKind.TOOLS_UNSUPPORTED)
    assert run(NATIVE, refuses, written(OSLO)).outcome.refused is FailureKind.TOOLS_UNSUPPORTED
    assert run(NATIVE, written(OSLO)).outcome.refused is None

"""The plan of a turn: who asked for what, what is known, and what follows (MODE-1, MODE-5, DEC-6, CHK-7)."""

from dataclasses import FrozenInstanceError, fields

import pytest

from tests.unit.engine.scene import ASK, HISTORY, NAMED, NONE, REQUIRED, ask, user
from toolspeak.dialects import load
from toolspeak.engine.plan import Plan, Way, decide, has_calls
from toolspeak.engine.prompt import dialect_of
from toolspeak.engine.settings import Mode, Release, Settings, Strategy
from toolspeak.facts.model import Constrain, ModelFacts, Support
from toolspeak.ir.request import Request

EVERYTHING = Settings(
    mode=Mode.FALLBACK,
    chat=True,
    strategy=Strategy.DECISION,
    dialect="hermes",
    release=Release.EAGER,
    retries=1,
    rescue=False,
    keep_system=False,
    few_shot=True,
    answer_tool=True,
    constraint=Constrain.TEXT,
    drop_unrelated_calls=True,
    request_missing_calls=True,
    confirm_tool_fit=True,
    unfit_probability=0.3,
    keyed=True,
    mark_results=True,
    detailed_tools=8,
    key="k7Qz",
)


def test_each_level_speaks_only_where_those_above_are_silent_mode1() -> None:
    request, model, upstream, everywhere = (
        Settings(mode=Mode.OFF),
        Settings(mode=Mode.FORCE, dialect="hermes"),
        Settings(dialect="kimi", retries=0),
        Settings(mode=Mode.FALLBACK, dialect="react", retries=5, rescue=False),
    )
    merged = request.over(model).over(upstream).over(everywhere)
    assert merged == Settings(mode=Mode.OFF, dialect="hermes", retries=0, rescue=False)


def test_false_and_zero_are_said_and_not_left_open_mode1() -> None:
    above = Settings(chat=False, retries=0, rescue=False, keep_system=False, few_shot=False, answer_tool=False)
    below = Settings(chat=True, retries=3, rescue=True, keep_system=True, few_shot=True, answer_tool=True)
    assert above.over(below) == above


def test_every_setting_can_be_said_at_every_level_mode1() -> None:
    assert all(getattr(EVERYTHING, field.name) is not None for field in fields(Settings))
    assert EVERYTHING.over(Settings()) == EVERYTHING == Settings().over(EVERYTHING)


def test_the_modes_are_these_four_and_auto_is_the_default_mode1() -> None:
    assert [mode.value for mode in Mode] == ["off", "fallback", "force", "auto"]
    assert decide(ASK) == decide(ASK, Settings(mode=Mode.AUTO))


@pytest.mark.parametrize(("mode", "way"), [(Mode.OFF, Way.OFF), (Mode.FALLBACK, Way.FALLBACK), (Mode.FORCE, Way.FORCE)])
@pytest.mark.parametrize("support", Support)
def test_a_mode_that_was_asked_for_beats_the_facts_mode1(mode: Mode, way: Way, support: Support) -> None:
    assert decide(ASK, Settings(mode=mode), ModelFacts(tools=support)).way is way


@pytest.mark.parametrize(
    ("support", "way"),
    [
        (Support.NATIVE, Way.NATIVE),
        (Support.LEAKS, Way.NATIVE),
        (Support.NONE, Way.FORCE),
        (Support.UNKNOWN, Way.NATIVE),
    ],
)
def test_auto_follows_what_is_known_of_the_upstream_mode5(support: Support, way: Way) -> None:
    assert decide(ASK, facts=ModelFacts(tools=support)).way is way


def test_the_facts_fill_in_what_nobody_said_mode5() -> None:
    facts = ModelFacts(
        Support.NONE,
        "hermes",
        calls_in_reasoning=True,
        starts_in_reasoning=True,
        few_shot=True,
        answer_tool=True,
        context_tokens=4096,
    )
    plan = decide(ASK, facts=facts)
    assert (plan.dialect, plan.settings.few_shot, plan.settings.answer_tool) == ("hermes", True, True)
    assert plan.facts == facts
    said = decide(ASK, Settings(dialect="kimi", few_shot=False, answer_tool=False), facts)
    assert (said.dialect, said.settings.few_shot, said.settings.answer_tool) == ("kimi", False, False)


def test_a_model_that_decides_better_gets_the_decision_unless_told_otherwise_mode5() -> None:
    facts = ModelFacts(Support.NONE, "hermes", decides=True)
    assert decide(ASK, facts=facts).settings.strategy is Strategy.DECISION
    assert decide(ASK, facts=facts).dialect == "decision_json"
    assert decide(ASK, Settings(strategy=Strategy.INLINE), facts).dialect == "hermes"


def test_a_plan_cannot_change_during_the_request_mode5() -> None:
    plan = decide(ASK)
    with pytest.raises(FrozenInstanceError):
        plan.way = Way.FORCE  # pyright: ignore[reportAttributeAccessIssue] -- that is what is tried


def test_the_same_question_gives_the_same_plan_mode5() -> None:
    assert decide(ASK, EVERYTHING) == decide(ASK, EVERYTHING)


def test_chat_beats_every_mode_mode6() -> None:
    assert {decide(ASK, Settings(mode=mode, chat=True)).way for mode in Mode} == {Way.PLAIN}


def test_without_tools_and_without_calls_there_is_nothing_to_emulate_mode3() -> None:
    request = ask(user("Hello"), tools=())
    assert {decide(request, Settings(mode=mode)).way for mode in (Mode.FORCE, Mode.FALLBACK, Mode.AUTO)} == {Way.PLAIN}


@pytest.mark.parametrize("mode", [Mode.FORCE, Mode.FALLBACK, Mode.AUTO])
def test_choice_none_offers_no_tools_chk1(mode: Mode) -> None:
    assert decide(ask(choice=NONE), Settings(mode=mode)).way is Way.PLAIN


def test_a_history_with_calls_stays_in_emulation_without_tools_inl4() -> None:
    request = ask(*HISTORY, tools=())
    assert has_calls(request)
    assert decide(request, Settings(mode=Mode.FORCE)).way is Way.FORCE


def test_an_unknown_family_speaks_the_tool_call_fence_inl2() -> None:
    plan = decide(ASK, Settings(mode=Mode.FORCE))
    assert plan.dialect == "fenced"
    assert dialect_of(plan) is load("fenced")


def test_a_dialect_that_can_only_be_read_is_not_taught_inl2() -> None:
    assert load("any").writer is None
    assert dialect_of(decide(ASK, Settings(dialect="any"))) is load("fenced")


def test_leaked_calls_are_read_in_every_dialect_unless_one_is_known_to_leak_mode8() -> None:
    assert decide(ASK).rescue_dialect == "any"
    assert decide(ASK, facts=ModelFacts(dialect="hermes")).rescue_dialect == "any"
    assert decide(ASK, facts=ModelFacts(dialect="hermes", leaks_as="harmony")).rescue_dialect == "harmony"
    assert decide(ASK, Settings(dialect="react"), ModelFacts(leaks_as="harmony")).rescue_dialect == "react"


def test_rescue_is_on_unless_switched_off_mode8() -> None:
    assert decide(ASK).settings.rescue
    assert not decide(ASK, Settings(rescue=False)).settings.rescue


def test_two_retries_unless_told_otherwise_chk5() -> None:
    assert decide(ASK).retries == 2
    assert decide(ASK, Settings(retries=0)).retries == 0


@pytest.mark.parametrize("choice", [REQUIRED, NAMED])
@pytest.mark.parametrize("release", [None, *Release])
def test_a_choice_that_asks_for_a_call_holds_everything_chk7(choice: object, release: Release | None) -> None:
    request = ask(choice=REQUIRED if choice is REQUIRED else NAMED)
    assert decide(request, Settings(release=release)).release is Release.BUFFERED


def test_the_release_is_checked_unless_told_otherwise_chk7() -> None:
    assert decide(ASK).release is Release.CHECKED
    assert decide(ASK, Settings(release=Release.EAGER)).release is Release.EAGER


@pytest.mark.parametrize(
    ("plan", "line"),
    [
        (
            decide(ASK, facts=ModelFacts(tools=Support.NONE)),
            "force inline fenced checked: the upstream has no tools",
        ),
        (decide(ASK, Settings(chat=True)), "plain checked: chat mode: no tools at all"),
        (decide(ASK, Settings(mode=Mode.OFF)), "off checked: the mode is off"),
    ],
)
def test_a_plan_says_in_one_line_what_and_why(plan: Plan, line: str) -> None:
    assert plan.line == line


def test_the_plan_is_in_the_outcome_s_reach_and_says_why_for_every_way() -> None:
    requests: tuple[Request, ...] = (ASK, ask(choice=NONE), ask(user("Hi"), tools=()), ask(*HISTORY, tools=()))
    plans = [decide(request, Settings(mode=mode)) for request in requests for mode in Mode]
    assert all(plan.why and plan.line.endswith(plan.why) for plan in plans)

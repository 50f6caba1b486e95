"""What traffic shows moves the verdict between requests, for a while, and overrules nobody (CAP-4)."""

from dataclasses import replace

import pytest
from typing_extensions import override

from toolspeak.engine.effects import Kept, Outcome
from toolspeak.engine.plan import Plan, Way
from toolspeak.engine.settings import Settings
from toolspeak.engine.verdict import Depth, Layer, Verdict
from toolspeak.facts.model import UNKNOWN_MODEL, Constrain, ModelFacts, Source, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.event import Failed
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.runtime.cache import LONG, NEGATIVE, SHORT, SOON
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.learned import (
    _MOST,
    CLEAN,
    DOUBT_REST,
    EMPTIES,
    OWNER,
    RELAPSES,
    SHARED,
    Learned,
    Origin,
    Quorum,
)

REFUSED = FailureKind.TOOLS_UNSUPPORTED


class Stood(Clock):
    now: float = 5.0

    @override
    def monotonic(self) -> float:
        return self.now


def turn(
    refused: FailureKind | None = None, way: Way = Way.NATIVE, native: int = 0, rescued: int = 0, empty: int = 0
) -> Outcome:
    return Outcome((), Plan(way, ""), 2, refused=refused, native=native, rescued=rescued, empty=empty)


def tools(learned: Learned, model: str = "m") -> Support:
    return learned.facts(model, UNKNOWN_MODEL).tools


def test_who_refused_tools_is_taken_to_have_none_for_a_while_cap4() -> None:
    clock = Stood()
    learned = Learned(clock)
    learned.note("m", turn(REFUSED))
    assert tools(learned) is Support.NONE
    assert tools(learned, "other") is Support.UNKNOWN
    clock.now += SHORT - 1
    assert tools(learned) is Support.NONE
    clock.now += 1
    assert tools(learned) is Support.UNKNOWN


def test_what_is_known_is_not_overruled_cap4() -> None:
    learned = Learned()
    learned.note("m", turn(REFUSED))
    native = ModelFacts(tools=Support.NATIVE)
    assert learned.facts("m", native) is native


def test_a_refusal_beats_what_only_a_table_says_cap3() -> None:
    learned = Learned()
    learned.note("m", turn(REFUSED))
    facts = learned.facts("m", ModelFacts(tools=Support.NATIVE, source=Source.TABLE))
    assert (facts.tools, facts.source) == (Support.NONE, Source.MEASURED)


def test_other_refusals_say_nothing_about_tools_cap4() -> None:
    learned = Learned()
    for kind in (None, FailureKind.TOO_MANY_TOOLS, FailureKind.TRANSIENT, FailureKind.HISTORY_PAIRING):
        learned.note("m", turn(kind))
    assert learned.facts("m", UNKNOWN_MODEL) is UNKNOWN_MODEL


def test_a_rescued_call_is_a_leak_and_native_calls_alone_make_native_cap4() -> None:
    learned = Learned()
    learned.note("m", turn(native=1))
    assert tools(learned) is Support.NATIVE
    learned.note("m", turn(rescued=1))
    assert tools(learned) is Support.LEAKS
    assert learned.verdict("m").evidence[-1].layer is Layer.TRAFFIC


def test_who_leaked_must_give_many_native_calls_to_be_believed_again_cap4() -> None:
    learned = Learned()
    learned.note("m", turn(rescued=1))
    for _ in range(CLEAN - 1):
        learned.note("m", turn(native=1))
    assert tools(learned) is Support.LEAKS
    learned.note("m", turn(native=1))
    assert tools(learned) is Support.NATIVE


def test_empty_answers_in_a_row_are_swallowed_calls_cap4() -> None:
    learned = Learned()
    for _ in range(EMPTIES - 1):
        learned.note("m", turn(empty=1))
    learned.note("m", turn(native=1))
    learned.note("m", turn(empty=1))
    assert tools(learned) is Support.NATIVE
    for _ in range(EMPTIES - 1):
        learned.note("m", turn(empty=1))
    assert tools(learned) is Support.NONE


def test_emulated_turns_say_nothing_about_native_tools_cap4() -> None:
    learned = Learned()
    for way in (Way.FORCE, Way.PLAIN, Way.OFF):
        learned.note("m", turn(way=way, native=1, rescued=1, empty=5))
    assert tools(learned) is Support.UNKNOWN


def test_a_probe_counts_as_long_as_it_is_worth_cap4() -> None:
    clock = Stood()
    learned = Learned(clock)
    rows = (
        (Verdict(Support.NATIVE, 0.95), LONG),
        (Verdict(Support.NONE, 0.95), NEGATIVE),
        (Verdict(), SHORT),
        (Verdict(stopped=True), SOON),
    )
    for verdict, lasts in rows:
        learned.keep("m", verdict, LONG)
        clock.now += lasts / 2 - 1
        assert not learned.is_due("m")
        clock.now += 1
        assert learned.is_due("m"), "a new one is looked for before the old one is over"
        assert tools(learned) is verdict.tools
        clock.now += lasts / 2
        assert tools(learned) is Support.UNKNOWN


def test_a_probe_that_broke_off_takes_nothing_away_cap4() -> None:
    clock = Stood()
    learned = Learned(clock)
    learned.keep("m", Verdict(Support.NONE, 0.95), LONG)
    learned.keep("m", Verdict(stopped=True), LONG)
    assert tools(learned) is Support.NONE
    assert not learned.is_due("m")
    clock.now += SOON
    assert learned.is_due("m")


def test_an_old_verdict_still_counts_while_a_better_one_is_looked_for_cap4() -> None:
    clock = Stood()
    learned = Learned(clock)
    learned.keep("m", Verdict(Support.NATIVE, 0.95), 60.0)
    clock.now += 61
    assert learned.is_due("m")
    assert tools(learned) is Support.NATIVE
    learned.later("m", 5.0)
    assert not learned.is_due("m")


def test_traffic_moves_a_probes_verdict_and_keeps_its_evidence_cap4() -> None:
    learned = Learned()
    probed = Verdict(Support.NATIVE, 0.95, fingerprint="f", depth=Depth.FULL)
    learned.keep("m", probed, 60.0)
    assert learned.take_moved("m") is None
    learned.note("m", turn(native=1))
    assert learned.take_moved("m") is None, "it says nothing new"
    learned.note("m", turn(REFUSED))
    moved = learned.take_moved("m")
    assert moved is not None
    assert (moved.tools, moved.fingerprint, moved.depth) == (Support.NONE, "f", Depth.FULL)
    assert learned.take_moved("m") is None, "others are told once"


def test_a_leak_that_was_seen_is_not_probed_away_cap4() -> None:
    learned = Learned()
    learned.note("m", turn(rescued=1))
    assert learned.merged("m", Verdict(Support.NATIVE, 0.95)).tools is Support.LEAKS
    assert learned.merged("m", Verdict(Support.NONE, 0.95)).tools is Support.NONE
    assert learned.merged("other", Verdict(Support.NATIVE, 0.95)).tools is Support.NATIVE


def test_what_is_kept_is_bounded_p7() -> None:
    learned = Learned()
    for index in range(_MOST + 1):
        learned.note(f"m{index}", turn(REFUSED))
    assert len(learned._models) == _MOST
    assert tools(learned, "m0") is Support.UNKNOWN
    assert tools(learned, f"m{_MOST}") is Support.NONE
    for _ in range(100):
        learned.note("m7", turn(REFUSED))
    assert len(learned.verdict("m7").evidence) <= 24


@pytest.mark.parametrize("kept", [Kept.IGNORED, Kept.REFUSED])
def test_who_does_not_keep_to_a_constraint_is_not_asked_for_a_while_chk8(kept: Kept) -> None:
    clock = Stood()
    learned = Learned(clock)
    learned.note("m", Outcome((), Plan(Way.FORCE, ""), 1, constraint=kept))
    assert learned.facts("m", UNKNOWN_MODEL).constraint is Constrain.OFF
    assert learned.facts("other", UNKNOWN_MODEL) is UNKNOWN_MODEL
    said = ModelFacts(constraint=Constrain.TEXT)
    assert learned.facts("m", said) is said
    clock.now += SHORT
    assert learned.facts("m", UNKNOWN_MODEL) is UNKNOWN_MODEL


@pytest.mark.parametrize("kept", [Kept.UNASKED, Kept.KEPT])
def test_who_keeps_to_a_constraint_is_asked_again_chk8(kept: Kept) -> None:
    learned = Learned()
    learned.note("m", Outcome((), Plan(Way.FORCE, ""), 1, constraint=kept))
    assert learned.facts("m", UNKNOWN_MODEL) is UNKNOWN_MODEL


def test_an_ignored_constraint_and_a_verdict_do_not_undo_each_other_chk8() -> None:
    learned = Learned()
    learned.note("m", Outcome((), Plan(Way.FORCE, ""), 1, constraint=Kept.IGNORED))
    learned.keep("m", Verdict(Support.NONE, 0.95, constraint=ConstraintForm.LLAMACPP), 60)
    facts = learned.facts("m", UNKNOWN_MODEL)
    assert (facts.tools, facts.constraint) == (Support.NONE, Constrain.OFF)


# ---------------------------------------------------------------- shared by tenants


ONE, OTHER = Origin("one"), Origin("other")
DICE = Tool("dice")


def test_a_single_tenant_moves_no_shared_verdict_but_asks_for_a_probe_cap6() -> None:
    learned = Learned(Stood(), SHARED)
    learned.keep("m", Verdict(Support.NATIVE, 0.95), LONG)
    for count in range(1, 10):
        learned.note("m", turn(empty=1), ONE)
        assert tools(learned) is Support.NATIVE
        assert learned.is_due("m") is (count >= EMPTIES)
    assert learned.take_doubt("m")
    assert not learned.is_due("m")


def asked(words: str = "Roll.", tenant: str = "one", tool: Tool = DICE, user: str = "") -> Origin:
    """Return where the request of a client comes from."""
    messages = (Message(Role.USER, (Text(words),)),)
    return Origin(tenant, Request("alias", messages, (tool,), extra={"openai_chat": {"user": user}}))


@pytest.mark.parametrize("echoed", [False, True])
def test_tools_that_were_refused_are_remembered_for_requests_like_theirs_only_cap6(echoed: bool) -> None:
    clock = Stood()
    learned = Learned(clock, SHARED)
    learned.keep("m", Verdict(Support.NATIVE, 0.95), LONG)
    first = asked()
    assert first.request is not None
    learned.note("m", replace(turn(REFUSED), echoed=echoed), first)
    assert learned.is_due("m") is not echoed, "the first refusal asks for a probe: there may be no second one"
    answer = Message(Role.ASSISTANT, (Text("I will."),))
    second = Origin("one", replace(first.request, messages=(*first.request.messages, answer, *first.request.messages)))
    for origin in (first, second):
        assert learned.facts("m", UNKNOWN_MODEL, origin).tools is Support.NONE
    for origin in (asked(tenant="other"), asked(tool=Tool("other"))):
        assert learned.facts("m", UNKNOWN_MODEL, origin).tools is Support.NATIVE
    for origin in (asked("Turn."), asked(user="this has no tools")):
        known = learned.facts("m", UNKNOWN_MODEL, origin).tools
        assert known is (Support.NATIVE if echoed else Support.NONE), "an echo counts for its conversation only"
    clock.now += SHORT
    assert learned.facts("m", UNKNOWN_MODEL, first).tools is Support.NATIVE


def test_of_a_model_that_may_be_invented_only_the_conversation_is_remembered_cap6() -> None:
    learned = Learned(Stood(), SHARED)
    for tenant in ("one", "two", "three"):
        learned.note("m", turn(REFUSED), asked(tenant=tenant), is_real=False)
    assert learned.facts("m", UNKNOWN_MODEL, asked()).tools is Support.NONE
    assert tools(learned) is Support.UNKNOWN
    assert not learned.take_doubt("m")


def test_without_keys_all_clients_are_one_tenant_cap6() -> None:
    learned = Learned(Stood(), SHARED)
    for _ in range(100):
        learned.note("m", turn(REFUSED))
        learned.note("m", turn(empty=3))
        learned.note("m", turn(rescued=1))
    assert tools(learned) is Support.UNKNOWN
    assert learned.take_moved("m") is None


def test_several_turns_of_several_tenants_move_it_cap6() -> None:
    learned = Learned(Stood(), SHARED)
    for origin in (ONE, OTHER):
        learned.note("m", turn(REFUSED), origin)
        assert tools(learned) is Support.UNKNOWN
    learned.note("m", turn(REFUSED), ONE)
    assert tools(learned) is Support.NONE


def test_hidden_retries_of_one_turn_count_once_cap6() -> None:
    for learned in (Learned(), Learned(quorum=SHARED)):
        learned.note("m", turn(empty=EMPTIES), ONE)
        learned.note("m", turn(empty=EMPTIES), OTHER)
        assert tools(learned) is Support.UNKNOWN
        learned.note("m", turn(empty=EMPTIES), OTHER)
        assert tools(learned) is Support.NONE


@pytest.mark.parametrize("quorum", [OWNER, SHARED])
def test_an_echo_says_nothing_cap6(quorum: Quorum) -> None:
    learned = Learned(quorum=quorum)
    for origin in (ONE, OTHER) * 5:
        learned.note("m", replace(turn(REFUSED), echoed=True), origin)
    assert tools(learned) is Support.UNKNOWN
    assert not learned.take_doubt("m")


def test_clients_cannot_ask_for_probes_one_after_the_other_cap6() -> None:
    clock = Stood()
    learned = Learned(clock, SHARED)
    probes = 0
    for _ in range(3600):
        clock.now += 1
        learned.note("m", turn(REFUSED), ONE)
        if learned.take_doubt("m"):
            probes += 1
            learned.keep("m", Verdict(Support.NATIVE, 0.95), LONG)
    assert probes == 3600 / DOUBT_REST


def test_a_constraint_is_left_out_for_the_tenant_and_the_tools_that_met_it_cap6() -> None:
    learned = Learned(Stood(), SHARED)
    odd = asked(tool=Tool("odd", parameters={"pattern": "(?!"}))
    learned.note("m", Outcome((), Plan(Way.FORCE, ""), 2, constraint=Kept.REFUSED), odd)
    assert learned.facts("m", UNKNOWN_MODEL, odd).constraint is Constrain.OFF
    for origin in (ONE, replace(odd, tenant="other"), asked(tool=Tool("odd"))):
        assert learned.facts("m", UNKNOWN_MODEL, origin) is UNKNOWN_MODEL


def test_a_turn_that_fails_without_the_constraint_too_does_not_blame_it_cap6() -> None:
    learned = Learned()
    failed = Failed(Failure(FailureKind.INVALID_REQUEST, "temperature: is 9", 400))
    learned.note("m", Outcome((failed,), Plan(Way.FORCE, ""), 2, constraint=Kept.REFUSED))
    assert learned.facts("m", UNKNOWN_MODEL) is UNKNOWN_MODEL


class Jumping(Stood):
    """The wall clock goes where it likes."""

    wall: int = 1_800_000_000

    @override
    def seconds(self) -> int:
        return self.wall

    @override
    def nanoseconds(self) -> int:
        return self.wall * 1_000_000_000


@pytest.mark.parametrize("jump", [-(10**9), -3600, 3600, 10**9])
def test_a_jump_of_the_wall_clock_neither_ends_nor_keeps_a_verdict_cap6(jump: int) -> None:
    clock = Jumping()
    learned = Learned(clock)
    learned.keep("m", Verdict(Support.NONE, 0.95), LONG)
    clock.wall += jump
    assert (tools(learned), learned.is_due("m")) == (Support.NONE, False)
    clock.now += NEGATIVE
    assert (tools(learned), learned.is_due("m")) == (Support.UNKNOWN, True)


def wrote(written: str, taught: str = "fenced") -> Outcome:
    return Outcome((), Plan(Way.FORCE, "", Settings(dialect=taught)), 1, written=written)


def dialect(learned: Learned, model: str = "m", said: ModelFacts = UNKNOWN_MODEL) -> str:
    return learned.facts(model, said, Origin()).dialect


def test_a_preferred_form_ends_an_hour_after_the_last_call_and_stated_dialects_stay_inl9() -> None:
    clock = Stood()
    learned = Learned(clock)
    for turns in range(RELAPSES):
        assert dialect(learned) == "", turns
        learned.note("m", wrote("hermes"))
    assert dialect(learned) == "hermes"
    assert dialect(learned, said=ModelFacts(dialect="react")) == "react"
    clock.now += NEGATIVE - 1
    learned.note("m", wrote("hermes", taught="hermes"))
    clock.now += NEGATIVE - 1
    assert dialect(learned) == "hermes"
    clock.now += 1
    assert dialect(learned) == ""
    learned.note("m", wrote("hermes"))
    assert dialect(learned) == ""


def test_relapses_in_turns_of_another_tenant_or_of_an_invented_model_change_nothing_inl9_cap6() -> None:
    learned = Learned(Stood(), SHARED)
    for _ in range(RELAPSES):
        learned.note("m", wrote("hermes"), Origin("theirs"))
        learned.note("x", wrote("hermes"), Origin("ours"), is_real=False)
    assert learned.facts("m", UNKNOWN_MODEL, Origin("theirs")).dialect == "hermes"
    assert learned.facts("m", UNKNOWN_MODEL, Origin("ours")).dialect == ""
    assert learned.facts("x", UNKNOWN_MODEL, Origin("ours")).dialect == ""


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_the_table_of_preferred_forms_is_bounded_inl9_p7(more: int) -> None:
    learned = Learned(Stood())
    for number in range(_MOST + more):
        for _ in range(RELAPSES if not number else 1):
            learned.note(f"m{number}", wrote("hermes"))
    assert dialect(learned, "m0") == ("" if more > 0 else "hermes")


def denied(*, denied: bool = True, unseen: bool = False, native: int = 0) -> Outcome:
    return Outcome((), Plan(Way.NATIVE, ""), 2, denied=denied, unseen=unseen, native=native)


def asks(said: str, tenant: str = "") -> Origin:
    tools = (Tool("get_weather", "Tell the weather."),)
    return Origin(tenant, Request("m", (Message(Role.USER, (Text(said),)),), tools))


def test_two_turns_with_dropped_tools_are_enough_for_an_owner_cap7() -> None:
    learned = Learned(Stood())
    learned.note("m", denied())
    assert tools(learned) is Support.UNKNOWN
    learned.note("m", denied(denied=False, unseen=True))
    assert tools(learned) is Support.NONE
    learned = Learned(Stood())
    for outcome in (denied(), turn(native=1), denied()):
        learned.note("m", outcome)
    assert tools(learned) is Support.NATIVE


@pytest.mark.parametrize(
    ("tenant", "outcome", "known"),
    [
        ("", denied(), Support.UNKNOWN),
        ("ours", denied(), Support.NONE),
        ("", denied(denied=False, unseen=True), Support.NONE),
    ],
)
def test_words_of_a_model_are_remembered_for_the_conversation_and_for_the_tools_of_a_tenant_with_a_key_cap7_cap6(
    tenant: str, outcome: Outcome, known: Support
) -> None:
    learned = Learned(Stood(), SHARED)
    for said in ("one", "two"):
        learned.note("m", outcome, asks(said, tenant))
    assert learned.facts("m", UNKNOWN_MODEL, asks("three", tenant)).tools is known
    assert learned.facts("m", UNKNOWN_MODEL, asks("three", "theirs")).tools is Support.UNKNOWN
    assert learned.facts("m", UNKNOWN_MODEL, asks("one", tenant)).tools is Support.NONE
    assert learned.verdict("m").tools is Support.UNKNOWN


def test_a_call_between_two_suspicions_ends_the_first_cap7() -> None:
    learned = Learned(Stood(), SHARED)
    for outcome in (denied(), denied(denied=False, native=1), denied()):
        learned.note("m", outcome, asks("one", "ours"))
    assert learned.facts("m", UNKNOWN_MODEL, asks("two", "ours")).tools is Support.UNKNOWN


def test_dropped_tools_change_what_tenants_share_by_a_quorum_only_cap7_cap6() -> None:
    learned = Learned(Stood(), SHARED)
    for tenant in ("ours", "ours", "ours"):
        learned.note("m", denied(), asks("one", tenant))
    assert learned.verdict("m").tools is Support.UNKNOWN
    learned.note("m", denied(), asks("one", "theirs"))
    assert learned.verdict("m").tools is Support.NONE

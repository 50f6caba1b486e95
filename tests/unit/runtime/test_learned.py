"""What traffic shows moves the verdict between requests, for a while, and overrules nobody (CAP-4)."""

import pytest
from typing_extensions import override

from toolspeak.engine.outcome import Kept, Outcome
from toolspeak.engine.plan import Plan, Way
from toolspeak.engine.verdict import Depth, Layer, Verdict
from toolspeak.facts.model import UNKNOWN_MODEL, Constrain, ModelFacts, Source, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.failure import FailureKind
from toolspeak.runtime.cache import LONG, NEGATIVE, SHORT, SOON
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.learned import _MOST, CLEAN, EMPTIES, Learned

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

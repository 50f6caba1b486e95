"""An upstream that refused tools is not asked every turn (CAP-4), and not for ever."""

from typing_extensions import override

from toolspeak.engine.outcome import Outcome
from toolspeak.engine.plan import Plan, Way
from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts, Source, Support
from toolspeak.ir.failure import FailureKind
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.learned import FRESH, Learned


class Stood(Clock):
    now = 5.0

    @override
    def monotonic(self) -> float:
        return self.now


def turn(refused: FailureKind | None) -> Outcome:
    return Outcome((), Plan(Way.NATIVE, ""), 2, refused=refused)


def test_who_refused_tools_is_taken_to_have_none_for_a_while_cap4() -> None:
    clock = Stood()
    learned = Learned(clock)
    learned.note("m", turn(FailureKind.TOOLS_UNSUPPORTED))
    assert learned.facts("m", UNKNOWN_MODEL).tools is Support.NONE
    assert learned.facts("other", UNKNOWN_MODEL).tools is Support.UNKNOWN
    clock.now += FRESH
    assert learned.facts("m", UNKNOWN_MODEL).tools is Support.UNKNOWN


def test_what_is_known_is_not_overruled_cap4() -> None:
    learned = Learned()
    learned.note("m", turn(FailureKind.TOOLS_UNSUPPORTED))
    native = ModelFacts(tools=Support.NATIVE)
    assert learned.facts("m", native) is native


def test_a_refusal_beats_what_only_a_table_says_cap3() -> None:
    learned = Learned()
    learned.note("m", turn(FailureKind.TOOLS_UNSUPPORTED))
    facts = learned.facts("m", ModelFacts(tools=Support.NATIVE, source=Source.TABLE))
    assert (facts.tools, facts.source) == (Support.NONE, Source.MEASURED)


def test_other_refusals_say_nothing_about_tools_cap4() -> None:
    learned = Learned()
    for kind in (None, FailureKind.TOO_MANY_TOOLS, FailureKind.TRANSIENT, FailureKind.HISTORY_PAIRING):
        learned.note("m", turn(kind))
    assert learned.facts("m", UNKNOWN_MODEL) is UNKNOWN_MODEL

"""Every golden case, whole, by characters and cut at random (P1, P2, P3, P5); `just corpus` tries every cut."""

import pytest

from testkit.corpus import differences, events_of, ungrounded
from testkit.golden import Case, cases
from testkit.splits import at_random, by_characters
from toolspeak.ir.event import raw_of
from toolspeak.ir.turn import fold

ALL = cases()
CUT = [case for case in ALL if case.deltas is None]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_a_golden_case_is_read_as_it_must_be(case: Case) -> None:
    events = events_of(case, (case.raw,))
    assert differences(case, fold(events)) == []
    if case.deltas is None and case.body == "text":
        assert "".join(map(raw_of, events)) == case.raw
        assert ungrounded(case.raw, fold(events)) == []


@pytest.mark.parametrize("case", CUT, ids=lambda case: case.id)
def test_no_cut_changes_a_golden_case(case: Case) -> None:
    whole = fold(events_of(case, (case.raw,)))
    count = 20 if len(case.raw) < 20_000 else 2
    for pieces in (by_characters(case.raw), *at_random(case.raw, count, seed=len(case.raw))):
        events = events_of(case, pieces)
        assert fold(events) == whole
        assert case.body != "text" or "".join(map(raw_of, events)) == case.raw

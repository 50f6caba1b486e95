"""A turn is the fold of its events: fold(unfold(turn)) is the turn, and no cut call is in it (P3)."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from toolspeak.ir.complaint import Complaint, Fix, Problem
from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallRejected,
    CallStarted,
    Discarded,
    Event,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
    Why,
    raw_of,
)
from toolspeak.ir.message import Call, Reasoning, Text
from toolspeak.ir.turn import EventLog, Fold, TextLog, Turn, TurnPart, fold, unfold

FIXES = st.lists(st.builds(Fix, st.text(max_size=4), st.text(max_size=4)), max_size=2).map(tuple)
PARTS = st.one_of(
    st.builds(Text, st.text(min_size=1)),
    st.builds(Reasoning, st.text(min_size=1), st.text(max_size=3)),
    st.builds(Reasoning, st.just(""), st.text(min_size=1, max_size=3)),
    st.builds(Call, st.text(), st.text(), st.text(), st.text(), st.text(), FIXES),
    st.builds(CallRejected, st.builds(Complaint, st.sampled_from(Problem), st.text() | st.none()), st.text()),
    st.builds(Discarded, st.sampled_from(Why), st.text(min_size=1)),
)
USAGES = st.builds(Usage, st.integers(0), st.integers(0))


def melts(one: TurnPart, other: TurnPart) -> bool:
    """Tell whether two neighbours are one part in every turn."""
    if isinstance(one, Text) or isinstance(other, Text):
        return isinstance(one, Text) and isinstance(other, Text)
    if isinstance(one, Reasoning) and isinstance(other, Reasoning):
        return not one.signature
    return isinstance(one, Discarded) and isinstance(other, Discarded) and one.why == other.why


def settled(parts: list[TurnPart]) -> tuple[TurnPart, ...]:
    """Drop what cannot stand in a turn: neighbours that melt, an id twice."""
    kept: list[TurnPart] = []
    ids: set[str] = set()
    for part in parts:
        if (kept and melts(kept[-1], part)) or (isinstance(part, Call) and part.id in ids):
            continue
        kept.append(part)
        ids |= {part.id} if isinstance(part, Call) else set()
    return tuple(kept)


TURNS = st.builds(Turn, st.lists(PARTS, max_size=8).map(settled), st.sampled_from(StopReason), USAGES)


@given(TURNS)
def test_a_turn_is_the_fold_of_its_events(turn: Turn) -> None:
    assert fold(unfold(turn)) == turn


@given(TURNS)
def test_a_turn_without_an_end_is_the_fold_of_its_events(turn: Turn) -> None:
    unended = Turn(turn.parts)
    assert fold(unfold(unended)) == unended


@given(TURNS, st.lists(st.integers(0, 30), max_size=4))
def test_how_the_events_come_makes_no_difference(turn: Turn, cuts: list[int]) -> None:
    events = list(unfold(turn))
    folding = Fold()
    edges = [0, *sorted(cuts), len(events)]
    for start, end in pairwise(edges):
        folding.feed(events[start:end])
    assert folding.turn() == turn


@given(TURNS)
def test_no_text_is_lost_on_the_way_p1(turn: Turn) -> None:
    kept = [part.text if isinstance(part, Text | Reasoning) else part.raw for part in turn.parts]
    assert "".join(map(raw_of, unfold(turn))) == "".join(kept)


def test_neighbouring_text_is_one_part() -> None:
    turn = fold([TextDelta("a"), TextDelta("b"), ReasoningDelta("c"), ReasoningDelta("d"), TextDelta("e")])
    assert turn.parts == (Text("ab"), Reasoning("cd"), Text("e"))
    assert (turn.text, turn.reasoning) == ("abe", "cd")


def test_looking_at_a_turn_does_not_change_it() -> None:
    folding = Fold()
    folding.feed([TextDelta("a")])
    assert folding.turn().parts == (Text("a"),)
    folding.feed([TextDelta("b")])
    assert folding.turn().parts == (Text("ab"),)


def test_empty_text_is_no_part() -> None:
    assert fold([TextDelta(""), ReasoningDelta(""), TextDelta("")]).parts == ()


def test_a_signature_closes_its_thought() -> None:
    turn = fold([ReasoningDelta("a"), ReasoningDelta("b", "s1"), ReasoningDelta("c"), ReasoningDelta("", "s2")])
    assert turn.parts == (Reasoning("ab", "s1"), Reasoning("c", "s2"))


def test_neighbouring_debris_of_one_kind_is_one_part() -> None:
    turn = fold([Discarded(Why.DEBRIS, "a"), Discarded(Why.DEBRIS, "b"), Discarded(Why.LIMIT, "c")])
    assert turn.parts == (Discarded(Why.DEBRIS, "ab"), Discarded(Why.LIMIT, "c"))


def test_a_call_that_never_ended_is_not_delivered_p3() -> None:
    events: list[Event] = [TextDelta("a"), CallStarted("1", "f"), ArgsDelta("1", '{"x": 1}')]
    assert fold(events).parts == (Text("a"),)
    assert fold([*events, Finished(StopReason.CALLS)]).calls == ()
    assert fold([*events, CallEnded("1", "raw")]).calls == (Call("1", "f", '{"x": 1}', raw="raw"),)


def test_calls_may_interleave_and_stand_where_they_started() -> None:
    turn = fold(
        [
            CallStarted("1", "f", "n1"),
            ArgsDelta("1", '{"a":'),
            CallStarted("2", "g"),
            ArgsDelta("2", "{"),
            ArgsDelta("1", " 1}"),
            TextDelta("between"),
            ArgsDelta("2", "}"),
            CallEnded("2"),
            CallEnded("1", "raw", (Fix("quotes"),)),
        ]
    )
    first = Call("1", "f", '{"a": 1}', "n1", "raw", (Fix("quotes"),))
    assert turn.parts == (first, Call("2", "g", "{}"), Text("between"))


def test_of_interleaved_calls_only_the_ended_ones_are_delivered_p3() -> None:
    turn = fold(
        [CallStarted("1", "f"), CallStarted("2", "g"), ArgsDelta("1", "{}"), ArgsDelta("2", "{}"), CallEnded("2")]
    )
    assert [call.name for call in turn.calls] == ["g"]


def test_complaints_are_in_their_order() -> None:
    complaints = [Complaint(Problem.UNKNOWN_TOOL, "f"), Complaint(Problem.TRUNCATED, None)]
    turn = fold([CallRejected(complaints[0], "a"), TextDelta("b"), CallRejected(complaints[1], "c")])
    assert turn.complaints == tuple(complaints)
    assert turn.calls == ()


def test_the_last_event_says_how_it_ended() -> None:
    turn = fold([TextDelta("a"), Finished(StopReason.LENGTH, Usage(3, 4))])
    assert (turn.stop, turn.usage) == (StopReason.LENGTH, Usage(3, 4))
    assert fold([TextDelta("a")]).stop is None


def cut(event: Event) -> list[Event]:
    """Cut text, reasoning and arguments into events of one character; a signature comes with the last one."""
    match event:
        case TextDelta(text):
            return [TextDelta(piece) for piece in text]
        case ReasoningDelta(text, signature):
            pieces: list[Event] = [ReasoningDelta(piece) for piece in text]
            return [*pieces, ReasoningDelta("", signature)] if signature else pieces
        case ArgsDelta(id, json):
            return [ArgsDelta(id, piece) for piece in json]
        case _:
            return [event]


@given(TURNS, st.integers(1, 50))
def test_a_log_folds_to_the_same_turn_as_the_events_that_were_added_p1(turn: Turn, size: int) -> None:
    events = [piece for event in unfold(turn) for piece in cut(event)]
    log = EventLog()
    for start in range(0, len(events), size):
        log.add(events[start : start + size])
    assert fold(log.events) == fold(events)


def test_a_log_keeps_few_events_of_a_long_stream_and_its_ends_p7() -> None:
    started, last = CallStarted("a", "f"), Finished(StopReason.CALLS)
    log, text = EventLog(), TextLog()
    words = [TextDelta(f"{number} ") for number in range(3200)]
    for event in (*words, started, *(ArgsDelta("a", "x") for _ in range(320)), CallEnded("a"), last):
        log.add((event,))
    for word in words:
        text.pieces.append(word.text)
        if len(text.pieces) > 100:
            text.join()
    assert len(log.events) < 160
    assert log.events[-1] == last
    assert text.text == "".join(word.text for word in words)
    assert fold(log.events).text == text.text
    assert fold(log.events).calls == (Call("a", "f", "x" * 320),)

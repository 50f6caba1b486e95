"""Calls one after the other: nothing lost, never two open, what is in sequence passes at once, linear time (P8)."""

from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.timing import BAR, growth
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallRejected,
    CallStarted,
    Discarded,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Why,
)
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.wires.shared.calls import CallSequencer

END = Finished(StopReason.CALLS)
BROKEN = Failed(Failure(FailureKind.DISCONNECTED, "cut off"))


def sequenced(events: Iterable[Event]) -> list[Event]:
    sequence = CallSequencer()
    return [out for event in events for out in sequence.feed(event)]


def call_of(event: Event) -> str:
    """Return the id of the call that an event belongs to."""
    return event.id if isinstance(event, CallStarted | ArgsDelta | CallEnded) else ""


def start(id: str) -> CallStarted:
    return CallStarted(id, "f")


def args(id: str, json: str = "{}") -> ArgsDelta:
    return ArgsDelta(id, json)


def end(id: str) -> CallEnded:
    return CallEnded(id)


# By example


def test_the_first_call_streams_on_and_the_second_waits() -> None:
    sequence = CallSequencer()
    assert sequence.feed(start("a")) == [start("a")]
    assert sequence.feed(args("a", "1")) == [args("a", "1")]
    assert sequence.feed(start("b")) == []
    assert sequence.feed(args("b", "2")) == []
    assert sequence.feed(args("a", "3")) == [args("a", "3")]
    assert sequence.feed(end("a")) == [end("a"), start("b"), args("b", "2")]
    assert sequence.feed(args("b", "4")) == [args("b", "4")]
    assert sequence.feed(end("b")) == [end("b")]
    assert sequence.feed(END) == [END]


def test_calls_that_ended_while_they_waited_leave_together() -> None:
    events = [start("a"), start("b"), start("c"), args("c"), end("c"), args("b"), end("b"), TextDelta("t"), end("a")]
    a, b, c = [start("a"), end("a")], [start("b"), args("b"), end("b")], [start("c"), args("c"), end("c")]
    assert sequenced(events) == [*a, *b, *c, TextDelta("t")]


def test_text_inside_a_call_waits_for_its_end_and_keeps_its_place() -> None:
    events = [start("a"), TextDelta("1"), start("b"), TextDelta("2"), args("b"), end("a"), end("b"), TextDelta("3")]
    after = [start("a"), end("a"), TextDelta("1"), start("b"), args("b"), end("b"), TextDelta("2"), TextDelta("3")]
    assert sequenced(events) == after


@pytest.mark.parametrize("last", [END, BROKEN])
def test_what_waits_leaves_before_the_last_event_p1(last: Event) -> None:
    events: list[Event] = [start("a"), args("a", "1"), start("b"), args("b", "2"), start("c"), TextDelta("t")]
    assert sequenced([*events, last]) == [*events, last]


def test_a_rejected_call_is_told_after_what_is_open() -> None:
    rejected = CallRejected(Complaint(Problem.TRUNCATED, "f"), "{")
    assert sequenced([start("a"), start("b"), rejected, end("a"), end("b")]) == [
        *(start("a"), end("a")),
        *(start("b"), end("b")),
        rejected,
    ]


def test_the_rest_is_what_waits_without_calls_that_have_not_ended_p3() -> None:
    sequence = CallSequencer()
    waiting = [start("b"), TextDelta("x"), start("c"), args("c"), args("b"), end("b"), TextDelta("y")]
    for event in (start("a"), *waiting):
        sequence.feed(event)
    assert sequence.rest() == [start("b"), args("b"), end("b"), TextDelta("x"), TextDelta("y")]
    assert sequence.rest() == []
    assert sequence.feed(TextDelta("z")) == [TextDelta("z")]


def test_where_nothing_is_open_there_is_no_rest() -> None:
    sequence = CallSequencer()
    assert [*sequence.feed(start("a")), *sequence.feed(end("a")), *sequence.rest()] == [start("a"), end("a")]


# For any stream


@st.composite
def streams(draw: st.DrawFn, most_open: int = 4, *, ended: bool = True) -> list[Event]:
    """Interleave calls with each other and with all else; with `ended` each one ends."""
    events, opened, number = list[Event](), list[str](), 0
    for step in draw(st.lists(st.sampled_from(["start", "args", "args", "end", "text"]), max_size=20)):
        if step == "start" and len(opened) < most_open:
            number += 1
            opened.append(f"c{number}")
            events.append(start(opened[-1]))
        elif step == "args" and opened:
            events.append(args(draw(st.sampled_from(opened)), f"<{len(events)}>"))
        elif step == "end" and opened:
            events.append(end(opened.pop(draw(st.integers(0, len(opened) - 1)))))
        elif step == "text" and (most_open > 1 or not opened):
            text = f"<{len(events)}>"
            others: list[Event] = [TextDelta(text), ReasoningDelta(text), Discarded(Why.DEBRIS, text)]
            events.append(draw(st.sampled_from(others)))
    events += [end(id) for id in draw(st.permutations(opened))] if ended else []
    return [*events, draw(st.sampled_from([END, BROKEN]))]


every_stream = streams() | streams(ended=False)


@given(every_stream)
def test_every_event_is_kept_p1(events: list[Event]) -> None:
    assert Counter(sequenced(events)) == Counter(events)
    assert sequenced(events)[-1] == events[-1]


@given(every_stream)
def test_the_events_of_each_call_keep_their_order(events: list[Event]) -> None:
    after = sequenced(events)
    for id in {call_of(event) for event in events}:
        assert [one for one in after if call_of(one) == id] == [one for one in events if call_of(one) == id]


@given(streams())
def test_no_call_starts_before_another_has_ended(events: list[Event]) -> None:
    opened = ""
    for event in sequenced(events):
        if isinstance(event, CallStarted):
            assert not opened
            opened = event.id
        else:
            assert call_of(event) == opened
        if isinstance(event, CallEnded):
            opened = ""


@given(streams(ended=False))
def test_calls_that_never_end_stay_apart_too(events: list[Event]) -> None:
    after = [call_of(event) for event in sequenced(events)]
    changes = [id for id, before in zip(after, ["", *after], strict=False) if id and id != before]
    assert len(changes) == len(set(changes))


@given(streams(most_open=1) | streams(most_open=1, ended=False))
def test_a_stream_that_is_in_sequence_passes_at_once_and_unchanged(events: list[Event]) -> None:
    sequence = CallSequencer()
    assert [sequence.feed(event) for event in events] == [[event] for event in events]


@given(streams())
def test_a_stream_that_was_put_in_sequence_stays_as_it_is(events: list[Event]) -> None:
    assert sequenced(sequenced(events)) == sequenced(events)


# Time


def interleaved(size: int) -> list[Event]:
    """All calls open at once, growing in turns, and ending in the wrong order."""
    ids = [f"c{number}" for number in range(size // 10)]
    grown: list[Event] = [args(id) for _ in range(10) for id in ids]
    return [*map(start, ids), *grown, *map(end, reversed(ids)), END]


def text_in_a_call(size: int) -> list[Event]:
    return [start("a"), *(TextDelta("t") for _ in range(size)), end("a"), END]


def never_ended(size: int) -> list[Event]:
    return [*(start(f"c{number}") for number in range(size)), END]


@pytest.mark.parametrize("make", [interleaved, text_in_a_call, never_ended])
def test_twice_the_events_cost_about_twice_the_time_p8(make: Callable[[int], list[Event]]) -> None:
    assert growth(sequenced, make(40_000), make(80_000)) < BAR

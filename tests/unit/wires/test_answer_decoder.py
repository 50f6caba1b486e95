"""What all decoders do with an answer: it ends once, and its breaks are told (P3, P6)."""

from collections.abc import Iterable

import pytest

from toolspeak.errors import BadFrame
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import CallRejected, Event, Failed, Finished, StopReason, TextDelta, Usage
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.json import Json
from toolspeak.text.lines import NdjsonDecoder
from toolspeak.wires.shared.answer_decoder import AnswerDecoder, AnswerState

REASONS = frozenset(stop.value for stop in StopReason)


class Calls:
    """Calls of which one is still open."""

    def __init__(self, *, called: bool = False) -> None:
        self.any = called

    def finish(self, problem: Problem | None) -> Iterable[Event]:
        return [CallRejected(Complaint(problem, "f"), "{")] if problem else []


class Reader:
    """Reads lines: a reason to stop, `over`, one of two breaks, or text."""

    def __init__(self, *, called: bool = False) -> None:
        self.answer = AnswerState(Calls(called=called), usage_of)

    def frame(self, frame: str, events: list[Event]) -> None:
        self.answer.usage = len(frame)
        if frame in REASONS:
            self.answer.stop = StopReason(frame)
        elif frame == "over":
            self.answer.end(events)
        elif frame == "limit":
            raise BadFrame("too much")
        elif frame == "broken":
            b"\xff".decode()
        else:
            events.append(TextDelta(frame))

    def whole(self, body: bytes, events: list[Event]) -> None:
        self.frame(body.decode(), events)


def usage_of(value: Json) -> Usage:
    return Usage(value) if isinstance(value, int) else Usage()


def decoded(text: str, *, called: bool = False) -> list[Event]:
    decoder = AnswerDecoder(NdjsonDecoder(), Reader(called=called))
    events = [*decoder.feed(text.encode()), *decoder.finish()]
    assert (decoder.feed(b"more\n"), decoder.finish()) == ([], []), "the end comes once"
    return events


def kind_of(events: list[Event]) -> FailureKind:
    last = events[-1]
    assert isinstance(last, Failed)
    assert isinstance(events[-2], CallRejected)
    assert events[-2].complaint.problem is Problem.DISCONNECTED
    return last.failure.kind


def test_an_answer_ends_for_the_last_reason_with_the_last_count() -> None:
    assert decoded("hi\nfilter\nend\n") == [TextDelta("hi"), Finished(StopReason.END, Usage(3))]


def test_an_answer_may_end_without_a_reason_where_the_wire_says_so() -> None:
    assert decoded("over\nhi\n") == [Finished(StopReason.END, Usage(4))]


def test_with_calls_it_is_never_a_plain_end() -> None:
    assert decoded("end\n", called=True) == [Finished(StopReason.CALLS, Usage(3))]


@pytest.mark.parametrize("stop", [StopReason.LENGTH, StopReason.FILTER])
def test_an_end_that_cuts_rejects_what_is_open(stop: StopReason) -> None:
    rejected, finished = decoded(f"{stop}\n", called=True)
    assert isinstance(rejected, CallRejected)
    assert rejected.complaint.problem is Problem.TRUNCATED
    assert finished == Finished(stop, Usage(len(stop)))


def test_bytes_that_end_without_a_reason_were_cut_off() -> None:
    assert kind_of(decoded("hi\n")) is FailureKind.DISCONNECTED


def test_what_cannot_be_read_breaks_the_answer() -> None:
    assert kind_of(decoded("broken\nend\n")) is FailureKind.OTHER
    assert kind_of(decoded("limit\nend\n")) is FailureKind.OTHER


def test_what_cannot_be_read_at_the_end_was_cut_unless_it_is_over_a_limit() -> None:
    assert kind_of(decoded("broken")) is FailureKind.DISCONNECTED
    assert kind_of(decoded("limit")) is FailureKind.OTHER


@pytest.mark.parametrize(
    ("body", "kind"), [(b"hi", FailureKind.DISCONNECTED), (b"limit", FailureKind.OTHER), (b"\xff", FailureKind.OTHER)]
)
def test_a_whole_answer_breaks_like_a_stream(body: bytes, kind: FailureKind) -> None:
    assert kind_of(AnswerDecoder(NdjsonDecoder(), Reader()).whole(body)) is kind


def test_a_whole_answer_ends_like_a_stream() -> None:
    assert AnswerDecoder(NdjsonDecoder(), Reader()).whole(b"end") == decoded("end")

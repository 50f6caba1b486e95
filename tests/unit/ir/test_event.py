"""Events keep the text that they were read from (P1)."""

from typing import get_args

import pytest
from msgspec.structs import fields

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
    raw_of,
)
from toolspeak.ir.failure import Failure, FailureKind

COMPLAINT = Complaint(Problem.PARSE_ERROR, "f")
EVENTS: dict[Event, str] = {
    TextDelta("text"): "text",
    ReasoningDelta("thought", "signature"): "thought",
    CallStarted("1", "f", "native"): "",
    ArgsDelta("1", "{}"): "",
    CallEnded("1", "<f>"): "<f>",
    CallRejected(COMPLAINT, "<g>"): "<g>",
    Discarded(Why.DEBRIS, "</f>"): "</f>",
    Finished(StopReason.END): "",
    Failed(Failure(FailureKind.OTHER, "broken")): "",
}


def test_every_kind_of_event_is_tested() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(Event))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_gives_back_the_text_that_it_was_read_from_p1(event: Event) -> None:
    assert raw_of(event) == EVENTS[event]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_never_changed(event: Event) -> None:
    field = fields(event)[0].name
    with pytest.raises(AttributeError, match="immutable"):
        setattr(event, field, "other")


def test_a_call_has_its_text_once_p1() -> None:
    call = [CallStarted("1", "f"), ArgsDelta("1", '{"a":'), ArgsDelta("1", "1}"), CallEnded("1", "[f(a=1)]")]
    assert "".join(map(raw_of, call)) == "[f(a=1)]"


def test_the_words_for_people_and_wires_are_plain() -> None:
    assert [why.value for why in Why] == ["debris", "forged", "limit"]
    assert [stop.value for stop in StopReason] == ["end", "calls", "length", "filter", "error"]

"""What holds for every wire: what we write we read back, streamed and whole alike, however the bytes are cut."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from testkit.grammar import read_stream, read_whole
from tests.contract.wire_turns import CAN, REQUESTS, TOOLS, TURNS, said, streamed
from toolspeak import wires
from toolspeak.errors import UnknownName
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
    StopReason,
    TextDelta,
    Why,
)
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.message import Call, Message, Reasoning
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode
from toolspeak.ir.turn import Turn, fold
from toolspeak.wires import Stamp, Wire

STAMP = Stamp("5f3e2d1c", 1_763_000_000)
WIRES = tuple(CAN)
ASK = Request("m", (), TOOLS, stream=True, extra={"openai_chat": {"stream_options": {"include_usage": True}}})
REJECTED = CallRejected(Complaint(Problem.UNKNOWN_TOOL, "f"), "<f>")
UNSIGNED = Reasoning("", "skip_thought_signature_validator")
"""What Gemini wants before calls that it did not make itself."""
ASIDE = Discarded(Why.DEBRIS, "</f>")

every_wire = pytest.mark.parametrize("name", WIRES)


def ids() -> Iterator[str]:
    return (f"fresh{number}" for number in count())


def decoded(wire: Wire, data: bytes, size: int) -> list[Event]:
    decoder = wire.new_decoder(ASK, ids())
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return [event for piece in pieces for event in decoder.feed(piece)] + decoder.finish()


def test_the_wires_are_the_five() -> None:
    assert set(wires.names()) == set(WIRES)
    with pytest.raises(UnknownName, match="nowire"):
        wires.load("nowire")


@every_wire
def test_a_wire_has_the_name_of_its_room(name: str) -> None:
    assert wires.load(name).name == name


@every_wire
@given(turn=TURNS, sizes=st.lists(st.integers(0, 20), max_size=1), interleaved=st.booleans())
def test_a_stream_is_read_back_as_it_was_said_wire3_wire7(
    name: str, turn: Turn, sizes: list[int], interleaved: bool
) -> None:
    wire = wires.load(name)
    encoder = wire.new_encoder(ASK, STAMP)
    data = b"".join(encoder.encode([event]) for event in streamed(turn, sizes, interleaved=interleaved))
    read_stream(name, data)
    assert said(fold(decoded(wire, data, 7)), CAN[name]) == said(turn, CAN[name])


@every_wire
@given(turn=TURNS)
def test_a_whole_answer_is_the_fold_of_its_stream_wire4(name: str, turn: Turn) -> None:
    assume(turn.stop is not StopReason.LENGTH or not isinstance(turn.parts[-1], Call))  # see the next test
    wire = wires.load(name)
    body = wire.encode_turn(ASK, STAMP, turn)
    read_whole(name, body)
    stream = wire.new_encoder(ASK, STAMP).encode(streamed(turn, [], interleaved=False))
    whole = fold(wire.decode_turn(ASK, ids(), body))
    can = CAN[name]
    assert said(whole, can) == said(fold(decoded(wire, stream, 4096)), can) == said(turn, can)


def test_the_last_call_of_a_whole_answer_that_the_limit_ended_may_be_cut_p3() -> None:
    wire = wires.load("anthropic")  # it makes an object of whatever came of the arguments
    turn = Turn((Call("call_1", "x", '{"a":1}'),), StopReason.LENGTH)
    whole = fold(wire.decode_turn(ASK, ids(), wire.encode_turn(ASK, STAMP, turn)))
    assert whole.calls == ()
    assert [complaint.problem for complaint in whole.complaints] == [Problem.TRUNCATED]


@every_wire
@given(turn=TURNS, batch=st.integers(1, 9))
def test_how_events_are_batched_does_not_show(name: str, turn: Turn, batch: int) -> None:
    wire = wires.load(name)
    events = list(streamed(turn, [], interleaved=False))
    one, many = wire.new_encoder(ASK, STAMP), wire.new_encoder(ASK, STAMP)
    pieces = [many.encode(events[start : start + batch]) for start in range(0, len(events), batch)]
    assert b"".join(pieces) == one.encode(events)


@every_wire
@given(turn=TURNS, cut=st.floats(0, 0.999))
def test_a_stream_that_stops_anywhere_is_a_failure_p3_p6(name: str, turn: Turn, cut: float) -> None:
    wire = wires.load(name)
    data = wire.new_encoder(ASK, STAMP).encode(streamed(turn, [], interleaved=False))
    events = decoded(wire, data[: int(len(data) * cut)], 50)
    assert isinstance(events[-1], Failed | Finished)
    assert sum(isinstance(event, Failed | Finished) for event in events) == 1
    got, wanted = fold(events), said(turn, CAN[name])
    if isinstance(events[-1], Finished):  # only what comes after the protocol's end was cut off
        assert said(replace(got, usage=wanted.usage), CAN[name]) == wanted
    for call in said(got, CAN[name]).calls:
        assert call.arguments in [other.arguments for other in wanted.calls]


@every_wire
@given(request=REQUESTS)
def test_a_request_is_read_back_as_it_was_said_wire2(name: str, request: Request) -> None:
    wire = wires.load(name)
    sent = wire.encode_request(request, QUIRKS)
    back = wire.decode_request(sent.body, "/v1beta/" + sent.path)
    assert without_vendor(back) == sayable(name, request)


def without_vendor(request: Request) -> Request:
    messages = tuple(
        Message(m.role, tuple(replace(part, vendor=None) for part in m.parts if part != UNSIGNED))
        for m in request.messages
    )
    tools = tuple(replace(tool, vendor=None) for tool in request.tools)
    return replace(request, messages=messages, tools=tools, extra={})


def sayable(name: str, request: Request) -> Request:
    """Return what the wire has words for."""
    choice, tools = request.choice, request.tools
    if name == "openai_responses":
        request = replace(request, sampling=replace(request.sampling, stop=()))
    if name in ("gemini", "ollama") and not choice.parallel:
        choice = replace(choice, parallel=True)
    if name == "ollama":
        tools = () if choice.mode is ChoiceMode.NONE else tools
        tools = tuple(t for t in tools if choice.mode is not ChoiceMode.NAMED or t.name == choice.name)
        choice = replace(choice, mode=ChoiceMode.AUTO, name="")
    return replace(request, choice=choice, tools=tools, messages=request.messages)


@every_wire
def test_a_cut_call_is_never_told_as_complete_p3(name: str) -> None:
    wire = wires.load(name)
    events: list[Event] = [TextDelta("a"), CallStarted("call_1", "x"), ArgsDelta("call_1", '{"a": "b')]
    encoder = wire.new_encoder(ASK, STAMP)
    data = encoder.encode(events) + encoder.encode([Failed(Failure(FailureKind.DISCONNECTED, "gone", 502))])
    turn = fold(decoded(wire, data, 9))
    assert turn.failure is not None
    assert turn.calls == ()
    assert read_stream(name, data).error


@every_wire
def test_keep_alives_between_any_two_events_change_nothing(name: str) -> None:
    wire = wires.load(name)
    encoder = wire.new_encoder(ASK, STAMP)
    events: list[Event] = [TextDelta("a"), CallStarted("call_1", "x"), ArgsDelta("call_1", "{}"), CallEnded("call_1")]
    data = b"".join(encoder.encode([event]) + encoder.keep_alive() for event in events)
    data += encoder.encode([Finished(StopReason.CALLS)])
    turn = fold(decoded(wire, data, 11))
    assert turn.text == "a"
    assert [call.name for call in turn.calls] == ["x"]
    read_stream(name, data)


@every_wire
def test_rejected_calls_and_set_aside_text_are_not_shown(name: str) -> None:
    wire = wires.load(name)
    events: list[Event] = [TextDelta("a"), REJECTED, ASIDE, TextDelta("b"), Finished(StopReason.END)]
    seen = read_stream(name, wire.new_encoder(ASK, STAMP).encode(events))
    assert (seen.text, seen.calls) == ("ab", ())


@every_wire
@given(data=st.binary(max_size=200))
def test_any_bytes_end_in_one_last_event_p6(name: str, data: bytes) -> None:
    events = decoded(wires.load(name), data, 13)
    assert isinstance(events[-1], Failed | Finished)
    whole = wires.load(name).decode_turn(ASK, ids(), data)
    assert isinstance(whole[-1], Failed | Finished)

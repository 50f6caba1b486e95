"""The Anthropic wire: what its servers answer."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.grammar import read_stream, read_whole
from toolspeak import wires
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
)
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.message import Call, Message, Reasoning, Role, Text
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Turn, fold

WIRE = wires.load("anthropic")
ASK = Request("m", (), (Tool("f"), Tool("mcp.files:read")))
Body = dict[str, Any]
START: Body = {"type": "message_start", "message": {"id": "msg_1", "content": [], "usage": {"input_tokens": 7}}}
STOP: Body = {"type": "message_stop"}


def ids() -> Iterator[str]:
    return (f"fresh{number}" for number in count())


def sse(*events: Body | str, named: bool = True) -> bytes:
    """Write a stream as a server does."""
    frames: list[str] = []
    for event in events:
        body = event if isinstance(event, str) else json.dumps(event)
        name = f"event: {event['type']}\n" if named and not isinstance(event, str) else ""
        frames.append(f"{name}data: {body}\n\n")
    return "".join(frames).encode()


def read(data: bytes, size: int = 4096, request: Request = ASK) -> list[Event]:
    decoder = WIRE.new_decoder(request, ids())
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    events = [event for piece in pieces for event in decoder.feed(piece)] + decoder.finish()
    assert decoder.feed(b"data: {}\n\n") == decoder.finish() == []
    return events


def began(index: int, **block: object) -> Body:
    return {"type": "content_block_start", "index": index, "content_block": block}


def tool_use(index: int, id: str = "toolu_1", name: str = "f", **more: object) -> Body:
    block: Body = {"type": "tool_use", "id": id, "name": name, "input": {}, **more}
    return began(index, **block)


def grew(index: int, kind: str, **delta: str) -> Body:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


def args(index: int, piece: str) -> Body:
    return grew(index, "input_json_delta", partial_json=piece)


def stopped(index: int) -> Body:
    return {"type": "content_block_stop", "index": index}


def ended(reason: str | None = "end_turn", **usage: int) -> Body:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}


FULL: tuple[Body, ...] = (
    {
        **START,
        "message": {**START["message"], "type": "message", "role": "assistant", "model": "m", "stop_reason": None},
    },
    {"type": "ping"},
    began(0, type="thinking", thinking="", signature=""),
    grew(0, "thinking_delta", thinking="Hm, "),
    grew(0, "thinking_delta", thinking="øk"),
    grew(0, "signature_delta", signature="c2ln"),
    stopped(0),
    began(1, type="text", text=""),
    grew(1, "text_delta", text="Hel"),
    grew(1, "text_delta", text="lo 🙂"),
    stopped(1),
    tool_use(2),
    args(2, ""),
    args(2, '{"a"'),
    args(2, ': "ø"}'),
    stopped(2),
    tool_use(3, "toolu_2"),
    stopped(3),
    ended("tool_use", input_tokens=7, output_tokens=9, cache_read_input_tokens=3),
    STOP,
)
EVENTS: list[Event] = [
    ReasoningDelta("Hm, "),
    ReasoningDelta("øk"),
    ReasoningDelta("", "c2ln"),
    TextDelta("Hel"),
    TextDelta("lo 🙂"),
    CallStarted("toolu_1", "f", "toolu_1"),
    ArgsDelta("toolu_1", '{"a"'),
    ArgsDelta("toolu_1", ': "ø"}'),
    CallEnded("toolu_1"),
    CallStarted("toolu_2", "f", "toolu_2"),
    ArgsDelta("toolu_2", "{}"),
    CallEnded("toolu_2"),
    Finished(StopReason.CALLS, Usage(10, 9, 3)),
]


def test_a_stream_is_read_the_same_however_it_is_cut() -> None:
    data = sse(*FULL)
    for size in (1, 2, 3, 7, 64, len(data)):
        assert read(data, size) == EVENTS
    for cut in range(len(data)):
        decoder = WIRE.new_decoder(ASK, ids())
        assert decoder.feed(data[:cut]) + decoder.feed(data[cut:]) + decoder.finish() == EVENTS


def test_a_stream_cut_off_anywhere_is_a_failure_and_delivers_no_cut_call_p3_p6() -> None:
    data = sse(*FULL)
    said = data.index(b"event: message_delta") + len(sse(FULL[-2])) - 2
    for cut in range(said):
        events = read(data[:cut])
        assert isinstance(events[-1], Failed)
        assert events[-1].failure.kind is FailureKind.DISCONNECTED
        assert all(call in fold(EVENTS).calls for call in fold(events).calls)


@pytest.mark.parametrize("line_end", [b"\r\n", b"\r"])
def test_lines_may_end_as_they_like(line_end: bytes) -> None:
    assert read(sse(*FULL).replace(b"\n", line_end), 5) == EVENTS


def test_event_lines_may_be_missing() -> None:
    assert read(sse(*FULL, named=False)) == EVENTS


def test_types_may_be_missing_where_the_event_line_tells() -> None:
    data = b'event: content_block_delta\ndata: {"index":0,"delta":{"type":"text_delta","text":"a"}}\n\n'
    assert read(data + sse(ended()))[0] == TextDelta("a")


def test_the_last_event_may_be_missing_once_the_reason_is_told() -> None:
    assert read(sse(*FULL[:-1])) == EVENTS
    assert read(sse(*FULL[:-1], "[DONE]")) == EVENTS


def test_a_call_cut_by_the_end_of_the_bytes_is_rejected_p3() -> None:
    events = read(sse(START, tool_use(0), args(0, '{"a": 1}')))
    assert events[-2:-1] == [CallRejected(Complaint(Problem.DISCONNECTED, "f"), '{"a": 1}')]
    assert isinstance(events[-1], Failed)
    assert events[-1].usage == Usage(7)


@pytest.mark.parametrize("pieces", [('{"a": "b',), (), ("",)])
@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_a_call_cut_by_the_limit_is_rejected_though_its_block_stops_p3(pieces: tuple[str, ...], reason: str) -> None:
    events = read(sse(START, tool_use(0), *(args(0, piece) for piece in pieces), stopped(0), ended(reason), STOP))
    assert events[-2] == CallRejected(Complaint(Problem.TRUNCATED, "f"), "".join(pieces))
    assert fold(events).calls == ()
    assert fold(events).stop in (StopReason.LENGTH, StopReason.FILTER)


def test_a_call_that_is_whole_before_the_limit_is_delivered() -> None:
    events = read(sse(START, tool_use(0), args(0, "{}"), stopped(0), ended("max_tokens"), STOP))
    assert events[-2:] == [CallEnded("toolu_1"), Finished(StopReason.LENGTH, Usage(7))]


def test_a_call_is_not_whole_because_the_server_says_so_p3() -> None:
    events = read(sse(START, tool_use(0), args(0, '{"a": "b'), stopped(0), ended("tool_use"), STOP))
    assert fold(events).calls == ()
    assert fold(events).complaints == (Complaint(Problem.TRUNCATED, "f"),)


def test_arguments_that_no_end_could_mend_are_told_as_they_came() -> None:
    events = read(sse(START, tool_use(0), args(0, '{"a" 1}}'), stopped(0), ended("tool_use"), STOP))
    assert [call.arguments for call in fold(events).calls] == ['{"a" 1}}']


def test_a_block_may_have_all_arguments_at_its_start() -> None:
    block = tool_use(0, input={"a": 1.5})
    events = read(sse(START, block, stopped(0), stopped(0), ended("tool_use"), STOP))
    assert events[1:3] == [ArgsDelta("toolu_1", '{"a": 1.5}'), CallEnded("toolu_1")]
    cut = read(sse(START, block, stopped(0), ended("max_tokens"), STOP))
    assert fold(cut).calls == ()


def test_arguments_at_the_start_may_be_text() -> None:
    events = read(sse(START, tool_use(0, input='{"a":1}'), stopped(0), ended("tool_use"), STOP))
    assert events[1] == ArgsDelta("toolu_1", '{"a":1}')


def test_blocks_may_leave_out_their_end() -> None:
    whole = sse(START, tool_use(0), args(0, "{}"), tool_use(1, "toolu_2"), args(1, "{}"), ended("tool_use"), STOP)
    assert [call.id for call in fold(read(whole)).calls] == ["toolu_1", "toolu_2"]
    same_index = sse(START, tool_use(0), args(0, "{}"), tool_use(0, "toolu_2"), args(0, "{}"), ended("tool_use"), STOP)
    assert [call.id for call in fold(read(same_index)).calls] == ["toolu_1", "toolu_2"]


def test_blocks_may_interleave() -> None:
    events = read(
        sse(START, tool_use(0), tool_use(1, "toolu_2"), args(0, '{"a"'), args(1, "{}"), args(0, ":1}"))
        + sse(stopped(1), stopped(0), ended("tool_use"), STOP)
    )
    assert [(call.id, call.arguments) for call in fold(events).calls] == [("toolu_1", '{"a":1}'), ("toolu_2", "{}")]


def test_calls_with_a_plain_end_are_calls() -> None:
    events = read(sse(START, tool_use(0), args(0, "{}"), stopped(0), ended("end_turn"), STOP))
    assert events[-1] == Finished(StopReason.CALLS, Usage(7))


def test_ids_are_used_where_they_can_be_and_are_never_given_twice_wire6() -> None:
    request = Request("m", (Message(Role.ASSISTANT, (Call("toolu_1", "f", "{}"),)),))
    blocks = [
        tool_use(0),
        tool_use(1, "bad id"),
        tool_use(2, "ok"),
        tool_use(3, "ok"),
        began(4, type="tool_use", name="f"),
    ]
    events = read(sse(START, *blocks, ended("tool_use"), STOP), request=request)
    assert [event.id for event in events if isinstance(event, CallStarted)] == [
        "fresh0",
        "fresh1",
        "ok",
        "fresh2",
        "fresh3",
    ]


def test_aliases_of_names_are_turned_back() -> None:
    alias = json.loads(WIRE.encode_request(ASK, QUIRKS).body)["tools"][1]["name"]
    events = read(sse(START, tool_use(0, name=alias), ended("tool_use"), STOP))
    assert events[0] == CallStarted("toolu_1", "mcp.files:read", "toolu_1")


def test_a_call_of_a_family_has_the_name_that_the_request_has() -> None:
    events = read(sse(START, tool_use(0, name="key", toolset_name="computer"), ended("tool_use"), STOP))
    assert events[0] == CallStarted("toolu_1", "computer_key", "toolu_1")


def test_a_thought_that_nobody_may_see_goes_on_sealed_wire7() -> None:
    block = {"type": "redacted_thinking", "data": "c2VhbGVk"}
    events = read(sse(START, began(0, **block), stopped(0), ended(), STOP))
    assert events[0] == ReasoningDelta("", "redacted_thinking:c2VhbGVk")
    data = WIRE.new_encoder(Request("m", ()), wires.Stamp("s", 1)).encode(events)
    assert read(data)[0] == events[0]
    assert b'"content_block":{"type":"redacted_thinking","data":"c2VhbGVk"}' in data


@pytest.mark.parametrize(
    "block",
    [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "never_heard_of", "text": "x"},
        {"type": "tool_use", "id": "toolu_1"},
        {"type": ["odd"]},
    ],
)
def test_blocks_and_deltas_that_nobody_knows_are_passed_over(block: Body) -> None:
    odd: list[Body] = [
        args(0, '{"query":'),
        grew(0, "citations_delta", citation="x"),
        grew(0, "never_heard_of", x="y"),
        {"type": "never_heard_of", "delta": "text", "message": 5},
        {"type": "ping", "delta": []},
    ]
    events = read(sse(START, began(0, **block), *odd, stopped(0), grew(1, "text_delta", text="a"), ended(), STOP))
    assert events == [TextDelta("a"), Finished(StopReason.END, Usage(7))]


def test_blocks_may_have_content_at_their_start() -> None:
    thought = began(0, type="thinking", thinking="Hm", signature="c2ln")
    events = read(sse(START, thought, stopped(0), began(1, type="text", text="a"), ended(), STOP))
    assert fold(events).parts == (Reasoning("Hm", "c2ln"), Text("a"))


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", StopReason.END),
        ("stop_sequence", StopReason.END),
        ("pause_turn", StopReason.END),
        ("tool_use", StopReason.END),  # it lies: there is no call
        ("max_tokens", StopReason.LENGTH),
        ("model_context_window_exceeded", StopReason.LENGTH),
        ("refusal", StopReason.FILTER),
        ("never_heard_of", StopReason.END),
    ],
)
def test_every_stop_reason_is_understood(reason: str, stop: StopReason) -> None:
    assert read(sse(START, ended(reason), STOP))[-1] == Finished(stop, Usage(7))


def test_the_stop_sequence_is_told() -> None:
    end = {"type": "message_delta", "delta": {"stop_reason": "stop_sequence", "stop_sequence": "###"}}
    assert read(sse(START, end, STOP))[-1] == Finished(StopReason.END, Usage(7), "###")


def test_usage_is_the_last_total_and_counts_the_cache_in() -> None:
    first = {"input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 1}
    last = {"input_tokens": 11, "cache_read_input_tokens": 0, "output_tokens": 30}
    details = {"output_tokens_details": {"thinking_tokens": 4}}
    start = {"type": "message_start", "message": {"usage": first}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {**last, **details}}
    assert read(sse(start, end, STOP))[-1] == Finished(StopReason.END, Usage(18, 30, 2, 5, 4))


@pytest.mark.parametrize("usage", [None, 5, [], {"input_tokens": "7", "output_tokens": -1}, {"input_tokens": True}])
def test_usage_that_is_nonsense_counts_as_none(usage: object) -> None:
    start = {"type": "message_start", "message": {"usage": usage}}
    assert read(sse(start, {**ended(), "usage": usage}, STOP))[-1] == Finished(StopReason.END)


# ---------------------------------------------------------------- what breaks


@pytest.mark.parametrize(
    "error",
    [
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
        b'data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
        b'data: {"error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
        b'event: error\ndata: {"message":"Overloaded","code":"overloaded"}\n\n',
        b'data: {"error":{"type":"overloaded_error","message":"Overloaded"},"delta":"x"}\n\n',
    ],
)
def test_an_error_in_the_middle_is_a_failure_and_rejects_the_open_call_p3_p6(error: bytes) -> None:
    events = read(sse(START, grew(0, "text_delta", text="a"), tool_use(1), args(1, "{}")) + error + sse(ended(), STOP))
    assert events[-2] == CallRejected(Complaint(Problem.DISCONNECTED, "f"), "{}")
    last = events[-1]
    assert isinstance(last, Failed)
    assert (last.failure.kind, last.failure.message) == (FailureKind.TRANSIENT, "Overloaded")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"data: {\n\n",
        b"data: 5\n\n",
        b"data: []\n\n",
        b"data: null\n\n",
        b"data: \xff\n\n",
        b"data: [DONE]\n\n",
        b"<html>Bad gateway</html>",
        b'data: {"type":"message_stop"}\n\n',
        b'data: {"type":"content_block_delta","delta":"x"}\n\n',
        b'data: {"type":"content_block_start","content_block":[1]}\n\n',
        b'data: {"type":"message_delta","delta":5}\n\n',
        b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n',
        b"data: " + b"[" * 100_000 + b"\n\n",
        b'data: {"type":"x","y":' + b"[" * 100_000 + b"\n\n",
        sse(START, ended(None)),
    ],
)
def test_bytes_that_are_no_answer_are_a_failure_p6(data: bytes) -> None:
    events = read(data)
    assert len(events) == 1
    assert isinstance(events[0], Failed)


def changed(event: Body, odd: object) -> Iterator[Body]:
    """Put something odd into each field of an event, and of the object inside."""
    for key in event:
        yield {**event, key: odd}
    for outer in ("delta", "content_block", "message"):
        inside: Body = event.get(outer, {})
        for key in inside:
            yield {**event, outer: {**inside, key: odd}}


@pytest.mark.parametrize("odd", [None, True, 5, 1.5, "x", [], [1], {}, {"a": 1}])
def test_odd_types_are_passed_over_or_a_failure(odd: object) -> None:
    for number, event in enumerate(FULL):
        for other in changed(event, odd):
            events = read(sse(*FULL[:number], other, *FULL[number + 1 :], named=False))
            assert isinstance(events[-1], Finished | Failed)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda value: (
        st.lists(value, max_size=3)
        | st.dictionaries(st.sampled_from(("type", "delta", "index", "content_block", "text", "id", "name")), value)
    ),
    max_leaves=8,
)


@given(st.lists(st.tuples(st.sampled_from([str(event["type"]) for event in FULL]), JSON, JSON, JSON), max_size=5))
def test_any_json_ends_in_one_last_event_p6(parts: list[tuple[str, object, object, object]]) -> None:
    bodies: list[Body] = [
        {"type": kind, "index": index, "delta": delta, "content_block": block} for kind, index, delta, block in parts
    ]
    events = read(sse(*bodies))
    assert sum(isinstance(event, Finished | Failed) for event in events) == 1
    assert isinstance(events[-1], Finished | Failed)
    last = WIRE.decode_turn(ASK, ids(), json.dumps({"content": [block for *_, block in parts]}).encode())[-1]
    assert isinstance(last, Finished | Failed)


def test_arguments_are_bounded_p7() -> None:
    piece = "x" * (1024 * 1024)
    events = read(sse(START, tool_use(0), *(args(0, piece) for _ in range(9)), ended(), STOP))
    assert isinstance(events[-1], Failed)
    assert sum(isinstance(event, ArgsDelta) for event in events) == 7
    body = {"content": [{"type": "tool_use", "name": "f", "input": {"a": piece * 9}}], "stop_reason": "tool_use"}
    assert isinstance(WIRE.decode_turn(ASK, ids(), json.dumps(body).encode())[-1], Failed)


# ---------------------------------------------------------------- whole answers

MESSAGE: Body = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "thinking", "thinking": "Hm, øk", "signature": "c2ln"},
        {"type": "text", "text": "Hello 🙂"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": "ø"}},
        {"type": "tool_use", "id": "toolu_2", "name": "f", "input": {}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 7, "output_tokens": 9, "cache_read_input_tokens": 3},
}


def whole(body: Body) -> Turn:
    return fold(WIRE.decode_turn(ASK, ids(), json.dumps(body, ensure_ascii=False).encode()))


def test_a_whole_answer_is_the_fold_of_its_stream_wire4() -> None:
    assert whole(MESSAGE) == fold(EVENTS)
    read_whole("anthropic", json.dumps(MESSAGE).encode())
    read_stream(
        "anthropic",
        sse({"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}}, *FULL[2:]),
    )


def test_the_last_call_of_a_whole_answer_that_was_cut_is_rejected_p3() -> None:
    turn = whole({**MESSAGE, "stop_reason": "max_tokens"})
    assert [call.id for call in turn.calls] == ["toolu_1"]
    assert turn.complaints == (Complaint(Problem.TRUNCATED, "f"),)


def test_numbers_in_arguments_are_kept_to_the_byte() -> None:
    body = (
        b'{"content":[{"type":"tool_use","id":"t","name":"f","input":{"a":1.50, "b":1e400}}],"stop_reason":"tool_use"}'
    )
    assert fold(WIRE.decode_turn(ASK, ids(), body)).calls[0].arguments == '{"a":1.50, "b":1e400}'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"<html>",
        b"\xff",
        b"{}",
        b'{"content":"hi"}',
        b'{"content":[5]}',
        b'{"content":null,"stop_reason":"end_turn"}',
        b"[" * 100_000,
        b'{"type":"error","error":{"type":"api_error","message":"Broken"}}',
        b'{"content":[],"error":{"message":"Broken"}}',
    ],
)
def test_a_whole_body_that_is_no_answer_is_a_failure_p6(body: bytes) -> None:
    (event,) = WIRE.decode_turn(ASK, ids(), body)
    assert isinstance(event, Failed)
    if b"Broken" in body:
        assert event.failure.message == "Broken"


def test_a_whole_answer_may_lack_its_reason_and_its_counts() -> None:
    assert whole({"content": [{"type": "text", "text": "a"}]}) == Turn((Text("a"),), StopReason.END)

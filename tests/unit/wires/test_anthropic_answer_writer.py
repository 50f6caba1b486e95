"""The Anthropic wire: what its clients are sent."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from testkit.grammar import GrammarError, Seen, read_stream, read_whole
from toolspeak import wires
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
    Usage,
    Why,
)
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.message import Vendor
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool, ToolKind
from toolspeak.ir.turn import Turn, fold
from toolspeak.wires import Stamp

WIRE = wires.load("anthropic")
STAMP = Stamp("5f3e2d1c", 1_763_000_000)
ASK = Request("m", (), stream=True)
END = Finished(StopReason.END)
GONE = Failure(FailureKind.TRANSIENT, "too busy", 503)
REJECTED = CallRejected(Complaint(Problem.TRUNCATED, "f"), '{"a')
Body = dict[str, Any]


def encode(events: Iterable[Event], request: Request = ASK) -> bytes:
    """Write a stream event by event."""
    encoder = WIRE.new_encoder(request, STAMP)
    return b"".join(encoder.encode([event]) for event in events)


def frames(data: bytes) -> list[tuple[str, Body]]:
    """Read events with no mercy for anything but their two lines."""
    found: list[tuple[str, Body]] = []
    for frame in data.decode().removesuffix("\n\n").split("\n\n"):
        event, data_line = frame.split("\n")
        body: Body = json.loads(data_line.removeprefix("data: "))
        found.append((event.removeprefix("event: "), body))
    assert all(body.pop("type") == event for event, body in found)
    return found


def seen(*events: Event, request: Request = ASK) -> Seen:
    return read_stream("anthropic", encode(events, request))


def whole(*events: Event, request: Request = ASK) -> Body:
    data = WIRE.encode_turn(request, STAMP, fold(events))
    read_whole("anthropic", data)
    body: Body = json.loads(data)
    return body


def call(id: str, name: str, *pieces: str) -> list[Event]:
    return [CallStarted(id, name), *(ArgsDelta(id, piece) for piece in pieces), CallEnded(id)]


# ---------------------------------------------------------------- order


def test_the_events_come_in_the_vendors_order_wire3() -> None:
    usage = Usage(100, 20, 30, 40, 5)
    events: list[Event] = [
        ReasoningDelta("Hm, "),
        ReasoningDelta("yes"),
        ReasoningDelta("", "c2ln"),
        TextDelta("Hel"),
        TextDelta("lo"),
        *call("toolu_1", "f", '{"a"', ": 1}"),
        Finished(StopReason.CALLS, usage),
    ]
    counts = {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0}
    message: Body = {"id": "msg_5f3e2d1c", "type": "message", "role": "assistant", "model": "m", "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": counts}
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    tool_use: Body = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    told: Body = {"input_tokens": 30, "cache_creation_input_tokens": 40, "cache_read_input_tokens": 30}
    told |= {"output_tokens": 20, "output_tokens_details": {"thinking_tokens": 5}}
    start, delta, stop = "content_block_start", "content_block_delta", "content_block_stop"
    assert frames(encode(events)) == [
        ("message_start", {"message": message}),
        (start, {"index": 0, "content_block": thinking}),
        (delta, {"index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm, "}}),
        (delta, {"index": 0, "delta": {"type": "thinking_delta", "thinking": "yes"}}),
        (delta, {"index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}}),
        (stop, {"index": 0}),
        (start, {"index": 1, "content_block": {"type": "text", "text": ""}}),
        (delta, {"index": 1, "delta": {"type": "text_delta", "text": "Hel"}}),
        (delta, {"index": 1, "delta": {"type": "text_delta", "text": "lo"}}),
        (stop, {"index": 1}),
        (start, {"index": 2, "content_block": tool_use}),
        (delta, {"index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}}),
        (delta, {"index": 2, "delta": {"type": "input_json_delta", "partial_json": ": 1}"}}),
        (stop, {"index": 2}),
        ("message_delta", {"delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": told}),
        ("message_stop", {}),
    ]
    assert seen(*events).usage == (100, 20)


def test_a_whole_answer_says_the_same_as_its_stream_wire4() -> None:
    events: list[Event] = [
        ReasoningDelta("Hm", "c2ln"),
        TextDelta("Hello"),
        *call("a", "f", '{"x": 1.50}'),
        *call("b", "g"),
        TextDelta("Bye"),
        Finished(StopReason.CALLS, Usage(3, 4)),
    ]
    data = WIRE.encode_turn(ASK, STAMP, fold(events))
    assert read_whole("anthropic", data) == seen(*events)
    assert b'"input":{"x": 1.50}' in data


def test_a_signature_without_a_thought_has_a_block_of_its_own_wire7() -> None:
    events: list[Event] = [ReasoningDelta("", "c2ln"), *call("a", "f", "{}"), Finished(StopReason.CALLS)]
    assert frames(encode(events))[2][1]["delta"] == {"type": "signature_delta", "signature": "c2ln"}
    assert seen(*events).signatures == ("c2ln",)
    assert whole(*events)["content"][0] == {"type": "thinking", "thinking": "", "signature": "c2ln"}


def test_thoughts_after_a_signature_are_another_block() -> None:
    thoughts = [ReasoningDelta("a"), ReasoningDelta("", "s1"), ReasoningDelta("b"), ReasoningDelta("", "s2")]
    assert seen(*thoughts, END).signatures == ("s1", "s2")
    assert len(whole(*thoughts, END)["content"]) == 2


def test_a_thought_without_a_signature_has_an_empty_one() -> None:
    data = encode([ReasoningDelta("Hm"), TextDelta("Hi"), END])
    assert b"signature_delta" not in data
    assert whole(ReasoningDelta("Hm"), END)["content"] == [{"type": "thinking", "thinking": "Hm", "signature": ""}]


def test_empty_pieces_make_no_frames() -> None:
    events: list[Event] = [TextDelta(""), ReasoningDelta(""), *call("a", "f", "", "{}", ""), TextDelta(""), END]
    assert [event for event, _ in frames(encode(events))] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_the_first_frame_leaves_with_the_first_event_and_each_batch_in_one_piece() -> None:
    encoder = WIRE.new_encoder(ASK, STAMP)
    assert encoder.encode([TextDelta("")]).startswith(b"event: message_start\n")
    events: list[Event] = [TextDelta("a"), *call("a", "f", '{"x":', "1}"), END]
    assert encode(events) == WIRE.new_encoder(ASK, STAMP).encode(events)


def test_what_is_rejected_or_set_aside_is_not_shown() -> None:
    aside = Discarded(Why.DEBRIS, "</f>")
    shown = seen(TextDelta("a"), REJECTED, aside, TextDelta("b"), END)
    assert (shown.text, shown.calls, shown.stop) == ("ab", (), "end_turn")
    assert [block["text"] for block in whole(TextDelta("a"), aside, END)["content"]] == ["a"]


@pytest.mark.parametrize("text", ['"\\\n\t\0', "🙂", "\ud83d", "</script>", "data: x\n\nevent: y"])
def test_any_text_arrives_whole(text: str) -> None:
    clean = text.replace("\ud83d", "\ufffd")
    assert seen(TextDelta("a"), TextDelta(text), ReasoningDelta(text), END).text == "a" + clean


# ---------------------------------------------------------------- calls


def test_calls_that_interleave_are_told_one_after_the_other_wire3() -> None:
    events: list[Event] = [
        CallStarted("a", "f"),
        ArgsDelta("a", '{"x":'),
        CallStarted("b", "g"),
        ArgsDelta("b", '{"y":'),
        TextDelta("later "),
        ArgsDelta("a", "1"),
        CallStarted("c", "h"),
        ArgsDelta("b", "2}"),
        CallEnded("b"),
        ReasoningDelta("and", "c2ln"),
        ArgsDelta("c", "{"),
        ArgsDelta("a", "}"),
        CallEnded("a"),
        ArgsDelta("c", "}"),
        CallEnded("c"),
        TextDelta("last"),
        Finished(StopReason.CALLS),
    ]
    shown = seen(*events)
    assert [(one.id, one.name, one.arguments) for one in shown.calls] == [
        ("a", "f", {"x": 1}),
        ("b", "g", {"y": 2}),
        ("c", "h", {}),
    ]
    assert shown.order == ("call", "call", "text", "call", "reasoning", "text")
    assert shown.text == "later last"


def test_the_first_open_call_streams_while_others_wait() -> None:
    encoder = WIRE.new_encoder(ASK, STAMP)
    encoder.encode([CallStarted("a", "f"), CallStarted("b", "g")])
    assert b'"partial_json":"{"' in encoder.encode([ArgsDelta("a", "{")])
    assert encoder.encode([ArgsDelta("b", '{"y":')]) == b""
    ended = encoder.encode([ArgsDelta("a", "}"), CallEnded("a")])
    assert b'"id":"b"' in ended
    assert b'{\\"y\\":' in ended
    assert b'"partial_json":"2}"' in encoder.encode([ArgsDelta("b", "2}")])


@pytest.mark.parametrize("arguments", ["", " \n"])
def test_a_call_without_arguments_has_an_empty_object(arguments: str) -> None:
    events = [*call("a", "f", arguments), END]
    assert seen(*events).calls[0].arguments == {}
    assert whole(*events)["content"][0]["input"] == {}


@pytest.mark.parametrize("pieces", [("[1", ",2]"), ("null",), ('"x"',), (" ", "nonsense")])
def test_arguments_that_are_no_object_are_told_under_a_key_when_they_are_whole(pieces: tuple[str, ...]) -> None:
    events = [*call("a", "f", *pieces), END]
    arguments: Body = whole(*events)["content"][0]["input"]
    assert seen(*events).calls[0].arguments == arguments
    assert set(arguments) == {"arguments"}


def test_the_free_text_of_a_custom_tool_is_the_object_that_the_model_wrote() -> None:
    request = Request("m", (), (Tool("patch", kind=ToolKind.CUSTOM),))
    events = [*call("a", "patch", '{"input":', '"*** Begin\\n"}'), END]
    assert seen(*events, request=request).calls[0].arguments == {"input": "*** Begin\n"}


def test_a_call_of_a_family_goes_by_the_name_that_the_client_knows() -> None:
    vendor = Vendor("anthropic", {"toolset_name": "computer"})
    tool = Tool("computer_key", namespace="computer", local_name="key", vendor=vendor)
    request = Request("m", (), (tool,), extra={"anthropic": {}})
    events = [*call("a", "computer_key", '{"text":"x"}'), END]
    block: Body = {"type": "tool_use", "id": "a", "name": "key", "input": {}, "toolset_name": "computer"}
    assert frames(encode(events, request))[1][1]["content_block"] == block
    assert whole(*events, request=request)["content"] == [{**block, "input": {"text": "x"}}]


def test_a_call_cut_by_the_limit_is_closed_and_cannot_be_taken_for_whole_p3() -> None:
    cut: list[Event] = [
        CallStarted("a", "f"),
        ArgsDelta("a", '{"x": "y'),
        CallStarted("b", "g"),
        TextDelta("more"),
        REJECTED,
        Finished(StopReason.LENGTH),
    ]
    found = frames(encode(cut))
    assert found[3] == ("content_block_stop", {"index": 0})
    assert found[5][1]["delta"]["text"] == "more"
    assert found[-2][1]["delta"]["stop_reason"] == "max_tokens"
    with pytest.raises(GrammarError, match="not JSON"):
        read_stream("anthropic", encode(cut))
    assert [block["type"] for block in whole(*cut)["content"]] == ["text"]


def test_a_call_cut_before_its_arguments_is_never_sent_p3() -> None:
    shown = seen(TextDelta("a"), CallStarted("a", "f"), REJECTED, Finished(StopReason.LENGTH))
    assert (shown.calls, shown.order, shown.stop) == ((), ("text",), "max_tokens")


@pytest.mark.parametrize(
    ("arguments", "stop"),
    [('{"x": 1}', StopReason.LENGTH), ('{"x": 1}', StopReason.END), ('{"x', StopReason.CALLS)],
)
def test_a_call_that_never_ended_but_could_be_taken_for_whole_is_an_error_p3(arguments: str, stop: StopReason) -> None:
    shown = seen(TextDelta("a"), CallStarted("a", "f"), ArgsDelta("a", arguments), REJECTED, Finished(stop))
    assert shown.calls == ()
    assert shown.error == "a tool call of the answer was broken off"


# ---------------------------------------------------------------- ends


@pytest.mark.parametrize(
    ("stop", "word"),
    [
        (StopReason.END, "end_turn"),
        (StopReason.CALLS, "end_turn"),
        (StopReason.LENGTH, "max_tokens"),
        (StopReason.FILTER, "refusal"),
    ],
)
def test_every_stop_without_calls_has_its_word(stop: StopReason, word: str) -> None:
    assert seen(TextDelta("a"), Finished(stop)).stop == word
    assert whole(TextDelta("a"), Finished(stop))["stop_reason"] == word


@pytest.mark.parametrize(
    ("stop", "word"),
    [
        (StopReason.END, "tool_use"),
        (StopReason.CALLS, "tool_use"),
        (StopReason.LENGTH, "max_tokens"),
        (StopReason.FILTER, "refusal"),
    ],
)
def test_every_stop_with_calls_has_its_word_wire3(stop: StopReason, word: str) -> None:
    events = [*call("a", "f", "{}"), Finished(stop, stop_sequence="x" if stop is StopReason.END else "")]
    assert seen(*events).stop == word
    assert whole(*events)["stop_reason"] == word


def test_a_stop_sequence_is_told() -> None:
    end = Finished(StopReason.END, stop_sequence="###")
    body = whole(TextDelta("a"), end)
    assert (body["stop_reason"], body["stop_sequence"]) == ("stop_sequence", "###")
    assert seen(TextDelta("a"), end).stop == "stop_sequence"


def test_nothing_at_all_is_an_empty_message() -> None:
    assert seen(END).order == ()
    assert whole(END)["content"] == []


def test_usage_leaves_out_of_the_input_what_the_cache_read_or_wrote() -> None:
    counts = whole(Finished(StopReason.END, Usage(10, 5, 20, 0)))["usage"]
    assert (counts["input_tokens"], counts["cache_read_input_tokens"]) == (0, 20)


def test_a_turn_without_an_end_is_written_too() -> None:
    assert json.loads(WIRE.encode_turn(ASK, STAMP, Turn()))["stop_reason"] == "end_turn"


def test_a_failure_in_mid_stream_is_the_protocols_own_error_p6() -> None:
    data = encode([TextDelta("a"), CallStarted("x", "f"), ArgsDelta("x", '{"a'), Failed(GONE)])
    error: Body = {"type": "overloaded_error", "message": "too busy"}
    assert frames(data)[-1] == ("error", {"error": error, "request_id": "req_5f3e2d1c"})
    assert read_stream("anthropic", data).error == "too busy"


def test_a_failure_before_anything_is_an_error_alone_p6() -> None:
    data = encode([Failed(GONE)])
    assert [event for event, _ in frames(data)] == ["error"]
    assert read_stream("anthropic", data).error == "too busy"


def test_an_end_in_error_is_an_error_p6() -> None:
    assert seen(TextDelta("a"), Finished(StopReason.ERROR)).error


def test_pings_may_come_between_any_two_events_but_not_before_the_first() -> None:
    encoder = WIRE.new_encoder(ASK, STAMP)
    data = encoder.keep_alive()
    assert data.startswith(b":")
    for event in [TextDelta("a"), *call("a", "f", "{", "}"), END]:
        data += encoder.encode([event]) + encoder.keep_alive()
    assert b'event: ping\ndata: {"type":"ping"}\n\n' in data
    assert read_stream("anthropic", data).stop == "tool_use"


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("failure", "status", "kind"),
    [
        (Failure(FailureKind.INVALID_REQUEST, "x"), 400, "invalid_request_error"),
        (Failure(FailureKind.CONTEXT_LENGTH, "x", 400), 400, "invalid_request_error"),
        (Failure(FailureKind.AUTH, "x", 401), 401, "authentication_error"),
        (Failure(FailureKind.PERMISSION, "x", 402), 402, "billing_error"),
        (Failure(FailureKind.PERMISSION, "x", 403), 403, "permission_error"),
        (Failure(FailureKind.NOT_FOUND, "x", 404), 404, "not_found_error"),
        (Failure(FailureKind.TOO_LARGE, "x"), 413, "request_too_large"),
        (Failure(FailureKind.INVALID_REQUEST, "x", 422), 422, "invalid_request_error"),
        (Failure(FailureKind.RATE_LIMITED, "x", 200), 429, "rate_limit_error"),
        (Failure(FailureKind.OTHER, "x", 500), 500, "api_error"),
        (Failure(FailureKind.DISCONNECTED, "x"), 502, "api_error"),
        (Failure(FailureKind.TIMEOUT, "x", 504), 504, "timeout_error"),
        (Failure(FailureKind.TRANSIENT, "x"), 529, "overloaded_error"),
        (Failure(FailureKind.TRANSIENT, "x", 503), 529, "overloaded_error"),
        (Failure(FailureKind.TRANSIENT, "x", 500), 500, "api_error"),
    ],
)
def test_every_failure_has_the_vendors_status_and_type_wire5(failure: Failure, status: int, kind: str) -> None:
    said = WIRE.encode_failure(failure, STAMP)
    body = {"type": "error", "error": {"type": kind, "message": "x"}, "request_id": "req_5f3e2d1c"}
    assert (said.status, json.loads(said.body)) == (status, body)


def test_a_failure_that_says_nothing_says_its_kind() -> None:
    assert json.loads(WIRE.encode_failure(Failure(FailureKind.OTHER, ""), STAMP).body)["error"]["message"] == "other"


def test_a_refused_thread_has_the_code_by_which_clients_send_the_whole_conversation() -> None:
    failure = Failure(FailureKind.INVALID_REQUEST, "no threads", 400, "thread")
    details = json.loads(WIRE.encode_failure(failure, STAMP).body)["error"]["details"]
    assert details["error_code"] == "thread_unsupported_request"


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (429, "rate_limit_error", FailureKind.RATE_LIMITED),
        (529, "overloaded_error", FailureKind.TRANSIENT),
        (401, "authentication_error", FailureKind.AUTH),
        (404, "not_found_error", FailureKind.NOT_FOUND),
        (413, "request_too_large", FailureKind.TOO_LARGE),
    ],
)
def test_the_vendors_errors_are_understood_wire5(status: int, error: str, kind: FailureKind) -> None:
    body = {"type": "error", "error": {"type": error, "message": "No."}, "request_id": "req_1"}
    failure = WIRE.decode_failure(status, json.dumps(body).encode())
    assert (failure.kind, failure.message, failure.status) == (kind, "No.", status)

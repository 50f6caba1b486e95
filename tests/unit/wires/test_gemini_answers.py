"""What Gemini's servers answer, and what we answer its clients."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.grammar import Seen, SeenCall, read_stream, read_whole
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
from toolspeak.ir.message import Call, Message, Reasoning, Role
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import fold
from toolspeak.text.lines import FrameLimits
from toolspeak.wires import Stamp, load
from toolspeak.wires.gemini.answer_reader import MOST_CALLS

WIRE = load("gemini")
Body = dict[str, Any]
STAMP = Stamp("abc", 1_763_000_000)
REQUEST = Request("m", (), (Tool("get_weather"), Tool("mcp.read")), stream=True, extra={"gemini": {}})
ARRAY = Request("m", (), stream=True, extra={"gemini": {"alt": "json"}})
COUNTS = {"promptTokenCount": 10, "candidatesTokenCount": 3, "thoughtsTokenCount": 2, "cachedContentTokenCount": 4}
USAGE = Usage(10, 5, 4, reasoning_tokens=2)


def ids() -> Iterator[str]:
    return (f"fresh{number}" for number in count())


def chunk(*parts: Body, finish: str | None = None, **more: object) -> Body:
    candidate: Body = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})], **more}


def sse(*chunks: Body) -> bytes:
    return b"".join(b"data: " + json.dumps(one).encode() + b"\r\n\r\n" for one in chunks)


def read(data: bytes, step: int = 0, request: Request = REQUEST) -> list[Event]:
    decoder = WIRE.new_decoder(request, ids())
    size = step or max(len(data), 1)
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return [event for piece in pieces for event in decoder.feed(piece)] + decoder.finish()


def whole(body: object, request: Request = REQUEST) -> list[Event]:
    return WIRE.decode_turn(request, ids(), json.dumps(body).encode())


def failure_of(events: list[Event]) -> Failure:
    last = events[-1]
    assert isinstance(last, Failed)
    assert not any(isinstance(event, Finished | Failed) for event in events[:-1])
    return last.failure


def call(name: str = "get_weather", **more: object) -> Body:
    return {"functionCall": {"name": name, "args": {"city": "Oslo"}, **more}}


# ---------------------------------------------------------------- answers of an upstream

STREAM = sse(
    chunk({"text": "Let me ", "thought": True}),
    chunk({"text": "think.", "thought": True}),
    chunk({"text": "Hé"}, {"text": "llo\u2028"}),
    chunk({**call(id="a1"), "thoughtSignature": "c2ln"}, call(id="a1"), usageMetadata={"promptTokenCount": 10}),
    chunk({"text": ""}, finish="STOP"),
    {"usageMetadata": COUNTS},
)
EVENTS: list[Event] = [
    ReasoningDelta("Let me "),
    ReasoningDelta("think."),
    TextDelta("Hé"),
    TextDelta("llo\u2028"),
    ReasoningDelta("", "c2ln"),
    CallStarted("a1", "get_weather", "a1"),
    ArgsDelta("a1", '{"city": "Oslo"}'),
    CallEnded("a1"),
    CallStarted("fresh0", "get_weather", "a1"),
    ArgsDelta("fresh0", '{"city": "Oslo"}'),
    CallEnded("fresh0"),
    Finished(StopReason.CALLS, USAGE),
]


@pytest.mark.parametrize("step", [0, 1, 2, 3, 7, 64])
def test_a_stream_is_read_however_it_is_cut(step: int) -> None:
    assert read(STREAM, step) == EVENTS
    assert read(STREAM.replace(b"\r\n", b"\n"), step) == EVENTS


def test_a_stream_cut_in_two_anywhere_gives_the_same_events() -> None:
    for at in range(len(STREAM)):
        decoder = WIRE.new_decoder(REQUEST, ids())
        assert decoder.feed(STREAM[:at]) + decoder.feed(STREAM[at:]) + decoder.finish() == EVENTS


def test_a_stream_that_ends_early_is_cut_off_or_complete_but_never_both_p3_p6() -> None:
    for end in range(len(STREAM)):
        events = read(STREAM[:end])
        complete = b'"finishReason": "STOP"' in STREAM[:end]
        if complete and isinstance(events[-1], Finished):
            assert events[:-1] == EVENTS[:-1]
        else:
            failure_of(events)
            assert events[:-1] == EVENTS[: len(events) - 1]


def test_an_answer_in_one_piece_is_the_fold_of_a_stream_wire4() -> None:
    parts = [{"text": "Hm", "thought": True}, {"text": "Hi"}, {**call(), "thoughtSignature": "c2ln"}]
    body = chunk(*parts, finish="STOP", usageMetadata=COUNTS)
    streamed = sse(*(chunk(part) for part in parts), chunk(finish="STOP", usageMetadata=COUNTS))
    events = whole(body)
    assert fold(events) == fold(read(streamed))
    turn = fold(events)
    assert (turn.text, turn.reasoning, turn.stop, turn.usage) == ("Hi", "Hm", StopReason.CALLS, USAGE)
    assert Reasoning("", "c2ln") in turn.parts
    assert [called.name for called in turn.calls] == ["get_weather"]


@pytest.mark.parametrize("step", [0, 1, 5])
def test_a_stream_may_come_as_an_array_or_in_one_piece(step: int) -> None:
    chunks = [chunk({"text": "a"}), chunk({"text": "b"}, finish="STOP", usageMetadata=COUNTS)]
    expected = [TextDelta("a"), TextDelta("b"), Finished(StopReason.END, USAGE)]
    assert whole(chunks) == expected
    assert read(b"\xef\xbb\xbf\r\n" + json.dumps(chunks, indent=2).encode(), step) == expected
    assert read(json.dumps(chunks[1]).encode(), step) == expected[1:]


def test_an_answer_that_is_kept_has_a_limit_p7() -> None:
    room = FrameLimits().event_bytes
    body = json.dumps(chunk({"text": "x"}, finish="STOP")).encode()
    for size in (room - 1, room):
        assert read(body + b" " * (size - len(body)), 1 << 20) == [TextDelta("x"), Finished(StopReason.END)]
    assert "limit" in failure_of(read(body + b" " * (room + 1 - len(body)), 1 << 20)).message


def test_calls_have_a_limit_p7() -> None:
    for number in (MOST_CALLS - 1, MOST_CALLS):
        assert len(whole(chunk(*[call()] * number, finish="STOP"))) == 3 * number + 1
    events = whole(chunk(*[call()] * (MOST_CALLS + 1), {"text": "more"}, finish="STOP"))
    assert len(events) == 3 * MOST_CALLS + 1
    assert str(MOST_CALLS) in failure_of(events).message


def test_names_and_ids_of_the_conversation_are_respected_wire6() -> None:
    used = Message(Role.ASSISTANT, (Call("a1", "mcp.read", "{}"),))
    request = Request("m", (used,), REQUEST.tools)
    sent = json.loads(WIRE.encode_request(request, QUIRKS).body)
    alias = sent["tools"][0]["functionDeclarations"][1]["name"]
    assert alias != "mcp.read"
    first, *_ = whole(chunk(call(alias, id="a1"), finish="STOP"), request)
    assert first == CallStarted("fresh0", "mcp.read", "a1")


ARGS: dict[str, tuple[bytes, str]] = {
    "to the byte": (b'{ "b_c" :1.10,"a":[ ]}', '{ "b_c" :1.10,"a":[ ]}'),
    "null": (b"null", "{}"),
    "a string": (b'"{\\"a\\":1}"', '{"a":1}'),
    "an empty string": (b'""', "{}"),
    "an array": (b"[1]", "[1]"),
    "no utf-8": (b'{"a":"\xff"}', '{"a":"\ufffd"}'),
}


@pytest.mark.parametrize("name", ARGS)
def test_arguments_are_told_as_they_came(name: str) -> None:
    raw, said = ARGS[name]
    body = b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":%b}}]},"finishReason":"STOP"}]}'
    assert ArgsDelta("fresh0", said) in WIRE.decode_turn(REQUEST, ids(), body % raw)
    assert ArgsDelta("fresh0", said) in read(b"data: " + body % raw + b"\n\n")


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert ArgsDelta("fresh0", "{}") in whole(chunk({"functionCall": {"name": "f"}}, finish="STOP"))


def test_a_call_without_a_name_is_rejected() -> None:
    events = whole(chunk({"functionCall": {"args": {}}}, finish="STOP"))
    complaint = Complaint(Problem.PARSE_ERROR, None, "the call has no name")
    assert events == [CallRejected(complaint, "{}"), Finished(StopReason.END)]


@pytest.mark.parametrize("pieces", [{"willContinue": True}, {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}]}])
def test_a_call_in_pieces_is_never_delivered_p3(pieces: Body) -> None:
    events = whole(chunk({"functionCall": {"name": "f", **pieces}}, {"text": "x"}, finish="STOP"))
    assert "pieces" in failure_of(events).message
    assert len(events) == 1


def test_signatures_stand_before_their_call_or_behind_their_text() -> None:
    text = {"text": "Hi", "thoughtSignature": "YQ=="}
    thought = {"text": "Hm", "thought": True, "thoughtSignature": "Yg=="}
    events = whole(chunk(thought, text, {"text": "", "thoughtSignature": "Yw=="}, finish="STOP"))
    assert events[:-1] == [
        ReasoningDelta("Hm", "Yg=="),
        TextDelta("Hi"),
        ReasoningDelta("", "YQ=="),
        ReasoningDelta("", "Yw=="),
    ]


STOPS = {
    "STOP": StopReason.END,
    "OTHER": StopReason.END,
    "SOMETHING_NEW": StopReason.END,
    "MAX_TOKENS": StopReason.LENGTH,
    "SAFETY": StopReason.FILTER,
    "RECITATION": StopReason.FILTER,
    "BLOCKLIST": StopReason.FILTER,
    "PROHIBITED_CONTENT": StopReason.FILTER,
    "SPII": StopReason.FILTER,
    "LANGUAGE": StopReason.FILTER,
    "IMAGE_SAFETY": StopReason.FILTER,
}


@pytest.mark.parametrize("reason", STOPS)
def test_every_finish_reason_is_read(reason: str) -> None:
    assert whole(chunk({"text": "x"}, finish=reason)) == [TextDelta("x"), Finished(STOPS[reason])]


def test_of_two_finish_reasons_the_stronger_counts() -> None:
    chunks = [chunk(finish="MAX_TOKENS"), chunk(finish="STOP")]
    assert whole(chunks) == whole(chunks[::-1]) == [Finished(StopReason.LENGTH)]


def test_a_call_that_ends_with_stop_is_a_call_fr_004() -> None:
    raw = (
        b'{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"get_weather",'
        b'"args":{"city":"Oslo"}}}]},"finishReason":"STOP"}]}'
    )
    turn = fold(WIRE.decode_turn(REQUEST, ids(), raw))
    assert turn.stop is StopReason.CALLS
    assert [(one.name, one.arguments) for one in turn.calls] == [("get_weather", '{"city":"Oslo"}')]


def test_a_malformed_call_fails_with_what_the_model_wrote_fr_002_p6() -> None:
    raw = (
        b'{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: '
        b'print(default_api.get_weather(city=\'Oslo\'))","index":0}]}'
    )
    for events in (WIRE.decode_turn(REQUEST, ids(), raw), read(b"data: " + raw + b"\n\n")):
        failure = failure_of(events)
        assert failure.kind is FailureKind.NATIVE_PARSER_FAILED
        assert failure.salvage == "print(default_api.get_weather(city='Oslo'))"
        assert failure.message.startswith("Malformed function call")


@pytest.mark.parametrize("reason", ["UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_FUNCTION_CALL"])
def test_a_candidate_without_content_is_no_empty_success_fr_003_p6(reason: str) -> None:
    failure = failure_of(whole({"candidates": [{"finishReason": reason, "index": 0}]}))
    assert (failure.kind, failure.salvage) == (FailureKind.NATIVE_PARSER_FAILED, "")
    assert reason in failure.message


def test_a_malformed_answer_fails() -> None:
    assert failure_of(whole(chunk({"text": "x"}, finish="MALFORMED_RESPONSE"))).kind is FailureKind.OTHER


def test_a_blocked_prompt_is_filtered() -> None:
    body = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}}
    assert whole(body) == read(sse(body)) == [Finished(StopReason.FILTER, Usage(3))]


SILENT: list[object] = [{}, [], {"candidates": []}, {"candidates": [{}]}, {"promptFeedback": {}}]


@pytest.mark.parametrize("body", SILENT)
def test_an_answer_that_says_nothing_is_cut_off_p6(body: object) -> None:
    assert failure_of(whole(body)).kind is FailureKind.DISCONNECTED


def test_an_empty_body_fails_p6() -> None:
    failure_of(WIRE.decode_turn(REQUEST, ids(), b""))
    assert failure_of(read(b"")).kind is FailureKind.DISCONNECTED


def test_an_error_in_the_middle_ends_the_stream_wire5() -> None:
    error = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    events = read(sse(chunk({"text": "a"}, usageMetadata=COUNTS), error, chunk({"text": "b"}, finish="STOP")))
    assert events[0] == TextDelta("a")
    assert len(events) == 2
    assert failure_of(events).kind is FailureKind.TRANSIENT
    assert events[-1] == Failed(failure_of(events), USAGE)
    assert failure_of(whole([chunk({"text": "a"}), error])).kind is FailureKind.TRANSIENT


@pytest.mark.parametrize(
    "data", [b"{", b"nonsense", b'{"candidates":5}', b'{"candidates":[{"content":"x"}]}', b"[1", b"\xff", b'"x"', b"5"]
)
def test_what_is_no_answer_fails_p6(data: bytes) -> None:
    assert "cannot be read" in failure_of(WIRE.decode_turn(REQUEST, ids(), data)).message
    assert failure_of(read(b"data: " + data + b"\n\ndata: {}\n\n"))


def test_what_servers_of_several_wires_add_is_ignored() -> None:
    assert read(b": ping\n\n" + sse(chunk({"text": "x"}, finish="STOP")) + b"data: [DONE]\n\n") == [
        TextDelta("x"),
        Finished(StopReason.END),
    ]


def test_parts_and_counts_of_odd_types_are_ignored() -> None:
    odd: list[Body] = [{"text": 5}, {"text": None, "thought": "yes"}, {"inlineData": 1}, {"thoughtSignature": []}, {}]
    usage = {"promptTokenCount": "x", "candidatesTokenCount": -1, "thoughtsTokenCount": None}
    assert whole(chunk(*odd, {"text": "x", "thought": 1}, finish="STOP", usageMetadata=usage)) == [
        TextDelta("x"),
        Finished(StopReason.END),
    ]
    assert whole(chunk({"text": "x"}, finish="STOP", usageMetadata=[])) == [TextDelta("x"), Finished(StopReason.END)]


def test_tokens_for_hosted_tools_are_input() -> None:
    usage = {"promptTokenCount": 3, "toolUsePromptTokenCount": 4, "candidatesTokenCount": 1}
    assert whole(chunk(finish="STOP", usageMetadata=usage)) == [Finished(StopReason.END, Usage(7, 1))]


KEYS = st.sampled_from(
    (
        *("candidates", "content", "parts", "text", "thought", "functionCall", "name", "args", "id", "finishReason"),
        *("usageMetadata", "promptTokenCount", "promptFeedback", "blockReason", "thoughtSignature", "error"),
    )
)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3)
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))


@given(st.lists(VALUES, max_size=3))
def test_every_stream_ends_with_one_end_p6(values: list[object]) -> None:
    data = b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values)
    for events in (read(data), whole(values), *map(whole, values)):
        assert [type(event) in (Finished, Failed) for event in events] == [False] * (len(events) - 1) + [True]


# ---------------------------------------------------------------- answers to a client


def streamed(*events: Event, request: Request = REQUEST, together: bool = True) -> bytes:
    encoder = WIRE.new_encoder(request, STAMP)
    return encoder.encode(events) if together else b"".join(encoder.encode([event]) for event in events)


def seen(*events: Event) -> Seen:
    """Judge a stream in all its forms, and the whole answer, which must say the same (WIRE-4)."""
    data = streamed(*events)
    assert data == streamed(*events, together=False)
    judged = read_stream("gemini", data)
    assert read_stream("gemini", streamed(*events, request=ARRAY)) == judged
    if isinstance(events[-1], Finished) and events[-1].stop is not StopReason.ERROR:
        assert read_whole("gemini", WIRE.encode_turn(REQUEST, STAMP, fold(events))) == judged
    return judged


def called(id_: str, *pieces: str, name: str = "f") -> list[Event]:
    return [CallStarted(id_, name), *(ArgsDelta(id_, piece) for piece in pieces), CallEnded(id_)]


def test_text_thoughts_and_calls_are_streamed_in_order_wire3() -> None:
    calls = [*called("a", '{"x":', "1}"), *called("b", '{"y":2}', name="g")]
    told = seen(ReasoningDelta("Hm"), TextDelta("Hi"), *calls, Finished(StopReason.CALLS, USAGE))
    assert (told.text, told.reasoning, told.stop, told.usage) == ("Hi", "Hm", "STOP", (10, 5))
    assert told.order == ("reasoning", "text", "call", "call")
    assert told.calls == (SeenCall("a", "f", {"x": 1}), SeenCall("b", "g", {"y": 2}))


def test_the_frames_of_a_stream_are_these() -> None:
    frames = streamed(TextDelta("Hi"), *called("a", "{}"), Finished(StopReason.END, USAGE)).split(b"\n\n")
    head, marks = {"role": "model"}, {"modelVersion": "m", "responseId": "abc"}
    usage = {
        "promptTokenCount": 10,
        "candidatesTokenCount": 3,
        "totalTokenCount": 15,
        "thoughtsTokenCount": 2,
        "cachedContentTokenCount": 4,
    }
    part: Body = {"functionCall": {"id": "a", "name": "f", "args": {}}}
    last: Body = {"content": {**head, "parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}
    assert [json.loads(frame.removeprefix(b"data: ")) for frame in frames if frame] == [
        {"candidates": [{"content": {**head, "parts": [{"text": "Hi"}]}, "index": 0}], **marks},
        {"candidates": [{"content": {**head, "parts": [part]}, "index": 0}], **marks},
        {"candidates": [last], "usageMetadata": usage, **marks},
    ]


def test_a_stream_without_events_is_one_array() -> None:
    data = streamed(TextDelta("a"), TextDelta("b"), Finished(StopReason.END), request=ARRAY)
    assert data.startswith(b"[{")
    assert data.count(b"},\r\n{") == 2
    assert data.endswith(b"}]")
    assert len(json.loads(data)) == 3
    failed = streamed(Failed(Failure(FailureKind.OTHER, "no")), request=ARRAY)
    assert json.loads(failed)[0]["error"]["message"] == "no"


def test_nothing_is_written_for_nothing() -> None:
    events = [TextDelta(""), ReasoningDelta(""), Discarded(Why.DEBRIS, "x"), CallStarted("a", "f"), ArgsDelta("a", "")]
    assert streamed(*events, CallRejected(Complaint(Problem.TRUNCATED, "f"))) == b""


def test_a_turn_that_says_nothing_still_ends() -> None:
    told = seen(Finished(StopReason.END))
    assert (told.text, told.order, told.stop, told.usage) == ("", (), "STOP", (0, 0))


def test_interleaved_calls_stand_where_they_started_wire4() -> None:
    told = seen(
        CallStarted("a", "f"),
        ArgsDelta("a", '{"x":'),
        CallStarted("b", "g"),
        TextDelta("while "),
        ArgsDelta("b", "{}"),
        ArgsDelta("a", "1}"),
        CallEnded("b"),
        ReasoningDelta("", "c2ln"),
        CallStarted("c", "h"),
        CallEnded("a"),
        TextDelta("open"),
        CallEnded("c"),
        Finished(StopReason.CALLS),
    )
    assert [one.id for one in told.calls] == ["a", "b", "c"]
    assert told.order == ("call", "call", "text", "call", "text")
    assert (told.text, told.signatures) == ("while open", ("c2ln",))


def test_a_call_that_never_ended_is_never_sent_p3() -> None:
    events = [TextDelta("a"), CallStarted("x", "f"), ArgsDelta("x", "{"), TextDelta("b"), *called("y", "{}")]
    told = seen(*events, CallRejected(Complaint(Problem.TRUNCATED, "f"), "{"), Finished(StopReason.LENGTH))
    assert (told.text, told.stop, [one.id for one in told.calls]) == ("ab", "MAX_TOKENS", ["y"])


def test_a_signature_goes_to_the_call_behind_it_or_stands_alone() -> None:
    signed = [ReasoningDelta("Hm", "c2ln"), *called("a", "{}"), *called("b", "{}")]
    frames = streamed(*signed, ReasoningDelta("", "YQ=="), ReasoningDelta("", "Yg=="), TextDelta("x"))
    parts = [json.loads(one[6:])["candidates"][0]["content"]["parts"][0] for one in frames.split(b"\n\n") if one]
    assert parts == [
        {"text": "Hm", "thought": True},
        {"functionCall": {"id": "a", "name": "f", "args": {}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"id": "b", "name": "f", "args": {}}},
        {"text": "", "thoughtSignature": "YQ=="},
        {"text": "", "thoughtSignature": "Yg=="},
        {"text": "x"},
    ]
    told = seen(*signed, TextDelta("x"), ReasoningDelta("", "YQ=="), Finished(StopReason.CALLS))
    assert told.signatures == ("c2ln", "YQ==")


@pytest.mark.parametrize(
    "signature", ["c2ln", "skip_thought_signature_validator", "no base64: é", "A", "rs_1:gAAA-_=="]
)
def test_a_signature_of_any_form_comes_back_as_it_was(signature: str) -> None:
    told = seen(ReasoningDelta("", signature), *called("a", "{}"), Finished(StopReason.CALLS))
    (sealed,) = told.signatures
    for form in (sealed, sealed.replace("+", "-").replace("/", "_"), sealed.rstrip("=")):
        part = {"functionCall": {"name": "f"}, "thoughtSignature": form if sealed != signature else sealed}
        body = {"contents": [{"role": "model", "parts": [part]}]}
        (message,) = WIRE.decode_request(json.dumps(body).encode(), "").messages
        assert message.parts[0] == Reasoning("", signature)


def test_a_signature_that_only_looks_wrapped_is_left_alone() -> None:
    body = {"contents": [{"role": "model", "parts": [{"text": "", "thoughtSignature": "dG9vbHNwZWFr/w=="}]}]}
    (message,) = WIRE.decode_request(json.dumps(body).encode(), "").messages
    assert message.parts == (Reasoning("", "dG9vbHNwZWFr/w=="),)


@pytest.mark.parametrize(
    ("said", "args"),
    [
        ("", {}),
        ('{\n "a":\r\n 1.50 }', {"a": 1.5}),
        ('{"a":"\u2028\u2029\x85"}', {"a": "\u2028\u2029\x85"}),
        ('{"a":', {"arguments": '{"a":'}),
        ("[1]", {"arguments": [1]}),
        ('"\ud83d"', {"arguments": '"\ufffd"'}),
    ],
)
def test_arguments_are_an_object_on_one_line(said: str, args: Body) -> None:
    assert seen(*called("a", said), Finished(StopReason.CALLS)).calls[0].arguments == args


def test_line_ends_and_halves_of_characters_do_not_break_a_line() -> None:
    told = seen(TextDelta("a\u2028\u2029\x85\n\ud83d"), ReasoningDelta("\u2028"), Finished(StopReason.END))
    assert (told.text, told.reasoning) == ("a\u2028\u2029\x85\n\ufffd", "\u2028")


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (StopReason.END, "STOP"),
        (StopReason.CALLS, "STOP"),
        (StopReason.LENGTH, "MAX_TOKENS"),
        (StopReason.FILTER, "SAFETY"),
    ],
)
def test_every_stop_has_its_finish_reason(stop: StopReason, reason: str) -> None:
    assert seen(TextDelta("x"), *called("a", "{}"), Finished(stop)).stop == reason


def test_more_thoughts_than_output_are_no_negative_count() -> None:
    assert seen(Finished(StopReason.END, Usage(1, 2, reasoning_tokens=5))).usage == (1, 2)


@pytest.mark.parametrize("last", [Failed(Failure(FailureKind.TRANSIENT, "gone")), Finished(StopReason.ERROR)])
def test_a_failure_in_the_middle_is_the_protocols_own_error_p6(last: Event) -> None:
    told = seen(TextDelta("a"), CallStarted("x", "f"), TextDelta("b"), ReasoningDelta("", "c2ln"), last)
    assert told.error == ("gone" if isinstance(last, Failed) else "the upstream ended its answer with an error")
    assert (told.text, told.calls, told.stop) == ("ab", (), "")


def test_an_idle_stream_is_kept_alive_by_what_no_client_sees() -> None:
    encoder = WIRE.new_encoder(REQUEST, STAMP)
    alive = encoder.keep_alive()
    assert alive == b"\n"
    data = alive + encoder.encode([TextDelta("a")]) + alive + encoder.encode([Finished(StopReason.END)])
    assert read_stream("gemini", data).text == "a"


def test_what_we_write_is_what_we_read_wire2() -> None:
    events = [ReasoningDelta("Hm"), TextDelta("Hi"), ReasoningDelta("", "c2ln"), *called("a", '{"x":1}')]
    for request in (REQUEST, ARRAY):
        data = streamed(*events, Finished(StopReason.CALLS, USAGE), request=request)
        turn = fold(read(data))
        assert turn == fold([*events[:3], CallStarted("a", "f", "a"), *events[4:], Finished(StopReason.CALLS, USAGE)])


# ---------------------------------------------------------------- failures

STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    502: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


@pytest.mark.parametrize("status", STATUSES)
def test_an_error_has_the_word_of_its_status_wire5(status: int) -> None:
    error = WIRE.encode_failure(Failure(FailureKind.OTHER, "no", status), STAMP)
    assert error.status == status
    assert json.loads(error.body) == {
        "error": {"code": status, "message": "no", "status": STATUSES[status], "details": []}
    }
    assert WIRE.decode_failure(status, error.body).message == "no"


def test_an_error_says_which_field_and_when_to_try_again() -> None:
    failure = Failure(FailureKind.RATE_LIMITED, "slow down", field="contents", retry_after=1.5)
    error = WIRE.encode_failure(failure, STAMP)
    body = json.loads(error.body)["error"]
    assert (error.status, body["code"], body["status"]) == (429, 429, "RESOURCE_EXHAUSTED")
    assert body["details"] == [
        {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": "contents", "description": "slow down"}],
        },
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"},
    ]
    assert WIRE.decode_failure(429, error.body).retry_after == 1.5


def test_an_error_without_words_still_says_something() -> None:
    assert json.loads(WIRE.encode_failure(Failure(FailureKind.TIMEOUT, ""), STAMP).body)["error"]["message"]


def test_an_error_of_the_vendor_is_sorted_wire5() -> None:
    message = "Function call is missing a thought_signature in functionCall parts."
    body = {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    for shape in (body, [body]):
        assert WIRE.decode_failure(400, json.dumps(shape).encode()).kind is FailureKind.HISTORY_NEEDS_SIGNATURE

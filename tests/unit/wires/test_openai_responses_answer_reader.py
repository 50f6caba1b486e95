"""Answers of the Responses wire become events, as the vendor sends them and as servers that imitate it do."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any, TypeAlias

import pytest

from testkit.grammar.samples import SAMPLES, responses_stream, responses_whole
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
from toolspeak.ir.message import Call, Reasoning, Text
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Turn, fold
from toolspeak.wires import load
from toolspeak.wires.shared.call_deltas import MAX_SIZE

Field: TypeAlias = Any
Body: TypeAlias = dict[str, Any]
WIRE = load("openai_responses")
TOOLS: list[Body] = [
    {"type": "function", "name": "now"},
    {"type": "custom", "name": "apply_patch"},
    {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}},
    {"type": "namespace", "name": "agents", "description": "", "tools": [{"type": "function", "name": "close_agent"}]},
]
ASK = WIRE.decode_request(json.dumps({"model": "m", "input": "hi", "tools": TOOLS, "stream": True}).encode(), "")
USAGE: Body = {
    "input_tokens": 7,
    "output_tokens": 5,
    "total_tokens": 12,
    "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
    "output_tokens_details": {"reasoning_tokens": 1},
}
CREATED: Body = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}
NOW: Body = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "now", "arguments": '{"zone": "CET"}'}
TEXT: Body = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
CALLED = [CallStarted("call_1", "now", "call_1"), ArgsDelta("call_1", '{"zone": "CET"}'), CallEnded("call_1")]


def ids() -> Iterator[str]:
    return (f"fresh{number}" for number in count())


def sse(events: Iterable[Body], *, named: bool = True) -> bytes:
    return b"".join(
        (f"event: {event['type']}\n" if named else "").encode() + b"data: " + json.dumps(event).encode() + b"\n\n"
        for event in events
    )


def read(data: bytes, request: Request = ASK) -> list[Event]:
    decoder = WIRE.new_decoder(request, ids())
    events = [*decoder.feed(data), *decoder.finish()]
    assert isinstance(events[-1], Finished | Failed)
    assert sum(isinstance(event, Finished | Failed) for event in events) == 1
    assert decoder.feed(data) == decoder.finish() == []
    return events


def answer(*events: Body, request: Request = ASK, **response: Field) -> list[Event]:
    """Read a stream of these events, from the created response to the completed one."""
    end = {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", **response}}
    return read(sse([CREATED, *events, end]), request)


def added(item: Body, index: int = 0) -> Body:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(item: Body, index: int = 0) -> Body:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def delta(kind: str, text: str, item: str = "fc_1", index: int = 0, **more: Field) -> Body:
    return {"type": f"response.{kind}.delta", "item_id": item, "output_index": index, "delta": text, **more}


def whole(**body: Field) -> list[Event]:
    body = {"id": "resp_1", "object": "response", "status": "completed", "output": [], **body}
    return WIRE.decode_turn(ASK, ids(), json.dumps(body).encode())


# ---------------------------------------------------------------- the vendor's streams


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_stream_of_the_vendor_says_what_its_sample_says(name: str) -> None:
    sample = SAMPLES[name]
    turn = fold(read(responses_stream(sample)))
    assert (turn.text, turn.reasoning) == (sample.text, sample.reasoning)
    flat = {"close_agent": "agents__close_agent"}
    wanted = [
        (
            call.id,
            flat.get(call.name, call.name),
            {"input": call.arguments} if call.kind == "custom" else call.arguments,
        )
        for call in sample.calls
    ]
    assert [(call.id, call.name, json.loads(call.arguments)) for call in turn.calls] == wanted
    if sample.error:
        assert turn.failure is not None
        assert turn.failure.message == sample.error
    else:
        assert turn.stop is (StopReason.CALLS if sample.calls else StopReason.END)
        assert (turn.usage.input_tokens, turn.usage.output_tokens) == (7, 5)


@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if not sample.error])
def test_a_whole_answer_is_the_fold_of_its_stream_wire4(name: str) -> None:
    streamed = fold(read(responses_stream(SAMPLES[name])))
    assert fold(WIRE.decode_turn(ASK, ids(), responses_whole(SAMPLES[name]))) == streamed


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_chunking_is_invisible(name: str) -> None:
    data = responses_stream(SAMPLES[name])
    for size in (1, 7, 64):
        decoder = WIRE.new_decoder(ASK, ids())
        pieces = [decoder.feed(data[start : start + size]) for start in range(0, len(data), size)]
        assert [event for piece in pieces for event in piece] + decoder.finish() == read(data)


@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if not sample.error])
def test_a_stream_that_is_cut_anywhere_fails_and_delivers_no_half_call_p3_p6(name: str) -> None:
    data = responses_stream(SAMPLES[name])
    end = data.index(b"event: response.completed")
    calls = fold(read(data)).calls
    for cut in range(0, end, 3):
        turn = fold(read(data[:cut]))
        assert turn.failure is not None
        assert turn.failure.kind is FailureKind.DISCONNECTED
        assert turn.calls == calls[: len(turn.calls)]


def test_text_is_told_as_it_comes_and_once() -> None:
    pieces = [delta("output_text", text, "msg_1") for text in ("H", "i")]
    assert answer(added({**TEXT, "content": []}), *pieces, done(TEXT), output=[TEXT])[:-1] == [
        TextDelta("H"),
        TextDelta("i"),
    ]


def test_a_refusal_is_text() -> None:
    item = {**TEXT, "content": [{"type": "refusal", "refusal": "No."}]}
    assert answer(added(item), delta("refusal", "No.", "msg_1"), done(item))[0] == TextDelta("No.")
    assert answer(done(item))[0] == TextDelta("No.")


def test_parts_of_reasoning_are_joined_by_a_blank_line_wire7() -> None:
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "ab"}, {"type": "summary_text", "text": "c"}],
        "encrypted_content": "sealed",
    }
    pieces = [
        delta("reasoning_summary_text", "a", "rs_1", summary_index=0),
        delta("reasoning_summary_text", "b", "rs_1", summary_index=0),
        delta("reasoning_summary_text", "c", "rs_1", summary_index=1),
    ]
    streamed = answer(added({**item, "summary": [], "encrypted_content": "half"}), *pieces, done(item), done(TEXT, 1))
    assert fold(streamed).parts == (Reasoning("ab\n\nc", "sealed"), Text("Hi"))
    assert fold(answer(done(item), done(TEXT, 1))) == fold(streamed)
    assert fold(whole(output=[item, TEXT])) == fold(streamed)


def test_reasoning_text_is_reasoning_too_wire7() -> None:
    content = [{"type": "reasoning_text", "text": "hm"}]
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "content": content}
    assert answer(added(item), delta("reasoning_text", "hm", "rs_1", content_index=0), done(item))[:-1] == [
        ReasoningDelta("hm")
    ]
    assert answer(done(item))[:-1] == [ReasoningDelta("hm")]


def test_reasoning_that_is_only_sealed_stands_before_its_call() -> None:
    item: Body = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
    assert fold(answer(done(item), done(NOW, 1))).parts[0] == Reasoning("", "sealed")


def test_two_items_of_reasoning_do_not_run_into_each_other() -> None:
    items = [{"type": "reasoning", "id": f"rs_{n}", "summary": [{"type": "summary_text", "text": n}]} for n in "ab"]
    assert fold(answer(done(items[0]), done(items[1], 1))).reasoning == "a\n\nb"


# ---------------------------------------------------------------- calls


def test_arguments_are_told_as_they_come() -> None:
    pieces = [delta("function_call_arguments", piece) for piece in ('{"zone": ', '"CET"}')]
    end = {"type": "response.function_call_arguments.done", "item_id": "fc_1", "arguments": NOW["arguments"]}
    events = answer(added({**NOW, "arguments": ""}), *pieces, end, done(NOW), output=[NOW])
    assert events == [
        CallStarted("call_1", "now", "call_1"),
        ArgsDelta("call_1", '{"zone": '),
        ArgsDelta("call_1", '"CET"}'),
        CallEnded("call_1"),
        Finished(StopReason.CALLS, Usage()),
    ]


@pytest.mark.parametrize(
    "events",
    [
        [done(NOW)],
        [added({**NOW, "arguments": ""}), done(NOW)],
        [added({**NOW, "arguments": ""}), delta("function_call_arguments", '{"zone"'), done(NOW)],
        [delta("function_call_arguments", '{"zone"'), done(NOW)],
        [added(NOW), done(NOW), done(NOW)],
        [added({**NOW, "id": "other"}), delta("function_call_arguments", '{"zone": "CET"}', "third"), done(NOW)],
        [
            added({**NOW, "id": None, "arguments": ""}),
            delta("function_call_arguments", NOW["arguments"], ""),
            done(NOW),
        ],
        [
            added({**NOW, "arguments": ""}),
            {"type": "response.function_call_arguments.done", "item_id": "fc_1", "arguments": NOW["arguments"]},
        ],
        [added({**NOW, "arguments": ""}), delta("function_call_arguments", NOW["arguments"])],
    ],
)
@pytest.mark.parametrize("output", [[NOW], [], None])
def test_a_call_is_told_once_whatever_events_are_left_out(events: list[Body], output: list[Body] | None) -> None:
    told = answer(*events, output=output)
    assert [type(event) for event in told if not isinstance(event, ArgsDelta)] == [CallStarted, CallEnded, Finished]
    turn = fold(told)
    assert turn.calls == (Call("call_1", "now", NOW["arguments"], "call_1"),)
    assert turn.stop is StopReason.CALLS


def test_a_server_may_send_nothing_but_the_completed_response() -> None:
    assert answer(output=[TEXT, NOW])[:-1] == [TextDelta("Hi"), *CALLED]


def test_a_server_may_stream_text_and_tell_the_calls_only_at_the_end() -> None:
    told = answer(added(TEXT), delta("output_text", "Hi", "msg_1"), output=[{**TEXT, "id": "changed"}, NOW])
    assert told[:-1] == [TextDelta("Hi"), *CALLED]


def test_a_server_may_use_one_index_for_all_items() -> None:
    second = {**NOW, "id": "fc_2", "call_id": "call_2"}
    other = {**TEXT, "id": "msg_2", "content": [{"type": "output_text", "text": "ho"}]}
    turn = fold(answer(done(TEXT), done(NOW), done(second), done(other), output=[TEXT, NOW, second, other]))
    assert [call.id for call in turn.calls] == ["call_1", "call_2"]
    assert turn.text == "Hiho"


def test_two_calls_may_have_the_same_id_and_get_ids_of_their_own() -> None:
    second = {**NOW, "id": "fc_2"}
    streamed = answer(added(NOW), done(NOW), added(second, 1), done(second, 1), output=[NOW, second])
    for events in (streamed, answer(done(NOW), done(second, 1)), whole(output=[NOW, second])):
        assert [call.id for call in fold(events).calls] == ["call_1", "fresh0"]


def test_an_item_that_is_added_or_done_again_is_told_once() -> None:
    twice = [added(TEXT), delta("output_text", "Hi", "msg_1"), added(TEXT), done(TEXT), done(TEXT)]
    assert answer(*twice, output=[TEXT])[:-1] == [TextDelta("Hi")]
    assert answer(added(NOW, 1), added(NOW, 1), done(NOW, 1), added(NOW, 1), output=[TEXT, NOW])[:-1] == [
        *CALLED,
        TextDelta("Hi"),
    ]


def test_events_without_ids_and_indexes_belong_to_the_last_item() -> None:
    pieces = [{"type": "response.function_call_arguments.delta", "delta": piece} for piece in ("{", "}")]
    turn = fold(answer({"type": "response.output_item.added", "item": {**NOW, "id": None, "arguments": ""}}, *pieces))
    assert turn.calls == (Call("call_1", "now", "{}", "call_1"),)


def test_the_event_line_may_be_missing_and_a_done_mark_may_follow() -> None:
    end = {"type": "response.completed", "response": {"output": [NOW]}}
    assert read(sse([CREATED, end], named=False) + b"data: [DONE]\n\n")[:-1] == CALLED


def test_the_type_may_stand_in_the_event_line_alone() -> None:
    data = b'event: response.output_text.delta\ndata: {"delta":"Hi"}\n\nevent: response.completed\ndata: {}\n\n'
    assert read(data) == [TextDelta("Hi"), Finished(StopReason.END)]


def test_parallel_calls_may_interleave() -> None:
    second = {**NOW, "id": "fc_2", "call_id": "call_2"}
    turn = fold(
        answer(
            added({**NOW, "arguments": ""}),
            added({**second, "arguments": ""}, 1),
            delta("function_call_arguments", '{"zone": ', "fc_2", 1),
            delta("function_call_arguments", '{"zone": "CET"}'),
            done(NOW),
            done(second, 1),
        )
    )
    assert [(call.id, call.arguments) for call in turn.calls] == [
        ("call_1", NOW["arguments"]),
        ("call_2", NOW["arguments"]),
    ]


@pytest.mark.parametrize("arguments", ["", None, {}, "{}"])
def test_a_call_without_arguments_has_an_empty_object(arguments: Field) -> None:
    assert fold(answer(done({**NOW, "arguments": arguments}))).calls[0].arguments == "{}"


def test_arguments_that_come_as_an_object_keep_their_text() -> None:
    data = b'data: {"type":"response.output_item.done","item":{"type":"function_call","name":"now","call_id":"c",'
    data += b'"arguments":{ "a" : 1.50 }}}\n\ndata: {"type":"response.completed","response":{}}\n\n'
    assert fold(read(data)).calls[0].arguments == '{ "a" : 1.50 }'


def test_ids_that_cannot_be_used_are_made_anew() -> None:
    bad = {**NOW, "call_id": "no good!"}
    assert fold(answer(done(bad))).calls[0].id == "fresh0"
    missing = {**NOW, "call_id": None}
    assert fold(answer(added(missing), done(missing), output=[missing])).calls[0].id == "fresh0"


def test_custom_input_is_streamed_as_json() -> None:
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "apply_patch", "input": 'a"\n☃'}
    pieces = [delta("custom_tool_call_input", piece, "ctc_1") for piece in ('a"', "\n☃")]
    events = answer(added({**item, "input": ""}), *pieces, done(item))
    assert [event.json for event in events if isinstance(event, ArgsDelta)] == ['{"input":"a\\"', "\\n☃", '"}']
    assert json.loads(fold(events).calls[0].arguments) == {"input": 'a"\n☃'}
    assert fold(answer(done(item))) == fold(events)
    assert fold(whole(output=[item])).calls == fold(events).calls


def test_custom_input_may_be_empty() -> None:
    item = {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": ""}
    assert fold(answer(done(item))).calls[0].arguments == '{"input":""}'


def test_custom_input_that_was_told_as_a_whole_needs_no_other_end() -> None:
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "apply_patch", "input": ""}
    end = {"type": "response.custom_tool_call_input.done", "item_id": "ctc_1", "input": "x"}
    assert fold(answer(added(item), end)).calls[0].arguments == '{"input":"x"}'


def test_a_search_of_the_client_is_a_call_and_one_of_the_server_is_not() -> None:
    item = {
        "type": "tool_search_call",
        "id": "tsc_1",
        "call_id": "c",
        "execution": "client",
        "arguments": {"query": "x"},
    }
    turn = fold(answer(added({**item, "arguments": {}}), done(item), output=[item]))
    assert [(call.name, json.loads(call.arguments)) for call in turn.calls] == [("tool_search", {"query": "x"})]
    assert fold(answer(done({**item, "execution": "server", "call_id": None}))).calls == ()


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"name": "close_agent", "namespace": "agents"}, "agents__close_agent"),
        ({"name": "unknown", "namespace": "agents"}, "agents__unknown"),
        ({"name": "now", "namespace": "now"}, "now"),
        ({"name": "unknown"}, "unknown"),
    ],
)
def test_names_come_back_flat(fields: Body, name: str) -> None:
    assert fold(answer(done({**NOW, **fields}))).calls[0].name == name


def test_an_alias_comes_back_as_the_name_of_its_tool() -> None:
    request = Request("m", (), (Tool("mcp.x:y"),))
    alias = json.loads(WIRE.encode_request(request, QUIRKS).body)["tools"][0]["name"]
    assert fold(answer(done({**NOW, "name": alias}), request=request)).calls[0].name == "mcp.x:y"


def test_hosted_items_are_passed_over() -> None:
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    searching = {"type": "response.web_search_call.searching", "item_id": "ws_1", "output_index": 0}
    assert answer(added(item), searching, done(item), done(TEXT, 1), output=[item, TEXT])[:-1] == [TextDelta("Hi")]


# ---------------------------------------------------------------- how it ends


def test_usage_is_read_with_all_its_details() -> None:
    assert answer(usage=USAGE)[-1] == Finished(StopReason.END, Usage(7, 5, 3, 2, 1))
    assert answer(usage={"input_tokens": "many", "output_tokens": None})[-1] == Finished(StopReason.END)
    assert answer(usage=[5])[-1] == Finished(StopReason.END)


@pytest.mark.parametrize(
    ("details", "stop"),
    [
        ({"reason": "max_output_tokens"}, StopReason.LENGTH),
        ({"reason": "content_filter"}, StopReason.FILTER),
        ({"reason": "something_new"}, StopReason.LENGTH),
        (None, StopReason.LENGTH),
        ("odd", StopReason.LENGTH),
    ],
)
@pytest.mark.parametrize("kind", ["response.incomplete", "response.completed"])
def test_an_incomplete_response_says_why(details: Field, stop: StopReason, kind: str) -> None:
    response = {"status": "incomplete", "incomplete_details": details, "output": [TEXT]}
    assert read(sse([{"type": kind, "response": response}])) == [TextDelta("Hi"), Finished(stop)]
    assert whole(**response) == [TextDelta("Hi"), Finished(stop)]


CUT: Body = {**NOW, "arguments": '{"zone": "C', "status": "incomplete"}
INCOMPLETE: Body = {
    "type": "response.incomplete",
    "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
}


@pytest.mark.parametrize(
    "events",
    [
        [added({**CUT, "arguments": ""}), delta("function_call_arguments", CUT["arguments"]), done(CUT)],
        [added({**CUT, "arguments": ""}), delta("function_call_arguments", CUT["arguments"])],
        [done(CUT)],
        [done({**CUT, "status": "completed"})],
    ],
)
def test_a_call_that_was_cut_is_rejected_p3(events: list[Body]) -> None:
    told = read(sse([CREATED, *events, INCOMPLETE]))
    assert told[-2:] == [
        CallRejected(Complaint(Problem.TRUNCATED, "now"), CUT["arguments"]),
        Finished(StopReason.LENGTH),
    ]
    assert CallEnded("call_1") not in told


def test_a_call_before_the_cut_is_delivered() -> None:
    cut = {**CUT, "id": "fc_2", "call_id": "call_2"}
    assert [call.id for call in fold(read(sse([done(NOW), done(cut, 1), INCOMPLETE]))).calls] == ["call_1"]
    body = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [NOW, cut]}
    assert fold(whole(**body)).calls == (Call("call_1", "now", NOW["arguments"], "call_1"),)


def test_a_call_that_says_it_is_incomplete_is_rejected_even_in_a_completed_response_p3() -> None:
    assert fold(answer(done(CUT))).calls == ()
    assert fold(whole(output=[{**CUT, "arguments": "{}"}])).calls == ()


def test_a_custom_call_that_was_cut_is_rejected_p3() -> None:
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "apply_patch", "input": ""}
    told = read(sse([added(item), delta("custom_tool_call_input", "*** Beg", "ctc_1"), INCOMPLETE]))
    assert told[-2] == CallRejected(Complaint(Problem.TRUNCATED, "apply_patch"), "*** Beg")


def test_arguments_that_are_no_json_are_left_to_others_if_the_response_ends_well() -> None:
    assert fold(answer(done({**NOW, "arguments": "{'zone': }"}))).calls[0].arguments == "{'zone': }"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "it broke", "param": None, "sequence_number": 3},
        {"type": "error", "error": {"type": "server_error", "message": "it broke"}},
        {"type": "response.failed", "response": {"status": "failed", "error": {"code": "x", "message": "it broke"}}},
        {"type": "response.completed", "response": {"status": "failed", "error": {"code": "x", "message": "it broke"}}},
    ],
)
def test_an_error_in_the_middle_is_a_failure_and_nothing_comes_after_it_p6(event: Body) -> None:
    told = read(
        sse([CREATED, added({**NOW, "arguments": ""}), delta("function_call_arguments", "{}"), event, done(TEXT)])
    )
    assert [type(one) for one in told] == [CallStarted, ArgsDelta, CallRejected, Failed]
    assert isinstance(told[-1], Failed)
    assert told[-1].failure.message == "it broke"


def test_an_error_object_without_a_type_is_a_failure_p6() -> None:
    told = read(b'data: {"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}\n\n')
    assert isinstance(told[-1], Failed)
    assert told[-1].failure.kind is FailureKind.RATE_LIMITED


def test_a_failed_response_tells_its_usage_and_its_class_wire5() -> None:
    error = {"code": "context_length_exceeded", "message": "Your input exceeds the context window"}
    told = read(sse([{"type": "response.failed", "response": {"error": error, "usage": USAGE}}]))
    assert isinstance(told[-1], Failed)
    assert (told[-1].failure.kind, told[-1].usage) == (FailureKind.CONTEXT_LENGTH, Usage(7, 5, 3, 2, 1))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b": only a comment\n\n",
        b"data: [DONE]\n\n",
        b"data: {\n\n",
        b"data: 5\n\n",
        b"data: null\n\n",
        b"data: []\n\n",
        b'data: "x"\n\n',
        b"data: \xff\n\n",
        b"data: " + b"[" * 5000 + b"\n\n",
        b"<html>no</html>",
        b'{"id":"resp_1"}',
    ],
)
def test_bytes_that_are_no_stream_are_a_failure_p6(data: bytes) -> None:
    assert [type(event) for event in read(data)] == [Failed]


ODD: Sequence[Field] = (None, 5, 1.5, True, "x", "", [], {}, [5], {"a": 1}, [[]], [None])
KINDS = (
    "output_text.delta",
    "refusal.delta",
    "reasoning_summary_text.delta",
    "reasoning_text.delta",
    "output_item.added",
    "output_item.done",
    "function_call_arguments.delta",
    "function_call_arguments.done",
    "custom_tool_call_input.delta",
    "custom_tool_call_input.done",
    "created",
    "completed",
    "incomplete",
    "failed",
    "something.new",
)


@pytest.mark.parametrize("kind", KINDS)
def test_odd_types_never_raise(kind: str) -> None:
    keys = (
        "delta",
        "item_id",
        "output_index",
        "summary_index",
        "content_index",
        "item",
        "response",
        "arguments",
        "input",
    )
    for key in keys:
        for odd in ODD:
            event = {"type": f"response.{kind}", "delta": "x", "item_id": "fc_1", "item": NOW, "response": {}}
            read(sse([CREATED, added(NOW), {**event, key: odd}, done(TEXT, 1)]))


def test_odd_types_in_items_and_responses_never_raise() -> None:
    items = (NOW, TEXT, {"type": "reasoning", "id": "r"}, {"type": "custom_tool_call"}, {"type": "tool_search_call"})
    for item in items:
        for key in (*item, "summary", "content", "input", "namespace", "encrypted_content", "status", "execution"):
            for odd in ODD:
                answer(added({**item, key: odd}), done({**item, key: odd}), output=[{**item, key: odd}])
                assert isinstance(whole(output=[{**item, key: odd}])[-1], Finished | Failed)
    for key in ("status", "output", "usage", "incomplete_details", "error", "id"):
        for odd in ODD:
            answer(**{key: odd})
            assert isinstance(whole(**{key: odd})[-1], Finished | Failed)


# ---------------------------------------------------------------- whole answers


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b"\xff",
        b'{"status":"completed"}',
        b'{"output":5}',
        b'{"output":[5]}',
        b'{"output":[{"type":"function_call","name":"x","arguments":{"\xff":1}}]}',
        b'{"status":"in_progress","output":[]}',
        b'{"status":"queued","output":[]}',
        b'{"status":"cancelled","output":[]}',
        b'{"error":{"message":"no"}}',
    ],
)
def test_a_body_that_is_no_answer_is_a_failure_p6(body: bytes) -> None:
    assert isinstance(WIRE.decode_turn(ASK, ids(), body)[-1], Failed)


def test_a_failed_response_is_a_failure() -> None:
    events = whole(status="failed", error={"code": "rate_limit_exceeded", "message": "Try again in 3s"}, output=[NOW])
    assert isinstance(events[-1], Failed)
    assert (events[-1].failure.kind, events[-1].failure.retry_after) == (FailureKind.RATE_LIMITED, 3.0)
    assert fold(events).calls == ()


def test_a_body_without_a_status_is_an_answer() -> None:
    assert fold(whole(status=None, output=[TEXT])) == Turn((Text("Hi"),), StopReason.END)


# ---------------------------------------------------------------- limits


def test_arguments_have_a_limit_p7() -> None:
    size = MAX_SIZE - 1024
    for more, end in ((-1, Finished), (0, Finished), (1, Failed)):
        text = json.dumps({"a": "x" * (size + more - len('{"a": ""}'))})
        assert len(text) == size + more
        assert isinstance(whole(output=[{**NOW, "arguments": text}])[-1], end)


def test_the_number_of_items_has_a_limit_p7() -> None:
    items = [{**NOW, "id": f"fc_{number}", "call_id": f"c{number}", "arguments": "{}"} for number in range(8192)]
    assert isinstance(whole(output=items)[-1], Failed)
    assert isinstance(whole(output=items[:8000])[-1], Finished)


def test_failures_before_the_stream_are_read_wire5() -> None:
    body = b'{"error":{"message":"Incorrect API key","type":"invalid_request_error","code":"invalid_api_key"}}'
    assert WIRE.decode_failure(401, body).kind is FailureKind.AUTH

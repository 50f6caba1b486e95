"""Events become streams and bodies of the Responses wire, as its SDKs and clients read them."""

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import pytest

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
from toolspeak.ir.request import Request
from toolspeak.ir.turn import Turn, fold
from toolspeak.wires import Stamp, load

Field: TypeAlias = Any
Body: TypeAlias = dict[str, Any]
NAME = "openai_responses"
WIRE = load(NAME)
STAMP = Stamp("abc123", 1700000000)
TOOLS: list[Body] = [
    {"type": "function", "name": "now", "strict": True},
    {"type": "custom", "name": "patch"},
    {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}},
    {
        "type": "namespace",
        "name": "agents",
        "description": "All.",
        "tools": [{"type": "function", "name": "close"}, {"type": "custom", "name": "exec"}],
    },
]
CODEX = {"client_metadata": {"session_id": "s", "x-codex-window-id": "w"}}
USAGE = Usage(7, 5, 3, 2, 1)
END = Finished(StopReason.END, USAGE)
CALLS = Finished(StopReason.CALLS, USAGE)
LENGTH = Finished(StopReason.LENGTH, USAGE)


def request(**fields: Field) -> Request:
    body = {"model": "m", "input": "hi", "tools": TOOLS, "stream": True, **fields}
    return WIRE.decode_request(json.dumps(body).encode(), "")


def stream(events: Sequence[Event], **fields: Field) -> bytes:
    """Write a stream in one piece, and check that pieces make no difference."""
    asked = request(**fields)
    whole = WIRE.new_encoder(asked, STAMP).encode(events)
    encoder = WIRE.new_encoder(asked, STAMP)
    assert b"".join(encoder.encode([event]) for event in events) == whole
    return whole


def frames(data: bytes) -> list[Body]:
    found = re.findall(r"^event: (.*)\ndata: (.*)\n\n", data.decode(), re.MULTILINE)
    bodies = [json.loads(body) for _, body in found]
    assert [body["type"] for body in bodies] == [name for name, _ in found]
    assert [body["sequence_number"] for body in bodies] == list(range(len(bodies)))
    return bodies


def kinds(data: bytes) -> list[str]:
    return [frame["type"].removeprefix("response.") for frame in frames(data)]


def last(data: bytes) -> Body:
    return frames(data)[-1]["response"]


def seen(events: Sequence[Event], **fields: Field) -> Seen:
    """Judge the stream, and the whole answer of the same turn, which must say the same (WIRE-4)."""
    data = stream(events, **fields)
    judged = read_stream(NAME, data)
    whole = WIRE.encode_turn(request(**fields), STAMP, fold(events))
    assert json.loads(whole) == last(data)
    assert read_whole(NAME, whole) == judged
    return judged


def call(id: str, name: str, *pieces: str) -> list[Event]:
    return [CallStarted(id, name), *(ArgsDelta(id, piece) for piece in pieces), CallEnded(id)]


def test_text_comes_in_the_vendors_order_of_events_wire3() -> None:
    data = stream([TextDelta("Hel"), TextDelta("lo"), END])
    assert kinds(data) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert frames(data)[4]["delta"] == "Hel"
    assert frames(data)[4]["logprobs"] == []
    assert seen([TextDelta("Hel"), TextDelta("lo"), END]).text == "Hello"


def test_a_call_comes_in_the_vendors_order_of_events_wire3() -> None:
    events = [*call("call_1", "now", '{"zone":', '"CET"}'), CALLS]
    assert kinds(stream(events))[2:] == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    judged = seen(events)
    assert judged.calls == (SeenCall("call_1", "now", {"zone": "CET"}),)
    assert (judged.stop, judged.usage) == ("completed", (7, 5))


def test_reasoning_comes_in_the_vendors_order_of_events_wire7() -> None:
    events = [ReasoningDelta("Let me "), ReasoningDelta("see", "c2ln"), *call("call_1", "now", "{}"), CALLS]
    assert kinds(stream(events))[2:9] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ]
    judged = seen(events)
    assert (judged.reasoning, judged.signatures) == ("Let me see", ("c2ln",))
    assert judged.order == ("reasoning", "call")


def test_a_signature_without_any_text_is_reasoning_with_an_empty_summary() -> None:
    events = [TextDelta("A"), ReasoningDelta("", "c2ln"), *call("call_1", "now", "{}"), CALLS]
    assert seen(events).signatures == ("c2ln",)
    assert last(stream(events))["output"][1] == {
        "id": "rs_abc123_1",
        "type": "reasoning",
        "summary": [],
        "encrypted_content": "c2ln",
    }


def test_after_a_signature_reasoning_begins_anew() -> None:
    judged = seen([ReasoningDelta("a", "s1"), ReasoningDelta("b", "s2"), ReasoningDelta("c"), TextDelta("T"), END])
    assert (judged.reasoning, judged.signatures) == ("abc", ("s1", "s2"))


def test_every_change_of_kind_begins_a_new_item() -> None:
    events = [TextDelta("A"), ReasoningDelta("b"), TextDelta("C"), *call("call_1", "now", "{}"), TextDelta("D"), CALLS]
    judged = seen(events)
    assert judged.order == ("text", "reasoning", "text", "call", "text")
    assert [item["type"] for item in last(stream(events))["output"]] == [
        "message",
        "reasoning",
        "message",
        "function_call",
        "message",
    ]


def test_no_empty_delta_is_ever_written() -> None:
    events = [
        TextDelta(""),
        ReasoningDelta(""),
        TextDelta("A"),
        TextDelta(""),
        CallStarted("call_1", "now"),
        ArgsDelta("call_1", ""),
        ArgsDelta("call_1", "{}"),
        CallEnded("call_1"),
        CALLS,
    ]
    assert all(frame["delta"] for frame in frames(stream(events)) if "delta" in frame)
    assert seen(events).order == ("text", "call")


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert seen([*call("call_1", "now"), CALLS]).calls == (SeenCall("call_1", "now", {}),)


def test_a_custom_call_is_free_text() -> None:
    events = [*call("call_1", "patch", '{"inp', 'ut":"*** Begin\\n\\"x\\""}'), CALLS]
    assert seen(events).calls == (SeenCall("call_1", "patch", '*** Begin\n"x"', "custom"),)
    assert kinds(stream(events))[2:-1] == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
    ]


def test_a_custom_call_may_be_empty_and_then_has_no_delta() -> None:
    events = [*call("call_1", "patch", '{"input":""}'), CALLS]
    assert seen(events).calls == (SeenCall("call_1", "patch", "", "custom"),)


def test_a_tool_in_a_namespace_is_called_by_both_its_names() -> None:
    events = [*call("call_1", "agents__close", "{}"), *call("call_2", "agents__exec", '{"input":"x"}'), CALLS]
    assert seen(events).calls == (
        SeenCall("call_1", "close", {}, "function", "agents"),
        SeenCall("call_2", "exec", "x", "custom", "agents"),
    )


def test_a_search_of_the_client_has_an_object_for_its_arguments() -> None:
    events = [*call("call_1", "tool_search", '{"query":', '"mail"}'), CALLS]
    assert seen(events).calls == (SeenCall("call_1", "tool_search", {"query": "mail"}, "tool_search"),)


@pytest.mark.parametrize(("said", "told"), [("", {}), ("[1]", {"arguments": [1]}), ("oops", {"arguments": "oops"})])
def test_arguments_of_a_search_that_are_no_object_are_not_lost(said: str, told: Body) -> None:
    assert seen([*call("call_1", "tool_search", said), CALLS]).calls[0].arguments == told


def test_interleaved_calls_and_text_come_one_after_the_other() -> None:
    events: list[Event] = [
        CallStarted("call_1", "now"),
        ArgsDelta("call_1", '{"a"'),
        TextDelta("While "),
        CallStarted("call_2", "patch"),
        ArgsDelta("call_2", '{"input":'),
        CallStarted("call_3", "agents__close"),
        ArgsDelta("call_3", "{"),
        ReasoningDelta("hm"),
        ArgsDelta("call_1", ":1}"),
        ArgsDelta("call_2", '"x"}'),
        CallEnded("call_1"),
        ArgsDelta("call_3", "}"),
        CallEnded("call_3"),
        TextDelta("end"),
        CallEnded("call_2"),
        CALLS,
    ]
    data = stream(events)
    judged = read_stream(NAME, data)
    assert [(one.id, one.arguments) for one in judged.calls] == [("call_1", {"a": 1}), ("call_2", "x"), ("call_3", {})]
    assert (judged.text, judged.reasoning) == ("While end", "hm")
    assert judged.order == ("call", "text", "call", "call", "reasoning", "text")


def test_interleaved_calls_leave_as_soon_as_they_can() -> None:
    encoder = WIRE.new_encoder(request(), STAMP)
    encoder.encode([CallStarted("call_1", "now"), CallStarted("call_2", "now"), ArgsDelta("call_2", '{"b":')])
    assert b'{\\"a' in encoder.encode([ArgsDelta("call_1", '{"a":1}')])
    released = encoder.encode([CallEnded("call_1")])
    assert b"call_2" in released
    assert b'{\\"b' in released
    assert b"2}" in encoder.encode([ArgsDelta("call_2", "2}")])


def test_many_interleaved_calls_take_linear_time_p8() -> None:
    ids = [f"call_{number}" for number in range(2000)]
    events: list[Event] = [CallStarted(id, "now") for id in ids]
    events += [ArgsDelta(id, "{}") for id in ids]
    events += [CallEnded(id) for id in reversed(ids)]
    assert len(read_stream(NAME, stream([*events, CALLS])).calls) == 2000


def test_rejected_and_discarded_text_writes_nothing() -> None:
    rejected = CallRejected(Complaint(Problem.UNKNOWN_TOOL, "x"), "raw")
    assert seen([rejected, Discarded(Why.DEBRIS, "<x>"), TextDelta("A"), END]).text == "A"


def test_an_empty_turn_has_one_empty_message() -> None:
    judged = seen([END])
    assert (judged.text, judged.stop) == ("", "completed")
    assert len(last(stream([END]))["output"]) == 1


# ---------------------------------------------------------------- how it ends


def test_a_turn_at_the_token_limit_is_incomplete() -> None:
    events = [TextDelta("Hel"), LENGTH]
    assert seen(events).stop == "max_output_tokens"
    assert last(stream(events))["output"][0]["status"] == "incomplete"


def test_a_filtered_turn_is_incomplete() -> None:
    assert seen([TextDelta("Hel"), Finished(StopReason.FILTER)]).stop == "content_filter"
    assert seen([Finished(StopReason.FILTER)]).stop == "content_filter"


def test_a_turn_at_the_token_limit_is_completed_for_codex() -> None:
    events = [TextDelta("Hel"), *call("call_1", "now", "{}"), LENGTH]
    assert seen(events, **CODEX).stop == "completed"


def test_a_cut_call_is_never_told_as_complete_p3() -> None:
    events = [TextDelta("A"), CallStarted("call_1", "now"), ArgsDelta("call_1", '{"zo'), LENGTH]
    done = frames(stream(events))[-2]
    assert (done["type"], done["item"]["status"]) == ("response.output_item.done", "incomplete")
    assert done["item"]["arguments"] == '{"zo'
    assert last(stream(events))["incomplete_details"] == {"reason": "max_output_tokens"}
    whole = read_whole(NAME, WIRE.encode_turn(request(), STAMP, fold(events)))
    assert (whole.calls, whole.stop) == ((), "max_output_tokens")


@pytest.mark.parametrize("stop", [StopReason.END, StopReason.CALLS])
def test_a_turn_that_ends_well_in_the_middle_of_a_call_is_incomplete_all_the_same_p3(stop: StopReason) -> None:
    events = [*call("call_1", "now", "{}"), CallStarted("call_2", "now"), ArgsDelta("call_2", "{"), Finished(stop)]
    assert last(stream(events))["status"] == "incomplete"
    assert [item["status"] for item in last(stream(events))["output"]] == ["completed", "incomplete"]


@pytest.mark.parametrize("name", ["patch", "tool_search"])
def test_a_cut_call_that_is_sent_whole_is_never_sent_p3(name: str) -> None:
    events = [TextDelta("A"), CallStarted("call_1", name), ArgsDelta("call_1", '{"input":"x'), LENGTH]
    assert "call_1" not in stream(events).decode()
    for judged in (
        read_stream(NAME, stream(events)),
        read_whole(NAME, WIRE.encode_turn(request(), STAMP, fold(events))),
    ):
        assert (judged.calls, judged.text, judged.stop) == ((), "A", "max_output_tokens")


def test_of_calls_that_wait_only_the_complete_ones_are_sent_at_the_end_p3() -> None:
    events: list[Event] = [
        CallStarted("call_1", "patch"),
        CallStarted("call_2", "now"),
        ArgsDelta("call_2", "{}"),
        CallStarted("call_3", "now"),
        TextDelta("T"),
        CallEnded("call_2"),
        LENGTH,
    ]
    judged = seen(events)
    assert [one.id for one in judged.calls] == ["call_2"]
    assert judged.text == "T"


def test_a_cut_call_fails_clearly_for_codex_and_is_never_done_p3() -> None:
    events = [TextDelta("A"), CallStarted("call_1", "now"), ArgsDelta("call_1", '{"zo'), LENGTH]
    data = stream(events, **CODEX)
    judged = read_stream(NAME, data)
    assert (judged.stop, judged.calls) == ("failed", ())
    assert "cut in the middle of a tool call" in judged.error
    assert kinds(data).count("output_item.done") == 1


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (FailureKind.CONTEXT_LENGTH, "context_length_exceeded"),
        (FailureKind.RATE_LIMITED, "rate_limit_exceeded"),
        (FailureKind.TRANSIENT, "server_is_overloaded"),
        (FailureKind.INVALID_REQUEST, "invalid_prompt"),
        (FailureKind.DISCONNECTED, "server_error"),
    ],
)
def test_a_failure_in_the_middle_is_the_responses_own_error_p6(kind: FailureKind, code: str) -> None:
    data = stream([TextDelta("Hel"), Failed(Failure(kind, "it broke"))])
    judged = read_stream(NAME, data)
    assert (judged.text, judged.error, judged.stop) == ("Hel", "it broke", "failed")
    assert last(data)["error"] == {"code": code, "message": "it broke"}


def test_a_failure_before_anything_else_still_makes_a_stream_that_can_be_read() -> None:
    assert read_stream(NAME, stream([Failed(Failure(FailureKind.OTHER, "it broke"))])).error == "it broke"


def test_a_turn_that_ends_in_an_error_failed_p6() -> None:
    events = [*call("call_1", "now", "{}"), Finished(StopReason.ERROR, USAGE)]
    judged = read_stream(NAME, stream(events))
    assert judged.stop == "failed"
    assert judged.error
    assert last(stream(events))["usage"]["total_tokens"] == 12


def test_nothing_is_written_after_the_end() -> None:
    encoder = WIRE.new_encoder(request(), STAMP)
    encoder.encode([TextDelta("A"), END])
    assert encoder.encode([TextDelta("B"), END]) == b""


def test_the_first_frames_leave_with_the_first_event() -> None:
    encoder = WIRE.new_encoder(request(), STAMP)
    assert encoder.encode([]) == b""
    assert kinds(encoder.encode([TextDelta("")])) == ["created", "in_progress"]


def test_a_comment_keeps_the_stream_alive() -> None:
    encoder = WIRE.new_encoder(request(), STAMP)
    data = encoder.keep_alive() + encoder.encode([TextDelta("A")]) + encoder.keep_alive() + encoder.encode([END])
    assert read_stream(NAME, data).text == "A"


# ---------------------------------------------------------------- the response


def test_the_response_says_what_was_asked() -> None:
    schema: Body = {"type": "object", "properties": {}}
    fields: Body = {
        "instructions": "Be kind.",
        "tool_choice": {"type": "function", "name": "now"},
        "parallel_tool_calls": False,
        "temperature": 0.5,
        "max_output_tokens": 9,
        "metadata": {"a": "b"},
        "truncation": "auto",
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": schema}, "verbosity": "low"},
        "store": True,
    }
    response = last(stream([TextDelta("A"), END], **fields))
    for key in fields.keys() - {"store", "reasoning"}:
        assert response[key] == fields[key], key
    assert response["reasoning"] == {"effort": "low", "summary": None}
    assert response["store"] is False
    assert [tool["type"] for tool in response["tools"]] == ["function", "custom", "tool_search", "namespace"]


def test_fields_of_the_wrong_type_are_not_said_back() -> None:
    assert read_stream(NAME, stream([END], metadata=5, truncation=[], client_metadata=7)).stop == "completed"


def test_usage_has_all_its_details() -> None:
    assert last(stream([END]))["usage"] == {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 12,
    }


def test_ids_come_once_and_have_the_vendors_prefixes() -> None:
    events = [ReasoningDelta("r"), TextDelta("A"), *call("call_1", "now"), *call("call_2", "patch"), CALLS]
    response = last(stream(events))
    assert response["id"] == "resp_abc123"
    ids = [item["id"] for item in response["output"]]
    assert [id.partition("_")[0] for id in ids] == ["rs", "msg", "fc", "ctc"]
    assert len(set(ids)) == 4


def test_a_turn_without_a_reason_to_stop_is_complete() -> None:
    assert read_whole(NAME, WIRE.encode_turn(request(), STAMP, Turn())).stop == "completed"


def test_odd_characters_survive() -> None:
    text = 'a"\\\n\r\t\x00é☃🌦'
    judged = seen([TextDelta(text), *call("call_1", "now", json.dumps({"x": text})), CALLS])
    assert judged.text == text
    assert judged.calls[0].arguments == {"x": text}


def test_half_of_an_emoji_becomes_a_replacement_character() -> None:
    assert seen([TextDelta("a\ud83d"), END]).text == "a�"


def test_sequence_numbers_have_no_gap() -> None:
    numbers = [frame["sequence_number"] for frame in frames(stream([TextDelta("A"), *call("call_1", "now"), CALLS]))]
    assert all(after - before == 1 for before, after in pairwise(numbers))


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (Failure(FailureKind.INVALID_REQUEST, "m", 400, "input[0]"), 400, "invalid_request"),
        (Failure(FailureKind.RATE_LIMITED, "m"), 429, "rate_limit_exceeded"),
        (Failure(FailureKind.CONTEXT_LENGTH, "m", 200), 400, "context_length_exceeded"),
        (Failure(FailureKind.DISCONNECTED, "m", 502), 502, "upstream_disconnect"),
    ],
)
def test_an_error_instead_of_an_answer_has_the_vendors_shape_wire5(failure: Failure, status: int, code: str) -> None:
    error = WIRE.encode_failure(failure, STAMP)
    assert error.status == status
    body = json.loads(error.body)["error"]
    assert (body["message"], body["code"], body["param"]) == ("m", code, failure.field or None)


def test_an_error_comes_back_as_the_same_kind_wire5() -> None:
    for kind in (FailureKind.CONTEXT_LENGTH, FailureKind.RATE_LIMITED, FailureKind.AUTH, FailureKind.NOT_FOUND):
        error = WIRE.encode_failure(Failure(kind, "it broke"), STAMP)
        assert WIRE.decode_failure(error.status, error.body).kind is kind

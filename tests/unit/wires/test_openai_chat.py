"""OpenAI Chat Completions, field by field."""

import json
import math
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from testkit.grammar import read_stream, read_whole
from toolspeak.errors import BadField
from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    FirstToken,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
)
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.message import Call, Image, Message, Opaque, Reasoning, Result, Role, Text, Vendor
from toolspeak.ir.quirks import QUIRKS, IdForm, Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode, Grammar, Tool, ToolChoice, ToolKind
from toolspeak.ir.turn import Turn, fold
from toolspeak.wires import Stamp
from toolspeak.wires.openai_chat.wire import WIRE

Body = dict[str, Any]

STAMP = Stamp("abc", 1_763_000_000)
TOOL: Body = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def read(**fields: object) -> Request:
    return WIRE.decode_request(json.dumps({"model": "m", "messages": [], **fields}).encode(), "/v1/chat/completions")


def written(request: Request, quirks: Quirks = QUIRKS) -> Body:
    return json.loads(WIRE.encode_request(request, quirks).body)


def message(**fields: object) -> Message:
    (read_back,) = read(messages=[fields]).messages
    return read_back


def ids() -> Iterator[str]:
    return (f"fresh{number}" for number in count())


def events_of(*deltas: Body, request: Request | None = None, done: bool = True) -> list[Event]:
    decoder = WIRE.new_decoder(request or Request("m", (), (Tool("f"),)), ids())
    frames = [f"data: {json.dumps(delta)}\n\n" for delta in deltas] + ["data: [DONE]\n\n"] * done
    return [event for frame in frames for event in decoder.feed(frame.encode())] + decoder.finish()


def delta(finish: str | None = None, **fields: object) -> Body:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


# ---------------------------------------------------------------- requests


def test_a_function_has_its_name_description_schema_and_strictness() -> None:
    function = {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}
    (tool,) = read(tools=[{"type": "function", "function": function}]).tools
    assert tool == Tool("f", "d", {"type": "object"}, strict=True)


def test_a_function_without_parameters_takes_none() -> None:
    (tool,) = read(tools=[{"type": "function", "function": {"name": "f"}}]).tools
    assert tool.parameters == {"type": "object", "properties": {}}


def test_a_function_may_be_written_flat_or_in_the_old_form() -> None:
    assert [tool.name for tool in read(tools=[{"type": "function", "name": "f"}]).tools] == ["f"]
    assert [tool.name for tool in read(functions=[{"name": "g"}]).tools] == ["g"]


def test_a_custom_tool_is_a_function_of_one_text_for_the_model() -> None:
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /.+/"}}
    body = {"type": "custom", "custom": {"name": "patch", "description": "d", "format": grammar}}
    request = read(tools=[body])
    (tool,) = request.tools
    assert (tool.kind, tool.grammar) == (ToolKind.CUSTOM, Grammar("lark", "start: /.+/"))
    assert tool.parameters["required"] == ["input"]
    assert written(request)["tools"] == [body]


def test_a_custom_tool_of_another_wire_is_sent_as_a_function() -> None:
    tool = Tool("patch", "d", {"type": "object"}, kind=ToolKind.CUSTOM, vendor=Vendor("openai_responses", {}))
    (body,) = written(Request("m", (), (tool,)))["tools"]
    assert body == {
        "type": "function",
        "function": {"name": "patch", "description": "d", "parameters": tool.parameters},
    }


def test_tools_that_only_the_vendor_runs_come_back_on_the_same_wire_only() -> None:
    request = read(tools=[TOOL, {"type": "web_search", "x": 1}])
    assert [tool.name for tool in request.tools] == ["f"]
    assert {"type": "web_search", "x": 1} in written(request)["tools"]


@pytest.mark.parametrize("tools", [[], None])
def test_no_tools_are_no_tools(tools: object) -> None:
    request = read(tools=tools, tool_choice="auto")
    assert request.tools == ()
    assert "tool_choice" not in written(request)


CHOICES: dict[str, tuple[object, ToolChoice]] = {
    "auto": ("auto", ToolChoice()),
    "none": ("none", ToolChoice(ChoiceMode.NONE)),
    "required": ("required", ToolChoice(ChoiceMode.REQUIRED)),
    "named": ({"type": "function", "function": {"name": "f"}}, ToolChoice(ChoiceMode.NAMED, "f")),
    "custom": ({"type": "custom", "custom": {"name": "f"}}, ToolChoice(ChoiceMode.NAMED, "f")),
    "subset": (
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [TOOL]}},
        ToolChoice(ChoiceMode.REQUIRED, allowed=("f",)),
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_every_form_of_choice_is_understood(name: str) -> None:
    body, choice = CHOICES[name]
    assert read(tools=[TOOL], tool_choice=body).choice == choice


@pytest.mark.parametrize("name", ["none", "required", "named", "subset"])
def test_a_choice_comes_back_as_it_was(name: str) -> None:
    body = CHOICES[name][0]
    if name == "subset":
        body = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named("f")]}}
    assert written(read(tools=[TOOL], tool_choice=body))["tool_choice"] == body


def named(name: str) -> Body:
    return {"type": "function", "function": {"name": name}}


def test_a_subset_of_another_wire_leaves_the_other_tools_out() -> None:
    choice = ToolChoice(ChoiceMode.REQUIRED, allowed=("g",))
    body = written(Request("m", (), (Tool("f"), Tool("g")), choice))
    assert [tool["function"]["name"] for tool in body["tools"]] == ["g"]
    assert body["tool_choice"] == "required"


def test_one_call_at_a_time_can_be_asked_for() -> None:
    request = read(tools=[TOOL], parallel_tool_calls=False)
    assert not request.choice.parallel
    assert written(request)["parallel_tool_calls"] is False


WRONG: list[tuple[str, object, str]] = [
    ("tool_choice", "maybe", "tool_choice"),
    ("tool_choice", {"type": "function"}, "tool_choice.name"),
    ("messages", [{"role": "robot", "content": "x"}], "messages[0].role"),
    ("messages", [{"role": "user", "content": 5}], "messages[0].content"),
    ("messages", [{"role": "user", "content": [{"type": "text", "text": []}]}], "messages[0].content[0].text"),
    ("messages", "x", "messages"),
    ("tools", [{"type": "function", "function": {"name": 3}}], "tools[0].function.name"),
    ("max_tokens", "many", "max_tokens"),
    ("n", 2, "n"),
    ("stop", [1], "stop"),
    ("response_format", {"type": "xml"}, "response_format.type"),
]


@pytest.mark.parametrize(("field", "value", "path"), WRONG)
def test_a_wrong_field_is_named(field: str, value: object, path: str) -> None:
    with pytest.raises(BadField) as caught:
        read(**{field: value})
    assert caught.value.field == path


def test_sampling_goes_both_ways() -> None:
    fields: Body = {
        "max_tokens": 5,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
        "stop": ["a"],
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "reasoning_effort": "low",
    }
    body = written(read(**fields))
    assert {key: body[key] for key in fields} == fields


def test_the_newer_name_of_the_limit_comes_back() -> None:
    body = written(read(max_completion_tokens=5))
    assert body["max_completion_tokens"] == 5
    assert "max_tokens" not in body


def test_unknown_fields_come_back_on_the_same_wire_and_are_reported_on_others() -> None:
    request = read(prompt_cache_key="k")
    assert written(request)["prompt_cache_key"] == "k"
    other = Request("m", (), extra={"anthropic": {"metadata": {}}})
    assert WIRE.encode_request(other, QUIRKS).dropped == ("anthropic: metadata",)


def test_a_schema_for_the_answer_goes_both_ways() -> None:
    asked = {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": {"type": "object"}}}
    request = read(response_format=asked)
    assert request.output_schema == {"type": "object"}
    assert written(request)["response_format"] == asked
    assert written(read(response_format={"type": "json_object"}))["response_format"] == {"type": "json_object"}


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize("content", [None, "", []])
def test_an_assistant_that_only_calls_says_nothing_however_it_is_written(content: object) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert message(role="assistant", content=content, tool_calls=[call]).parts == (Call("a", "f", "{}"),)


def test_reasoning_is_a_part_of_its_own_and_comes_back_wire7() -> None:
    for key in ("reasoning_content", "reasoning"):
        request = read(messages=[{"role": "assistant", "content": "a", key: "t"}])
        assert [type(part) for part in request.messages[0].parts] == [Reasoning, Text]
        assert written(request)["messages"][0][key] == "t"


def test_reasoning_is_left_out_for_servers_that_refuse_it() -> None:
    request = read(messages=[{"role": "assistant", "content": "a", "reasoning_content": "t"}])
    assert written(request, Quirks(reasoning_history=False))["messages"] == [{"role": "assistant", "content": "a"}]


def test_empty_arguments_are_an_empty_object() -> None:
    written_so: list[object] = ["", " ", None, {}]
    for arguments in written_so:
        call: Body = {"id": "a", "function": {"name": "f", "arguments": arguments}}
        assert message(role="assistant", tool_calls=[call]).parts == (Call("a", "f", "{}"),)


def test_a_custom_call_keeps_its_text_to_the_byte() -> None:
    text = '*** Begin Patch\n"x" \\ 🙂\n*** End Patch'
    call = {"id": "a", "type": "custom", "custom": {"name": "patch", "input": text}}
    request = read(messages=[{"role": "assistant", "tool_calls": [call]}])
    assert written(request)["messages"][0]["tool_calls"] == [call]


def test_images_of_users_go_both_ways() -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}}
    request = read(messages=[{"role": "user", "content": [part]}])
    (image,) = request.messages[0].parts
    assert isinstance(image, Image)
    assert (image.media_type, image.data) == ("image/png", "aGk=")
    assert written(request)["messages"][0]["content"] == [part]


def test_parts_without_a_word_come_back_on_the_same_wire() -> None:
    part = {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}
    request = read(messages=[{"role": "user", "content": [part]}])
    assert isinstance(request.messages[0].parts[0], Opaque)
    assert written(request)["messages"][0]["content"] == [part]


def test_parts_of_another_wire_leave_a_note() -> None:
    opaque = Opaque(Vendor("anthropic", {"type": "document"}), "document")
    body = written(Request("m", (Message(Role.USER, (Text("a"), opaque)),)))
    assert body["messages"][0]["content"][1] == {"type": "text", "text": "[document omitted]"}


@pytest.mark.parametrize(
    ("content", "text"), [("x", "x"), ("", ""), ([{"type": "text", "text": "x"}], "x"), ({"n": 1}, '{"n":1}')]
)
def test_every_form_of_a_result_is_understood(content: object, text: str) -> None:
    (result,) = message(role="tool", tool_call_id="a", content=content).parts
    assert isinstance(result, Result)
    assert "".join(part.text for part in result.content if isinstance(part, Text)) == text


def test_a_result_learns_the_name_of_its_tool() -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
    history = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "a", "content": "x"}]
    assert read(messages=history).messages[1].parts == (Result("a", (Text("x"),), "f"),)


def test_an_image_in_a_result_follows_in_a_message_of_the_user() -> None:
    call = Message(Role.ASSISTANT, (Call("a", "f", "{}"),))
    result = Message(Role.TOOL, (Result("a", (Text("x"), Image("image/png", "aGk="))),))
    body = written(Request("m", (call, result)))
    assert [part["role"] for part in body["messages"]] == ["assistant", "tool", "user"]
    assert body["messages"][2]["content"][0]["image_url"]["url"] == "data:image/png;base64,aGk="
    inside = written(Request("m", (call, result)), Quirks(image_results=True))["messages"]
    assert [part["role"] for part in inside] == ["assistant", "tool"]


def test_ids_and_names_take_the_form_that_the_upstream_wants_wire6() -> None:
    messages = (Message(Role.ASSISTANT, (Call("call_1", "a.b", "{}"),)), Message(Role.TOOL, (Result("call_1", ()),)))
    body = written(Request("m", messages, (Tool("a.b"),)), Quirks(ids=IdForm.MISTRAL))
    call, result = body["messages"][0]["tool_calls"][0], body["messages"][1]
    assert call["id"] == result["tool_call_id"]
    assert len(call["id"]) == 9
    assert call["function"]["name"] == body["tools"][0]["function"]["name"] != "a.b"


# ---------------------------------------------------------------- answers


def test_a_name_that_the_wire_does_not_allow_comes_back_as_it_was() -> None:
    request = Request("m", (), (Tool("a.b"),))
    alias = written(request)["tools"][0]["function"]["name"]
    call = {"index": 0, "id": "x", "function": {"name": alias, "arguments": "{}"}}
    turn = fold(events_of(delta(tool_calls=[call]), delta("tool_calls"), request=request))
    assert [call.name for call in turn.calls] == ["a.b"]


def test_an_id_that_no_client_takes_or_that_was_used_before_is_replaced() -> None:
    request = Request("m", (Message(Role.ASSISTANT, (Call("used", "f", "{}"),)),), (Tool("f"),))
    calls = [
        {"index": number, "id": id, "function": {"name": "f", "arguments": "{}"}}
        for number, id in enumerate(("used", "functions.f:0", "x" * 65, "good", ""))
    ]
    turn = fold(events_of(delta(tool_calls=calls), delta("tool_calls"), request=request))
    assert [call.id for call in turn.calls] == ["fresh0", "fresh1", "fresh2", "good", "fresh3"]
    assert [call.native_id for call in turn.calls][:2] == ["used", "functions.f:0"]


def test_text_in_parts_is_text() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, {"type": "text", "text": "a"}]
    assert fold(events_of(delta(content=parts), delta("stop"))).reasoning == "t"
    assert fold(events_of(delta(content=parts), delta("stop"))).text == "a"


def test_a_refusal_is_text() -> None:
    assert fold(events_of(delta(refusal="No."), delta("stop"))).text == "No."


def test_the_old_form_of_a_call_is_a_call() -> None:
    turn = fold(events_of(delta(function_call={"name": "f", "arguments": "{}"}), delta("function_call")))
    assert [(call.name, call.arguments) for call in turn.calls] == [("f", "{}")]
    assert turn.stop is StopReason.CALLS


def test_usage_comes_from_the_last_chunk() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    assert fold(events_of(delta("stop"), {"choices": [], "usage": usage})).usage == Usage(9, 4, 3, 0, 2)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", StopReason.END),
        ("length", StopReason.LENGTH),
        ("content_filter", StopReason.FILTER),
        ("eos", StopReason.END),
    ],
)
def test_finish_reasons_are_understood(reason: str, stop: StopReason) -> None:
    assert events_of(delta(content="a"), delta(reason))[-1] == Finished(stop)


def test_done_without_a_reason_is_an_end() -> None:
    assert events_of(delta(content="a"))[-1] == Finished(StopReason.END)


def test_an_end_without_both_is_a_failure_p6() -> None:
    last = events_of(delta(content="a"), done=False)[-1]
    assert isinstance(last, Failed)
    assert last.failure.kind is FailureKind.DISCONNECTED


def test_an_error_in_the_stream_is_a_failure_p6() -> None:
    for body in ({"error": {"message": "boom"}}, {"error": "boom"}, {"object": "error", "message": "boom"}):
        last = events_of(delta(content="a"), body)[-1]
        assert isinstance(last, Failed)
        assert last.failure.message == "boom"


def test_an_error_salvages_what_the_model_wrote_wire5() -> None:
    error = {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<f>"}
    last = events_of({"error": error})[-1]
    assert isinstance(last, Failed)
    assert (last.failure.kind, last.failure.salvage) == (FailureKind.NATIVE_PARSER_FAILED, "<f>")


def test_a_call_that_the_limit_cut_is_rejected_p3() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x": "y'}}
    turn = fold(events_of(delta(tool_calls=[call]), delta("length")))
    assert turn.calls == ()
    assert [complaint.problem for complaint in turn.complaints] == ["truncated"]


ODD: list[object] = [
    None,
    5,
    "x",
    [],
    {},
    [None],
    {"choices": 5},
    {"choices": [5]},
    {"choices": [{"delta": 5}]},
    {"choices": [None]},
]


@pytest.mark.parametrize("body", ODD, ids=json.dumps)
def test_odd_bodies_end_in_one_last_event(body: object) -> None:
    events = WIRE.decode_turn(Request("m", ()), ids(), json.dumps(body).encode())
    assert [type(event) for event in events] in ([Failed], [Finished])


# ---------------------------------------------------------------- as the server


def streamed(*events: Event, **fields: object) -> bytes:
    return WIRE.new_encoder(read(stream=True, tools=[TOOL], **fields), STAMP).encode(events)


def test_the_order_of_a_stream_is_the_vendors_wire3() -> None:
    data = streamed(
        ReasoningDelta("t"),
        TextDelta("a"),
        CallStarted("call_1", "f"),
        ArgsDelta("call_1", "{}"),
        CallEnded("call_1"),
        Finished(StopReason.END),
    )
    seen = read_stream("openai_chat", data)
    assert seen.order == ("reasoning", "text", "call")
    assert seen.stop == "tool_calls"
    assert seen.usage is None


def test_usage_is_told_when_it_is_asked_for() -> None:
    data = streamed(TextDelta("a"), Finished(StopReason.END, Usage(3, 4)), stream_options={"include_usage": True})
    assert read_stream("openai_chat", data).usage == (3, 4)


def test_free_text_of_a_custom_tool_is_streamed_as_it_is() -> None:
    custom = {"type": "custom", "custom": {"name": "patch"}}
    events = [CallStarted("c", "patch"), ArgsDelta("c", '{"input":"a'), ArgsDelta("c", '\\n"}'), CallEnded("c")]
    encoder = WIRE.new_encoder(read(stream=True, tools=[custom]), STAMP)
    seen = read_stream("openai_chat", encoder.encode([*events, Finished(StopReason.CALLS)]))
    assert [(call.kind, call.arguments) for call in seen.calls] == [("custom", "a\n")]


def test_a_whole_answer_has_all_that_the_vendor_promises() -> None:
    turn = Turn((Reasoning("t"), Text("a"), Call("c", "f", '{"x": 1}')), StopReason.CALLS, Usage(1, 2))
    seen = read_whole("openai_chat", WIRE.encode_turn(read(tools=[TOOL]), STAMP, turn))
    assert (seen.text, seen.reasoning, seen.stop, seen.usage) == ("a", "t", "tool_calls", (1, 2))
    assert [(call.id, call.arguments) for call in seen.calls] == [("c", {"x": 1})]


@pytest.mark.parametrize(
    ("failure", "status", "type", "code"),
    [
        (Failure(FailureKind.INVALID_REQUEST, "m", 400, "x.y"), 400, "invalid_request_error", "invalid_request"),
        (Failure(FailureKind.AUTH, "m"), 401, "authentication_error", "invalid_api_key"),
        (Failure(FailureKind.CONTEXT_LENGTH, "m", 400), 400, "invalid_request_error", "context_length_exceeded"),
        (Failure(FailureKind.RATE_LIMITED, "m", 429), 429, "rate_limit_error", "rate_limit_exceeded"),
        (Failure(FailureKind.DISCONNECTED, "m"), 502, "server_error", "upstream_disconnect"),
        (Failure(FailureKind.NATIVE_PARSER_FAILED, "m", 200), 502, "server_error", "native_parser_failed"),
    ],
)
def test_errors_have_the_vendors_shape_wire5(failure: Failure, status: int, type: str, code: str) -> None:
    said = WIRE.encode_failure(failure, STAMP)
    assert said.status == status
    error = {"message": "m", "type": type, "param": failure.field or None, "code": code}
    assert json.loads(said.body) == {"error": error}


# ---------------------------------------------------------------- probabilities of the first token


def first_token(logprobs: object, *, top_tokens: int = 2) -> FirstToken:
    chunk = delta(content="no")
    chunk["choices"][0]["logprobs"] = logprobs
    request = Request("m", (), top_tokens=top_tokens)
    last = events_of(delta(role="assistant"), chunk, delta("stop"), request=request)[-1]
    assert isinstance(last, Finished)
    return last.first_token


def tops(*entries: object) -> Body:
    return {"content": [{"token": "no", "top_logprobs": [*entries]}]}


def test_probabilities_are_asked_for_and_read() -> None:
    assert (written(Request("m", ()), QUIRKS).keys() & {"logprobs", "top_logprobs"}) == set()
    body = written(Request("m", (), top_tokens=5))
    assert (body["logprobs"], body["top_logprobs"]) == (True, 5)
    said = tops({"token": "no", "logprob": math.log(0.75)}, {"token": "yes", "logprob": math.log(0.25)})
    assert first_token(said) == (("no", pytest.approx(0.75)), ("yes", pytest.approx(0.25)))
    assert first_token(said, top_tokens=0) == (), "nobody asked"


def test_the_first_token_of_a_stream_counts() -> None:
    later = {"content": [{"top_logprobs": [{"token": ".", "logprob": 0}]}]}
    chunks = [delta(content="no"), delta(content=".")]
    chunks[0]["choices"][0]["logprobs"] = tops({"token": "no", "logprob": 0})
    chunks[1]["choices"][0]["logprobs"] = later
    last = events_of(*chunks, delta("stop"), request=Request("m", (), top_tokens=2))[-1]
    assert isinstance(last, Finished)
    assert last.first_token == (("no", 1.0),)


@pytest.mark.parametrize(
    "logprobs",
    [None, 7, [], {}, {"content": None}, {"content": []}, {"content": [7]}, tops(7, {}, {"token": 7, "logprob": -1})],
)
def test_other_forms_of_probabilities_are_none(logprobs: object) -> None:
    assert first_token(logprobs) == ()


@pytest.mark.parametrize(("logprob", "probability"), [(5, 1.0), (-(10**400), 0.0), (-1e308, 0.0)])
def test_numbers_that_are_no_logarithms_do_no_harm(logprob: float, probability: float) -> None:
    ((_, read_as),) = first_token(tops({"token": "no", "logprob": logprob}))
    assert read_as == pytest.approx(probability)

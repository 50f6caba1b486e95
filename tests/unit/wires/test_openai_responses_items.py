"""Input items of the Responses wire: messages, calls, results, and what else clients send; both ways."""

import json
from typing import Any, TypeAlias

import pytest

from tests.unit.wires.test_openai_responses import (
    CHAT,
    CLOSE,
    PATCH,
    SEARCH,
    SPACE,
    WEATHER,
    again,
    decode,
    encode,
    same,
)
from toolspeak.ir.message import Call, Image, Message, Opaque, Reasoning, Result, Role, Text, ToolReference
from toolspeak.ir.quirks import QUIRKS, IdForm, Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool

Field: TypeAlias = Any
Body: TypeAlias = dict[str, Any]

# ---------------------------------------------------------------- messages

CALL: Body = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": '{"a": 1}'}
OUTPUT: Body = {"type": "function_call_output", "call_id": "c1", "output": "sunny"}


def test_instructions_are_the_first_message_of_the_system() -> None:
    request = decode(instructions="Be kind.")
    assert request.messages[0] == Message(Role.SYSTEM, (Text("Be kind."),))
    same(instructions="Be kind.")
    assert decode(instructions="").messages[0].role is Role.USER


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_message_of_the_system_keeps_its_place_and_its_role(role: str) -> None:
    items = [{"role": role, "content": "A"}, {"role": "user", "content": "B"}, {"role": role, "content": "C"}]
    assert [message.role for message in decode(input=items).messages] == [Role.SYSTEM, Role.USER, Role.SYSTEM]
    same(input=items)
    same(input=items, instructions="D")


def test_the_system_of_another_wire_speaks_in_the_instructions_first_and_then_as_developer() -> None:
    system = Message(Role.SYSTEM, (Text("A"),))
    body = encode(Request("m", (system, Message(Role.USER, (Text("B"),)), Message(Role.SYSTEM, (Text("C"),)))))
    assert body["instructions"] == "A"
    assert [(item["role"], item["content"]) for item in body["input"]] == [("user", "B"), ("developer", "C")]
    two = encode(Request("m", (Message(Role.SYSTEM, (Text("A"), Text("B"))),)))
    assert [part["text"] for part in two["input"][0]["content"]] == ["A", "B"]


def test_parts_of_a_users_message() -> None:
    content = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "high"},
        {"type": "input_image", "image_url": "https://example.org/a.png"},
        {"type": "input_image", "file_id": "file_1"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
        {"type": "something_new", "x": 1},
    ]
    items = [{"type": "message", "role": "user", "id": "msg_1", "status": "completed", "content": content}]
    parts = decode(input=items).messages[0].parts
    assert [type(part) for part in parts] == [Text, Image, Image, Opaque, Opaque, Opaque]
    assert isinstance(parts[1], Image)
    assert (parts[1].media_type, parts[1].data) == ("image/png", "AAAA")
    same(input=items)


@pytest.mark.parametrize("content", ["", [], None])
def test_a_message_may_be_empty(content: Field) -> None:
    assert decode(input=[{"role": "user", "content": content}]).messages == (Message(Role.USER, ()),)
    same(input=[{"role": "user", "content": content or ""}])


def test_items_of_one_turn_of_the_assistant_are_one_message() -> None:
    items: list[Body] = [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "s",
        },
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": "Both.", "annotations": [], "logprobs": []}],
        },
        {**CALL, "status": "completed"},
        {**CALL, "id": "fc_2", "call_id": "c2"},
        OUTPUT,
        {**OUTPUT, "call_id": "c2", "id": "fco_2"},
        {"role": "assistant", "content": "Sunny."},
    ]
    messages = decode(input=items).messages
    assert [message.role for message in messages] == [Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert [type(part) for part in messages[0].parts] == [Reasoning, Text, Call, Call]
    assert [type(part) for part in messages[1].parts] == [Result, Result]
    same(input=items)


def test_two_messages_of_the_assistant_in_a_row_stay_two() -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A"}] * 2}
    items = [said, {"role": "assistant", "content": "B"}, CALL, OUTPUT, {**said, "id": "msg_2"}]
    assert [len(message.parts) for message in decode(input=items).messages] == [4, 1, 2]
    same(input=items)


def test_a_refusal_and_annotations_of_the_assistant_come_back() -> None:
    cited = {"type": "output_text", "text": "A", "annotations": [{"type": "url_citation", "url": "u"}]}
    items = [{"role": "assistant", "content": [cited, {"type": "refusal", "refusal": "No."}, {"type": "new", "x": 1}]}]
    assert [part.text for part in decode(input=items).messages[0].parts if isinstance(part, Text)] == ["A", "No."]
    same(input=items)


def test_text_parts_of_the_wrong_side_are_taken_and_come_back() -> None:
    same(input=[{"role": "assistant", "content": [{"type": "input_text", "text": "A"}]}])
    same(input=[{"role": "user", "content": [{"type": "output_text", "text": "A"}, {"type": "text", "text": "B"}]}])


def test_what_the_assistant_of_another_wire_said_is_a_plain_message() -> None:
    parts = (Text("A"), Reasoning("thought"), Text(""), Call("c", "x", "{}"))
    items = encode(Request("m", (Message(Role.ASSISTANT, parts),)))["input"]
    assert items[0] == {"type": "message", "role": "assistant", "content": "A"}
    assert [item["type"] for item in items[1:]] == ["function_call", "function_call_output"]


# ---------------------------------------------------------------- reasoning


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"summary": []}, ""),
        ({"summary": [{"type": "summary_text", "text": "a"}]}, "a"),
        ({"summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]}, "a\n\nb"),
        ({"summary": [], "content": [{"type": "reasoning_text", "text": "c"}]}, "c"),
        (
            {"summary": [{"type": "summary_text", "text": "a"}], "content": [{"type": "reasoning_text", "text": "c"}]},
            "a\n\nc",
        ),
    ],
)
def test_reasoning_is_a_part_of_its_own_wire7(fields: Body, text: str) -> None:
    item = {"type": "reasoning", "id": "rs_1", "encrypted_content": "sealed", "status": "completed", **fields}
    part = decode(input=[item]).messages[0].parts[0]
    assert isinstance(part, Reasoning)
    assert (part.text, part.signature) == (text, "sealed")
    same(input=[item, {"role": "assistant", "content": "A"}])


def test_reasoning_that_another_wire_brought_back_goes_out_if_it_is_signed() -> None:
    parts = (Reasoning("a", "sealed"), Reasoning("b"), Reasoning("", "bare"), Text("T"))
    items = encode(Request("m", (Message(Role.ASSISTANT, parts),)))["input"]
    assert items[:2] == [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}], "encrypted_content": "sealed"},
        {"type": "reasoning", "summary": [], "encrypted_content": "bare"},
    ]


# ---------------------------------------------------------------- calls and results


def test_a_call_keeps_its_arguments_to_the_byte() -> None:
    request = decode(input=[CALL, OUTPUT])
    assert request.messages[0].parts[0] == Call("c1", "weather", '{"a": 1}', vendor=request.messages[0].parts[0].vendor)
    same(input=[CALL, OUTPUT])


@pytest.mark.parametrize("arguments", ["", None, "  "])
def test_a_call_without_arguments_has_an_empty_object(arguments: str | None) -> None:
    part = decode(input=[{**CALL, "arguments": arguments}]).messages[0].parts[0]
    assert isinstance(part, Call)
    assert part.arguments == "{}"


@pytest.mark.parametrize(
    "output",
    [
        "",
        "sunny",
        '{"json": "in a string"}',
        [],
        [{"type": "input_text", "text": "a"}],
        [
            {"type": "input_text", "text": "a"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
        ],
        [{"type": "input_file", "file_id": "f"}],
        [{"type": "something_new"}],
    ],
)
@pytest.mark.parametrize("kind", ["function_call", "custom_tool_call"])
def test_every_form_of_a_result_comes_back(output: Field, kind: str) -> None:
    call = CALL if kind == "function_call" else {"type": kind, "call_id": "c1", "name": "p", "input": "x"}
    items = [call, {"type": f"{kind}_output", "call_id": "c1", "output": output, "id": "fco_1"}]
    same(input=items)


def test_a_result_that_is_an_object_is_kept_as_text() -> None:
    part = decode(input=[CALL, {**OUTPUT, "output": {"a": 1}}]).messages[1].parts[0]
    assert isinstance(part, Result)
    assert part.content == (Text('{"a":1}'),)


def test_a_call_in_a_namespace_has_the_flat_name_of_its_tool() -> None:
    call = {**CALL, "name": "close", "namespace": "agents"}
    request = decode(tools=[{**WEATHER, "name": "agents__close"}, SPACE], input=[call, OUTPUT])
    part = request.messages[0].parts[0]
    assert isinstance(part, Call)
    assert part.name == request.tools[1].name
    same(tools=[SPACE], input=[call, OUTPUT])


def test_a_call_in_a_namespace_that_is_no_longer_declared_has_a_flat_name_too() -> None:
    call = {**CALL, "name": "close", "namespace": "agents"}
    part = decode(input=[call, OUTPUT]).messages[0].parts[0]
    assert isinstance(part, Call)
    assert part.name == "agents__close"
    same(input=[call, OUTPUT])


def test_a_call_by_the_flat_name_in_no_namespace_stays_one() -> None:
    same(tools=[SPACE], input=[{**CALL, "name": "agents__close"}, OUTPUT])


def test_a_deferred_tool_may_be_called_with_its_own_name_for_a_namespace() -> None:
    call = {**CALL, "namespace": "weather"}
    part = decode(tools=[{**WEATHER, "defer_loading": True}], input=[call, OUTPUT]).messages[0].parts[0]
    assert isinstance(part, Call)
    assert part.name == "weather"
    same(tools=[WEATHER], input=[call, OUTPUT])


def test_a_call_of_ours_goes_out_in_its_tools_namespace_and_kind() -> None:
    request = decode(tools=[{**SPACE, "tools": [CLOSE, PATCH]}, SEARCH])
    calls = (
        Call("c1", "agents__close", "{}"),
        Call("c2", "agents__apply_patch", '{"input":"*** Begin\\n"}'),
        Call("c3", "tool_search", '{"query":"x"}'),
    )
    more = Request("m", (*request.messages, Message(Role.ASSISTANT, calls)), request.tools, extra=request.extra)
    items = encode(more)["input"][1:]
    assert [(item["type"], item.get("name"), item.get("namespace")) for item in items[:3]] == [
        ("function_call", "close", "agents"),
        ("custom_tool_call", "apply_patch", "agents"),
        ("tool_search_call", None, None),
    ]
    assert items[1]["input"] == "*** Begin\n"
    assert items[2]["arguments"] == {"query": "x"}
    assert [item["type"] for item in items[3:]] == [
        "function_call_output",
        "custom_tool_call_output",
        "tool_search_output",
    ]


def test_a_custom_call_is_a_call_with_one_text() -> None:
    items = [
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "apply_patch", "input": 'a\n"b"'},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
    ]
    part = decode(tools=[PATCH], input=items).messages[0].parts[0]
    assert isinstance(part, Call)
    assert json.loads(part.arguments) == {"input": 'a\n"b"'}
    same(tools=[PATCH], input=items)


def test_a_call_without_its_result_goes_out_with_an_error_as_its_result() -> None:
    items = again(input=[CALL, {"role": "user", "content": "go on"}])["input"]
    assert [item["type"] for item in items] == ["function_call", "function_call_output", "message"]


def test_a_result_without_its_call_becomes_text() -> None:
    items = again(input=[OUTPUT])["input"]
    assert items[0]["role"] == "user"
    assert "sunny" in items[0]["content"]


def test_ids_go_out_in_the_form_that_an_upstream_wants_wire6() -> None:
    items = encode(decode(input=[CALL, OUTPUT]), Quirks(ids=IdForm.KIMI))["input"]
    assert [item["call_id"] for item in items] == ["functions.weather:0"] * 2


def test_a_name_that_the_wire_forbids_goes_out_as_an_alias() -> None:
    messages = (Message(Role.ASSISTANT, (Call("c", "mcp.x:y", "{}"),)),)
    body = encode(Request("m", messages, (Tool("mcp.x:y"),)))
    assert body["tools"][0]["name"] == body["input"][0]["name"] != "mcp.x:y"


# ---------------------------------------------------------------- tools inside the input

FOUND: Body = {
    "type": "tool_search_output",
    "id": "tso_1",
    "call_id": "c1",
    "status": "completed",
    "execution": "client",
    "tools": [{**SPACE, "tools": [{**CLOSE, "defer_loading": True}, {**CLOSE, "name": "open"}]}, WEATHER],
}
SOUGHT: Body = {
    "type": "tool_search_call",
    "id": "tsc_1",
    "call_id": "c1",
    "status": "completed",
    "execution": "client",
    "arguments": {"query": "agents", "limit": 3},
}


def test_a_search_of_the_client_is_a_call_and_its_result_refers_to_tools() -> None:
    request = decode(tools=[SEARCH], input=[SOUGHT, FOUND])
    call, result = request.messages[0].parts[0], request.messages[1].parts[0]
    assert isinstance(call, Call)
    assert isinstance(result, Result)
    assert (call.name, json.loads(call.arguments)) == ("tool_search", SOUGHT["arguments"])
    assert [piece.name for piece in result.content if isinstance(piece, ToolReference)] == [
        "agents__close",
        "agents__open",
        "weather",
    ]
    same(tools=[SEARCH], input=[SOUGHT, FOUND])


def test_tools_that_a_search_has_found_are_offered() -> None:
    request = decode(tools=[SEARCH], input=[SOUGHT, FOUND])
    assert [tool.name for tool in request.offered()] == ["tool_search", "agents__close", "agents__open", "weather"]
    assert all(tool.deferred for tool in request.tools[1:])


def test_a_tool_that_is_declared_and_found_is_one_tool_and_written_in_both_places() -> None:
    tools = [SEARCH, {**WEATHER, "defer_loading": True}]
    assert len(decode(tools=tools, input=[SOUGHT, FOUND]).tools) == 4
    same(tools=tools, input=[SOUGHT, FOUND])


def test_a_found_tool_that_only_the_vendor_can_run_stays_in_its_item() -> None:
    strange = [
        {"type": "mcp", "server_label": "x"},
        {**SPACE, "tools": [CLOSE, {"type": "new"}, {**CLOSE, "name": "b"}]},
    ]
    same(tools=[SEARCH], input=[SOUGHT, {**FOUND, "tools": strange}])


def test_a_search_on_the_server_is_kept_as_it_is_and_its_tools_are_offered() -> None:
    sought = {**SOUGHT, "call_id": None, "execution": "server"}
    found = {**FOUND, "call_id": None, "execution": "server"}
    request = decode(tools=[{"type": "tool_search"}], input=[sought, found])
    assert [tool.name for tool in request.offered()] == ["agents__close", "agents__open", "weather"]
    same(tools=[{"type": "tool_search"}], input=[sought, found])


MORE: Body = {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [SPACE, WEATHER, {"type": "mcp"}]}


@pytest.mark.parametrize(
    "items",
    [
        [MORE, {"role": "developer", "content": "A"}, {"role": "user", "content": "B"}],
        [{"role": "user", "content": "B"}, MORE],
        [{"role": "user", "content": "B"}, MORE, CALL, OUTPUT, {"role": "user", "content": "C"}],
        [{"role": "user", "content": "B"}, CALL, OUTPUT, MORE, {**CALL, "call_id": "c2"}, {**OUTPUT, "call_id": "c2"}],
        [MORE, MORE],
    ],
)
def test_tools_told_by_an_item_are_offered_and_stay_in_their_item(items: list[Body]) -> None:
    request = decode(input=items)
    assert [tool.name for tool in request.offered()] == ["agents__close", "weather"]
    same(input=items)
    assert "tools" not in again(input=items)


def test_an_item_that_tells_of_tools_is_no_noise_on_another_wire() -> None:
    request = decode(input=[MORE, {"role": "developer", "content": "A"}])
    body = json.loads(CHAT.encode_request(request, QUIRKS).body)
    assert [message["content"] for message in body["messages"]] == ["A"]
    assert len(body["tools"]) == 2


def test_an_item_tells_only_of_the_tools_that_are_still_there() -> None:
    request = decode(input=[MORE, {"role": "user", "content": "A"}])
    fewer = Request("m", request.messages, request.tools[1:], extra=request.extra)
    assert encode(fewer)["input"][0]["tools"] == [WEATHER, {"type": "mcp"}]


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("local_shell_call", Role.ASSISTANT),
        ("local_shell_call_output", Role.USER),
        ("shell_call", Role.ASSISTANT),
        ("shell_call_output", Role.USER),
        ("apply_patch_call", Role.ASSISTANT),
        ("apply_patch_call_output", Role.USER),
        ("item_reference", Role.ASSISTANT),
        ("compaction", Role.ASSISTANT),
        ("web_search_call", Role.ASSISTANT),
        ("mcp_list_tools", Role.ASSISTANT),
        ("mcp_approval_request", Role.ASSISTANT),
        ("mcp_approval_response", Role.USER),
        ("something_new", Role.ASSISTANT),
    ],
)
def test_an_item_that_only_this_wire_can_say_stays_whole_in_its_place(kind: str, role: Role) -> None:
    item = {"type": kind, "id": "x_1", "call_id": "s1", "deep": {"a": [1, None]}}
    items = [{"role": "user", "content": "A"}, CALL, item, OUTPUT, {"role": "assistant", "content": "B"}]
    opaque = [m.role for m in decode(input=items).messages for part in m.parts if isinstance(part, Opaque)]
    assert opaque == [role]
    written = again(input=items)["input"]
    assert item in written
    alone = [{"role": "user", "content": "A"}, item, {"role": "assistant", "content": "B"}]
    same(input=alone)


def test_an_item_without_a_type_and_a_role_is_a_reference() -> None:
    assert again(input=[{"id": "msg_1"}])["input"] == [{"type": "item_reference", "id": "msg_1"}]

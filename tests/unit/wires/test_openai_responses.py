"""Requests of the Responses wire: what clients send becomes ours, and goes out again meaning the same."""

import json
from typing import Any, TypeAlias

import pytest

from testkit.wire_requests import REQUESTS
from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Message, Result, Role, ToolReference
from toolspeak.ir.quirks import QUIRKS, Quirks
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import ChoiceMode, Grammar, Tool, ToolChoice, ToolKind
from toolspeak.wires import load

Field: TypeAlias = Any
Body: TypeAlias = dict[str, Any]
NAME = "openai_responses"
WIRE = load(NAME)
CHAT = load("openai_chat")
ROWS: list[Body] = [row for row in map(json.loads, REQUESTS.read_text().splitlines()) if row["wire"] == NAME]
WEATHER: Body = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
CLOSE: Body = {"type": "function", "name": "close", "description": "Close it.", "strict": False}
SPACE: Body = {"type": "namespace", "name": "agents", "description": "All agents.", "tools": [CLOSE]}
PATCH: Body = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Patch files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}
SEARCH: Body = {
    "type": "tool_search",
    "execution": "client",
    "description": "Find tools.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}


def decode(**fields: Field) -> Request:
    return WIRE.decode_request(json.dumps({"model": "m", "input": "hi", **fields}).encode(), "/v1/responses")


def encode(request: Request, quirks: Quirks = QUIRKS) -> Body:
    outgoing = WIRE.encode_request(request, quirks)
    assert outgoing.path == "responses"
    return json.loads(outgoing.body)


def again(**fields: Field) -> Body:
    """Read a request and write it again."""
    return encode(decode(**fields))


def without_nulls(value: Body) -> Body:
    return {key: item for key, item in value.items() if item is not None}


def normal(body: Body) -> Body:
    """Write a request in the one of its forms that all forms of the same meaning share."""
    body = without_nulls(body)
    items = body.pop("input", "")
    items = [{"role": "user", "content": items}] if isinstance(items, str) and items else items or []
    defaults = {"parallel_tool_calls": True, "tool_choice": "auto", "stream": False}
    kept = {key: value for key, value in body.items() if key not in defaults or value != defaults[key]}
    return {**kept, "input": [normal_item(item) for item in items], "tools": normal_tools(body.get("tools") or [])}


def normal_item(item: Body) -> Body:
    item = without_nulls(item)
    item.setdefault("type", "message")
    usual = "output_text" if item.get("role") == "assistant" else "input_text"
    for key in ("content", "output"):
        if isinstance(item.get(key), str):
            item[key] = [{"type": usual, "text": item[key]}] if item[key] else []
        if isinstance(item.get(key), list):
            item[key] = [normal_part(part) for part in item[key]]
    if "tools" in item:
        item["tools"] = normal_tools(item["tools"])
    return item


def normal_part(part: Body) -> Body:
    return {key: value for key, value in part.items() if key not in ("annotations", "logprobs") or value}


def normal_tools(tools: list[Body]) -> list[Body]:
    """Put hosted tools last; their order means nothing."""
    return sorted(map(normal_tool, tools), key=is_hosted)


def is_hosted(tool: Body) -> bool:
    if tool["type"] == "namespace":
        return not tool["tools"] or all(map(is_hosted, tool["tools"]))
    return tool["type"] not in ("function", "custom") and tool.get("execution") != "client"


def normal_tool(tool: Body) -> Body:
    tool = without_nulls(tool)
    if tool["type"] == "namespace":
        return {**tool, "tools": normal_tools(tool["tools"])}
    if tool["type"] == "function":
        tool.setdefault("parameters", {"type": "object", "properties": {}})
    if tool["type"] == "custom":
        tool.setdefault("format", {"type": "text"})
    return {key: value for key, value in tool.items() if key != "description" or value}


def same(**fields: Field) -> None:
    """Check that a request goes out as it came."""
    assert normal(again(**fields)) == normal({"model": "m", "input": "hi", **fields})


# ---------------------------------------------------------------- real requests


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_real_request_goes_out_on_its_own_wire_as_it_came(row: Body) -> None:
    request = WIRE.decode_request(json.dumps(row["body"]).encode(), row["path"])
    assert NAME in request.extra
    outgoing = WIRE.encode_request(request, QUIRKS)
    assert normal(json.loads(outgoing.body)) == normal(row["body"])
    assert outgoing.dropped == ()


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_real_request_goes_out_on_another_wire_with_all_its_calls_answered(row: Body) -> None:
    request = WIRE.decode_request(json.dumps(row["body"]).encode(), row["path"])
    body = json.loads(CHAT.encode_request(request, QUIRKS).body)
    asked = [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    items: list[Body] = row["body"]["input"] or []
    calls = [item for item in items if "_call" in str(item) and item.get("type", "").endswith("_call")]
    assert asked == answered
    assert len(asked) == len(calls)


def test_a_warm_up_without_any_input_is_accepted() -> None:
    assert decode(input="", max_output_tokens=1).messages == ()
    assert again(input="")["input"] == ""
    assert WIRE.decode_request(b'{"model":"m"}', "").messages == ()


# ---------------------------------------------------------------- tools


def test_a_function_becomes_a_tool() -> None:
    tool = decode(tools=[{**WEATHER, "description": "Say it.", "strict": True, "async": False}]).tools[0]
    assert (tool.name, tool.description, tool.strict, tool.kind) == ("weather", "Say it.", True, ToolKind.FUNCTION)
    assert tool.parameters == WEATHER["parameters"]


@pytest.mark.parametrize("tools", [None, []])
def test_no_tools_in_any_form_are_accepted_even_with_a_choice(tools: Field) -> None:
    request = decode(tools=tools, tool_choice="none", parallel_tool_calls=False)
    assert request.tools == ()
    assert "tools" not in encode(request)
    assert "tool_choice" not in encode(request)


@pytest.mark.parametrize("strict", [True, False, None])
def test_strict_is_not_the_same_as_false_when_it_is_not_said(strict: bool | None) -> None:
    said = {} if strict is None else {"strict": strict}
    assert again(tools=[{**WEATHER, **said}])["tools"] == [{**WEATHER, **said}]


def test_a_tool_of_another_wire_is_not_strict_unless_it_says_so() -> None:
    request = Request("m", (), (Tool("a"), Tool("b", strict=True)))
    assert [tool["strict"] for tool in encode(request)["tools"]] == [False, True]


def test_a_custom_tool_has_one_free_text_and_its_grammar() -> None:
    tool = decode(tools=[PATCH]).tools[0]
    assert tool.kind is ToolKind.CUSTOM
    assert tool.grammar == Grammar("lark", "start: /.+/")
    assert list(tool.parameters["properties"]) == ["input"]  # type: ignore[arg-type]
    same(
        tools=[PATCH, {"type": "custom", "name": "plain"}, {"type": "custom", "name": "x", "format": {"type": "text"}}]
    )


def test_a_custom_tool_is_a_plain_function_on_another_wire() -> None:
    body = json.loads(CHAT.encode_request(decode(tools=[PATCH]), QUIRKS).body)
    assert body["tools"][0]["function"]["parameters"]["required"] == ["input"]


def test_a_custom_tool_of_another_wire_goes_out_as_a_plain_function() -> None:
    body = {"model": "m", "messages": [], "tools": [{"type": "custom", "custom": {"name": "x"}}]}
    tool = encode(CHAT.decode_request(json.dumps(body).encode(), ""))["tools"][0]
    assert (tool["type"], tool["name"], tool["parameters"]["required"]) == ("function", "x", ["input"])


def test_tools_in_a_namespace_get_flat_names_and_go_back_into_it() -> None:
    tools = [WEATHER, {**SPACE, "tools": [CLOSE, {**PATCH, "defer_loading": True}]}]
    request = decode(tools=tools)
    assert [tool.name for tool in request.tools] == ["weather", "agents__close", "agents__apply_patch"]
    assert [(tool.namespace, tool.local_name) for tool in request.tools[1:]] == [
        ("agents", "close"),
        ("agents", "apply_patch"),
    ]
    same(tools=tools)


def test_the_same_name_in_two_namespaces_stays_two_tools() -> None:
    tools = [SPACE, {**SPACE, "name": "doors"}, {**WEATHER, "name": "close"}]
    assert [tool.name for tool in decode(tools=tools).tools] == ["agents__close", "doors__close", "close"]
    same(tools=tools)


def test_a_flat_name_that_another_tool_has_is_made_unique_and_stable() -> None:
    tools = [{**WEATHER, "name": "agents__close"}, SPACE]
    first, second = (tool.name for tool in decode(tools=tools).tools)
    assert first == "agents__close"
    assert second != first
    assert second.startswith("agents__close_")
    assert second == decode(tools=tools).tools[1].name
    same(tools=tools)


def test_a_flat_name_is_legal_and_short_whatever_the_namespace_is_called() -> None:
    spaces = [{**SPACE, "name": "mcp.files/" + "x" * 70}, {**SPACE, "name": "mcp.files:" + "x" * 70}]
    names = [tool.name for tool in decode(tools=spaces).tools]
    assert len(set(names)) == 2
    assert all(len(name) <= 64 and name.replace("_", "").isalnum() for name in names)
    same(tools=spaces)


def test_two_namespaces_whose_flat_names_meet_stay_apart() -> None:
    tools = [{**SPACE, "name": "a", "tools": [{**CLOSE, "name": "b__c"}]}]
    tools += [{**SPACE, "name": "a__b", "tools": [{**CLOSE, "name": "c"}]}]
    names = [tool.name for tool in decode(tools=tools).tools]
    assert names[0] == "a__b__c" != names[1]
    same(tools=tools)


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "web_search", "external_web_access": True},
        {"type": "tool_search", "execution": "server"},
        {"type": "tool_search"},
        {"type": "mcp", "server_label": "x", "server_url": "y"},
        {"type": "local_shell"},
        {"type": "something_new", "a": [1]},
        {"type": "namespace", "name": "empty", "description": "", "tools": []},
        {"type": "namespace", "name": "n", "description": "", "tools": [{"type": "something_new", "a": 1}]},
    ],
)
def test_a_hosted_tool_is_kept_on_its_wire_and_dropped_on_others(tool: Body) -> None:
    request = decode(tools=[tool, WEATHER])
    assert [one.name for one in request.tools] == ["weather"]
    same(tools=[tool, WEATHER])
    outgoing = CHAT.encode_request(request, QUIRKS)
    assert len(json.loads(outgoing.body)["tools"]) == 1
    assert "openai_responses: tools" in outgoing.dropped


def test_the_clients_own_search_is_a_tool_of_its_own_kind() -> None:
    request = decode(tools=[SEARCH])
    assert (request.tools[0].name, request.tools[0].kind) == ("tool_search", ToolKind.SEARCH)
    assert request.tools[0].parameters == SEARCH["parameters"]
    same(tools=[SEARCH])


def test_a_function_that_is_called_like_the_search_does_not_hide_it() -> None:
    tools = [{**WEATHER, "name": "tool_search"}, SEARCH]
    first, second = decode(tools=tools).tools
    assert first.name == "tool_search" != second.name
    assert second.kind is ToolKind.SEARCH
    same(tools=tools)


def test_deferred_tools_wait_for_the_clients_search_and_for_nobody_elses() -> None:
    hidden = {**WEATHER, "defer_loading": True}
    assert decode(tools=[hidden, SEARCH]).offered()[0].name == "tool_search"
    assert decode(tools=[hidden, {"type": "tool_search"}]).offered()[0].name == "weather"
    same(tools=[hidden, SEARCH])
    same(tools=[hidden, {"type": "tool_search"}])


def test_only_offered_tools_of_another_wire_go_out() -> None:
    result = Result("c", (ToolReference("seen"),))
    messages = (Message(Role.ASSISTANT, (Call("c", "find", "{}"),)), Message(Role.TOOL, (result,)))
    tools = (Tool("find"), Tool("seen", deferred=True), Tool("unseen", deferred=True))
    body = encode(Request("m", messages, tools))
    assert [tool["name"] for tool in body["tools"]] == ["find", "seen"]
    assert body["input"][1]["output"] == "The tool seen is available now."


WRONG: list[tuple[Body, str]] = [
    ({"tools": 5}, "tools"),
    ({"tools": ["x"]}, "tools[0]"),
    ({"tools": [{"type": "function"}]}, "tools[0].name"),
    ({"tools": [{**WEATHER, "parameters": []}]}, "tools[0].parameters"),
    ({"tools": [{**WEATHER, "strict": "yes"}]}, "tools[0].strict"),
    ({"tools": [{**SPACE, "tools": [{"type": "custom"}]}]}, "tools[0].tools[0].name"),
    ({"tools": [{**PATCH, "format": {"type": "grammar", "syntax": 5}}]}, "tools[0].format.syntax"),
    ({"input": 5}, "input"),
    ({"input": ["x"]}, "input[0]"),
    ({"input": [{"role": "robot", "content": ""}]}, "input[0].role"),
    ({"input": [{"role": "user", "content": 5}]}, "input[0].content"),
    ({"input": [{"role": "user", "content": [{"type": "input_text", "text": 5}]}]}, "input[0].content[0].text"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": 5}]}]}, "input[0].content[0]"),
    ({"input": [{"type": "function_call", "call_id": "c"}]}, "input[0].name"),
    ({"input": [{"type": "function_call", "name": "x", "arguments": 5}]}, "input[0].arguments"),
    ({"input": [{"type": "custom_tool_call", "name": "x", "input": {}}]}, "input[0].input"),
    ({"input": [{"type": "function_call_output", "call_id": 5}]}, "input[0].call_id"),
    ({"input": [{"type": "function_call_output", "call_id": "c", "output": 5}]}, "input[0].output"),
    ({"input": [{"type": "reasoning", "summary": "x"}]}, "input[0].summary"),
    ({"input": [{"type": "reasoning", "encrypted_content": 5}]}, "input[0].encrypted_content"),
    ({"input": [{"type": "additional_tools", "tools": [{"type": "custom"}]}]}, "input[0].tools[0].name"),
    ({"input": [{"type": "tool_search_output", "call_id": "c", "tools": 5}]}, "input[0].tools"),
    ({"instructions": []}, "instructions"),
    ({"tool_choice": "any"}, "tool_choice"),
    ({"tool_choice": 5}, "tool_choice"),
    ({"tool_choice": {"type": "function"}}, "tool_choice.name"),
    ({"tool_choice": {"type": "allowed_tools", "tools": [5]}}, "tool_choice.tools[0]"),
    ({"parallel_tool_calls": "no"}, "parallel_tool_calls"),
    ({"max_output_tokens": "9"}, "max_output_tokens"),
    ({"reasoning": {"effort": 5}}, "reasoning.effort"),
    ({"text": {"format": {"type": "yaml"}}}, "text.format.type"),
    ({"text": {"format": {"type": "json_schema", "schema": 5}}}, "text.format.schema"),
    ({"model": 5}, "model"),
    ({"stream": 1}, "stream"),
    ({"previous_response_id": "resp_1"}, "previous_response_id"),
    ({"conversation": {"id": "x"}}, "conversation"),
]


@pytest.mark.parametrize(("fields", "place"), WRONG)
def test_a_wrong_field_is_refused_with_its_place(fields: Body, place: str) -> None:
    with pytest.raises(BadField) as refused:
        decode(**fields)
    assert refused.value.field.startswith(place)


def test_a_stored_conversation_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(BadField, match="send the whole conversation in `input`"):
        decode(previous_response_id="resp_1")


# ---------------------------------------------------------------- choice


@pytest.mark.parametrize("mode", ["auto", "none", "required"])
def test_a_choice_by_word(mode: str) -> None:
    assert decode(tools=[WEATHER], tool_choice=mode).choice == ToolChoice(ChoiceMode(mode))
    same(tools=[WEATHER], tool_choice=mode)


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ({"type": "function", "name": "weather"}, "weather"),
        ({"type": "custom", "name": "apply_patch"}, "apply_patch"),
        ({"type": "function", "name": "close", "namespace": "agents"}, "agents__close"),
        ({"type": "tool_search"}, "tool_search"),
    ],
)
def test_a_choice_of_one_tool(choice: Body, name: str) -> None:
    tools = [WEATHER, PATCH, SPACE, SEARCH]
    assert decode(tools=tools, tool_choice=choice).choice == ToolChoice(ChoiceMode.NAMED, name)
    same(tools=tools, tool_choice=choice)


def test_a_choice_may_leave_out_the_namespace_of_the_only_tool_of_that_name() -> None:
    request = decode(tools=[SPACE], tool_choice={"type": "function", "name": "close"})
    assert request.choice.name == "agents__close"


def test_a_choice_of_some_tools() -> None:
    allowed = [{"type": "function", "name": "weather"}, {"type": "custom", "name": "apply_patch"}]
    choice = {"type": "allowed_tools", "mode": "required", "tools": allowed}
    request = decode(tools=[WEATHER, PATCH, SPACE], tool_choice=choice)
    assert request.choice == ToolChoice(ChoiceMode.REQUIRED, allowed=("weather", "apply_patch"))
    same(tools=[WEATHER, PATCH, SPACE], tool_choice=choice)


def test_a_choice_of_some_tools_and_hosted_ones_keeps_them() -> None:
    allowed = [{"type": "function", "name": "weather"}, {"type": "mcp", "server_label": "x"}]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": allowed}
    assert decode(tools=[WEATHER], tool_choice=choice).choice.allowed == ("weather",)
    same(tools=[WEATHER], tool_choice=choice)


def test_a_choice_of_hosted_tools_only_allows_no_others() -> None:
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "server_label": "x"}]}
    assert decode(tools=[WEATHER], tool_choice=choice).choice.mode is ChoiceMode.NONE
    same(tools=[WEATHER], tool_choice=choice)


@pytest.mark.parametrize("kind", ["web_search_preview", "mcp", "shell", "apply_patch", "something_new"])
def test_a_choice_of_a_hosted_tool_is_kept_on_this_wire(kind: str) -> None:
    choice = {"type": kind, "server_label": "x"}
    assert decode(tools=[WEATHER], tool_choice=choice).choice == ToolChoice()
    same(tools=[WEATHER], tool_choice=choice)


def test_some_tools_of_another_wire_are_the_only_ones_that_go_out() -> None:
    request = Request("m", (), (Tool("a"), Tool("b")), ToolChoice(ChoiceMode.REQUIRED, allowed=("b",)))
    body = encode(request)
    assert [tool["name"] for tool in body["tools"]] == ["b"]
    assert body["tool_choice"] == "required"


def test_one_call_at_a_time() -> None:
    assert not decode(tools=[WEATHER], parallel_tool_calls=False).choice.parallel
    same(tools=[WEATHER], parallel_tool_calls=False)


# ---------------------------------------------------------------- other fields


def test_sampling_and_the_form_of_the_answer() -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {"type": "integer"}}}
    asked: Body = {"type": "json_schema", "name": "n", "strict": True, "schema": schema}
    fields: Body = {
        "max_output_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": asked, "verbosity": "low"},
        "stream": True,
    }
    request = decode(**fields)
    assert request.sampling == Sampling(max_tokens=9, temperature=0.5, top_p=0.9, effort="low")
    assert request.output_schema == schema
    assert request.stream
    same(**fields)


def test_any_json_object_and_plain_text_as_the_answer() -> None:
    assert decode(text={"format": {"type": "json_object"}}).output_schema == {}
    same(text={"format": {"type": "json_object"}})
    assert decode(text={"format": {"type": "text"}}).output_schema is None
    assert "text" not in again(text={"format": {"type": "text"}})


def test_fields_without_a_word_of_ours_stay_on_this_wire() -> None:
    fields = {"store": True, "include": ["x"], "truncation": "auto", "metadata": {"a": "b"}, "new": [1], "user": "u"}
    assert decode(**fields).extra[NAME] == fields
    same(**fields)
    dropped = CHAT.encode_request(decode(**fields), QUIRKS).dropped
    assert dropped == tuple(sorted(f"{NAME}: {key}" for key in fields))


def test_a_request_of_another_wire_is_not_stored_and_gets_its_reasoning_to_keep() -> None:
    body = encode(Request("m", (), sampling=Sampling(max_tokens=5, stop=("x",), seed=3), output_schema={"a": 1}))
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])
    assert body["text"] == {"format": {"type": "json_schema", "name": "answer", "schema": {"a": 1}}}
    assert not {"stop", "seed", "stream"} & body.keys()


def test_what_this_wire_cannot_say_is_told() -> None:
    request = Request("m", (), sampling=Sampling(stop=("x",), top_k=3), extra={"openai_chat": {"n": 1}})
    assert WIRE.encode_request(request, QUIRKS).dropped == ("openai_chat: n", "top_k", "stop")


def test_deeply_nested_and_strange_bodies_are_refused_and_never_crash() -> None:
    for body in (b"[]", b"", b"{", b'{"input":' + b"[" * 5000, b'{"tools":' + b"[" * 5000, b"\xff", b"null"):
        with pytest.raises(BadField):
            WIRE.decode_request(body, "")

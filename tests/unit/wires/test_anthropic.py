"""The Anthropic wire: requests, both ways."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.wire_requests import REQUESTS
from tests.unit.wires.anthropic_scene import (
    CACHE,
    CHAT,
    NOW,
    SCHEMA,
    WIRE,
    Body,
    again,
    ask,
    blocks,
    decode,
    dropped,
    encode,
    said,
    user,
)
from toolspeak.errors import BadField
from toolspeak.ir.message import (
    Call,
    Message,
    Result,
    Role,
    Text,
)
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.request import Sampling
from toolspeak.ir.tool import ChoiceMode, Tool, ToolChoice, ToolKind

ROWS = [row for line in REQUESTS.read_text().splitlines() if (row := json.loads(line))["wire"] == "anthropic"]


def meaning(body: Body) -> Body:
    """Write a request in one of the forms that mean the same."""
    same = {key: value for key, value in body.items() if value is not None}
    turns: list[Body] = []
    for message in same["messages"]:
        turn = {**message, "content": blocks(message["content"])}
        if turns and turns[-1]["role"] == turn["role"] != "system":
            turns[-1]["content"] += turn["content"]
        else:
            turns.append(turn)
    same["messages"] = turns
    if "system" in same:
        same["system"] = blocks(same["system"])
    if same.get("stream") is False:
        del same["stream"]
    if same.get("tool_choice") == {"type": "auto"}:
        del same["tool_choice"]
    same["tools"] = [{key: value for key, value in tool.items() if value != "custom"} for tool in same.get("tools", [])]
    return same


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_what_real_clients_send_goes_out_as_it_came_in(row: Body) -> None:
    request = WIRE.decode_request(json.dumps(row["body"]).encode(), row["path"])
    out = WIRE.encode_request(request, QUIRKS)
    assert meaning(json.loads(out.body)) == meaning(row["body"])
    assert out.path == "messages"
    assert out.dropped == ()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_what_real_clients_send_can_go_out_on_another_wire_wire2(row: Body) -> None:
    request = WIRE.decode_request(json.dumps(row["body"]).encode(), row["path"])
    body = json.loads(CHAT.encode_request(request, QUIRKS).body)
    assert len(body.get("tools", [])) == len(request.offered())
    assert body["messages"]


# ---------------------------------------------------------------- tools


def test_a_tool_of_the_clients_own_is_read_and_written_back() -> None:
    tool = {
        **NOW,
        "type": "custom",
        "strict": True,
        "defer_loading": True,
        "cache_control": CACHE,
        "eager_input_streaming": True,
        "input_examples": [{"zone": "CET"}],
        "allowed_callers": ["direct"],
    }
    request = decode(tools=[tool])
    (read,) = request.tools
    assert (read.name, read.description, read.parameters) == ("now", "Tell the time.", SCHEMA)
    assert (read.strict, read.deferred, read.kind) == (True, True, ToolKind.FUNCTION)
    assert meaning(encode(request))["tools"] == meaning({"messages": [], "tools": [tool]})["tools"]


def test_a_tool_without_a_schema_takes_no_arguments() -> None:
    assert decode(tools=[{"name": "now"}]).tools[0].parameters == {"type": "object", "properties": {}}


def test_a_type_that_nobody_knows_is_kept_beside_its_schema() -> None:
    tool = {"type": "custom_20990101", **NOW}
    assert decode(tools=[tool]).tools[0].name == "now"
    assert again(tools=[tool])["tools"] == [tool]


@pytest.mark.parametrize("tools", [None, []])
def test_no_tools_and_a_choice_without_tools_are_accepted(tools: list[Body] | None) -> None:
    body = again(tools=tools, tool_choice={"type": "any"})
    assert "tools" not in body
    assert "tool_choice" not in body


@pytest.mark.parametrize(
    ("tool", "keys"),
    [
        ({"type": "bash_20250124", "name": "bash", "cache_control": CACHE}, {"command", "restart"}),
        (
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 9},
            {"command", "path", "view_range", "file_text", "old_str", "new_str", "insert_line", "insert_text"},
        ),
        (
            {"type": "memory_20250818", "name": "memory"},
            {"command", "path", "old_path", "new_path", "view_range", "file_text", "old_str", "new_str"}
            | {"insert_line", "insert_text"},
        ),
        (
            {"type": "computer_20250124", "name": "computer", "display_width_px": 800, "display_height_px": 600},
            {"action", "coordinate", "start_coordinate", "text", "duration", "scroll_direction", "scroll_amount"}
            | {"region"},
        ),
    ],
)
def test_a_tool_of_the_vendors_that_the_client_runs_has_the_schema_that_it_implies(tool: Body, keys: set[str]) -> None:
    request = decode(tools=[tool])
    (read,) = request.tools
    properties: Any = read.parameters["properties"]
    assert read.name == tool["name"]
    assert read.description
    assert set(properties) == keys
    assert encode(request)["tools"] == [tool]
    (function,) = json.loads(CHAT.encode_request(request, QUIRKS).body)["tools"]
    assert function["function"]["parameters"] == read.parameters


def test_what_a_tool_of_the_vendors_can_do_depends_on_its_version() -> None:
    def actions(tool: Body, key: str) -> list[str]:
        properties: Any = decode(tools=[tool]).tools[0].parameters["properties"]
        found: list[str] = properties[key]["enum"]
        return found

    assert "undo_edit" in actions({"type": "text_editor_20250124", "name": "str_replace_editor"}, "command")
    assert "undo_edit" not in actions({"type": "text_editor_20250429", "name": "e"}, "command")
    assert "scroll" not in actions({"type": "computer_20241022", "name": "computer"}, "action")
    assert "zoom" in actions({"type": "computer_20251124", "name": "c", "enable_zoom": True}, "action")
    assert "zoom" not in actions({"type": "computer_20251124", "name": "c"}, "action")


def test_a_deferred_tool_of_the_vendors_is_hidden_from_other_wires() -> None:
    request = decode(tools=[{"type": "bash_20250124", "name": "bash", "defer_loading": True}])
    assert request.offered() == ()


def test_a_family_of_tools_is_offered_tool_by_tool_and_written_back_as_it_came() -> None:
    family = {"type": "computer_toolset_20260801", "configs": {"zoom": {"enabled": False}}, "cache_control": CACHE}
    request = decode(tools=[family, {"type": "browser_toolset_20260801"}, NOW])
    names = [tool.name for tool in request.tools]
    assert {"computer_left_click", "browser_left_click", "browser_zoom", "now"} <= set(names)
    assert "computer_zoom" not in names
    assert len(names) == 16 + 31 + 1
    assert encode(request)["tools"] == [NOW, family, {"type": "browser_toolset_20260801"}]


def test_calls_of_a_family_keep_the_names_that_the_client_knows() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "key", "input": {"text": "a"}, "toolset_name": "computer"}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "ok", "toolset_name": "computer"}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    request = decode(tools=[{"type": "computer_toolset_20260801"}], messages=messages)
    part = request.messages[1].parts[0]
    assert isinstance(part, Call)
    assert part.name == "computer_key"
    assert meaning(encode(request)) == meaning({**encode(request), "messages": messages})


@pytest.mark.parametrize(
    "kind",
    [
        "web_search_20250305",
        "web_fetch_20250910",
        "code_execution_20250825",
        "tool_search_tool_bm25_20251119",
        "mcp_toolset",
        "advisor_20260301",
        "never_heard_of_20990101",
    ],
)
def test_a_tool_that_the_vendor_runs_goes_to_the_vendor_only(kind: str) -> None:
    hosted = {"type": kind, "name": "x", "max_uses": 3}
    request = decode(tools=[NOW, hosted])
    assert [tool.name for tool in request.tools] == ["now"]
    assert encode(request)["tools"] == [NOW, hosted]
    out = CHAT.encode_request(request, QUIRKS)
    assert len(json.loads(out.body)["tools"]) == 1
    assert "anthropic: tools" in out.dropped


def test_of_two_tools_with_one_name_the_last_counts() -> None:
    assert again(tools=[{**NOW, "description": "first"}, NOW])["tools"] == [NOW]


def test_names_that_the_vendor_refuses_get_an_alias_wire6() -> None:
    tools = (Tool("a.b", parameters=SCHEMA), Tool("x" * 129), Tool("y" * 128))
    history = (user("hi"), said(Call("c1", "a.b", "{}")), Message(Role.TOOL, (Result("c1", (Text("ok"),)),)))
    body = encode(ask(*history, tools=tools, choice=ToolChoice(ChoiceMode.NAMED, "a.b")))
    dotted, long, fine = (tool["name"] for tool in body["tools"])
    assert dotted.startswith("a_b_")
    assert len(long) == 128
    assert fine == "y" * 128
    assert body["tool_choice"] == {"type": "tool", "name": dotted}
    assert body["messages"][1]["content"][0]["name"] == dotted


def test_tools_of_other_wires_are_plain_functions() -> None:
    custom = Tool("patch", "Edit.", {"type": "object", "properties": {"input": {}}}, kind=ToolKind.CUSTOM)
    deferred, bare = Tool("later", deferred=True), Tool("bare", strict=True)
    body = encode(ask(tools=(custom, deferred, bare)))
    assert body["tools"] == [
        {"name": "patch", "description": "Edit.", "input_schema": {"type": "object", "properties": {"input": {}}}},
        {"name": "bare", "input_schema": {"type": "object"}, "strict": True},
    ]


# ---------------------------------------------------------------- choice


@pytest.mark.parametrize(
    ("choice", "read"),
    [
        ({"type": "auto"}, ToolChoice()),
        ({"type": "auto", "disable_parallel_tool_use": True}, ToolChoice(parallel=False)),
        ({"type": "any"}, ToolChoice(ChoiceMode.REQUIRED)),
        ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice(ChoiceMode.REQUIRED, parallel=False)),
        ({"type": "tool", "name": "now"}, ToolChoice(ChoiceMode.NAMED, "now")),
        (
            {"type": "tool", "name": "now", "disable_parallel_tool_use": True},
            ToolChoice(ChoiceMode.NAMED, "now", parallel=False),
        ),
        ({"type": "none"}, ToolChoice(ChoiceMode.NONE)),
        ({"type": "any", "later": 1}, ToolChoice(ChoiceMode.REQUIRED)),
    ],
)
def test_every_choice_is_read_and_written_back(choice: Body, read: ToolChoice) -> None:
    request = decode(tools=[NOW], tool_choice=choice)
    assert request.choice == read
    assert encode(request).get("tool_choice", {"type": "auto"}) == choice


def test_none_has_no_word_about_parallel_calls() -> None:
    body = encode(ask(tools=(Tool("now"),), choice=ToolChoice(ChoiceMode.NONE, parallel=False)))
    assert body["tool_choice"] == {"type": "none"}


def test_a_subset_of_tools_is_offered_alone() -> None:
    body = encode(ask(tools=(Tool("a"), Tool("b")), choice=ToolChoice(ChoiceMode.REQUIRED, allowed=("b",))))
    assert [tool["name"] for tool in body["tools"]] == ["b"]
    assert body["tool_choice"] == {"type": "any"}


# ---------------------------------------------------------------- everything else


def test_sampling_is_read_and_written_back() -> None:
    body = {"temperature": 0.5, "top_p": 0.9, "top_k": 5, "stop_sequences": ["x", "y"], "max_tokens": 7}
    request = decode(**body)
    assert request.sampling == Sampling(7, 0.5, 0.9, 5, stop=("x", "y"))
    assert body.items() <= encode(request).items()


def test_max_tokens_may_be_missing_and_is_always_written() -> None:
    assert decode(max_tokens=None).sampling.max_tokens is None
    assert again(max_tokens=None)["max_tokens"] == 8192


def test_wishes_that_the_wire_cannot_tell_are_named() -> None:
    sampling = Sampling(
        temperature=1.7, frequency_penalty=1, presence_penalty=1, seed=4, stop=("\n", "END"), effort="none"
    )
    request = ask(sampling=sampling, output_schema={})
    body = encode(request)
    assert (body["temperature"], body["stop_sequences"]) == (1.0, ["END"])
    assert "output_config" not in body
    assert dropped(request) == (
        "blank stop sequences",
        "effort none",
        "frequency_penalty",
        "output of any JSON object",
        "presence_penalty",
        "seed",
        "temperature above 1.0",
    )


@pytest.mark.parametrize(("effort", "sent"), [("minimal", "low"), ("high", "high"), ("max", "max")])
def test_effort_of_other_wires_is_told_in_this_ones_words(effort: str, sent: str) -> None:
    assert encode(ask(sampling=Sampling(effort=effort)))["output_config"] == {"effort": sent}


@pytest.mark.parametrize(
    "config",
    [
        {"effort": "max"},
        {"format": {"type": "json_schema", "schema": SCHEMA}},
        {"format": {"type": "json_schema", "schema": {}, "x": 1}, "effort": "low", "y": 2},
        {"format": {"type": "never_heard_of"}},
    ],
)
def test_output_config_is_read_and_written_back(config: Body) -> None:
    request = decode(output_config=config)
    assert request.sampling.effort == config.get("effort")
    schema = config.get("format", {}).get("schema")
    assert request.output_schema == schema
    assert encode(request)["output_config"] == config


def test_the_older_name_of_the_answers_schema_is_read_and_kept() -> None:
    older = {"type": "json_schema", "schema": SCHEMA}
    request = decode(output_format=older, output_config={"effort": "low"})
    assert request.output_schema == SCHEMA
    body = encode(request)
    assert (body["output_format"], body["output_config"]) == (older, {"effort": "low"})


def test_the_schema_of_another_wires_answer_is_written() -> None:
    body = encode(ask(output_schema=SCHEMA))
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}


def test_fields_that_nobody_knows_are_kept() -> None:
    rest: Body = {
        "thinking": {"type": "enabled", "budget_tokens": 5},
        "metadata": {"user_id": "u"},
        "context_management": {"edits": []},
        "mcp_servers": [{"name": "x"}],
        "service_tier": "auto",
        "never_heard_of": [1],
    }
    request = decode(**rest, stream=True)
    assert request.extra == {"anthropic": rest}
    assert request.stream is True
    body = encode(request)
    assert rest.items() <= body.items()
    assert body["stream"] is True
    assert decode().extra == {"anthropic": {}}


@pytest.mark.parametrize("thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}])
def test_a_thread_is_refused_in_the_words_by_which_clients_go_on_without_one(thread: Body) -> None:
    with pytest.raises(BadField) as refused:
        decode(thread=thread)
    assert refused.value.field == "thread"


WRONG: list[tuple[Body, str]] = [
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
    ({"messages": {"role": "user"}}, "messages"),
    ({"messages": ["hi"]}, "messages[0]"),
    ({"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]}, "messages[0].content[0].text"),
    ({"messages": [{"role": "user", "content": [{"type": 5}]}]}, "messages[0].content[0].type"),
    (
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": 5}]}]},
        "messages[0].content[0].input",
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": {"a": 1}}]}]},
        "messages[0].content[0].content",
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "data": 5}}]}]},
        "messages[0].content[0].source.data",
    ),
    ({"system": 5}, "system"),
    ({"tools": [{"name": "f", "input_schema": 5}]}, "tools[0].input_schema"),
    ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
    ({"tools": 5}, "tools"),
    ({"tool_choice": "auto"}, "tool_choice"),
    ({"tool_choice": {"type": "maybe"}}, "tool_choice.type"),
    ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
    ({"max_tokens": "5"}, "max_tokens"),
    ({"max_tokens": 5.5}, "max_tokens"),
    ({"temperature": True}, "temperature"),
    ({"stop_sequences": [5]}, "stop_sequences"),
    ({"stream": "yes"}, "stream"),
    ({"output_config": {"effort": 5}}, "output_config.effort"),
    ({"output_config": {"format": {"type": "json_schema", "schema": 5}}}, "output_config.format.schema"),
]


@pytest.mark.parametrize(("body", "path"), WRONG)
def test_a_field_of_the_wrong_type_is_named_by_its_path(body: Body, path: str) -> None:
    with pytest.raises(BadField) as bad:
        decode(**body)
    assert bad.value.field == path


BODY_KEYS = ("model", "messages", "tools", "system", "tool_choice", "output_config", "max_tokens")
BLOCK_KEYS = ("role", "content", "type", "text", "source", "data", "input", "id", "name", "tool_name", "toolset_name")
OTHER_KEYS = ("input_schema", "format", "schema", "configs", "tool_use_id")
BLOCK_TYPES = ("text", "image", "tool_use", "tool_result", "thinking", "tool_reference")
OTHER_WORDS = ("user", "assistant", "system", "base64", "url", "custom", "json_schema", "any")
TOOL_TYPES = ("computer_toolset_20260801", "bash_20250124")
KEYS = st.sampled_from((*BODY_KEYS, *BLOCK_KEYS, *OTHER_KEYS))
WORDS = st.sampled_from((*BLOCK_TYPES, *OTHER_WORDS, *TOOL_TYPES))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(KEYS, v, max_size=5), max_leaves=20)


@given(st.dictionaries(KEYS, VALUES))
def test_any_body_is_read_and_written_or_refused_with_bad_field(body: Body) -> None:
    try:
        request = WIRE.decode_request(json.dumps(body).encode(), "/v1/messages")
    except BadField:
        return
    sent = json.loads(WIRE.encode_request(request, QUIRKS).body)
    assert sent["messages"]
    CHAT.encode_request(request, QUIRKS)


@pytest.mark.parametrize("body", [b"", b"[]", b"5", b'{"messages":', b"\xff", b'{"a":' + b"[" * 5000])
def test_a_body_that_is_no_object_is_refused_with_bad_field(body: bytes) -> None:
    with pytest.raises(BadField):
        WIRE.decode_request(body, "/v1/messages")

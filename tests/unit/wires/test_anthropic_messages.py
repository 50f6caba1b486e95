"""The Anthropic wire: messages, both ways."""

import json

import pytest

from tests.unit.wires.anthropic_scene import (
    CACHE,
    CHAT,
    NOW,
    WIRE,
    Body,
    again,
    ask,
    block,
    blocks,
    decode,
    dropped,
    encode,
    said,
    user,
)
from toolspeak.ir.message import (
    Call,
    Image,
    Message,
    Opaque,
    Reasoning,
    Result,
    ResultPart,
    Role,
    Text,
    ToolReference,
    Vendor,
)
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.tool import Tool


def meaning(messages: list[Body]) -> list[Body]:
    """Write messages in one of the forms that mean the same."""
    return [{**message, "content": blocks(message["content"])} for message in messages]


# ---------------------------------------------------------------- tests


def test_system_is_a_string_or_blocks_and_stands_first() -> None:
    assert decode(system="Be kind.").messages[0] == Message(Role.SYSTEM, (Text("Be kind."),))
    assert again(system="Be kind.")["system"] == "Be kind."
    listed = [{"type": "text", "text": "A"}, {"type": "text", "text": "B", "cache_control": CACHE}]
    assert again(system=listed)["system"] == listed
    assert "system" not in again(system="")


@pytest.mark.parametrize("system", [None, "S"])
def test_a_system_message_among_the_others_stays_there(system: str | None) -> None:
    first = {"role": "system", "content": "first"}
    later: Body = {"role": "system", "content": [{"type": "text", "text": "later"}], "output_config": {"effort": "low"}}
    messages: list[Body] = [first, {"role": "user", "content": "hi"}, later, {"role": "user", "content": "go"}]
    request = decode(messages=messages, system=system)
    assert [m.role.value for m in request.messages] == ["system"] * (1 + bool(system)) + ["user", "system", "user"]
    body = encode(request)
    assert meaning(body["messages"]) == meaning(messages)
    assert body.get("system") == system


def test_tools_that_come_and_go_in_a_system_message_are_kept() -> None:
    addition = {"type": "tool_addition", "tools": [NOW]}
    messages: list[Body] = [{"role": "user", "content": "hi"}, {"role": "system", "content": [addition]}]
    request = decode(messages=messages)
    assert isinstance(request.messages[1].parts[0], Opaque)
    assert encode(request)["messages"][1]["content"] == [addition]


def test_system_messages_of_other_wires_become_system_or_are_told_by_the_user() -> None:
    system = Message(Role.SYSTEM, (Text("A"),)), Message(Role.SYSTEM, (Text("B"),))
    body = encode(ask(*system, user("hi"), said(Text("yes")), Message(Role.SYSTEM, (Text("C"),)), user("go")))
    assert body["system"] == [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]
    told = [{"type": "text", "text": "<system>\nC\n</system>"}, {"type": "text", "text": "go"}]
    assert body["messages"][2] == {"role": "user", "content": told}


def test_results_and_what_stands_beside_them_are_split_in_order_and_joined_again() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "now", "input": {"zone": "CET"}, "cache_control": CACHE}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "noon", "cache_control": CACHE}
    text = {"type": "text", "text": "and?"}
    messages: list[Body] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, call]},
        {"role": "user", "content": [text, result]},
    ]
    request = decode(messages=messages)
    roles = [message.role.value for message in request.messages]
    assert roles == ["user", "assistant", "user", "tool"]
    part = request.messages[1].parts[1]
    assert isinstance(part, Call)
    assert json.loads(part.arguments) == {"zone": "CET"}
    answer = request.messages[3].parts[0]
    assert isinstance(answer, Result)
    assert (answer.call_id, answer.name) == ("t1", "now")
    body = encode(request)
    assert body["messages"][2] == {"role": "user", "content": [result, text]}
    assert body["messages"][1]["content"][1] == call


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("noon", (Text("noon"),)),
        ("", ()),
        (None, ()),
        ([], ()),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], (Text("a"), Text("b"))),
        (
            [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}],
            (Image("image/png", "AA=="),),
        ),
        ([{"type": "image", "source": {"type": "url", "url": "https://a/b"}}], (Image(url="https://a/b"),)),
        ([{"type": "tool_reference", "tool_name": "later"}], (ToolReference("later"),)),
        (
            [{"type": "document", "source": {"type": "text", "data": "x"}}],
            (Opaque(Vendor("anthropic", {"type": "document", "source": {"type": "text", "data": "x"}}), "document"),),
        ),
        (
            [{"type": "search_result", "title": "x"}],
            (Opaque(Vendor("anthropic", {"type": "search_result", "title": "x"}), "search_result"),),
        ),
    ],
)
@pytest.mark.parametrize("is_error", [False, True])
def test_every_form_of_a_result_is_read_and_written_back(
    content: str | list[Body] | None, parts: tuple[ResultPart, ...], is_error: bool
) -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": content, "is_error": is_error}
    messages: list[Body] = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "now", "input": {}}]},
        {"role": "user", "content": [result]},
    ]
    request = decode(messages=messages, tools=[{**NOW, "name": "later", "defer_loading": True}])
    assert request.messages[1].parts == (Result("t1", parts, "now", is_error=is_error),)
    (written,) = encode(request)["messages"][1]["content"]
    if parts:
        assert block(written) == block(result)
    else:
        assert written["content"] == ("The tool failed and said nothing." if is_error else "")


@pytest.mark.parametrize(
    "part",
    [
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}},
        {"type": "image", "source": {"type": "file", "file_id": "f1"}},
        {"type": "container_upload", "file_id": "f1"},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "never_heard_of", "text": "x"},
    ],
)
def test_a_block_that_only_the_vendor_knows_is_kept_for_the_vendor(part: Body) -> None:
    messages: list[Body] = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [part]}]
    request = decode(messages=messages)
    assert isinstance(request.messages[1].parts[0], Opaque)
    assert encode(request)["messages"][1]["content"] == [part]
    assert f"anthropic: {part['type']}" in CHAT.encode_request(request, QUIRKS).dropped


def test_a_thought_that_nobody_may_see_comes_back_sealed_wire7() -> None:
    part = {"type": "redacted_thinking", "data": "a:b=="}
    messages: list[Body] = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [part]}]
    request = decode(messages=messages)
    assert request.messages[1].parts == (Reasoning("", "redacted_thinking:a:b=="),)
    assert encode(request)["messages"][1]["content"] == [part]


def test_blocks_in_the_wrong_role_are_kept_as_they_are() -> None:
    wrong: list[Body] = [
        {"type": "tool_use", "id": "t1", "name": "now", "input": {}},
        {"type": "thinking", "thinking": "x", "signature": "s"},
    ]
    assert again(messages=[{"role": "user", "content": wrong}])["messages"][0]["content"] == wrong


def test_what_stands_beside_a_text_or_an_image_is_written_back() -> None:
    content: list[Body] = [
        {"type": "text", "text": "hi", "citations": [], "cache_control": CACHE},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA==", "x": 1}, "y": 2},
    ]
    assert again(messages=[{"role": "user", "content": content}])["messages"][0]["content"] == content


def test_thinking_goes_back_with_its_signature_and_only_with_one_wire7() -> None:
    thought = {"type": "thinking", "thinking": "Hm", "signature": "c2ln"}
    hidden = {"type": "thinking", "thinking": "", "signature": "c2ln"}
    unsigned = {"type": "thinking", "thinking": "Hm", "signature": ""}
    messages: list[Body] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [thought, hidden, unsigned]},
    ]
    request = decode(messages=messages)
    assert request.messages[1].parts == (Reasoning("Hm", "c2ln"), Reasoning("", "c2ln"), Reasoning("Hm"))
    assert encode(request)["messages"][1]["content"] == [thought, hidden]
    assert dropped(request) == ("reasoning without a signature",)


def test_blank_texts_and_empty_messages_are_never_written() -> None:
    body = encode(ask(user("hi"), said(Text("")), Message(Role.USER, (Text(" \n"),)), user("go")))
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "go"}]}
    ]


@pytest.mark.parametrize("messages", [(Message(Role.SYSTEM, (Text("A"),)),), (user(""),)])
def test_a_conversation_of_which_nothing_is_left_has_one_message(messages: tuple[Message, ...]) -> None:
    assert encode(ask(*messages))["messages"] == [{"role": "user", "content": "."}]


def test_a_conversation_of_another_wire_begins_with_its_user() -> None:
    assert [m["role"] for m in encode(ask(said(Text("Hello"))))["messages"]] == ["user", "assistant"]
    prefill = [{"role": "assistant", "content": "Hello"}]
    assert again(messages=prefill)["messages"] == prefill


def test_a_history_is_put_in_order_and_ids_are_made_usable() -> None:
    history = (
        user("hi"),
        said(Call("a.1", "f", '{"x": 1.50}'), Call("b", "g", "")),
        user("wait"),
        Message(Role.TOOL, (Result("b", (Text("B"),)),)),
    )
    body = encode(ask(*history))
    calls, answers = body["messages"][1]["content"], body["messages"][2]["content"]
    assert [call["id"] for call in calls] == [answer["tool_use_id"] for answer in answers[:2]]
    assert calls[0]["id"].startswith("call_")
    assert answers[0]["is_error"] is True
    assert answers[2] == {"type": "text", "text": "wait"}
    assert calls[1]["input"] == {}
    assert b'"input":{"x": 1.50}' in WIRE.encode_request(ask(*history), QUIRKS).body


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [("[1]", {"arguments": [1]}), ('{"a":', {"arguments": '{"a":'}), ("null", {"arguments": None})],
)
def test_arguments_that_are_no_object_are_not_lost(arguments: str, sent: Body) -> None:
    body = encode(ask(user("hi"), said(Call("c", "f", arguments))))
    assert body["messages"][1]["content"][0]["input"] == sent


def test_what_other_wires_brought_along_is_named_not_sent() -> None:
    parts = (
        Image(url="gs://bucket/x"),
        Opaque(Vendor("gemini", {"x": 1}), "video"),
        Text("hi", Vendor("openai_chat", {"y": 1})),
    )
    request = ask(Message(Role.USER, parts), extra={"openai_chat": {"store": True}})
    content = encode(request)["messages"][0]["content"]
    assert [one["text"] for one in content] == ["[image omitted]", "[video omitted]", "hi"]
    assert dropped(request) == ("gemini: video", "openai_chat: store")


def test_a_reference_to_a_tool_is_words_where_the_vendor_would_refuse_it() -> None:
    history = (
        user("hi"),
        said(Call("c", "find", "{}")),
        Message(Role.TOOL, (Result("c", (ToolReference("later"),)),)),
    )
    body = encode(ask(*history, tools=(Tool("later", deferred=True),)))
    assert body["messages"][2]["content"][0]["content"] == "The tool later is available now."
    assert body["tools"][0]["name"] == "later"

"""What clients of Ollama send, and that it goes on as it came."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from testkit.wire_requests import REQUESTS
from toolspeak import wires
from toolspeak.errors import BadField
from toolspeak.ir.message import (
    Call,
    Image,
    Message,
    Opaque,
    Reasoning,
    Result,
    Role,
    Text,
    Vendor,
)
from toolspeak.ir.quirks import QUIRKS, Quirks
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import Tool
from toolspeak.wires import EncodedRequest

WIRE = wires.load("ollama")
Body = dict[str, Any]
GOLDEN = [row for row in map(json.loads, REQUESTS.read_text().splitlines()) if row["wire"] == "ollama"]
PNG = "iVBORw0KGgoAAA"
SCHEMA: Body = {"type": "object", "properties": {"city": {"type": ["string", "null"]}}, "required": ["city"]}


def decode(**body: object) -> Request:
    return WIRE.decode_request(json.dumps({"model": "m", **body}).encode(), "/api/chat")


def decode_messages(*messages: Body) -> tuple[Message, ...]:
    return decode(messages=list(messages)).messages


def send(request: Request, quirks: Quirks = QUIRKS) -> EncodedRequest:
    return WIRE.encode_request(request, quirks)


def encode(request: Request, quirks: Quirks = QUIRKS) -> Body:
    return json.loads(send(request, quirks).body)


def again(**body: object) -> Body:
    return encode(decode(**body))


def tool(name: str = "weather", **more: object) -> Body:
    return {"type": "function", "function": {"name": name, "parameters": SCHEMA, **more}}


# ---------------------------------------------------------------- what real clients send


class Meaning:
    """Brings a body to the one form that all bodies of its meaning have."""

    def __init__(self) -> None:
        self.open: list[tuple[int, str, str]] = []
        self.number = 0

    def body(self, body: Body) -> Body:
        body = {"stream": True, **body, "messages": [self.message(message) for message in body["messages"]]}
        return {key: value for key, value in body.items() if value not in (None, {}, [])}

    def message(self, message: Body) -> Body:
        plain = {key: value for key, value in message.items() if value not in (None, [])}
        plain["role"], plain["content"] = plain["role"].lower(), plain.get("content") or ""
        if plain["role"] == "tool":
            plain["answers"] = self.answered(plain.pop("tool_call_id", ""), plain.pop("tool_name", ""))
        if calls := plain.get("tool_calls"):
            plain["tool_calls"] = [self.call(call) for call in calls]
        return plain

    def call(self, call: Body) -> Body:
        self.number += 1
        self.open.append((self.number, call.get("id", ""), call["function"]["name"]))
        return {**call, "id": self.number}

    def answered(self, id_: str, name: str) -> tuple[int, str]:
        fitting = [call for call in self.open if call[1] == id_ and id_]
        fitting = fitting or [call for call in self.open if call[2] == name] or self.open
        call = fitting[0]
        self.open.remove(call)
        return call[0], call[2]


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row["id"])
def test_what_real_clients_send_means_the_same_when_it_is_sent_on_wire2(row: Body) -> None:
    request = WIRE.decode_request(json.dumps(row["body"]).encode(), row["path"])
    sent = send(request)
    assert sent.path == "api/chat"
    assert sent.dropped == ()
    assert Meaning().body(json.loads(sent.body)) == Meaning().body(row["body"])


def test_there_are_rows_of_real_clients() -> None:
    assert len(GOLDEN) >= 12


# ---------------------------------------------------------------- decoding: the body


def test_a_body_without_stream_asks_for_one() -> None:
    assert decode(messages=[]).stream
    assert decode(messages=[], stream=None).stream
    assert decode(messages=[], stream=True).stream
    assert not decode(messages=[], stream=False).stream


def test_the_origin_is_always_marked_and_unknown_fields_go_along() -> None:
    assert decode(messages=[]).extra == {"ollama": {}}
    body = again(messages=[], keep_alive="5m", truncate=False, logprobs=True, top_logprobs=3, brand_new={"a": [1]})
    assert body == {
        "model": "m",
        "messages": [],
        "stream": True,
        "keep_alive": "5m",
        "truncate": False,
        "logprobs": True,
        "top_logprobs": 3,
        "brand_new": {"a": [1]},
    }


def test_options_are_read_and_those_without_a_word_of_ours_go_along() -> None:
    options = {
        "temperature": 0,
        "top_p": 0.5,
        "top_k": 20,
        "num_predict": 99,
        "seed": 7,
        "stop": ["END"],
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "num_ctx": 8192,
        "repeat_penalty": 1.1,
    }
    request = decode(messages=[], options=options)
    assert request.sampling == Sampling(99, 0, 0.5, 20, 0.1, 0.2, 7, ("END",))
    assert request.extra["ollama"] == {"options": {"num_ctx": 8192, "repeat_penalty": 1.1}}
    assert encode(request)["options"] == options


@pytest.mark.parametrize("options", [{"num_predict": -1}, {"num_predict": -2}, {"top_k": 0}])
def test_numbers_that_mean_something_only_here_stay_here(options: Body) -> None:
    request = decode(messages=[], options=options)
    assert request.sampling == Sampling()
    assert encode(request)["options"] == options


def test_one_stop_text_may_come_without_its_list() -> None:
    assert decode(messages=[], options={"stop": "END"}).sampling.stop == ("END",)


@pytest.mark.parametrize(
    ("think", "effort"),
    [(None, None), (False, "none"), (True, None), ("low", "low"), ("medium", "medium"), ("high", "high")],
)
def test_how_much_to_think_is_read_and_sent_on_as_it_came(think: bool | str | None, effort: str | None) -> None:
    request = decode(messages=[], think=think)
    assert request.sampling.effort == effort
    assert encode(request).get("think") == think


def test_a_word_for_thinking_that_only_the_server_knows_goes_along() -> None:
    request = decode(messages=[], think="max")
    assert encode(request)["think"] == "max"
    assert send(request).dropped == ()


@pytest.mark.parametrize(
    ("format", "schema"), [("json", {}), (SCHEMA, SCHEMA), ("", None), (None, None)], ids=["json", "schema", "", "null"]
)
def test_the_form_of_the_answer_is_read_and_sent_on(format: object, schema: object) -> None:
    request = decode(messages=[], format=format)
    assert request.output_schema == schema
    assert encode(request).get("format") == (format or None)


# ---------------------------------------------------------------- decoding: tools


def test_a_tool_is_read_with_all_that_it_has() -> None:
    body = {"type": "function", "items": 1, "function": {"name": "f", "parameters": SCHEMA, "strict": True, "x": 2}}
    request = decode(messages=[], tools=[body])
    assert request.tools == (
        Tool("f", "", SCHEMA, strict=True, vendor=Vendor("ollama", {"items": 1, "function": {"strict": True, "x": 2}})),
    )
    assert encode(request)["tools"] == [body]


def test_a_tool_may_lack_its_type_its_parameters_and_its_wrapping() -> None:
    tools = decode(messages=[], tools=[{"function": {"name": "a"}}, {"name": "b", "description": "B"}]).tools
    empty: Body = {"type": "object", "properties": {}}
    assert tools == (Tool("a", "", empty), Tool("b", "B", empty))


@pytest.mark.parametrize("tools", [[], None])
def test_no_tools_are_no_tools(tools: object) -> None:
    request = decode(messages=[], tools=tools)
    assert request.tools == ()
    assert "tools" not in encode(request)


def test_tools_of_an_unknown_type_go_along_on_this_wire_only() -> None:
    request = decode(messages=[], tools=[{"type": "web_search", "depth": 2}, tool()])
    assert [one.name for one in request.tools] == ["weather"]
    assert encode(request)["tools"] == [tool(), {"type": "web_search", "depth": 2}]


# ---------------------------------------------------------------- decoding: messages


def test_roles_are_read_in_any_case() -> None:
    messages = decode_messages(
        {"role": "System", "content": "s"},
        {"role": "USER", "content": "u"},
        {"role": "Assistant", "content": "a"},
        {"role": "TOOL", "content": "t"},
    )
    assert [message.role for message in messages] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL]


@pytest.mark.parametrize("role", ["developer", "control"])
def test_the_server_s_own_roles_speak_for_the_system_and_keep_their_name(role: str) -> None:
    request = decode(messages=[{"role": role, "content": "thinking"}])
    assert request.messages == (Message(Role.SYSTEM, (Text("thinking"),), Vendor("ollama", {"role": role})),)
    assert encode(request)["messages"] == [{"role": role, "content": "thinking"}]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("Hi", (Text("Hi"),)),
        ("", ()),
        (None, ()),
        ([{"type": "text", "text": "a"}, {"text": "b"}], (Text("a"), Text("b"))),
        ({"city": "Oslo", "t": -3}, (Text('{"city":"Oslo","t":-3}'),)),
        ([{"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{PNG}"}}], (Image("image/gif", PNG),)),
    ],
)
def test_content_may_come_in_other_forms(content: object, parts: tuple[object, ...]) -> None:
    assert decode_messages({"role": "user", "content": content})[0].parts == parts


def test_content_may_be_missing() -> None:
    assert decode_messages({"role": "assistant"}) == (Message(Role.ASSISTANT, ()),)


def test_parts_that_nobody_knows_go_along_on_this_wire_and_are_named_on_others() -> None:
    video: Body = {"type": "video", "url": "v"}
    body = {"role": "user", "content": [{"type": "text", "text": "See", "cache": 1}, video]}
    request = decode(messages=[body])
    assert request.messages[0].parts == (
        Text("See", Vendor("ollama", {"cache": 1})),
        Opaque(Vendor("ollama", video), "video"),
    )
    assert encode(request)["messages"] == [body]
    other = Request("m", (Message(Role.USER, (Text("See"), Opaque(Vendor("gemini", video), "video"))),))
    assert encode(other)["messages"] == [{"role": "user", "content": "See\n[video omitted]"}]


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        ("/9j/4AAQ", "image/jpeg"),
        ("R0lGODlh", "image/gif"),
        ("UklGRiQA", "image/webp"),
        ("AAAAIGZ0", "image/png"),
    ],
)
def test_the_first_characters_tell_what_an_image_is(data: str, media_type: str) -> None:
    request = decode(messages=[{"role": "user", "content": "See", "images": [data]}])
    assert request.messages[0].parts == (Text("See"), Image(media_type, data))
    assert encode(request)["messages"] == [{"role": "user", "content": "See", "images": [data]}]


def test_an_image_may_be_a_data_url_and_goes_on_as_base64() -> None:
    request = decode(messages=[{"role": "user", "content": "", "images": [f"data:image/gif;base64,{PNG}"]}])
    assert request.messages[0].parts == (Image("image/gif", PNG),)
    assert encode(request)["messages"][0]["images"] == [PNG]


def test_reasoning_is_a_part_of_its_own_wire7() -> None:
    body = {"role": "assistant", "content": "Yes.", "thinking": "Hm."}
    request = decode(messages=[body])
    assert request.messages[0].parts == (Reasoning("Hm."), Text("Yes."))
    assert encode(request)["messages"] == [body]
    assert encode(request, Quirks(reasoning_history=False))["messages"] == [{"role": "assistant", "content": "Yes."}]


def test_unknown_fields_of_messages_calls_and_results_go_along() -> None:
    call = {"id": "a", "type": "function", "x": 1, "function": {"index": 3, "name": "f", "arguments": {"a": 1}, "y": 2}}
    messages = [
        {"role": "user", "content": "u", "tag": 1},
        {"role": "assistant", "content": "", "tag": 2, "tool_calls": [call]},
        {"role": "tool", "content": "r", "tool_name": "f", "tool_call_id": "a", "tag": 3},
    ]
    assert again(messages=messages)["messages"] == messages


# ---------------------------------------------------------------- decoding: calls and results


def called(*names: str) -> Body:
    return {"role": "assistant", "tool_calls": [{"function": {"name": name, "arguments": {}}} for name in names]}


def answers(messages: tuple[Message, ...]) -> Iterator[tuple[str, str, str]]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, Result):
                text = part.content[0]
                yield part.call_id, part.name, text.text if isinstance(text, Text) else ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"b": 1, "a": [2.5, None]}, '{"b":1,"a":[2.5,null]}'),
        ('{"a": 1}', '{"a": 1}'),
        (None, "{}"),
        ("", "{}"),
        (" ", "{}"),
        ({}, "{}"),
    ],
)
def test_arguments_are_an_object_or_a_string_of_one(arguments: object, text: str) -> None:
    call = {"function": {"name": "f", "arguments": arguments}}
    assert decode_messages({"role": "assistant", "tool_calls": [call]})[0].parts == (Call("call_0", "f", text),)


def test_calls_without_ids_are_answered_by_name() -> None:
    messages = decode_messages(
        called("f", "g"),
        {"role": "tool", "content": "of g", "tool_name": "g"},
        {"role": "tool", "content": "of f", "name": "f"},
    )
    assert len(messages) == 2
    assert [part.id for part in messages[0].parts if isinstance(part, Call)] == ["call_0", "call_1"]
    assert list(answers(messages)) == [("call_1", "g", "of g"), ("call_0", "f", "of f")]


def test_results_without_a_name_answer_in_order() -> None:
    messages = decode_messages(
        called("f", "g"), {"role": "tool", "content": "of f"}, {"role": "tool", "content": "of g"}
    )
    assert list(answers(messages)) == [("call_0", "f", "of f"), ("call_1", "g", "of g")]


def test_a_call_that_lost_its_id_gets_it_back_from_its_result() -> None:
    messages = decode_messages(
        called("f", "g"),
        {"role": "tool", "content": "of f", "tool_call_id": "x"},
        {"role": "tool", "content": "of g", "tool_call_id": "y"},
        called("f"),
        {"role": "tool", "content": "again", "tool_call_id": "z"},
    )
    calls = [part.id for message in messages for part in message.parts if isinstance(part, Call)]
    assert calls == ["x", "y", "z"]
    assert list(answers(messages)) == [("x", "f", "of f"), ("y", "g", "of g"), ("z", "f", "again")]


def test_an_id_that_comes_back_is_not_given_to_two_calls() -> None:
    messages = decode_messages(
        called("f", "g"),
        {"role": "tool", "content": "of f", "tool_call_id": "call_1"},
        {"role": "tool", "content": "of g", "tool_call_id": "call_1"},
    )
    assert list(answers(messages)) == [("call_0", "f", "of f"), ("call_1", "g", "of g")]


def test_a_call_that_has_an_id_keeps_it() -> None:
    calls: list[Body] = [{"id": "a", "function": {"name": "f"}}, {"function": {"name": "g"}}]
    messages = decode_messages(
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "content": "of a", "tool_call_id": "a"},
        {"role": "tool", "content": "of g", "tool_call_id": "b"},
    )
    assert list(answers(messages)) == [("a", "f", "of a"), ("b", "g", "of g")]


def test_ids_that_are_there_pair_calls_and_results() -> None:
    calls: list[Body] = [{"id": id_, "function": {"name": "f", "arguments": {}}} for id_ in ("a", "b")]
    messages = decode_messages(
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "content": "of b", "tool_call_id": "b"},
        {"role": "tool", "content": "of a", "tool_call_id": "a"},
        {"role": "tool", "content": "of nothing", "tool_call_id": "c"},
    )
    assert list(answers(messages)) == [("b", "f", "of b"), ("a", "f", "of a"), ("c", "", "of nothing")]


def test_a_result_may_have_images_and_be_empty() -> None:
    messages = decode_messages(
        called("f", "g"), {"role": "tool", "content": "See", "images": [PNG]}, {"role": "tool", "content": ""}
    )
    first, second = messages[1].parts
    assert isinstance(first, Result)
    assert isinstance(second, Result)
    assert (first.content, second.content) == ((Text("See"), Image("image/png", PNG)), ())


# ---------------------------------------------------------------- decoding: what is refused


REFUSED: list[tuple[Body, str]] = [
    ({"model": 5}, "model"),
    ({"messages": {}}, "messages"),
    ({"messages": [5]}, "messages[0]"),
    ({"messages": [{"content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "human"}]}, "messages[0].role"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0]"),
    ({"messages": [{"role": "user", "content": [{"type": 5}]}]}, "messages[0].content[0].type"),
    ({"messages": [{"role": "user", "images": [5]}]}, "messages[0].images"),
    ({"messages": [{"role": "assistant", "thinking": 5}]}, "messages[0].thinking"),
    ({"messages": [{"role": "assistant", "tool_calls": {}}]}, "messages[0].tool_calls"),
    ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0].function"),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]},
        "messages[0].tool_calls[0].function.name",
    ),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": [1]}}]}]},
        "messages[0].tool_calls[0].function.arguments",
    ),
    ({"messages": [{"role": "tool", "tool_name": 5}]}, "messages[0].tool_name"),
    ({"messages": [{"role": "tool", "tool_call_id": 5}]}, "messages[0].tool_call_id"),
    ({"tools": {}}, "tools"),
    ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
    ({"tools": [{"function": {"name": "f", "parameters": []}}]}, "tools[0].function.parameters"),
    ({"options": []}, "options"),
    ({"options": {"temperature": "hot"}}, "options.temperature"),
    ({"options": {"num_predict": 1.5}}, "options.num_predict"),
    ({"options": {"stop": [1]}}, "options.stop"),
    ({"think": 5}, "think"),
    ({"format": "yaml"}, "format"),
    ({"format": 5}, "format"),
    ({"stream": "yes"}, "stream"),
]


@pytest.mark.parametrize(("body", "field"), REFUSED)
def test_a_wrong_type_is_refused_with_its_place(body: Body, field: str) -> None:
    with pytest.raises(BadField) as refused:
        decode(**body)
    assert refused.value.field == field


@pytest.mark.parametrize("body", [b"", b"[]", b"5", b"{", b"[" * 20_000, b'{"messages":' + b"[" * 20_000])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadField):
        WIRE.decode_request(body, "/api/chat")

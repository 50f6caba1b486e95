"""What we send to an Ollama upstream."""

import json
from dataclasses import replace
from typing import Any

import pytest

from toolspeak import wires
from toolspeak.ir.message import Call, Image, Message, Opaque, Reasoning, Result, Role, Text, ToolReference, Vendor
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import ChoiceMode, Grammar, Tool, ToolChoice, ToolKind
from toolspeak.wires import EncodedRequest
from toolspeak.wires.shared.history import NO_RESULT

WIRE = wires.load("ollama")
Body = dict[str, Any]
PNG = "iVBORw0KGgoAAA"
SCHEMA: Body = {"type": "object", "properties": {"city": {"type": ["string", "null"]}}, "required": ["city"]}
WEATHER = Tool("weather", "Tells it.", SCHEMA)
TIME = Tool("time", "", {"type": "object", "properties": {}})
ASK = (Message(Role.USER, (Text("Hi"),)),)


def send(request: Request) -> EncodedRequest:
    return WIRE.encode_request(request, QUIRKS)


def encode(request: Request) -> Body:
    return json.loads(send(request).body)


def test_a_request_of_another_wire_is_written_in_this_one_s_words_wire2() -> None:
    request = Request(
        "m",
        (
            Message(Role.SYSTEM, (Text("Be kind."), Text("Be brief."))),
            Message(Role.USER, (Text("See"), Image("image/png", PNG))),
            Message(Role.ASSISTANT, (Reasoning("Hm.", "sig"), Text("Yes. "), Text("Now."), Call("a", "weather", "{}"))),
            Message(Role.TOOL, (Result("a", (Text("one"), Image("image/png", PNG), Text("two")), "weather"),)),
        ),
        (WEATHER,),
        sampling=Sampling(9, 0.5, stop=("END",), effort="low"),
        output_schema=SCHEMA,
    )
    call: Body = {"id": "a", "function": {"name": "weather", "arguments": {}}}
    assert encode(request) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be kind.\nBe brief."},
            {"role": "user", "content": "See", "images": [PNG]},
            {"role": "assistant", "content": "Yes. Now.", "thinking": "Hm.", "tool_calls": [call]},
            {"role": "tool", "content": "one\ntwo", "images": [PNG], "tool_name": "weather", "tool_call_id": "a"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": SCHEMA}}
        ],
        "stream": False,
        "options": {"num_predict": 9, "temperature": 0.5, "stop": ["END"]},
        "format": SCHEMA,
        "think": "low",
    }
    assert send(request).dropped == ()


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ('{"a": 1.50, "b": 1e2}', b'{"a": 1.50, "b": 1e2}'),
        ("", b"{}"),
        ("[1]", b'{"arguments":[1]}'),
        ('{"a": ', b'{"arguments":"{\\"a\\": "}'),
        ('{"a": "\ud83d"}', '{"arguments":"{\\"a\\": \\"\ufffd\\"}"}'.encode()),
    ],
)
def test_arguments_are_sent_as_an_object_and_to_the_byte_p1(arguments: str, written: bytes) -> None:
    body = send(Request("m", (Message(Role.ASSISTANT, (Call("a", "f", arguments),)),))).body
    assert b'"arguments":' + written in body
    json.loads(body)


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    messages = encode(Request("m", (Message(Role.ASSISTANT, (Call("a", "f", "{}"),)), *ASK)))["messages"]
    assert [message["role"] for message in messages] == ["assistant", "tool", "user"]
    assert messages[1] == {"role": "tool", "content": NO_RESULT, "tool_name": "f", "tool_call_id": "a"}


@pytest.mark.parametrize(
    ("choice", "offered", "dropped"),
    [
        (ToolChoice(), ["weather", "time"], ()),
        (ToolChoice(ChoiceMode.NONE), [], ()),
        (ToolChoice(ChoiceMode.REQUIRED), ["weather", "time"], ("tool_choice: required",)),
        (ToolChoice(ChoiceMode.NAMED, "time"), ["time"], ("tool_choice: named",)),
        (ToolChoice(allowed=("time",)), ["time"], ()),
        (ToolChoice(ChoiceMode.REQUIRED, allowed=("time",)), ["time"], ("tool_choice: required",)),
        (ToolChoice(parallel=False), ["weather", "time"], ("parallel_tool_calls: false",)),
    ],
)
def test_a_choice_is_a_choice_of_the_tools_that_are_sent(
    choice: ToolChoice, offered: list[str], dropped: tuple[str, ...]
) -> None:
    sent = send(Request("m", ASK, (WEATHER, TIME), choice))
    body = json.loads(sent.body)
    assert [one["function"]["name"] for one in body.get("tools", [])] == offered
    assert "tool_choice" not in body
    assert sent.dropped == dropped


def test_deferred_tools_are_sent_once_a_result_refers_to_them() -> None:
    later = replace(TIME, deferred=True)
    assert len(encode(Request("m", ASK, (WEATHER, later)))["tools"]) == 1
    found = Message(Role.TOOL, (Result("a", (ToolReference("time"),), "search"),))
    messages = (Message(Role.ASSISTANT, (Call("a", "search", "{}"),)), found)
    body = encode(Request("m", messages, (WEATHER, later)))
    assert len(body["tools"]) == 2
    assert body["messages"][1]["content"] == "The tool time is available now."


def test_custom_tools_are_functions_here() -> None:
    parameters: Body = {"type": "object", "properties": {"input": {"type": "string"}}}
    patch = Tool("patch", "P", parameters, kind=ToolKind.CUSTOM, grammar=Grammar("lark", "start: x"))
    call = Call("a", "patch", '{"input":"*** Begin"}', vendor=Vendor("openai_chat", {"type": "custom"}))
    body = encode(Request("m", (Message(Role.ASSISTANT, (call,)),), (patch,)))
    assert body["tools"] == [
        {"type": "function", "function": {"name": "patch", "description": "P", "parameters": parameters}}
    ]
    assert body["messages"][0]["tool_calls"][0]["function"] == {"name": "patch", "arguments": {"input": "*** Begin"}}


def test_names_that_are_too_long_are_sent_under_an_alias() -> None:
    long = "n" * 129
    body = encode(Request("m", (Message(Role.ASSISTANT, (Call("a", long, "{}"),)),), (Tool(long),)))
    alias = body["tools"][0]["function"]["name"]
    assert len(alias) == 128
    assert body["messages"][0]["tool_calls"][0]["function"]["name"] == alias
    assert body["messages"][1]["tool_name"] == alias


@pytest.mark.parametrize(
    ("effort", "think", "dropped"),
    [
        ("none", False, ()),
        ("low", "low", ()),
        ("high", "high", ()),
        ("minimal", None, ("effort: minimal",)),
        ("xhigh", None, ("effort: xhigh",)),
        (None, None, ()),
    ],
)
def test_another_wire_s_effort_is_sent_where_there_is_a_word(
    effort: str | None, think: bool | str | None, dropped: tuple[str, ...]
) -> None:
    request = Request("m", ASK, sampling=Sampling(effort=effort), extra={"openai_chat": {}})
    assert encode(request).get("think") == think
    assert send(request).dropped == dropped


def test_any_json_object_is_asked_for_by_a_word() -> None:
    assert encode(Request("m", ASK, output_schema={}))["format"] == "json"


def test_an_image_that_is_only_a_url_becomes_a_word_and_is_reported() -> None:
    sent = send(Request("m", (Message(Role.USER, (Text("See"), Image(url="https://x/y.png"))),)))
    assert json.loads(sent.body)["messages"] == [{"role": "user", "content": "See\n[image omitted]"}]
    assert sent.dropped == ("image: a URL",)


def test_what_another_wire_brought_along_is_reported_and_not_sent() -> None:
    vendor = Vendor("anthropic", {"cache_control": {}})
    messages = (
        Message(Role.USER, (Text("Hi", vendor),)),
        Message(Role.ASSISTANT, (Opaque(Vendor("anthropic", {}), "redacted_thinking"), Text("Yes."))),
    )
    sent = send(Request("m", messages, extra={"anthropic": {"betas": []}}))
    assert json.loads(sent.body)["messages"][1] == {"role": "assistant", "content": "Yes."}
    assert sent.dropped == ("anthropic: betas", "anthropic: cache_control", "anthropic: redacted_thinking")


def test_probabilities_of_the_first_token_are_asked_for() -> None:
    body = encode(Request("m", (), top_tokens=5))
    assert (body["logprobs"], body["top_logprobs"]) == (True, 5)
    assert "logprobs" not in encode(Request("m", ()))

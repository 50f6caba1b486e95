"""What callers write becomes a request, or an error that says what is wrong and where."""

from collections.abc import Mapping
from typing import Any, Literal

import pytest

from tests.unit.runtime.scene import WEATHER
from toolspeak.client.answer import tool_result
from toolspeak.client.request import (
    ChatOptions,
    MessagesInput,
    ToolsInput,
    build_request,
    read_messages,
    settings_from_options,
    to_choice,
    to_tools,
)
from toolspeak.engine.settings import Mode, Settings
from toolspeak.errors import BadField
from toolspeak.ir.message import Call, Image, Message, Result, Role, Text
from toolspeak.ir.request import Sampling
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice

HELLO = Message(Role.USER, (Text("Hello"),))
CALL = Call("call_1", "get_weather", '{"city":"Oslo"}')
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "cold"}
CHAT_TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": "Weather now", "parameters": WEATHER.parameters},
}


@pytest.mark.parametrize(
    "said",
    ["Hello", ["Hello"], HELLO, [HELLO], {"role": "user", "content": "Hello"}, [{"role": "user", "content": "Hello"}]],
)
def test_one_message_can_be_said_in_many_ways(said: MessagesInput) -> None:
    assert read_messages(said) == (HELLO,)


def test_texts_messages_and_dicts_can_stand_in_one_conversation() -> None:
    found = read_messages([{"role": "system", "content": "Be short."}, "Hello", CALLED, RESULT, HELLO, "Hello"])
    assert [message.role for message in found] == ["system", "user", "assistant", "tool", "user", "user"]
    assert [(part.id, part.name, part.arguments) for part in found[2].parts if isinstance(part, Call)] == [
        ("call_1", "get_weather", '{"city":"Oslo"}')
    ]


def test_a_result_in_a_dict_may_answer_a_call_in_a_message() -> None:
    found = read_messages([HELLO, Message(Role.ASSISTANT, (CALL,)), RESULT])
    result = found[2].parts[0]
    assert isinstance(result, Result)
    assert (result.call_id, result.content) == ("call_1", (Text("cold"),))


def test_images_come_in_the_form_of_openai() -> None:
    url = "data:image/png;base64,iVBORw0KGgo="
    content = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    parts = read_messages({"role": "user", "content": content})[0].parts
    assert [type(part) for part in parts] == [Text, Image]


@pytest.mark.parametrize(
    "tool",
    [
        WEATHER,
        CHAT_TOOL,
        {"name": "get_weather", "description": "Weather now", "parameters": WEATHER.parameters},
        {"name": "get_weather", "description": "Weather now", "input_schema": WEATHER.parameters},
        {"name": "get_weather", "description": "Weather now", "inputSchema": WEATHER.parameters},
    ],
)
def test_a_tool_can_be_a_dict_in_the_form_of_openai_anthropic_or_mcp(tool: Tool | Mapping[str, Any]) -> None:
    found = to_tools([tool])[0]
    assert (found.name, found.description, found.parameters) == ("get_weather", "Weather now", WEATHER.parameters)


def test_tools_keep_their_order() -> None:
    other = {"name": "b"}
    assert [tool.name for tool in to_tools([CHAT_TOOL, Tool("a"), other, Tool("c")])] == [
        "get_weather",
        "a",
        "b",
        "c",
    ]


@pytest.mark.parametrize(
    ("choice", "meant"),
    [
        (AUTO, AUTO),
        ("auto", AUTO),
        ("none", ToolChoice(ChoiceMode.NONE)),
        ("required", ToolChoice(ChoiceMode.REQUIRED)),
        ("get_weather", ToolChoice(ChoiceMode.NAMED, "get_weather")),
        (ToolChoice(parallel=False), ToolChoice(parallel=False)),
    ],
)
def test_a_choice_is_a_word_or_the_name_of_a_tool(choice: str | ToolChoice, meant: ToolChoice) -> None:
    assert to_choice(choice, [WEATHER]) == meant


def test_a_tool_that_is_named_like_a_word_can_be_chosen_all_the_same() -> None:
    auto = Tool("auto")
    assert to_choice("auto", [auto]) == AUTO
    assert to_choice(ToolChoice(ChoiceMode.NAMED, "auto"), [auto]).name == "auto"


BAD: list[tuple[Any, Any, ChatOptions, str]] = [
    ([{"role": "usr", "content": "x"}], (), {}, "messages[0].role: expected system, developer, user,"),
    (["Hello", HELLO, {"role": "usr"}], (), {}, "messages[2].role: expected system,"),
    (["Hello", 3], (), {}, "messages[1]: expected an object, got a number (3)"),
    ([{"role": "user", "content": object()}], (), {}, "messages: it cannot be written as JSON: "),
    ("Hello", [WEATHER, "weather"], {}, "tools[1]: 'weather' is no tool: names of built-in tools are for `run`"),
    ("Hello", [{"name": "a"}, {"name": "b", "parameters": 3}], {}, "tools[1].parameters: expected an object"),
    ("Hello", [{"type": "function", "function": {}}], {}, "tools[0].function.name: is required"),
    ("Hello", [WEATHER], {"choice": "wether"}, "choice: 'wether' is neither one of auto, none, required nor a"),
    ("Hello", [WEATHER], {"choice": "wether"}, "nor a tool (get_weather)"),
]


@pytest.mark.parametrize(("messages", "tools", "options", "message"), BAD)
def test_what_cannot_be_understood_is_named_with_its_place(
    messages: MessagesInput, tools: ToolsInput, options: ChatOptions, message: str
) -> None:
    with pytest.raises(BadField) as caught:
        build_request(messages, tools, options)
    assert message in str(caught.value)
    assert caught.value.field in str(caught.value)


def test_a_misspelt_wish_is_an_error_that_names_all() -> None:
    options: Any = {"temprature": 1}
    message = r"'temprature' is not an option; the options are: model, choice, mode, max_tokens"
    with pytest.raises(TypeError, match=message):
        build_request("Hello", (), options)


def test_wishes_become_the_request() -> None:
    options: ChatOptions = {
        "model": "m",
        "choice": "required",
        "max_tokens": 9,
        "temperature": 0.5,
        "stop": "END",
        "sampling": Sampling(max_tokens=1, top_p=0.9),
        "output_schema": {"type": "object"},
    }
    request = build_request("Hello", [WEATHER], options, stream=True)
    assert request.sampling == Sampling(9, 0.5, 0.9, stop=("END",))
    assert (request.model, request.choice.mode, request.stream) == ("m", ChoiceMode.REQUIRED, True)
    assert request.output_schema == {"type": "object"}
    assert build_request("Hello", (), {"stop": ["a", "b"]}).sampling.stop == ("a", "b")
    assert build_request("Hello", (), {}).sampling == Sampling()


@pytest.mark.parametrize("mode", ["force", Mode.FORCE])
def test_a_mode_is_a_word_and_the_settings_say_the_rest(mode: Mode | Literal["force"]) -> None:
    options: ChatOptions = {"mode": mode, "settings": Settings(mode=Mode.OFF, dialect="hermes")}
    assert settings_from_options(options) == Settings(mode=Mode.FORCE, dialect="hermes")
    assert settings_from_options({}) == Settings()


def test_an_unknown_mode_is_an_error_that_names_all() -> None:
    options: Any = {"mode": "forced"}
    with pytest.raises(BadField, match="mode: 'forced' is not one of off, fallback, force, auto"):
        settings_from_options(options)


@pytest.mark.parametrize(
    ("result", "text"),
    [("cold", "cold"), ({"degrees": -4}, '{"degrees":-4}'), ([1, None], "[1,null]"), (None, "null"), ("", "")],
)
def test_a_result_is_text_or_becomes_json(result: object, text: str) -> None:
    message = tool_result(CALL, result)
    assert message == Message(Role.TOOL, (Result("call_1", (Text(text),), "get_weather"),))


def test_a_result_may_be_an_error_and_must_be_json() -> None:
    failed = tool_result(CALL, "no such city", is_error=True).parts[0]
    assert isinstance(failed, Result)
    assert failed.is_error
    with pytest.raises(BadField, match="result: it cannot be written as JSON: "):
        tool_result(CALL, object())

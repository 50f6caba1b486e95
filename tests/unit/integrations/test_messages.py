"""Tools and messages in the shapes that model servers keep them."""

from types import SimpleNamespace

import pytest

from toolspeak.integrations.messages import offered_tools, untrusted_message_texts

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": {"name": "f", "parameters": SCHEMA}},
        {"type": "function", "name": "f", "parameters": SCHEMA},
        SimpleNamespace(type="function", function=SimpleNamespace(name="f", description=None, parameters=SCHEMA)),
        SimpleNamespace(type="function", name="f", description="", parameters=SCHEMA),
    ],
)
def test_a_function_is_offered_in_every_shape(tool: object) -> None:
    [offered] = offered_tools([tool])
    assert (offered.name, offered.parameters) == ("f", SCHEMA)


def test_a_custom_tool_takes_one_text_and_a_tool_of_the_server_is_left_out() -> None:
    [offered] = offered_tools([{"type": "custom", "name": "patch"}, {"type": "web_search"}])
    assert offered.parameters["required"] == ["input"]


def test_untrusted_are_the_texts_of_users_and_of_results() -> None:
    chat: list[object] = [
        {"role": "system", "content": "operator"},
        {"role": "user", "content": [{"type": "text", "text": "user"}, {"type": "image_url", "image_url": {}}]},
        {"role": "assistant", "content": None, "tool_calls": []},
        SimpleNamespace(role="tool", content="page"),
    ]
    assert list(untrusted_message_texts(chat)) == ["user", "page"]
    responses: list[object] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "user"}]},
        {"type": "function_call_output", "call_id": "1", "output": "page"},
        {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "model"}]},
    ]
    assert list(untrusted_message_texts(responses)) == ["user", "page"]
    assert list(untrusted_message_texts("user")) == ["user"]

"""`tools=[function]` works wherever tools are taken, and means the same everywhere (RUN-4)."""

from typing import Annotated, Literal

import pytest

from testkit.loopback import in_loop
from toolspeak import Action, AsyncClient, BadField, Client, Tool, ToolOutput, read, tool
from toolspeak.agent.tools.functions import action_of
from toolspeak.client.request import to_tools
from toolspeak.ir.json import JsonObject
from toolspeak.testing import AsyncScriptedUpstream, ScriptedUpstream, called


def get_weather(city: Annotated[str, "Its name"], unit: Literal["C", "F"] = "C") -> str:
    """Say what the weather is now.

    Args:
        unit: Of the temperature
    """
    raise AssertionError(f"chat must not call {city} {unit}")


CALL = called("get_weather", '{"city": "Oslo"}')
PLAIN: JsonObject = {"name": "other", "parameters": {"type": "object", "properties": {}}}


def script() -> ScriptedUpstream:
    return ScriptedUpstream(CALL)


def offered(said: ScriptedUpstream) -> tuple[Tool, ...]:
    return said.requests[0].tools


def test_chat_offers_a_function_and_does_not_call_it() -> None:
    with Client(AsyncScriptedUpstream(said := script())) as client:
        answer = client.chat("Is it cold in Oslo?", tools=[get_weather])
    assert [(call.name, call.arguments) for call in answer.calls] == [("get_weather", '{"city": "Oslo"}')]
    (tool,) = offered(said)
    assert tool.description == "Say what the weather is now."
    assert tool.parameters["required"] == ["city"]
    assert tool.parameters["properties"] == {
        "city": {"type": "string", "description": "Its name"},
        "unit": {"enum": ["C", "F"], "description": "Of the temperature", "default": "C"},
    }


def test_stream_and_plan_take_a_function() -> None:
    with Client(AsyncScriptedUpstream(said := script())) as client:
        stream = client.stream("Is it cold in Oslo?", tools=[get_weather])
        assert list(stream)
        assert [call.name for call in stream.answer.calls] == ["get_weather"]
        assert client.plan("Is it cold in Oslo?", tools=[get_weather]).line
    assert offered(said) == (action_of(get_weather).tool,)


@in_loop
async def test_the_async_client_takes_a_function() -> None:
    async with AsyncClient(AsyncScriptedUpstream(ScriptedUpstream(CALL, CALL))) as client:
        answer = await client.chat("Is it cold in Oslo?", tools=[get_weather])
        stream = client.stream("Is it cold in Oslo?", tools=[get_weather])
        async for _ in stream:
            pass
    assert [call.name for call in (*answer.calls, *stream.answer.calls)] == ["get_weather", "get_weather"]


def test_chat_and_run_offer_the_same_tool() -> None:
    with Client(AsyncScriptedUpstream(chat := script())) as client:
        client.chat("Is it cold?", tools=[get_weather])
    with Client(AsyncScriptedUpstream(run := ScriptedUpstream("It is."))) as client:
        client.run("Is it cold?", tools=[get_weather])
    assert offered(chat) == offered(run)


def test_text_of_a_model_is_read_with_functions() -> None:
    text = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
    assert read(text, [get_weather]) == read(text, [action_of(get_weather).tool])
    assert [call.name for call in read(text, [get_weather]).calls] == ["get_weather"]


def test_functions_actions_tools_and_dicts_mix_and_keep_their_order() -> None:
    @tool(name="renamed", description="Another name.")
    def function() -> None: ...

    async def act(arguments: JsonObject, context: object) -> ToolOutput:
        raise AssertionError((arguments, context))

    class Callable:
        def __call__(self, a: int) -> int:
            """Add one."""
            return a + 1

    found = to_tools([PLAIN, function, Tool("third"), Action(Tool("fourth"), act), tool(name="fifth")(Callable())])
    assert [each.name for each in found] == ["other", "renamed", "third", "fourth", "fifth"]
    assert found[4].description == "Add one."


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("files", r"tools\[1\]: 'files' is no tool: names of built-in tools are for `run`, pass a function"),
        (7, r"tools\[1\]: 7 is no tool: pass a function, an Action, a Tool or a dict"),
        (lambda: 0, r"tools: '<lambda>' has no name; say @tool\(name=…\)"),
        (print, r"tools: print\(args\): is any number of values; a tool's parameters have names"),
    ],
)
def test_what_is_no_tool_is_named(wrong: object, message: str) -> None:
    with pytest.raises(BadField, match=message):
        to_tools([get_weather, wrong])  # type: ignore[list-item]

"""llama-index: a model that chats with tools."""

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from rows import QUESTION, run


def results(llm, response, weather):
    calls = llm.get_tool_calls_from_response(response, error_on_no_tool_call=False)
    return [
        ChatMessage(role="tool", content=weather(call.tool_kwargs), additional_kwargs={"tool_call_id": call.tool_id})
        for call in calls
    ]


def asked(messages, weather):
    return {"tools": [FunctionTool.from_defaults(weather.get_weather)], "chat_history": messages}


def whole(host, weather):
    messages = [ChatMessage(role="user", content=QUESTION)]
    for _ in range(2):
        response = host.llm.chat_with_tools(**asked(messages, weather))
        messages += [response.message, *results(host.llm, response, weather)]
    return response.message.content


def streamed(host, weather):
    messages = [ChatMessage(role="user", content=QUESTION)]
    for _ in range(2):
        *_, response = host.llm.stream_chat_with_tools(**asked(messages, weather))
        messages += [response.message, *results(host.llm, response, weather)]
    return response.message.content


async def async_whole(host, weather):
    messages = [ChatMessage(role="user", content=QUESTION)]
    for _ in range(2):
        response = await host.llm.achat_with_tools(**asked(messages, weather))
        messages += [response.message, *results(host.llm, response, weather)]
    return response.message.content


async def async_streamed(host, weather):
    messages = [ChatMessage(role="user", content=QUESTION)]
    for _ in range(2):
        *_, response = [each async for each in await host.llm.astream_chat_with_tools(**asked(messages, weather))]
        messages += [response.message, *results(host.llm, response, weather)]
    return response.message.content


run(
    "llama-index",
    ("llama-index-core", "llama-index-llms-openai-like", "openai"),
    {"sync, whole": whole, "sync, streamed": streamed, "async, whole": async_whole, "async, streamed": async_streamed},
)

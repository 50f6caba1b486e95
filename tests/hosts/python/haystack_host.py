"""haystack: its chat generator and its tool invoker."""

from haystack.dataclasses import ChatMessage
from haystack.tools import Tool
from rows import DESCRIPTION, PARAMETERS, QUESTION, run


def tools(weather):
    return [Tool("get_weather", DESCRIPTION, PARAMETERS, weather.get_weather)]


def results(message, weather):
    return [
        ChatMessage.from_tool(tools(weather)[0].invoke(**call.arguments), origin=call) for call in message.tool_calls
    ]


def asked(weather, messages, callback=None):
    return {"messages": messages, "tools": tools(weather), "streaming_callback": callback}


def whole(host, weather, callback=None):
    messages = [ChatMessage.from_user(QUESTION)]
    for _ in range(2):
        (message,) = host.generator.run(**asked(weather, messages, callback))["replies"]
        messages += [message, *results(message, weather)]
    return message.text


def streamed(host, weather):
    chunks = []
    final = whole(host, weather, chunks.append)
    return final if len(chunks) > 4 else "it was not streamed"


async def async_whole(host, weather, callback=None):
    messages = [ChatMessage.from_user(QUESTION)]
    for _ in range(2):
        (message,) = (await host.async_generator.run_async(**asked(weather, messages, callback)))["replies"]
        messages += [message, *results(message, weather)]
    return message.text


async def async_streamed(host, weather):
    chunks = []

    async def keep(chunk):
        chunks.append(chunk)

    final = await async_whole(host, weather, keep)
    return final if len(chunks) > 4 else "it was not streamed"


run(
    "haystack",
    ("haystack-ai",),
    {"sync, whole": whole, "sync, streamed": streamed, "async, whole": async_whole, "async, streamed": async_streamed},
)

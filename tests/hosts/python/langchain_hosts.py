"""langchain-openai and langchain-anthropic: a model with a bound tool."""

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from rows import QUESTION, run


def results(message, weather):
    return [ToolMessage(weather(call["args"]), tool_call_id=call["id"]) for call in message.tool_calls]


def bound(host, weather):
    return host.model.bind_tools([tool(weather.get_weather)])


def whole(host, weather):
    messages = [HumanMessage(QUESTION)]
    for _ in range(2):
        message = bound(host, weather).invoke(messages)
        messages += [message, *results(message, weather)]
    return message.text


def streamed(host, weather):
    messages = [HumanMessage(QUESTION)]
    for _ in range(2):
        message = joined([*bound(host, weather).stream(messages)])
        messages += [message, *results(message, weather)]
    return message.text


def joined(chunks):
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole


async def async_whole(host, weather):
    messages = [HumanMessage(QUESTION)]
    for _ in range(2):
        message = await bound(host, weather).ainvoke(messages)
        messages += [message, *results(message, weather)]
    return message.text


async def async_streamed(host, weather):
    messages = [HumanMessage(QUESTION)]
    for _ in range(2):
        message = joined([chunk async for chunk in bound(host, weather).astream(messages)])
        messages += [message, *results(message, weather)]
    return message.text


for name in ("langchain-openai", "langchain-anthropic"):
    run(
        name,
        (name,),
        {
            "sync, whole": whole,
            "sync, streamed": streamed,
            "async, whole": async_whole,
            "async, streamed": async_streamed,
        },
    )

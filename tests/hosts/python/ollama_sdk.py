"""ollama: its own chat."""

from rows import MODEL, QUESTION, run


def whole(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    for _ in range(2):
        message = host.client.chat(MODEL, messages, tools=[weather.get_weather]).message
        messages += [message, *results(message.tool_calls or (), weather)]
    return message.content


def results(calls, weather):
    return [
        {"role": "tool", "tool_name": call.function.name, "content": weather(call.function.arguments)} for call in calls
    ]


def streamed(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    for _ in range(2):
        parts = [part.message for part in host.client.chat(MODEL, messages, tools=[weather.get_weather], stream=True)]
        messages += joined(parts, weather)
    return "".join(part.content or "" for part in parts)


def joined(parts, weather):
    text = "".join(part.content or "" for part in parts)
    calls = [call for part in parts for call in part.tool_calls or ()]
    return [{"role": "assistant", "content": text, "tool_calls": calls}, *results(calls, weather)]


async def async_whole(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    for _ in range(2):
        message = (await host.async_client.chat(MODEL, messages, tools=[weather.get_weather])).message
        messages += [message, *results(message.tool_calls or (), weather)]
    return message.content


async def async_streamed(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    for _ in range(2):
        stream = await host.async_client.chat(MODEL, messages, tools=[weather.get_weather], stream=True)
        parts = [part.message async for part in stream]
        messages += joined(parts, weather)
    return "".join(part.content or "" for part in parts)


run(
    "ollama",
    ("ollama",),
    {"sync, whole": whole, "sync, streamed": streamed, "async, whole": async_whole, "async, streamed": async_streamed},
)

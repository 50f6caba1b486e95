"""anthropic: Messages."""

from rows import DESCRIPTION, MODEL, PARAMETERS, QUESTION, run

ASKED = {
    "model": MODEL,
    "max_tokens": 500,
    "tools": [{"name": "get_weather", "description": DESCRIPTION, "input_schema": PARAMETERS}],
}


def answered(message, weather):
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": weather(block.input)}
        for block in message.content
        if block.type == "tool_use"
    ]
    return [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]


def whole(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    messages += answered(host.client.messages.create(messages=messages, **ASKED), weather)
    return host.client.messages.create(messages=messages, **ASKED).content[-1].text


def streamed(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    with host.client.messages.stream(messages=messages, **ASKED) as stream:
        messages += answered(stream.get_final_message(), weather)
    with host.client.messages.stream(messages=messages, **ASKED) as stream:
        return "".join(stream.text_stream)


async def async_whole(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    messages += answered(await host.async_client.messages.create(messages=messages, **ASKED), weather)
    return (await host.async_client.messages.create(messages=messages, **ASKED)).content[-1].text


async def async_streamed(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    async with host.async_client.messages.stream(messages=messages, **ASKED) as stream:
        messages += answered(await stream.get_final_message(), weather)
    async with host.async_client.messages.stream(messages=messages, **ASKED) as stream:
        return "".join([text async for text in stream.text_stream])


run(
    "anthropic",
    ("anthropic",),
    {"sync, whole": whole, "sync, streamed": streamed, "async, whole": async_whole, "async, streamed": async_streamed},
)

"""litellm: its completion, with an OpenAI client."""

import litellm
from rows import MODEL, OPENAI_TOOL, QUESTION, run

litellm.suppress_debug_info = True


def asked(messages, client):
    return {"model": f"openai/{MODEL}", "messages": messages, "tools": [OPENAI_TOOL], "client": client}


def results(message, weather):
    return [
        {"role": "tool", "tool_call_id": call.id, "content": weather(call.function.arguments)}
        for call in message.tool_calls or ()
    ]


def whole(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    for _ in range(2):
        message = litellm.completion(**asked(messages, host.client)).choices[0].message
        messages += [message, *results(message, weather)]
    return message.content


def streamed(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    for _ in range(2):
        chunks = [*litellm.completion(**asked(messages, host.client), stream=True)]
        message = litellm.stream_chunk_builder(chunks).choices[0].message
        messages += [message, *results(message, weather)]
    return message.content


async def async_whole(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    for _ in range(2):
        message = (await litellm.acompletion(**asked(messages, host.async_client))).choices[0].message
        messages += [message, *results(message, weather)]
    return message.content


async def async_streamed(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    for _ in range(2):
        chunks = [chunk async for chunk in await litellm.acompletion(**asked(messages, host.async_client), stream=True)]
        message = litellm.stream_chunk_builder(chunks).choices[0].message
        messages += [message, *results(message, weather)]
    return message.content


run(
    "litellm",
    ("litellm", "openai"),
    {"sync, whole": whole, "sync, streamed": streamed, "async, whole": async_whole, "async, streamed": async_streamed},
)

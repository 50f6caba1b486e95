"""litellm: its completion, with an OpenAI client, and with toolspeak as a provider of its own."""

from functools import partial

import litellm
import rows
from rows import MODEL, OPENAI_TOOL, QUESTION, run

litellm.suppress_debug_info = True
PAGE = rows.ROOT / "docs" / "litellm.md"


def results(message, weather):
    return [
        {"role": "tool", "tool_call_id": call.id, "content": weather(call.function.arguments)}
        for call in message.tool_calls or ()
    ]


def modes(options, async_options):
    """Return the four ways to call; the options of a host say which model."""

    def whole(host, weather):
        messages = [{"role": "user", "content": QUESTION}]
        for _ in range(2):
            message = litellm.completion(messages=messages, tools=[OPENAI_TOOL], **options(host)).choices[0].message
            messages += [message, *results(message, weather)]
        return message.content

    def streamed(host, weather):
        messages = [{"role": "user", "content": QUESTION}]
        for _ in range(2):
            stream = litellm.completion(messages=messages, tools=[OPENAI_TOOL], stream=True, **options(host))
            message = litellm.stream_chunk_builder([*stream]).choices[0].message
            messages += [message, *results(message, weather)]
        return message.content

    async def async_whole(host, weather):
        messages = [{"role": "user", "content": QUESTION}]
        for _ in range(2):
            answer = await litellm.acompletion(messages=messages, tools=[OPENAI_TOOL], **async_options(host))
            message = answer.choices[0].message
            messages += [message, *results(message, weather)]
        return message.content

    async def async_streamed(host, weather):
        messages = [{"role": "user", "content": QUESTION}]
        for _ in range(2):
            asked = {"messages": messages, "tools": [OPENAI_TOOL], "stream": True}
            chunks = [chunk async for chunk in await litellm.acompletion(**asked, **async_options(host))]
            message = litellm.stream_chunk_builder(chunks).choices[0].message
            messages += [message, *results(message, weather)]
        return message.content

    return {
        "sync, whole": whole,
        "sync, streamed": streamed,
        "async, whole": async_whole,
        "async, streamed": async_streamed,
    }


run(
    "litellm",
    ("litellm", "openai"),
    modes(
        lambda host: {"model": f"openai/{MODEL}", "client": host.client},
        lambda host: {"model": f"openai/{MODEL}", "client": host.async_client},
    ),
)


def provided(host):
    del host  # its lines have registered the provider
    return {"model": f"toolspeak/{MODEL}"}


rows.run("LiteLLM SDK", ("litellm",), modes(provided, provided), partial(rows.set_up, page=PAGE))

"""openai: Chat Completions and Responses."""

from rows import DESCRIPTION, MODEL, OPENAI_TOOL, PARAMETERS, QUESTION, run


def chat_whole(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    for _ in range(2):
        message = (
            host.client.chat.completions.create(model=MODEL, messages=messages, tools=[OPENAI_TOOL]).choices[0].message
        )
        messages.append(message)
        for call in message.tool_calls or ():
            messages.append({"role": "tool", "tool_call_id": call.id, "content": weather(call.function.arguments)})
    return message.content


def chat_streamed(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    for _ in range(2):
        with host.client.chat.completions.stream(model=MODEL, messages=messages, tools=[OPENAI_TOOL]) as stream:
            for _ in stream:
                pass
            message = stream.get_final_completion().choices[0].message
        messages.append(
            {"role": "assistant", "content": message.content, "tool_calls": _plain(message)}
            if message.tool_calls
            else message
        )
        for call in message.tool_calls or ():
            messages.append({"role": "tool", "tool_call_id": call.id, "content": weather(call.function.arguments)})
    return message.content


def _plain(message):
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        for call in message.tool_calls
    ]


async def chat_async_streamed(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    for _ in range(2):
        async with host.async_client.chat.completions.stream(
            model=MODEL, messages=messages, tools=[OPENAI_TOOL]
        ) as stream:
            async for _ in stream:
                pass
            message = (await stream.get_final_completion()).choices[0].message
        messages.append(
            {"role": "assistant", "content": message.content, "tool_calls": _plain(message)}
            if message.tool_calls
            else message
        )
        for call in message.tool_calls or ():
            messages.append({"role": "tool", "tool_call_id": call.id, "content": weather(call.function.arguments)})
    return message.content


RESPONSES_TOOL = {"type": "function", "name": "get_weather", "description": DESCRIPTION, "parameters": PARAMETERS}


async def responses_async_whole(host, weather):
    items = [{"role": "user", "content": QUESTION}]
    for _ in range(2):
        response = await host.async_client.responses.create(model=MODEL, input=items, tools=[RESPONSES_TOOL])
        items += response.output
        for item in response.output:
            if item.type == "function_call":
                items.append(
                    {"type": "function_call_output", "call_id": item.call_id, "output": weather(item.arguments)}
                )
    return response.output_text


def responses_streamed(host, weather):
    previous, given = None, QUESTION
    for _ in range(2):
        kept = {"previous_response_id": previous} if previous else {}
        for event in host.client.responses.create(
            model=MODEL, input=given, tools=[RESPONSES_TOOL], stream=True, **kept
        ):
            if event.type == "response.completed":
                response = event.response
        previous = response.id
        given = [
            {"type": "function_call_output", "call_id": item.call_id, "output": weather(item.arguments)}
            for item in response.output
            if item.type == "function_call"
        ]
    return response.output_text


run(
    "openai",
    ("openai",),
    {
        "chat, sync, whole": chat_whole,
        "chat, sync, streamed": chat_streamed,
        "chat, async, streamed": chat_async_streamed,
        "responses, sync, streamed": responses_streamed,
        "responses, async, whole": responses_async_whole,
    },
)

"""openai by the first lines of the page: one line, and the key of the environment, which is for its vendor."""

import os

from rows import MODEL, OPENAI_TOOL, QUESTION, run

os.environ["OPENAI_API_KEY"] = "sk-for-the-vendor"


def whole(host, weather):
    messages = [{"role": "user", "content": QUESTION}]
    for _ in range(2):
        completion = host.client.chat.completions.create(model=MODEL, messages=messages, tools=[OPENAI_TOOL])
        message = completion.choices[0].message
        messages.append(message)
        for call in message.tool_calls or ():
            messages.append({"role": "tool", "tool_call_id": call.id, "content": weather(call.function.arguments)})
    return message.content


run("Use toolspeak inside your program", ("openai", "httpx2"), {"sync, whole": whole})

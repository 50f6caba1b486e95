"""ollama on /api/chat: the call is streamed, the answer comes whole."""

from note import asked, end, write_note
from ollama import Client

url, model, prompt, _ = asked()
client = Client(host=url)
messages = [{"role": "user", "content": prompt}]
text, calls = "", []
for chunk in client.chat(model=model, messages=messages, tools=[write_note], stream=True):
    text += chunk.message.content or ""
    calls += chunk.message.tool_calls or []
assert calls, text
messages.append({"role": "assistant", "content": text, "tool_calls": calls})
for call in calls:
    result = write_note(**call.function.arguments)
    messages.append({"role": "tool", "tool_name": call.function.name, "content": result})
end(client.chat(model=model, messages=messages, tools=[write_note]).message.content)

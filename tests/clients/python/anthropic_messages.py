"""anthropic on Messages: the call is streamed, the answer comes whole."""

from anthropic import Anthropic
from note import DESCRIPTION, NAME, PARAMETERS, asked, end, write_note

url, model, prompt, _ = asked()
client = Anthropic(base_url=url, api_key="none", max_retries=0)
tools = [{"name": NAME, "description": DESCRIPTION, "input_schema": PARAMETERS}]
messages = [{"role": "user", "content": prompt}]
with client.messages.stream(model=model, max_tokens=999, messages=messages, tools=tools) as stream:
    said = stream.get_final_message()
assert said.stop_reason == "tool_use", said
calls = [block for block in said.content if block.type == "tool_use"]
results = [{"type": "tool_result", "tool_use_id": call.id, "content": write_note(**call.input)} for call in calls]
messages += [{"role": "assistant", "content": said.content}, {"role": "user", "content": results}]
last = client.messages.create(model=model, max_tokens=999, messages=messages, tools=tools)
end("".join(block.text for block in last.content if block.type == "text"))

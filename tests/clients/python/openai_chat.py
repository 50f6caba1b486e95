"""openai on Chat Completions: the call is streamed, the answer comes whole."""

import json

from note import DESCRIPTION, NAME, PARAMETERS, asked, end, write_note
from openai import OpenAI

url, model, prompt, _ = asked()
client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
tools = [{"type": "function", "function": {"name": NAME, "description": DESCRIPTION, "parameters": PARAMETERS}}]
messages = [{"role": "user", "content": prompt}]
with client.chat.completions.stream(model=model, messages=messages, tools=tools) as stream:
    stream.until_done()
    said = stream.get_final_completion().choices[0].message
assert said.tool_calls, said
messages.append(said.model_dump(exclude_none=True, exclude={"parsed"}))
for call in said.tool_calls:
    result = write_note(**json.loads(call.function.arguments))
    messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
end(client.chat.completions.create(model=model, messages=messages, tools=tools).choices[0].message.content)

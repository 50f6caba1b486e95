"""openai on Responses: the call is streamed, the answer comes whole."""

import json

from note import DESCRIPTION, NAME, PARAMETERS, asked, end, write_note
from openai import OpenAI

url, model, prompt, _ = asked()
client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
tools = [{"type": "function", "name": NAME, "description": DESCRIPTION, "parameters": PARAMETERS, "strict": False}]
items = [{"role": "user", "content": prompt}]
with client.responses.stream(model=model, input=items, tools=tools) as stream:
    stream.until_done()
    said = stream.get_final_response()
calls = [item for item in said.output if item.type == "function_call"]
assert calls, said
items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in said.output]
for call in calls:
    result = write_note(**json.loads(call.arguments))
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
end(client.responses.create(model=model, input=items, tools=tools).output_text)

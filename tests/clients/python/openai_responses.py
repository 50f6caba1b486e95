"""openai on Responses: the call is streamed, the answer comes whole, and again by the ids of what is stored."""

import json

from note import DESCRIPTION, NAME, PARAMETERS, asked, end, write_note
from openai import NotFoundError, OpenAI

url, model, prompt, _ = asked()
client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
tools = [{"type": "function", "name": NAME, "description": DESCRIPTION, "parameters": PARAMETERS, "strict": False}]
items = [{"role": "user", "content": prompt}]
with client.responses.stream(model=model, input=items, tools=tools) as stream:
    stream.until_done()
    said = stream.get_final_response()
calls = [item for item in said.output if item.type == "function_call"]
assert calls, said
results = []
items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in said.output]
for call in calls:
    result = write_note(**json.loads(call.arguments))
    results.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
answer = client.responses.create(model=model, input=[*items, *results], tools=tools).output_text
continued = client.responses.create(model=model, previous_response_id=said.id, input=results, tools=tools)
assert (continued.output_text, continued.previous_response_id) == (answer, said.id), continued
references = [{"type": "item_reference", "id": item.id} for item in said.output]
referred = client.responses.create(model=model, input=[items[0], *references, *results], tools=tools, store=False)
assert (referred.output_text, referred.store) == (answer, False), referred
assert [item.id for item in client.responses.retrieve(said.id).output] == [item.id for item in said.output]
client.responses.delete(said.id)
for id in (said.id, referred.id):  # deleted, and never stored
    try:
        found = client.responses.retrieve(id)
    except NotFoundError:
        continue
    raise AssertionError(found)
end(answer)

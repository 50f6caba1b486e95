"""openai-python on Responses: whole, streamed, and by the `.stream()` helper."""

import json

import openai
from checks import DESCRIPTION, PARAMETERS, PROMPT, URL, Ask, Heard, Judge, Theirs, Weather

CLIENT = openai.OpenAI(base_url=f"{URL}/v1", api_key="none", max_retries=0)
TOOLS = [{"type": "function", "name": "get_weather", "description": DESCRIPTION, "parameters": PARAMETERS}]
STRICT = [{**TOOLS[0], "strict": True}]  # the helper takes no others
USER = [{"role": "user", "content": PROMPT}]


def whole(model: str, items: list[Theirs] = USER) -> Theirs:
    response = CLIENT.responses.create(model=model, input=items, tools=TOOLS)
    assert response.status == "completed", response
    assert response.usage.total_tokens == 34, response.usage
    return response


def streamed(model: str, items: list[Theirs] = USER) -> Theirs:
    texts: dict[int, str] = {}
    for event in CLIENT.responses.create(model=model, input=items, tools=TOOLS, stream=True):
        if event.type.endswith(".delta"):
            texts[event.output_index] = texts.get(event.output_index, "") + event.delta
        last = event
    if last.type == "response.failed":
        raise openai.OpenAIError(last.response.error.message)
    assert last.type == "response.completed", last
    assert texts == {index: text_of(item) for index, item in enumerate(last.response.output)}, texts
    return last.response


def text_of(item: Theirs) -> str:
    if item.type == "function_call":
        return item.arguments
    return "".join(part.text for part in item.content or item.summary)


def helped(model: str, items: list[Theirs] = USER) -> Theirs:
    with CLIENT.responses.stream(model=model, input=items, tools=STRICT) as stream:
        for event in stream:
            if event.type == "response.failed":
                raise openai.OpenAIError(event.response.error.message)
        return stream.get_final_response()


def talk(ask: Ask, scenario: str, weather: Weather) -> Heard:
    first = ask(scenario)
    items = [*USER, *first.output]
    for call in first.output:
        if call.type == "function_call":
            said = weather.run(call.name, json.loads(call.arguments), call.call_id)
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": said})
    thought = "".join(text_of(item) for item in first.output if item.type == "reasoning")
    return Heard(first.output_text, thought, ask(scenario, items).output_text)


def main() -> None:
    judge = Judge(f"openai-python {openai.__version__}", "openai_responses")
    for mode, ask in {"create": whole, "create stream": streamed, "stream helper": helped}.items():
        judge.converse(mode, lambda scenario, weather, ask=ask: talk(ask, scenario, weather))
        judge.refuse(mode, "error", ask, openai.BadRequestError)
        judge.refuse(mode, "midstream", ask, openai.InternalServerError if ask is whole else openai.OpenAIError)
    judge.refuse("create", "bad field", lambda _: whole("one", ["?"]), openai.BadRequestError, "input[0]")
    judge.close()


main()

"""openai-python on Chat Completions: whole, streamed, and by the `.stream()` helper."""

import json

import openai
from checks import DESCRIPTION, PARAMETERS, PROMPT, URL, Ask, Heard, Judge, Theirs, Weather

CLIENT = openai.OpenAI(base_url=f"{URL}/v1", api_key="none", max_retries=0)
FUNCTION = {"name": "get_weather", "description": DESCRIPTION, "parameters": PARAMETERS}
TOOLS = [{"type": "function", "function": FUNCTION}]
STRICT = [{"type": "function", "function": {**FUNCTION, "strict": True}}]  # the helper takes no others
USER = [{"role": "user", "content": PROMPT}]


def whole(model: str, messages: list[Theirs] = USER) -> Theirs:
    completion = CLIENT.chat.completions.create(model=model, messages=messages, tools=TOOLS)
    assert completion.usage.total_tokens == 34, completion.usage
    assert completion.choices[0].finish_reason == ("stop" if len(messages) > 1 else "tool_calls")
    return completion.choices[0].message.model_dump(exclude_none=True)


def streamed(model: str, messages: list[Theirs] = USER) -> Theirs:
    options = {"include_usage": True}
    message: dict[str, Theirs] = {"role": "assistant", "content": "", "reasoning_content": "", "tool_calls": []}
    stream = CLIENT.chat.completions.create(
        model=model, messages=messages, tools=TOOLS, stream=True, stream_options=options
    )
    for chunk in stream:
        for choice in chunk.choices:
            grow(message, choice.delta)
        usage = chunk.usage
    assert usage.total_tokens == 34, usage
    return {key: value for key, value in message.items() if value}


def grow(message: dict[str, Theirs], delta: Theirs) -> None:
    message["content"] += delta.content or ""
    message["reasoning_content"] += getattr(delta, "reasoning_content", None) or ""
    for call in delta.tool_calls or []:
        if call.index == len(message["tool_calls"]):
            function = {"name": call.function.name, "arguments": ""}
            message["tool_calls"].append({"id": call.id, "type": call.type, "function": function})
        message["tool_calls"][call.index]["function"]["arguments"] += call.function.arguments or ""


def helped(model: str, messages: list[Theirs] = USER) -> Theirs:
    with CLIENT.chat.completions.stream(model=model, messages=messages, tools=STRICT) as stream:
        text = "".join(event.delta for event in stream if event.type == "content.delta")
        message = stream.get_final_completion().choices[0].message
    assert (message.content or "") == text, text
    return message.model_dump(exclude_none=True)


def talk(ask: Ask, scenario: str, weather: Weather) -> Heard:
    first = ask(scenario)
    messages = [*USER, first]
    for call in first["tool_calls"]:
        said = weather.run(call["function"]["name"], json.loads(call["function"]["arguments"]), call["id"])
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
    return Heard(first["content"], first["reasoning_content"], ask(scenario, messages)["content"])


def main() -> None:
    judge = Judge(f"openai-python {openai.__version__}", "openai_chat")
    for mode, ask in {"create": whole, "create stream": streamed, "stream helper": helped}.items():
        judge.converse(mode, lambda scenario, weather, ask=ask: talk(ask, scenario, weather))
        judge.refuse(mode, "error", ask, openai.BadRequestError)
        judge.refuse(mode, "midstream", ask, openai.InternalServerError if ask is whole else openai.APIError)
    judge.refuse("create", "bad field", lambda _: whole("one", ["?"]), openai.BadRequestError, "messages[0]")
    judge.close()


main()

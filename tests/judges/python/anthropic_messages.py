"""anthropic-python on Messages: whole, streamed, by the `stream` helper, and by the tool runner."""

import json

import anthropic
from checks import DESCRIPTION, PARAMETERS, PROMPT, URL, Ask, Heard, Judge, Theirs, Weather

CLIENT = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
TOOLS = [{"name": "get_weather", "description": DESCRIPTION, "input_schema": PARAMETERS}]
USER = [{"role": "user", "content": PROMPT}]
COMMON = {"max_tokens": 1000, "tools": TOOLS}


def whole(model: str, messages: list[Theirs] = USER) -> list[Theirs]:
    message = CLIENT.messages.create(model=model, messages=messages, **COMMON)
    assert message.stop_reason == ("end_turn" if len(messages) > 1 else "tool_use"), message
    assert message.usage.output_tokens == 13, message.usage
    return [block.model_dump(exclude_none=True) for block in message.content]


def streamed(model: str, messages: list[Theirs] = USER) -> list[Theirs]:
    blocks: list[Theirs] = []
    for event in CLIENT.messages.create(model=model, messages=messages, stream=True, **COMMON):
        if event.type == "content_block_start":
            assert event.index == len(blocks), event
            blocks.append(event.content_block.model_dump(exclude_none=True) | {"json": ""})
        elif event.type == "content_block_delta":
            grow(blocks[event.index], event.delta)
        last = event
    assert last.type == "message_stop", last
    return [finished(block) for block in blocks]


def grow(block: dict[str, Theirs], delta: Theirs) -> None:
    match delta.type:
        case "text_delta":
            block["text"] += delta.text
        case "thinking_delta":
            block["thinking"] += delta.thinking
        case "signature_delta":
            block["signature"] = delta.signature
        case "input_json_delta":
            block["json"] += delta.partial_json


def finished(block: dict[str, Theirs]) -> dict[str, Theirs]:
    written = block.pop("json")
    return block | {"input": json.loads(written)} if block["type"] == "tool_use" else block


def helped(model: str, messages: list[Theirs] = USER) -> list[Theirs]:
    with CLIENT.messages.stream(model=model, messages=messages, **COMMON) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert text == "".join(block.text for block in message.content if block.type == "text"), text
    return [block.model_dump(exclude_none=True) for block in message.content]


def talk(ask: Ask, scenario: str, weather: Weather) -> Heard:
    first = ask(scenario)
    results = [
        {
            "type": "tool_result",
            "tool_use_id": block["id"],
            "content": weather.run(block["name"], block["input"], block["id"]),
        }
        for block in first
        if block["type"] == "tool_use"
    ]
    messages = [*USER, {"role": "assistant", "content": first}, {"role": "user", "content": results}]
    return Heard(joined(first, "text"), joined(first, "thinking"), joined(ask(scenario, messages), "text"))


def joined(blocks: list[Theirs], kind: str) -> str:
    return "".join(block[kind] for block in blocks if block["type"] == kind)


def run(scenario: str, weather: Weather, *, stream: bool) -> Heard:
    tool = anthropic.beta_tool(weather.get_weather)
    runner = CLIENT.beta.messages.tool_runner(
        model=scenario, messages=USER, max_tokens=1000, tools=[tool], stream=stream
    )
    last = runner.until_done()
    return Heard(final="".join(block.text for block in last.content if block.type == "text"))


def main() -> None:
    judge = Judge(f"anthropic-python {anthropic.__version__}", "anthropic")
    for mode, ask in {"create": whole, "create stream": streamed, "stream helper": helped}.items():
        judge.converse(mode, lambda scenario, weather, ask=ask: talk(ask, scenario, weather))
        judge.refuse(mode, "error", ask, anthropic.BadRequestError)
        judge.refuse(mode, "midstream", ask, anthropic.APIStatusError)
    judge.converse("tool runner", lambda scenario, weather: run(scenario, weather, stream=False))
    judge.converse("tool runner stream", lambda scenario, weather: run(scenario, weather, stream=True))
    judge.refuse("create", "bad field", lambda _: whole("one", ["?"]), anthropic.BadRequestError, "messages[0]")
    judge.close()


main()

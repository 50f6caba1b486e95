"""ollama-python on /api/chat: whole and streamed."""

from importlib.metadata import version

import ollama
from checks import PROMPT, URL, Ask, Heard, Judge, Theirs, Weather

CLIENT = ollama.Client(host=URL)
USER = [{"role": "user", "content": PROMPT}]
TOOLS = [Weather().get_weather]  # the client makes the schema


def whole(model: str, messages: list[Theirs] = USER) -> Theirs:
    response = CLIENT.chat(model=model, messages=messages, tools=TOOLS, think=True)
    assert response.done, response
    assert (response.prompt_eval_count, response.eval_count) == (21, 13), response
    return response.message


def streamed(model: str, messages: list[Theirs] = USER) -> Theirs:
    message = ollama.Message(role="assistant", content="", thinking="", tool_calls=[])
    for chunk in CLIENT.chat(model=model, messages=messages, tools=TOOLS, think=True, stream=True):
        message.content += chunk.message.content or ""
        message.thinking += chunk.message.thinking or ""
        message.tool_calls = [*message.tool_calls, *(chunk.message.tool_calls or [])]
        last = chunk
    assert last.done, last
    assert (last.prompt_eval_count, last.eval_count) == (21, 13), last
    return message


def talk(ask: Ask, scenario: str, weather: Weather) -> Heard:
    first = ask(scenario)
    messages = [*USER, first]
    for call in first.tool_calls:
        said = weather.run(call.function.name, dict(call.function.arguments))
        messages.append({"role": "tool", "tool_name": call.function.name, "content": said})
    return Heard(first.content, first.thinking, ask(scenario, messages).content)


def main() -> None:
    judge = Judge(f"ollama-python {version('ollama')}", "ollama")
    for mode, ask in {"chat": whole, "chat stream": streamed}.items():
        judge.converse(mode, lambda scenario, weather, ask=ask: talk(ask, scenario, weather))
        judge.refuse(mode, "error", ask, ollama.ResponseError)
        judge.refuse(mode, "midstream", ask, ollama.ResponseError)
    judge.close()


main()

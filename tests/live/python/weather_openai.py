# pyright: basic, reportMissingImports=false
# (the vendors' clients are not in .venv)
"""Asks for the weather in Paris with the openai SDK, as a program of a user would: `URL MODEL stream|whole`.

Prints one line of JSON for each answer. A call is answered with the weather, until there is an answer in words.
"""

import sys
import time
from collections.abc import Iterable
from typing import Any

from openai import OpenAI
from openai.types import CompletionUsage
from weather import CITY_SCHEMA, DESCRIPTION, MOST_ROUNDS, MOST_TOKENS, NAME, QUESTION, TIMEOUT_S, tell, weather

TOOL = {"type": "function", "function": {"name": NAME, "description": DESCRIPTION, "parameters": CITY_SCHEMA}}


def whole(client: OpenAI, asked: dict[str, Any]) -> dict[str, Any]:
    answer = client.chat.completions.create(**asked)
    choice = answer.choices[0]
    calls = [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]
    return {"text": choice.message.content or "", "calls": calls, "end": choice.finish_reason, **tokens(answer.usage)}


def streamed(client: OpenAI, asked: dict[str, Any]) -> dict[str, Any]:
    chunks = client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True})
    text, end, usage, calls = "", "", None, {}
    for chunk in chunks:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            end = choice.finish_reason or end
            grow(calls, choice.delta.tool_calls or [])
    return {"text": text, "calls": list(calls.values()), "end": end, **tokens(usage)}


def grow(calls: dict[int, tuple[str, str, str]], deltas: Iterable[Any]) -> None:
    for delta in deltas:
        id, name, arguments = calls.get(delta.index, ("", "", ""))
        function = delta.function
        calls[delta.index] = (delta.id or id, function.name or name, arguments + (function.arguments or ""))


def tokens(usage: CompletionUsage | None) -> dict[str, int]:
    return {"sent": usage.prompt_tokens, "written": usage.completion_tokens} if usage else {"sent": 0, "written": 0}


def results(answer: dict[str, Any]) -> list[dict[str, Any]]:
    calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id, name, arguments in answer["calls"]
    ]
    said = {"role": "assistant", "content": answer["text"] or None, "tool_calls": calls}
    told = [
        {"role": "tool", "tool_call_id": id, "content": weather(name, arguments)}
        for id, name, arguments in answer["calls"]
    ]
    return [said, *told]


def main() -> None:
    url, model, how = sys.argv[1:]
    client = OpenAI(base_url=url, api_key="none", timeout=TIMEOUT_S, max_retries=0)
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    for _ in range(MOST_ROUNDS):
        asked = {"model": model, "messages": messages, "tools": [TOOL], "temperature": 0, "seed": 1}
        started = time.perf_counter()
        answer = (streamed if how == "stream" else whole)(client, {**asked, "max_tokens": MOST_TOKENS})
        tell(answer, time.perf_counter() - started)
        if not answer["calls"]:
            return
        messages += results(answer)


if __name__ == "__main__":
    main()

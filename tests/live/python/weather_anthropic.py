# pyright: basic, reportMissingImports=false
# (the vendors' clients are not in .venv)
"""Asks for the weather in Paris with the anthropic SDK; all else is as in `weather_openai.py`."""

import json
import sys
import time
from typing import Any

from anthropic import Anthropic
from anthropic.types import Message
from weather import CITY_SCHEMA, DESCRIPTION, MOST_ROUNDS, MOST_TOKENS, NAME, QUESTION, TIMEOUT_S, tell, weather

TOOL = {"name": NAME, "description": DESCRIPTION, "input_schema": CITY_SCHEMA}


def ask(client: Anthropic, asked: dict[str, Any], how: str) -> Message:
    if how == "whole":
        return client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        return stream.get_final_message()


def told(message: Message) -> dict[str, Any]:
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.id, block.name, json.dumps(block.input)) for block in message.content if block.type == "tool_use"]
    usage = message.usage
    tokens = {"sent": usage.input_tokens + (usage.cache_read_input_tokens or 0), "written": usage.output_tokens}
    return {"text": text, "calls": calls, "end": message.stop_reason, **tokens}


def results(message: Message, answer: dict[str, Any]) -> list[dict[str, Any]]:
    blocks = [
        {"type": "tool_result", "tool_use_id": id, "content": weather(name, arguments)}
        for id, name, arguments in answer["calls"]
    ]
    return [{"role": "assistant", "content": message.content}, {"role": "user", "content": blocks}]


def main() -> None:
    url, model, how = sys.argv[1:]
    client = Anthropic(base_url=url.removesuffix("/v1"), api_key="none", timeout=TIMEOUT_S, max_retries=0)
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    for _ in range(MOST_ROUNDS):
        asked = {"model": model, "messages": messages, "tools": [TOOL], "max_tokens": MOST_TOKENS}
        started = time.perf_counter()
        message = ask(client, {**asked, "extra_body": {"temperature": 0}}, how)
        answer = told(message)
        tell(answer, time.perf_counter() - started)
        if not answer["calls"]:
            return
        messages += results(message, answer)


if __name__ == "__main__":
    main()

"""A model without tool calling, on a server that drops `tools`: it knows a tool only if the prompt teaches it.

without a tool in its prompt      "I have no tools …"
with `get_weather`                a call of it, as text
with the tool's result            an answer that quotes the station; by `final_answer` where a host has such a tool
"""

import json
import re
from collections.abc import Callable
from typing import Any

from testkit.scripted_upstream import Asked, Script

MODEL = "small"
STATION = re.compile(r"station-[0-9a-f]{8}")
REFUSAL = "I'm sorry, but I don't have access to any tools, so I cannot look up the weather."
_STEP = 4
"""Characters in a chunk: fewer than any marker has."""


def says(messages: list[dict[str, Any]]) -> str:
    """Return what the model writes after these messages."""
    seen = json.dumps(messages)
    station = STATION.search(seen)
    if station is None:
        taught = "get_weather" in seen
        return call("get_weather", city="Oslo") if taught else REFUSAL
    answer = f"It is -7 degrees in Oslo, says {station[0]}."
    return call("final_answer", answer=answer) if "final_answer" in seen else answer


def call(name: str, **arguments: str) -> str:
    """Write a call in the form that toolspeak teaches to models that it does not know."""
    return f"```tool_call\n{json.dumps({'name': name, 'arguments': arguments})}\n```"


def plain_server(says: Callable[[list[dict[str, Any]]], str] = says) -> Script:
    """Return the script of a server that reads the messages, and nothing about tools; `says` is its model."""

    async def script(asked: Asked) -> None:
        if "messages" not in asked.json:  # a look at another API
            await asked.whole(404, b"{}")
            return
        text = says(asked.json["messages"])
        stamp = {"id": "chatcmpl-1", "created": 1, "model": MODEL}
        usage = {"prompt_tokens": len(json.dumps(asked.json["messages"])) // 4, "completion_tokens": len(text) // 4}
        usage["total_tokens"] = sum(usage.values())
        if not asked.json.get("stream"):
            choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": text}}
            whole = {
                **stamp,
                "object": "chat.completion",
                "choices": [choice | {"finish_reason": "stop"}],
                "usage": usage,
            }
            await asked.whole(200, json.dumps(whole).encode())
            return
        asked.head()
        pieces = [text[start : start + _STEP] for start in range(0, len(text), _STEP)]
        for piece in pieces:
            await asked.chunk(_event(stamp, {"content": piece}, None))
        await asked.chunk(_event(stamp, {}, "stop"))
        last: dict[str, Any] = {**stamp, "object": "chat.completion.chunk", "choices": [], "usage": usage}
        await asked.chunk(b"data: %s\n\ndata: [DONE]\n\n" % json.dumps(last).encode())
        await asked.end()

    return script


def _event(stamp: dict[str, Any], delta: dict[str, str], reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return b"data: %s\n\n" % json.dumps({**stamp, "object": "chat.completion.chunk", "choices": [choice]}).encode()

"""Offer a Python function as a tool, run the call yourself, and send the result back."""

import json
from typing import Annotated, Literal

from toolspeak import AsyncUpstream, Client, Message, tool_result


def get_weather(city: Annotated[str, "Name of a city"], unit: Literal["C", "F"] = "C") -> str:
    """Say what the weather is now."""
    return f"-4 degrees {unit} in {city}"


def ask(upstream: str | AsyncUpstream = "") -> str:
    """Return the final answer."""
    question = "Is it cold in Oslo?"
    with Client(upstream) as client:
        answer = client.chat(question, tools=[get_weather])
        results: list[Message] = []
        for call in answer.calls:
            arguments = json.loads(call.arguments)  # checked against the signature
            results.append(tool_result(call, get_weather(**arguments)))
        if not results:
            return answer.text
        return client.chat([question, answer.message, *results], tools=[get_weather]).text


if __name__ == "__main__":
    print(ask())

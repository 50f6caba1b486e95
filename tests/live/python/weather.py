"""The tool, the question and what is told of each answer: the same for every SDK."""

import json
from typing import Any

NAME = "get_weather"
DESCRIPTION = "Get the current weather in a city."
CITY_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Name of the city"}},
    "required": ["city"],
}
QUESTION = "What is the weather in Paris?"
MOST_ROUNDS = 4
MOST_TOKENS = 300
TIMEOUT_S = 600


def weather(name: str, arguments: str) -> str:
    """Run the tool."""
    city = json.loads(arguments)["city"]
    return "18 °C, light rain" if (name, city) == (NAME, "Paris") else f"no weather for {city!r}"


def tell(answer: dict[str, Any], seconds: float) -> None:
    """Print what one answer came to."""
    print(json.dumps({**answer, "seconds": round(seconds, 1)}), flush=True)

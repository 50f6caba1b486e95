"""`just prompt-cache`: how much of each turn's prompt the server has seen before, over a conversation of ten turns.

A server with a prompt cache processes only the new part of the next prompt, provided that the prompt begins with the
same tokens. Emulated, the tools and the history are text that we write: it must stay the same, turn by turn (INL-8).
The real llama.cpp server reports for each answer how many tokens it took from its cache.

    just prompt-cache                  ten turns, three forms; writes bench/results/prompt-cache.json
    just prompt-cache --turns 3        fewer, and nothing is written
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.accuracy.forms import form_of
from bench.accuracy.run import build_of
from bench.accuracy.speak import TIMEOUTS
from testkit.llama_models import DEFAULT, MODELS
from testkit.llama_server import LlamaServer
from testkit.report import close, progress
from toolspeak import wires
from toolspeak.engine.settings import Settings
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Message, Part, Result, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import Tool
from toolspeak.runtime.directory import Route
from toolspeak.runtime.http_transport import HttpTransport
from toolspeak.runtime.replica_client import UpstreamAddress
from toolspeak.runtime.upstream import HttpUpstream

RESULTS = Path(__file__).parent / "results" / "prompt-cache.json"
TURNS, MAX_TOKENS, CONTEXT_TOKENS = 10, 24, 8192
FORMS = ("native", "hermes", "fenced")
LEAST = 0.9
"""From the second turn on, the share of the earlier prompt that must come from the cache."""
SLACK = 16
"""Tokens at the end of a prompt that may always be new: the next message begins in another way than the answer did."""
CITIES = ("Oslo", "Lima", "Cairo", "Delhi", "Quito", "Paris", "Tokyo", "Accra", "Perth", "Turin", "Dakar", "Riga")


def _tool(name: str, about: str, parameter: str) -> Tool:
    schema: JsonObject = {"type": "string", "description": f"The {parameter} that it is about, as the user wrote it."}
    return Tool(name, about, {"type": "object", "properties": {parameter: schema}, "required": [parameter]})


TOOLS = (
    _tool("get_weather", "Tell the present weather of a city.", "city"),
    _tool("get_population", "Tell how many people live in a city.", "city"),
    _tool("find_flight", "Find the next flight to a city.", "city"),
    _tool("read_news", "Read the headlines about a topic.", "topic"),
)


@dataclass(frozen=True, slots=True)
class Turn:
    """What the server counted in one turn: the prompt, how much of it was in its cache, and the prompt before it."""

    prompt: int
    cached: int
    before: int

    @property
    def share(self) -> float:
        """How much of what could be in the cache was taken from there."""
        return min(1.0, self.cached / max(1, self.before - SLACK))


def history(turns: int) -> list[Message]:
    """Return the conversation before its turn of this number: each turn is a question, a call, a result, an answer."""
    messages: list[Message] = []
    for number, city in enumerate(CITIES[: turns + 1]):
        messages.append(_said(Role.USER, Text(f"How is the weather in {city}?")))
        if number < turns:
            id, told = f"call_{number}", f'{{"city": "{city}", "celsius": {number + 7}, "sky": "clear"}}'
            messages.append(_said(Role.ASSISTANT, Call(id, "get_weather", f'{{"city": "{city}"}}')))
            messages.append(_said(Role.TOOL, Result(id, (Text(told),), "get_weather")))
            messages.append(_said(Role.ASSISTANT, Text(f"In {city} it is {number + 7} degrees, and the sky is clear.")))
    return messages


def _said(role: Role, part: Part) -> Message:
    return Message(role, (part,))


async def counted(url: str, model: str, settings: Settings, turns: int) -> list[Turn]:
    """Take the turns of the conversation one after the other."""
    transport = HttpTransport()
    address = UpstreamAddress(f"{url}/v1", (), timeouts=TIMEOUTS)
    route = Route("lab", HttpUpstream(transport, wires.load("openai_chat"), address), model, settings=settings)
    found: list[Turn] = []
    try:
        for number in range(turns):
            sampling = Sampling(max_tokens=MAX_TOKENS, temperature=0.0, seed=1)
            request = Request(model, tuple(history(number)), TOOLS, sampling=sampling)
            outcome = await route.take(request, route.plan(request), _drop)
            usage = outcome.usage
            before = found[-1].prompt if found else 0
            found.append(Turn(usage.input_tokens, usage.cache_read_tokens, before))
            progress(number + 1, turns, f"{settings.dialect or 'native'}: turn")
    finally:
        await transport.close()
    return found


async def _drop(events: object) -> None:
    """Discard the events."""


def measured(model: str, turns: int) -> tuple[dict[str, list[Turn]], str]:
    """Measure every form on a new server with an empty cache."""
    found: dict[str, list[Turn]] = {}
    build = ""
    for form in FORMS:
        settings = form_of(f"{form} retries=0").settings or Settings()
        with LlamaServer(model, context=CONTEXT_TOKENS) as server:
            build = build_of(server.url, model)
            found[form] = asyncio.run(counted(server.url, model, settings, turns))
    return found, build


def faults(found: dict[str, list[Turn]]) -> list[str]:
    """Return the turns that did not use the cache."""
    return [
        f"{form}, turn {number}: only {turn.cached} of {turn.before} tokens came from the cache"
        for form, turns in found.items()
        for number, turn in enumerate(turns[1:], start=2)
        if turn.share < LEAST
    ]


def write(found: dict[str, list[Turn]], model: str, build: str) -> None:
    figures = {
        "date": datetime.now(UTC).date().isoformat(),
        "model": model,
        "sha256": MODELS[model].sha256,
        "server": build,
        "forms": {form: [asdict(turn) for turn in turns] for form, turns in found.items()},
        "cached_share": {form: round(overall(turns), 4) for form, turns in found.items()},
    }
    RESULTS.write_text(json.dumps(figures, indent=1) + "\n")


def overall(turns: Sequence[Turn]) -> float:
    """Return the share of all prompt tokens that came from the cache."""
    return sum(turn.cached for turn in turns) / max(1, sum(turn.prompt for turn in turns))


def main() -> None:
    """Measure, show and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEFAULT, choices=MODELS)
    parser.add_argument("--turns", type=int, default=TURNS, choices=range(2, len(CITIES)))
    options = parser.parse_args()
    found, build = measured(options.model, options.turns)
    for form, turns in found.items():
        print(f"{form:8}", " ".join(f"{turn.cached}/{turn.prompt}" for turn in turns))
    if options.turns == TURNS:
        write(found, options.model, build)
    shares = {form: round(overall(turns), 3) for form, turns in found.items()}
    close("prompt-cache", ok=not faults(found), turns=options.turns, cached_share=shares, faults=faults(found))


if __name__ == "__main__":
    main()

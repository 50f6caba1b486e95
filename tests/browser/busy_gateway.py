"""A gateway that has something to show: turns that were native, rescued, emulated, asked again, failed, or that run."""

import asyncio
import http.client
import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from testkit.protocols import answering
from testkit.scripted_upstream import SSE, Asked, ScriptedUpstream, listening, refuse
from testkit.vendor_answers import STREAMS, Answer
from tests.gateway.scene import Served, config_of, serving, towards
from toolspeak.config.shape import Config, Model
from toolspeak.facts.model import ModelFacts, Support

SYSTEM = """You are a careful coding assistant that works in a terminal.

Work in small steps. Read a file before you change it. Prefer the project's own tools over your habits.
When a command fails, read its output before you try again, and say what you learned from it.
Answer in the language of the person who asks. Keep answers short: a sentence, or a list of at most five lines."""
README = """# weather-cli

A small command line for forecasts.

    weather oslo --days 3

It reads the key of the service from `WEATHER_KEY`."""


def _tool(name: str, description: str, **fields: str) -> dict[str, Any]:
    properties = {field: {"type": "string", "description": told} for field, told in fields.items()}
    schema = {"type": "object", "properties": properties, "required": [*fields][:1]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    _tool("read_file", "Read a file of the project.", path="Path, relative to the project"),
    _tool("write_file", "Write a file, and replace what was in it.", path="Path of the file", text="The whole content"),
    _tool("run_command", "Run a command in the project's folder, and return its output.", command="The command line"),
    _tool("search", "Search all files for a regular expression.", pattern="The expression", folder="Where to look"),
    _tool("get_weather", "Tell the weather of a city.", city="The city's name"),
]
QUESTION = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": "What does this project do?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "read_file", "arguments": '{"path": "README.md"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": README},
    {"role": "assistant", "content": "It is a command line for weather forecasts."},
    {"role": "user", "content": "Good. How is the weather in Oslo, then?"},
]
FENCED = 'I look it up.\n\n```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```'
LEAKED = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
MISTAKE = (
    'Let me check the forecast.\n\n```tool_call\n{"name": "get_weather", "arguments": {"town": "Oslo", "days": 3}}\n```'
)
CALL = ("call_7", "get_weather", {"city": "Oslo"})


@dataclass(frozen=True)
class BusyGateway:
    """The gateway, and the ids of its traces by what they show."""

    served: Served
    upstream: ScriptedUpstream
    traces: dict[str, str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.served.port}"

    def page(self, name: str) -> str:
        """Return the address of the page of a trace."""
        return f"{self.url}/ui/requests/{self.traces[name]}"

    def ask(self, name: str, model: str, agent: str, *scripts: Any, **more: Any) -> None:  # noqa: ANN401 -- scripts, and fields of a body
        """Send a request, and note its trace under a name."""
        self.upstream.answers(*scripts)
        body = {"model": model, "messages": QUESTION, "tools": TOOLS, **more}
        reply = self.served.post("/v1/chat/completions", body, {"user-agent": agent})
        self.traces[name] = reply.headers["x-toolspeak-trace"]


def slowly(answer: Answer, wait: float, pause: float) -> Any:  # noqa: ANN401 -- a script
    """Make a script that thinks for a while, and then streams as a model does."""

    async def script(asked: Asked) -> None:
        await asyncio.sleep(wait)
        asked.head(200, SSE)
        for frame in STREAMS["openai_chat"](answer).split("\n\n"):
            await asked.chunk(f"{frame}\n\n".encode())
            await asyncio.sleep(pause)
        await asked.end()

    return script


def config(upstream: ScriptedUpstream) -> Config:
    """Describe four servers, as people have them."""
    known = {"ollama": Support.NONE, "vllm": Support.LEAKS, "openai": Support.NATIVE, "llamacpp": Support.NONE}
    servers = [replace(towards(upstream), name=name, facts=ModelFacts(tools=tools)) for name, tools in known.items()]
    models = {"qwen3-4b": "ollama", "llama-3.3-70b": "vllm", "gpt-5.2-mini": "openai", "gemma-3-12b": "llamacpp"}
    return config_of(*servers, models=tuple(Model(name, server, name) for name, server in models.items()))


@contextmanager
def busy_gateway() -> Generator[BusyGateway]:
    """Run the gateway, and send it requests. The one that runs ends with the gateway."""
    models = ("qwen3-4b", "llama-3.3-70b", "gpt-5.2-mini", "gemma-3-12b")
    with listening(models) as upstream, serving(config(upstream)) as served:
        gateway = BusyGateway(served, upstream, {})
        gateway.ask("native", "gpt-5.2-mini", "codex/0.84", slowly(Answer(calls=(CALL,)), 0.12, 0.01), stream=True)
        gateway.ask("emulated", "qwen3-4b", "claude-cli/2.1.4", slowly(Answer(FENCED), 0.3, 0.01), stream=True)
        gateway.ask("plain", "gemma-3-12b", "curl/8.9", answering(Answer("It is 3 °C and cloudy.")), tools=[])
        gateway.ask("rescued", "llama-3.3-70b", "opencode/1.2.0", slowly(Answer(LEAKED), 0.2, 0.01), stream=True)
        gateway.ask("failed", "gemma-3-12b", "pi/0.31", refuse(400, {"error": {"message": "the prompt is too long"}}))
        scripts = slowly(Answer(MISTAKE), 0.25, 0.01), slowly(Answer(FENCED), 0.15, 0.01)
        gateway.ask("again", "qwen3-4b", "claude-cli/2.1.4", *scripts, stream=True)
        with running(gateway):
            yield gateway


@contextmanager
def running(gateway: BusyGateway) -> Generator[None]:
    """Let one more request run, whose model writes slowly."""
    text = "The weather in Oslo is cold and clear today, with light wind. " * 100
    gateway.upstream.answers(slowly(Answer(text), 0.0, 0.05))
    body = {"model": "gemma-3-12b", "messages": QUESTION, "stream": True}
    connection = http.client.HTTPConnection("127.0.0.1", gateway.served.port, timeout=20)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"user-agent": "claude-cli/2.1.4"})
        with connection.getresponse() as response:
            gateway.traces["running"] = response.headers["x-toolspeak-trace"]
            yield
    finally:
        connection.close()

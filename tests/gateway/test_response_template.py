"""A model whose calls are described by the `response_template` of its `tokenizer_config.json` (CAP-8)."""

import json
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from testkit.protocols import answering
from testkit.scripted_upstream import ScriptedUpstream
from testkit.vendor_answers import Answer
from tests.gateway.scene import DRIVER, Served, serving
from toolspeak.config.file import load
from toolspeak.engine.verdict import Depth

TEMPLATE = {
    "start_anchor": "<|turn|>bot",
    "fields": {
        "thinking": {"open": "<|ponder|>", "close_pattern": r"<\|done\|>\s*"},
        "content": {"close": "<|over|>"},
        "tool_calls": {
            "open_pattern": r"\s*<\|act\|>(?P<name>\w+)<\|with\|>\s*",
            "close": "<|acted|>",
            "repeats": True,
            "content": "xml-inline",
            "content_args": {"tag_pattern": r'<\|arg name="(?P<key>[^"]+)"\|>(?P<value>.*?)<\|end\|>'},
            "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
        },
    },
}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
OSLO = '<|act|>get_weather<|with|><|arg name="city"|>Oslo<|end|><|arg name="days"|>2<|end|><|acted|>'
FILE = """
[upstreams.up]
url = "http://127.0.0.1:{port}/v1"

[models.described]
model = "m"
facts.response_template = "{template}"

[models.taught]
model = "m"
support = "none"
facts.response_template = "{template}"
"""


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("model")
    template = folder / "tokenizer_config.json"
    template.write_text(json.dumps({"model_max_length": 32768, "response_template": TEMPLATE}))
    file = folder / "toolspeak.toml"
    file.write_text(FILE.format(port=upstream.port, template=template))
    config = load(file, {})
    with serving(replace(config, server=replace(config.server, port=0, probe=Depth.OFF, driver=DRIVER))) as served:
        yield served


def message(gateway: Served, upstream: ScriptedUpstream, model: str, *said: str, stream: bool) -> dict[str, Any]:
    """Return what the client gets where the model says these, one after the other."""
    upstream.answers(*(answering(Answer(each)) for each in said))
    question = [{"role": "user", "content": "What is the weather in Oslo?"}]
    reply = gateway.post(
        "/v1/chat/completions", {"model": model, "messages": question, "tools": [TOOL], "stream": stream}
    )
    if not stream:
        return reply.json["choices"][0]["message"]
    lines = (line.removeprefix("data: ") for line in reply.body.decode().splitlines() if line.startswith("data: {"))
    deltas: list[dict[str, Any]] = [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]
    calls = [call for delta in deltas if "tool_calls" in delta for call in delta["tool_calls"]]
    arguments = "".join(call["function"].get("arguments") or "" for call in calls)
    found = {"function": {"name": calls[0]["function"]["name"], "arguments": arguments}} if calls else None
    return {
        "content": "".join(delta.get("content") or "" for delta in deltas),
        "reasoning_content": "".join(delta.get("reasoning_content") or "" for delta in deltas),
        "tool_calls": [found] if found else [],
    }


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["described", "taught"])
def test_calls_are_read_as_the_template_describes_them_cap8(
    gateway: Served, upstream: ScriptedUpstream, model: str, *, stream: bool
) -> None:
    got = message(gateway, upstream, model, f"<|ponder|>Oslo it is.<|done|>I look.\n{OSLO}<|over|>", stream=stream)
    (call,) = got["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "Oslo", "days": 2}
    assert "<|" not in got["content"]
    assert "Oslo it is." not in got["content"]


def test_without_the_template_they_are_text_cap8(gateway: Served, upstream: ScriptedUpstream) -> None:
    got = message(gateway, upstream, "up:m", OSLO, stream=False)
    assert got["content"] == OSLO
    assert not got.get("tool_calls")


@pytest.mark.parametrize("broken", [OSLO.replace("get_weather", "launch_rocket"), OSLO[:-25]])
def test_a_broken_call_is_a_complaint_to_the_model_cap8_p3(
    gateway: Served, upstream: ScriptedUpstream, broken: str
) -> None:
    """The reader of transformers would return the first as a call, and the second with an argument less."""
    got = message(gateway, upstream, "described", broken, OSLO, stream=False)
    assert [json.loads(call["function"]["arguments"]) for call in got["tool_calls"]] == [{"city": "Oslo", "days": 2}]
    assert len(upstream.asked) == 2

"""A long write in emulation, as clients of the five protocols see it grow under `release = "eager"` (CHK-7)."""

import asyncio
import http.client
import json
import threading
from collections.abc import Generator
from typing import Any

import pytest

from testkit.protocols import WIRES, question
from testkit.scripted_upstream import Asked, Script, ScriptedUpstream
from tests.gateway.scene import Served, config_of, serving, towards
from toolspeak.config.shape import Model
from toolspeak.dialects import load
from toolspeak.engine.settings import Mode, Release, Settings
from toolspeak.ir.message import Call
from toolspeak.ir.tool import Tool
from toolspeak.toolset.toolset import ToolSet

Body = dict[str, Any]
PARTIAL = ("openai_chat", "openai_responses", "anthropic")
"""The protocols that have parts of arguments; Gemini's and Ollama's calls are whole."""
CITY = 'A "city" of\n\tmany lines < 3\n' * 100
TOOL = Tool("get_weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}})


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    taught = (("hermes", Release.EAGER), ("qwen_xml", Release.EAGER), ("fenced", Release.EAGER))
    models = [
        *(Model(dialect, "up", "m", Settings(Mode.FORCE, dialect=dialect, release=how)) for dialect, how in taught),
        Model("checked", "up", "m", Settings(Mode.FORCE, dialect="hermes", release=Release.CHECKED)),
    ]
    with serving(config_of(towards(upstream), models=tuple(models))) as served:
        yield served


def written(dialect: str, arguments: Body) -> str:
    writer = load(dialect).writer
    assert writer is not None
    return writer.write_calls((Call("c", "get_weather", json.dumps(arguments)),), ToolSet.of((TOOL,)))


def halting(text: str, go_on: threading.Event) -> Script:
    """Say half of a text, wait for the sign, and say the rest."""

    async def script(asked: Asked) -> None:
        asked.head()
        for index, start in enumerate(range(0, len(text), 8)):
            if index == len(text) // 16:
                assert await asyncio.to_thread(go_on.wait, 20)
            piece = {"choices": [{"index": 0, "delta": {"content": text[start : start + 8]}}]}
            await asked.chunk(f"data: {json.dumps(piece)}\n\n".encode())
        end: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        await asked.chunk(f"data: {json.dumps(end)}\n\ndata: [DONE]\n\n".encode())
        await asked.end()

    return script


def bodies(data: bytes) -> list[Body]:
    """Return the events of a stream, SSE or lines of JSON."""
    lines = (line.removeprefix("data: ") for line in data.decode().splitlines())
    return [json.loads(line) for line in lines if line.startswith("{")]


def arguments_in(wire: str, event: Body) -> list[str]:
    """Return the JSON of arguments that an event adds, as the vendor's own client takes it."""
    match wire:
        case "openai_chat":
            deltas = [choice["delta"] for choice in event.get("choices", ())]
            return [call["function"].get("arguments") or "" for one in deltas for call in one.get("tool_calls") or ()]
        case "openai_responses":
            return [event["delta"]] if event["type"] == "response.function_call_arguments.delta" else []
        case "anthropic":
            return [event["delta"]["partial_json"]] if event.get("delta", {}).get("type") == "input_json_delta" else []
        case "gemini":
            contents = [one.get("content", {}) for one in event.get("candidates", ())]
            parts = [part for content in contents for part in content.get("parts", ())]
            return [json.dumps(part["functionCall"]["args"]) for part in parts if "functionCall" in part]
        case _:
            calls = event.get("message", {}).get("tool_calls") or ()
            return [json.dumps(call["function"]["arguments"]) for call in calls]


def watch(gateway: Served, upstream: ScriptedUpstream, wire: str, model: str, text: str) -> tuple[str, bytes]:
    """Ask for a turn; return the arguments that came before the second half was written, and the whole stream.

    The upstream goes on when the client has seen a tenth of the arguments, or after half a second.
    """
    go_on = threading.Event()
    upstream.answers(halting(text, go_on))
    asked = question(wire, stream=True, model=model)
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    timer = threading.Timer(0.5 if is_whole(wire, model) else 15, go_on.set)
    timer.start()
    try:
        connection.request("POST", asked.path, json.dumps(asked.body).encode(), {**asked.headers})
        answer = connection.getresponse()
        body, early, parsed = answer.read1(65536), "", 0
        while piece := answer.read1(65536):
            body += piece
            # Parsed a few times only: once for each piece took eight seconds.
            if not go_on.is_set() and len(body) > parsed + 8000:
                parsed, early = len(body), "".join(arguments(wire, body[: body.rfind(b"\n") + 1]))
                if len(early) > len(CITY) / 10:
                    go_on.set()
        timer.cancel()
    finally:
        connection.close()
    return early, body


def is_whole(wire: str, model: str) -> bool:
    return wire not in PARTIAL or model == "checked"


def arguments(wire: str, body: bytes) -> list[str]:
    return [one for event in bodies(body) for one in arguments_in(wire, event)]


@pytest.mark.parametrize("dialect", ["hermes", "qwen_xml", "fenced"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_long_emulated_call_grows_before_the_client_chk7(
    gateway: Served, upstream: ScriptedUpstream, wire: str, dialect: str
) -> None:
    early, body = watch(gateway, upstream, wire, dialect, written(dialect, {"city": CITY}))
    pieces = arguments(wire, body)
    assert json.loads("".join(pieces)) == {"city": CITY}
    assert bool(early) == (wire in PARTIAL)
    assert "".join(pieces).startswith(early)
    assert len(pieces) > 100 or wire not in PARTIAL


@pytest.mark.parametrize("wire", WIRES)
def test_a_checked_call_comes_whole_chk7(gateway: Served, upstream: ScriptedUpstream, wire: str) -> None:
    early, body = watch(gateway, upstream, wire, "checked", written("hermes", {"city": CITY}))
    assert early == ""
    assert [json.loads(one) for one in arguments(wire, body) if one] == [{"city": CITY}]


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_that_turns_out_wrong_ends_in_the_protocols_error_p3(
    gateway: Served, upstream: ScriptedUpstream, wire: str
) -> None:
    broken = written("hermes", {"city": CITY})[:-20] + "\x00, </tool_call>"
    _, body = watch(gateway, upstream, wire, "hermes", broken)
    whole = "".join(arguments(wire, body))
    with pytest.raises(ValueError, match=r"."):
        json.loads(whole)
    ended = ('"finish_reason":"tool_calls"', "response.completed", '"stop_reason":"tool_use"', '"done":true')
    assert not [end for end in ended if end in body.decode().replace(" ", "")]
    assert "error" in body.decode()

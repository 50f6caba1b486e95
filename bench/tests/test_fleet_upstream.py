"""The upstream of `just fleet`, over a real socket, and the configurations of the fleet."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from bench.fleet import upstream
from bench.fleet.checks import Question, RunAsked
from bench.fleet.configs import Addresses, gateway_config, nginx_config
from bench.fleet.load import MODELS, STEADY, ask, request
from bench.fleet.upstream import LIES, Mode, Server
from testkit.grammar import WIRES
from toolspeak.config.file import load

ADDRESSES = Addresses(
    4001, 4002, 4003, {"upstream-0": 4004, "upstream-1": 4005}, {"gateway-0": 4006}, "redis://r/0", "postgresql://d/x"
)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PACE_S", "THINK_S", "LOOK_S"):
        monkeypatch.setattr(upstream, name, 0.01)


def exchange(file: Path, mode: Mode, body: bytes) -> bytes:
    """Send one request, and return everything until the server sends nothing more."""

    async def talk(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        received = b""
        while not received.endswith((b"0\r\n\r\n", b'"total_tokens": 2}}')) and (piece := await reader.read(65536)):
            received += piece
        writer.close()
        return received

    return served(file, mode, talk)


def served(file: Path, mode: Mode, talk: Callable[[int], Coroutine[Any, Any, bytes]]) -> bytes:
    file.write_text(mode)

    async def main() -> bytes:
        server = Server(file)
        watching = asyncio.get_running_loop().create_task(server.watch())
        listening = await asyncio.start_server(server.connected, "127.0.0.1", 0)
        async with asyncio.timeout(10):
            received = await talk(int(listening.sockets[0].getsockname()[1]))
        listening.close()
        watching.cancel()
        return received

    return asyncio.run(main())


def chat(text: str, results: int = 0, **more: object) -> bytes:
    messages = [{"role": "user", "content": text}, *({"role": "tool", "content": "r"} for _ in range(results))]
    return json.dumps({"model": "m", "messages": messages, "stream": True, **more}).encode()


def deltas(received: bytes) -> list[dict[str, Any]]:
    lines = [line.removeprefix(b"data: ") for line in received.splitlines() if line.startswith(b"data: {")]
    return [json.loads(line)["choices"][0]["delta"] for line in lines]


def test_it_says_the_words_of_the_stream_and_makes_its_call(tmp_path: Path) -> None:
    received = exchange(tmp_path / "mode", Mode.RIGHT, chat("stream-17-call-3", tools=["get_weather"]))
    said = deltas(received)
    assert "".join(each.get("content", "") for each in said).split() == Question(17, "", 3).words
    [call] = [call for each in said for call in each.get("tool_calls", ())]
    assert json.loads(call["function"]["arguments"]) == {"city": "c17"}
    assert b'"finish_reason": "tool_calls"' in received
    assert b"data: [DONE]" in received


def test_it_writes_the_call_as_text_if_no_tools_were_sent(tmp_path: Path) -> None:
    received = exchange(tmp_path / "mode", Mode.RIGHT, chat("stream-17-call-3"))
    text = "".join(each.get("content", "") for each in deltas(received))
    assert '<tool_call>\n{"name": "get_weather", "arguments": {"city": "c17"}}\n</tool_call>' in text


def test_it_takes_the_rounds_of_a_run_and_ends_it(tmp_path: Path) -> None:
    [calls] = [
        each["tool_calls"]
        for each in deltas(exchange(tmp_path / "m", Mode.RIGHT, chat("run-fleet-3-of-2", 2)))
        if "tool_calls" in each
    ]
    assert [call["function"]["name"] for call in calls] == ["look", "put"]
    assert {call["function"]["arguments"] for call in calls} == {'{"run": "fleet-3", "n": 1}'}
    last = deltas(exchange(tmp_path / "m", Mode.RIGHT, chat("run-fleet-3-of-2", 4)))
    assert last[0]["content"] == RunAsked("fleet-3", 2).text


@pytest.mark.parametrize("number", range(len(LIES)))
def test_no_lie_ends_as_a_right_answer_does(tmp_path: Path, number: int) -> None:
    received = exchange(tmp_path / "mode", Mode.LIES, chat(f"stream-{number}-text-9"))
    assert b"[DONE]" not in received
    assert f"w{number}x2".encode() not in received


def test_it_hangs_until_it_is_told_otherwise(tmp_path: Path) -> None:
    file = tmp_path / "mode"

    async def talk(port: int) -> bytes:
        asking = asyncio.get_running_loop().create_task(ask(port, "POST", "/v1/chat/completions", "k", {"n": 1}))
        await asyncio.sleep(0.1)
        assert not asking.done()
        file.write_text(Mode.RIGHT)
        await asyncio.sleep(0.1)
        asking.cancel()
        return b""

    served(file, Mode.HANGS, talk)


@pytest.mark.parametrize("wire", WIRES)
def test_requests_of_streams_name_their_model_and_what_they_want(wire: str) -> None:
    sent = request(Question(17, wire, 30, calls=True), "pool-native")
    assert b"stream-17-call-30" in sent
    assert b"pool-native" in sent
    head, _, body = sent.partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}".encode() in head


def test_the_configuration_of_the_gateways_is_one(tmp_path: Path) -> None:
    file = tmp_path / "toolspeak.toml"
    file.write_text(gateway_config(ADDRESSES, 60))
    file.chmod(0o600)
    config = load(file, {})
    assert {model.name for model in config.models} == {*MODELS, STEADY}
    assert [key.limits.requests_per_minute for key in config.keys] == [None, None, 300]


def test_nginx_balances_gateways_and_upstreams(tmp_path: Path) -> None:
    text = nginx_config(tmp_path, ADDRESSES)
    for port in (4001, 4002, 4004, 4005, 4006):
        assert f"127.0.0.1:{port}" in text
    assert text.count("{") == text.count("}")
    assert "4003" not in text, "the steady upstream is asked directly"

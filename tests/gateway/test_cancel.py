"""A client that hangs up frees everything: the upstream's connection within a second, its place, its task."""

import asyncio
import json
import socket
import time

import pytest

from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import SSE, STREAM_TYPE, Asked, Script, ScriptedUpstream, hang, listening, refuse
from testkit.vendor_answers import STREAMS, Answer
from tests.gateway.scene import Served, config_of, head, serving, soon, status_of, towards
from toolspeak.gateway.connections import HttpConnection

SOON = 1.0
LONG = Answer("It is cold. " * 50)


def started(gateway: Served, wire: str = "openai_chat", *, stream: bool) -> socket.socket:
    """Ask for a turn, and wait for nothing."""
    asked = question(wire, stream=stream)
    body = json.dumps(asked.body).encode()
    connection = gateway.connect()
    connection.sendall(head(asked.path, content_length=len(body)) + body)
    return connection


def assert_freed(gateway: Served, asked: Asked, left_at: float) -> None:
    assert asked.hung_up.wait(SOON + 4), "the upstream's connection stays open"
    assert asked.hung_up_at - left_at < SOON
    assert soon(lambda: gateway.inside == 0 and gateway.tasks == 0)


async def head_only(asked: Asked) -> None:
    asked.head()
    await asyncio.sleep(3600)


async def half(asked: Asked) -> None:
    """Say the beginning of a stream, or of a whole answer."""
    wire = asked.wire
    if b'"stream": true' in asked.body or b'"stream":true' in asked.body:
        asked.head(200, STREAM_TYPE.get(wire, SSE))
        await asked.chunk(STREAMS[wire](LONG).encode()[:2000])
    else:
        asked.head(200, "application/json", length=1000)
        asked.writer.write(b'{"choices": [')
        await asked.writer.drain()
    await asyncio.sleep(3600)


async def drip(asked: Asked) -> None:
    asked.head()
    for line in STREAMS["openai_chat"](LONG).encode().splitlines(keepends=True):
        await asked.chunk(line)
        await asyncio.sleep(0.002)
    await asked.end()


STATES: dict[str, Script] = {"no head yet": hang, "no byte yet": head_only, "half an answer": half, "drips": drip}


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("script", STATES.values(), ids=STATES.keys())
def test_a_client_that_hangs_up_closes_the_upstream(
    gateway: Served, upstream: ScriptedUpstream, script: Script, stream: bool
) -> None:
    upstream.answers(script)
    connection = started(gateway, stream=stream)
    (asked,) = upstream.wait_for(1)
    if stream and script in (half, drip):
        assert status_of(connection.recv(65536)) == 200
    else:
        time.sleep(0.05)
    assert gateway.inside == 1
    connection.close()
    assert_freed(gateway, asked, time.monotonic())
    assert len(upstream.asked) == 1


@pytest.mark.parametrize("wire", WIRES)
def test_in_mid_stream_on_every_wire(gateway: Served, upstream: ScriptedUpstream, wire: str) -> None:
    upstream.answers(half)
    connection = started(gateway, wire, stream=True)
    assert status_of(connection.recv(65536)) == 200
    connection.close()
    assert_freed(gateway, upstream.wait_for(1)[0], time.monotonic())


@pytest.mark.parametrize("wire", WIRES)
def test_over_an_upstream_of_every_wire(wire: str) -> None:
    with listening() as upstream, serving(config_of(towards(upstream, wire))) as gateway:
        upstream.answers(hang)
        connection = started(gateway, stream=True)
        (asked,) = upstream.wait_for(1)
        connection.close()
        assert_freed(gateway, asked, time.monotonic())


def test_in_the_pause_before_another_try(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(refuse(503, {"error": "busy"}, [("retry-after", "1")]))
    connection = started(gateway, stream=True)
    upstream.wait_for(1)
    assert gateway.inside == 1
    connection.close()
    assert soon(lambda: gateway.inside == 0 and gateway.tasks == 0)
    time.sleep(1.2)
    assert len(upstream.asked) == 1, "nobody waits for the second try"


def test_while_it_sends_its_body(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(hang)
    connection = gateway.connect()
    connection.sendall(head(content_length=1000) + b"{")
    assert soon(lambda: gateway.inside == 1)
    connection.close()
    assert soon(lambda: gateway.inside == 0 and gateway.tasks == 0)
    assert not upstream.asked


def test_a_reset_counts_as_hanging_up(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(half)
    connection = started(gateway, stream=True)
    connection.recv(65536)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    connection.close()
    assert_freed(gateway, upstream.wait_for(1)[0], time.monotonic())


def test_a_client_that_hangs_up_leaves_the_others_alone(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(half, drip)
    leaving = started(gateway, stream=True)
    leaving.recv(65536)
    staying = started(gateway, stream=True)
    upstream.wait_for(2)
    leaving.close()
    assert upstream.asked[0].hung_up.wait(SOON)
    said = b""
    while b"[DONE]" not in said:
        said += staying.recv(65536)
    assert not upstream.asked[1].hung_up.is_set()


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("script", STATES.values(), ids=STATES.keys())
def test_a_client_that_hangs_up_is_no_fault_of_ours(
    gateway: Served, upstream: ScriptedUpstream, script: Script, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    upstream.answers(script)
    connection = started(gateway, stream=stream)
    upstream.wait_for(1)
    time.sleep(0.05)
    connection.close()
    assert soon(lambda: gateway.tasks == 0)
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [line for level, line in lines if level == "INFO" and "client hung up" in line]
    assert [line for level, line in lines if level != "INFO"] == []


async def flood(asked: Asked) -> None:
    """Say more than all buffers between hold."""
    asked.head()
    line = STREAMS["openai_chat"](Answer("x" * 3)).encode().split(b"\n\n")[1] + b"\n\n"
    while not asked.hung_up.is_set():
        await asked.chunk(line * 200)


def test_a_client_that_takes_nothing_holds_the_upstream_back_and_is_given_up_safe7(
    upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HttpConnection, "write_timeout", 0.5)
    with serving(config_of(towards(upstream))) as gateway:
        upstream.answers(flood)
        connection = started(gateway, stream=True)
        began = time.monotonic()
        (asked,) = upstream.wait_for(1)
        assert asked.hung_up.wait(10)
        assert asked.hung_up_at - began > 0.5
        assert soon(lambda: gateway.inside == 0 and gateway.tasks == 0)
        connection.close()


def test_a_slow_client_is_not_given_up(upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HttpConnection, "write_timeout", 0.5)
    upstream.answers(answering(Answer("It is cold. " * 9_000)))
    with serving(config_of(towards(upstream))) as gateway:
        connection = started(gateway, stream=True)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        said = bytearray()
        while not said.endswith(b"[DONE]\n\n\r\n0\r\n\r\n"):
            said += connection.recv(1 << 20)
            time.sleep(0.01)
        assert said.count(b"data: ") > 30_000


def test_nothing_is_left_behind(gateway: Served, upstream: ScriptedUpstream) -> None:
    """After a hundred clients that hung up there are as many tasks as before."""
    upstream.answers(half)

    def tasks() -> int:
        return len(asyncio.all_tasks(gateway.server.loop))

    assert soon(lambda: gateway.tasks == 0)
    before = tasks()
    for _ in range(100):
        connection = started(gateway, stream=True)
        connection.recv(65536)
        connection.close()
    assert soon(lambda: gateway.inside == 0 and gateway.tasks == 0 and tasks() <= before, 3)
    assert all(asked.hung_up.wait(1) for asked in upstream.asked)

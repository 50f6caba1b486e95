"""The push driver where it differs inside: exchanges that share a connection, and turns that resume in a callback."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

import pytest
from typing_extensions import override

from testkit.protocols import answering, question
from testkit.scripted_upstream import Asked, ScriptedUpstream, hang
from testkit.vendor_answers import Answer
from tests.gateway.scene import Served, config_of, head, read_reply, serving, soon, towards
from toolspeak.config.shape import Config, Driver, Key
from toolspeak.gateway.admission import Admission, Ticket
from toolspeak.gateway.push_connection import PushConnection
from toolspeak.runtime.clock import CLOCK


def on(driver: Driver, config: Config) -> Config:
    return replace(config, server=replace(config.server, driver=driver))


def request(user: str = "anna", *, padding: int = 0) -> bytes:
    asked = question("openai_chat")
    messages = [{"role": "user", "content": f"{user} {'x' * padding}"}]
    body = json.dumps({**(asked.body or {}), "messages": messages}).encode()
    return head(asked.path, content_length=len(body)) + body


async def greet(asked: Asked) -> None:
    """Answer with the first word of the prompt, and as much text as the rest of it."""
    user, _, rest = asked.json["messages"][-1]["content"].partition(" ")
    await answering(Answer(f"Hi {user} {rest}"))(asked)


class SlowEnd(Admission):
    """Suspends each request after its response, as a store of limits far away would."""

    @asynccontextmanager
    @override
    async def enter(self, key: Key, *, is_free: bool = False) -> AsyncGenerator[Ticket]:
        async with super().enter(key, is_free=is_free) as ticket:
            yield ticket
        await asyncio.sleep(0.2)


def with_slow_end(gateway: Served) -> None:
    inside = gateway.app.gateway
    gateway.app.gateway = replace(inside, admission=SlowEnd(inside.config.limits, CLOCK))


@pytest.mark.parametrize("driver", Driver)
def test_the_end_of_one_request_does_not_hide_that_the_client_of_the_next_one_leaves(
    upstream: ScriptedUpstream, driver: Driver
) -> None:
    with serving(on(driver, config_of(towards(upstream)))) as gateway:
        with_slow_end(gateway)
        upstream.answers(answering(Answer("It is cold.")), hang)
        connection = gateway.connect()
        connection.sendall(request())
        read_reply(connection)
        connection.sendall(request())
        (_, second) = upstream.wait_for(2)
        assert gateway.tasks == 2, "the first request has ended too early to hide anything"
        assert soon(lambda: gateway.tasks == 1)
        connection.close()
        assert second.hung_up.wait(3), "the upstream works for a client that is gone"
        assert soon(lambda: gateway.tasks == 0)


@pytest.mark.parametrize("driver", Driver)
def test_large_requests_in_a_pipeline_are_answered_in_their_order(upstream: ScriptedUpstream, driver: Driver) -> None:
    """Each body and each answer is larger than what the server buffers of either."""
    upstream.answers(greet)
    names, padding = ("anna", "bert", "cleo", "dora"), 300_000
    with serving(on(driver, config_of(towards(upstream)))) as gateway:
        connection = gateway.connect()
        sender = threading.Thread(
            target=lambda: connection.sendall(b"".join(request(name, padding=padding) for name in names))
        )
        sender.start()
        for name in names:
            said = json.loads(read_reply(connection).partition(b"\r\n\r\n")[2])
            assert said["choices"][0]["message"]["content"] == f"Hi {name} {'x' * padding}"
        sender.join()


@pytest.mark.parametrize("later", [True, False], ids=["one by one", "at once"])
def test_a_client_that_leaves_its_pipeline_frees_the_upstream_of_the_request_that_is_answered(
    upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture, later: bool
) -> None:
    with serving(on(Driver.PUSH, config_of(towards(upstream)))) as gateway:
        upstream.answers(hang)
        connection = gateway.connect()
        connection.sendall(request() * (1 if later else 3))
        (first,) = upstream.wait_for(1)
        time.sleep(0.05)
        for _ in range(2 if later else 0):
            connection.sendall(request())
            time.sleep(0.05)
        connection.close()
        assert first.hung_up.wait(3), "the upstream works for a client that is gone"
        assert soon(lambda: gateway.tasks == 0)
        assert len(upstream.asked) == 1, "the requests behind it have no client either"
    assert "fault" not in caplog.text


def test_what_waits_in_a_pipeline_is_bounded(upstream: ScriptedUpstream) -> None:
    upstream.answers(hang)
    with serving(on(Driver.PUSH, config_of(towards(upstream)))) as gateway:
        connection = gateway.connect()
        connection.settimeout(1.0)
        connection.sendall(request())
        upstream.wait_for(1)
        with pytest.raises(TimeoutError):
            connection.sendall(request(padding=1_000_000) * 24)
        held = cast("PushConnection", next(iter(gateway.server.server_state.connections)))
        waiting = [len(state.body) for state, _ in held.pipeline]
        gateway.server.loop.call_soon_threadsafe(held.transport.abort)  # a client that is not read cannot be seen to go
        assert sum(waiting) < 400_000, waiting


def test_the_push_driver_starts_without_aiohttp() -> None:
    script = (
        "import sys; from toolspeak.config import Config, Server, Upstream; from toolspeak.config.shape import Driver\n"
        "import toolspeak.cli.options, toolspeak.gateway.access_log; from toolspeak.gateway.server import build\n"
        "build(Config(server=Server(driver=Driver.PUSH), upstreams=(Upstream('up', 'http://127.0.0.1:9/v1'),)))\n"
        "print('aiohttp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "False\n"

"""The push driver where it differs inside: exchanges that share a connection, and turns that resume in a callback."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from typing_extensions import override

from testkit.protocols import answering, question
from testkit.scripted_upstream import ScriptedUpstream, hang
from testkit.vendor_answers import Answer
from tests.gateway.scene import Served, config_of, head, read_reply, serving, soon, towards
from toolspeak.config.shape import Config, Driver, Key
from toolspeak.gateway.admission import Admission, Ticket
from toolspeak.runtime.clock import CLOCK


def on(driver: Driver, config: Config) -> Config:
    return replace(config, server=replace(config.server, driver=driver))


def request(*, stream: bool = False) -> bytes:
    asked = question("openai_chat", stream=stream)
    body = json.dumps(asked.body).encode()
    return head(asked.path, content_length=len(body)) + body


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

"""Connections: idle ones make room for new clients, and no address takes all of them (SAFE-7)."""

import json
import socket
from collections.abc import Generator

import pytest

from testkit.protocols import answering, question
from testkit.scripted_upstream import ScriptedUpstream, hang, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import Served, config_of, head, read_all, read_reply, serving, soon, status_of, towards
from toolspeak.config.shape import Limits
from toolspeak.gateway.connections import Connections

MOST = 6


@pytest.fixture
def upstream() -> Generator[ScriptedUpstream]:
    with listening() as upstream:
        upstream.answers(answering(Answer("It is cold.")))
        yield upstream


@pytest.fixture
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    limits = Limits(connections=MOST, connections_per_address=MOST)
    with serving(config_of(towards(upstream), limits=limits)) as served:
        yield served


def ask(connection: socket.socket) -> int:
    connection.sendall(head("/health", "GET"))
    return status_of(read_reply(connection))


def test_idle_connections_make_room_for_new_clients_safe7(gateway: Served) -> None:
    """With 1,024 descriptors, idle keep-alive connections locked out everybody else for 75 seconds."""
    idle = [gateway.connect() for _ in range(MOST * 4)]
    assert ask(gateway.connect()) == 200
    assert read_all(idle[0]) == b""


def test_the_longest_idle_connection_goes_first_safe7(gateway: Served) -> None:
    first, second, third = (gateway.connect() for _ in range(3))  # half of all may come from one address
    assert [ask(each) for each in (second, third, first)] == [200, 200, 200]
    assert ask(gateway.connect()) == 200
    assert read_all(second) == b""
    assert ask(first) == 200


def test_busy_connections_are_kept_and_a_new_one_is_told_to_come_later_safe7(
    gateway: Served, upstream: ScriptedUpstream
) -> None:
    upstream.answers(hang)
    body = json.dumps(question("openai_chat").body).encode()
    for number in range(MOST // 2):
        busy = gateway.connect()
        busy.sendall(head(content_length=len(body)) + body)
        assert soon(lambda number=number: gateway.tasks == number + 1)
    refused = gateway.raw(b"")
    assert status_of(refused) == 503
    assert b"retry-after" in refused


class FakeConnection:
    closed = False

    def close_idle(self) -> None:
        self.closed = True


def test_one_address_cannot_take_all_connections_safe7() -> None:
    connections = Connections(Limits(connections=100, connections_per_address=10))
    greedy = [FakeConnection() for _ in range(10)]
    for each in greedy:
        assert connections.add(each, "10.0.0.1")
        connections.busy(each)
    assert not connections.add(FakeConnection(), "10.0.0.1")
    assert connections.add(FakeConnection(), "10.0.0.2")
    connections.idle(greedy[3])
    assert connections.add(FakeConnection(), "10.0.0.1")
    assert [each.closed for each in greedy].index(True) == 3
    assert (len(connections), connections.refused, connections.reclaimed) == (11, 1, 1)
    connections.remove(greedy[0])
    connections.remove(greedy[0])
    assert len(connections) == 10

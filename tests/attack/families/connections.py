"""Idle connections with `ulimit -n 1024`: they once kept every new client out."""

import socket
import time
from contextlib import suppress

from testkit.protocols import WIRES, answering
from testkit.scripted_upstream import listening
from testkit.vendor_answers import Answer
from tests.attack.arena import ATTACKER, Arena, Gateway
from tests.gateway.scene import head

HELD_BEFORE = False
FILES, COUNT = 1_024, 1_300
ANSWERS_S = 2.0
ONE = ("127.0.0.9",)
MANY = tuple(f"127.0.1.{number}" for number in range(1, 53))
KINDS = {
    "idle since the start": b"",
    "idle after an answer": head("/health", "GET"),
    "idle after an error": b"nonsense\r\n\r\n",
    "half a head": b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ",
    "half a body": head(content_length=1000, authorization=f"Bearer {ATTACKER}") + b"{",
    "half a body without a key": head(content_length=1000) + b"{",
}
CLIENTS = 10


def attack(arena: Arena) -> None:
    names = list(KINDS)[:2] if arena.brief else list(KINDS)
    with listening() as upstream:
        upstream.answers(answering(Answer("It is cold.")))
        for addresses in (ONE,) if arena.brief else (ONE, MANY):
            with arena.gateway(arena.config(upstream.port), warm=WIRES, nofile=FILES) as gateway:
                for name in names:
                    _hold(arena, gateway, f"{COUNT} connections of {len(addresses)} addresses, {name}", name, addresses)


def _hold(arena: Arena, gateway: Gateway, title: str, kind: str, addresses: tuple[str, ...]) -> None:
    held: list[socket.socket] = []
    with arena.attempt(gateway, title, COUNT) as attempt:
        end = time.monotonic() + 8
        for number in range(COUNT):
            if time.monotonic() > end:
                break
            with suppress(OSError):
                address = addresses[number % len(addresses)]
                held.append(socket.create_connection(("127.0.0.1", gateway.port), 0.2, (address, 0)))
                held[-1].sendall(KINDS[kind])
        time.sleep(0.5)
        kept_out = sum(not _is_served(gateway.port, f"127.0.0.{20 + number}") for number in range(CLIENTS))
        if kept_out:
            attempt.got(f"{kept_out} of {CLIENTS} new clients were kept out")
        for each in held:
            each.close()
        time.sleep(0.5)


def _is_served(port: int, address: str) -> bool:
    """Tell whether a new client from an address of its own gets an answer in time."""
    try:
        with socket.create_connection(("127.0.0.1", port), ANSWERS_S, (address, 0)) as connection:
            connection.sendall(head("/health", "GET", connection="close"))
            return b" 200 " in connection.recv(100)
    except OSError:
        return False

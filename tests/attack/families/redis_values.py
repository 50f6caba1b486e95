"""Values in the shared Redis that no gateway wrote: none may fail a request, stall the gateway or reach a client."""

import json
import socket
import time
from pathlib import Path

from testkit.protocols import WIRES, question
from testkit.redis_server import running
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.attack.arena import VICTIM, Arena, Gateway, bearer
from tests.attack.model import speaks

HELD_BEFORE = True
MIB = 1 << 20
MODEL = "up:m"
KINDS = ("verdict", "seen", "probe")
CALL = Answer(calls=(("call_1", "get_weather", {"city": "Oslo"}),))
VALUES: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"\xff\xfe\x00{",
    "a number": b"9" * 5_000,
    "another shape": b'{"tools": {"a": [1, 2]}}',
    "an unknown word": b'{"tools": "all-of-them", "confidence": "sure"}',
    "a huge string": b'{"reason": "' + b"x" * (8 * MIB) + b'"}',
    "deep nesting": b"[" * MIB + b"]" * MIB,
    "a pickle": b"cos\nsystem\n(S'touch PWNED'\ntR.",
    "control characters": b'{"reason": "\\u001b[2J\\r\\ninjected: 1"}',
    "a header injection": b'{"tools": "none", "reason": "x\\r\\nset-cookie: a=b", "confidence": 1.0}',
    "a confidence out of range": b'{"tools": "none", "confidence": 1e308}',
}


def attack(arena: Arena) -> None:
    with listening(("good", "m")) as upstream, running(Path(arena.folder)) as redis:
        upstream.answers(speaks(CALL))
        config = arena.config(upstream.port, f'[redis]\nurl = "{redis.url}"\n').replace('"off"', '"full"', 1)
        with arena.gateway(config, warm=WIRES, watched=False) as gateway:
            for wire in WIRES:  # the warm-up asks for another model: that of the attempts is read for the first time
                asked = question(wire, model=MODEL)
                gateway.ask("POST", asked.path, asked.body, bearer(VICTIM))
            time.sleep(1.5)
        names = _command(redis.port, "KEYS", "toolspeak:*").split()
        if not any(name.startswith(b"toolspeak:verdict:") for name in names):
            raise AssertionError(f"the gateway has written no verdict: {names}")
        for kind, value in list(VALUES.items())[:: 9 if arena.quick else 4 if arena.brief else 1]:
            _write_all(redis.port, names, value)
            with arena.gateway(config, warm=WIRES) as gateway:
                for wire in WIRES:
                    _ask(arena, gateway, upstream, wire, f"{wire}: {kind}")
        for kind in () if arena.quick else ("a list",) if arena.brief else ("a list", "a set"):
            for name in {name for name in names if name.startswith(b"toolspeak:")}:
                _command(redis.port, "DEL", name.decode())
                _command(redis.port, "LPUSH" if kind == "a list" else "SADD", name.decode(), "x")
            with arena.gateway(config, warm=WIRES) as gateway:
                for wire in WIRES:
                    _ask(arena, gateway, upstream, wire, f"{wire}: {kind} under a key")


def _ask(arena: Arena, gateway: Gateway, upstream: ScriptedUpstream, wire: str, title: str) -> None:
    upstream.answers(speaks(CALL))
    with arena.attempt(gateway, title) as attempt:
        for stream in (False, True):
            asked = question(wire, stream=stream, model=MODEL)
            reply = gateway.ask("POST", asked.path, asked.body, bearer(VICTIM))
            if reply.status != 200:
                attempt.got(f"status {reply.status}: {reply.body[:100]!r}")
            if (
                "set-cookie" in reply.headers
                or b"injected" in reply.body
                or "injected" in json.dumps(dict(reply.headers))
            ):
                attempt.got("a value of Redis reached the client")
        time.sleep(0.2)


def _write_all(port: int, names: list[bytes], value: bytes) -> None:
    for name in {name for name in names if name.startswith(b"toolspeak:")}:
        _command(port, "SET", name.decode(), value)


def _command(port: int, *words: str | bytes) -> bytes:
    """Send one command to Redis; return its raw answer."""
    parts = [word if isinstance(word, bytes) else word.encode() for word in words]
    data = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(data)
        connection.settimeout(0.2)
        said = bytearray()
        try:
            while piece := connection.recv(65536):
                said += piece
        except TimeoutError:
            pass
    return bytes(said)

"""Upstreams that lie and flood: the gateway's memory stays bounded, clients get an error, others notice nothing."""

import asyncio
import gzip
import http.client
import json
import socket
import threading
import time
from collections.abc import AsyncIterator

from testkit.protocols import WIRES, question
from testkit.scripted_upstream import JSON, SSE, Asked, Script, listening
from tests.attack.arena import Arena, Gateway, bearer
from tests.attack.model import COLD
from tests.gateway.scene import base_of

HELD_BEFORE = False
MIB = 1 << 20
FLOOD_S, LATEST_S = 1.0, 12.0
MOST_BYTES = 3 << 30


def attack(arena: Arena) -> None:
    redirected = _Redirected()
    with listening() as upstream:
        upstream.answers(COLD)
        more = "".join(
            f'[upstreams.w_{wire}]\nurl = "http://127.0.0.1:{upstream.port}{base_of(wire)}"\nwire = "{wire}"\n'
            f'key = "sk-up-{wire}"\nretries = 0\n[upstreams.w_{wire}.timeouts]\nfirst_byte = 3.0\nidle = 3.0\n'
            "total = 8.0\n"
            for wire in WIRES
        )
        scripts = {**SCRIPTS, "a redirect": _redirect(redirected.port)}
        with arena.gateway(arena.config(upstream.port, more), warm=WIRES) as gateway:
            for number, (name, script) in enumerate(scripts.items()):
                if arena.quick and number % 2:
                    continue
                wires = WIRES[number % 5 : number % 5 + 1] if arena.brief else WIRES
                for wire in wires:
                    stream = (number + WIRES.index(wire)) % 2 == 0
                    upstream.answers(script)
                    with arena.attempt(gateway, f"{name} from {wire}, stream {stream}") as attempt:
                        began = time.monotonic()
                        _read(gateway, wire, stream)
                        if (lasted := time.monotonic() - began) > LATEST_S:
                            attempt.got(f"the client waited {lasted:.0f} s")
                        if redirected.taken:
                            attempt.got("a redirect was followed")
                            redirected.taken.clear()


def _read(gateway: Gateway, wire: str, stream: bool) -> None:
    """Ask on the upstream's own wire, and read what comes."""
    asked = question(wire, stream=stream, model=f"w_{wire}:m")
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=LATEST_S)
    end = time.monotonic() + LATEST_S
    try:
        connection.request("POST", asked.path, json.dumps(asked.body), bearer())
        answer = connection.getresponse()
        while answer.read1(1 << 20) and time.monotonic() < end:
            pass
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()


class _Redirected:
    """Where a redirect leads to."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.taken: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection:
                connection.settimeout(1)
                try:
                    self.taken.append(connection.recv(65536))
                except OSError:
                    self.taken.append(b"")


async def _flood(piece: bytes) -> AsyncIterator[bytes]:
    """Repeat a piece for a while, up to 3 GiB."""
    sent, end = 0, time.monotonic() + FLOOD_S
    while sent < MOST_BYTES and time.monotonic() < end:
        yield piece
        sent += len(piece)
        await asyncio.sleep(0)


def _flooding(start: bytes, piece: bytes, media_type: str = SSE) -> Script:
    async def script(asked: Asked) -> None:
        asked.head(200, media_type)
        if start:
            await asked.chunk(start)
        async for each in _flood(piece):
            await asked.chunk(each)
        await asked.end()

    return script


def _bytes(start: bytes, piece: bytes, pause: float = 0.0) -> Script:
    """Send raw bytes."""

    async def script(asked: Asked) -> None:
        asked.writer.write(start)
        async for each in _flood(piece):
            asked.writer.write(each)
            await asked.writer.drain()
            await asyncio.sleep(pause)
        asked.close()

    return script


def _redirect(port: int) -> Script:
    async def script(asked: Asked) -> None:
        await asked.whole(307, b"", headers=[("location", f"http://127.0.0.1:{port}/stolen")])

    return script


BOMB = gzip.compress(b"\0" * (64 * MIB))


async def _bomb(asked: Asked) -> None:
    """Send 2 GiB of zeros in 2 MiB."""
    asked.head(200, JSON, [("content-encoding", "gzip")], len(BOMB) * 32)
    for _ in range(32):
        asked.writer.write(BOMB)
        await asked.writer.drain()


async def _cut(asked: Asked) -> None:
    asked.head(200, SSE)
    await asked.chunk(b'data: {"choices": [{"index": 0, "delta": {"content": "a')
    asked.reset()


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
SCRIPTS: dict[str, Script] = {
    "a gzip bomb": _bomb,
    "an endless line": _flooding(b"data: ", b"x" * MIB),
    "an endless JSON string": _flooding(b'{"choices": "', b"x" * MIB, JSON),
    "deep nesting": _flooding(b"data: ", b"[" * MIB),
    "deep nesting in JSON": _flooding(b"", b"[" * MIB, JSON),
    "comments": _flooding(b"", b": keep-alive\n\n" * 5_000),
    "empty events": _flooding(b"", b"data: {}\n\n" * 5_000),
    "events that are no JSON": _flooding(b"", b"data: {oops\n\n" * 5_000),
    "empty lines": _flooding(b"", b"\n" * 65536),
    "zeros": _flooding(b"", b"\0" * MIB),
    "endless headers": _bytes(HEAD, b"x-a: b\r\n" * 1000),
    "an endless header": _bytes(HEAD + b"x: ", b"y" * 65536),
    "an endless status line": _bytes(b"HTTP/1.1 200 ", b"O" * 65536),
    "interim responses": _bytes(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "an endless chunk extension": _bytes(HEAD + b"transfer-encoding: chunked\r\n\r\n1;", b"e" * 65536),
    "endless trailers": _bytes(HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n" * 1000),
    "a slow drip": _bytes(HEAD + b"transfer-encoding: chunked\r\n\r\n", b"1\r\nd\r\n", 0.05),
    "no HTTP": _bytes(b"SSH-2.0-OpenSSH\r\n", b"\xff" * 65536),
    "a cut in the middle": _cut,
}

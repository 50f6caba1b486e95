"""Bytes that are no honest HTTP: smuggling, floods of headers, chunk extensions and trailers, slow heads and bodies."""

import re
import socket
import time
from contextlib import suppress

from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.attack.arena import ATTACKER, Arena, Gateway
from tests.gateway.scene import head
from tests.gateway.test_smuggling import AMBIGUOUS

HELD_BEFORE = True
HEAD_S, BODY_S, SLACK_S = 2.0, 2.0, 3.0
LIMITS = f"[limits]\nheader_seconds = {HEAD_S}\nbody_idle_seconds = {BODY_S}\n"
HIDDEN = f"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ATTACKER}\r\n\r\n".encode()
MOST_TAKEN = 4 << 20
"""Bytes of one head, chunk extension or trailer that the gateway may read before it hangs up: its limit is 32 KB, the
rest is what the kernel buffers on both sides of a loopback connection."""


def attack(arena: Arena) -> None:
    with listening() as upstream:
        upstream.answers(answering(Answer("It is cold.")))
        with arena.gateway(arena.config(upstream.port, LIMITS), warm=WIRES) as gateway:
            _smuggling(arena, gateway)
            _floods(arena, gateway)
            _trailers(arena, gateway, upstream)
            _slow(arena, gateway)


def _smuggling(arena: Arena, gateway: Gateway) -> None:
    for wire in WIRES[:1] if arena.quick else WIRES:
        path = question(wire).path
        for name, (headers, body) in AMBIGUOUS.items():
            data = b"POST %b HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer %b\r\n%b\r\n\r\n" % (
                *(path.encode(), ATTACKER.encode()),
                headers,
            )
            with arena.attempt(gateway, f"{wire}: {name}") as attempt:
                said = gateway.raw(data + body + HIDDEN, 0.3)
                if b'"object":"list"' in said or re.search(rb"HTTP/1\.1 2\d\d ", said):
                    attempt.got(f"two readers would see different requests: {said[:80]!r}")


def _floods(arena: Arena, gateway: Gateway) -> None:
    start = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
    chunked = start + b"authorization: Bearer %b\r\ntransfer-encoding: chunked\r\n\r\n" % ATTACKER.encode()
    floods = {
        "many headers": (start, b"x-%b: y\r\n" % (b"a" * 20)),
        "many empty headers": (start, b"x:\r\n"),
        "one endless header": (start + b"x: ", b"y" * 4096),
        "one endless header name": (start, b"y" * 4096),
        "an endless path": (b"GET /", b"y" * 4096),
        "an endless method": (b"", b"Y" * 4096),
        "many cookies": (start, b"cookie: %b\r\n" % (b"c=d; " * 100)),
        "an endless chunk extension": (chunked + b"1;", b"e" * 4096),
        "chunk extensions in every chunk": (chunked, b"1;%b\r\na\r\n" % (b"e" * 4000)),
        "an endless chunk size": (chunked, b"0" * 4096),
        "an endless trailer": (chunked + b"0\r\nx: ", b"t" * 4096),
        "many trailers": (chunked + b"0\r\n", b"x: y\r\n" * 500),
        "empty lines before the request": (b"", b"\r\n" * 2000),
    }
    for name, (first, again) in floods.items():
        with arena.attempt(gateway, name) as attempt:
            taken, ended = _taken(gateway, first, again, 3 * MOST_TAKEN)
            if not ended and taken >= 3 * MOST_TAKEN and "every chunk" not in name:
                attempt.got(f"{taken} bytes were read")


def _taken(gateway: Gateway, first: bytes, again: bytes, most: int) -> tuple[int, bool]:
    """Send until the gateway hangs up; return how many bytes it took, and whether it did."""
    connection = gateway.client.connect(2.0)
    gateway.client.opened.remove(connection)
    sent, end = 0, time.monotonic() + 10
    piece = again * max(1, 65536 // len(again))
    try:
        connection.sendall(first)
        while sent < most and time.monotonic() < end:
            connection.sendall(piece)
            sent += len(piece)
        return sent, connection.recv(1) == b""
    except OSError:
        return sent, True
    finally:
        connection.close()


def _trailers(arena: Arena, gateway: Gateway, upstream: ScriptedUpstream) -> None:
    """Send trailers: they are no headers. A key in it opens nothing, a length in it moves nothing."""
    for wire in WIRES:
        for name in ("authorization", "x-api-key", "x-goog-api-key", "content-length", "transfer-encoding", "host"):
            value = {"authorization": f"Bearer {ATTACKER}", "content-length": "0"}.get(name, ATTACKER)
            data = head(question(wire).path, transfer_encoding="chunked")
            data += b"2\r\n{}\r\n0\r\n%b: %b\r\n\r\n" % (name.encode(), value.encode())
            upstream.asked.clear()
            with arena.attempt(gateway, f"{wire}: {name} in a trailer") as attempt:
                said = gateway.raw(data, 1.0)
                if upstream.asked or b"HTTP/1.1 2" in said:
                    attempt.got(f"a trailer counted as a header: {said[:80]!r}")


def _slow(arena: Arena, gateway: Gateway) -> None:
    """Many clients that send one byte at a time are cut when their time is over, and hurt no one."""
    count = 50 if arena.brief else 300
    body = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n"
    body += b"authorization: Bearer %b\r\n\r\n" % ATTACKER.encode()
    kinds = {
        "nothing at all": (b"", b"", HEAD_S),
        "a slow request line": (b"", b"G", HEAD_S),
        "a slow head": (b"GET /health HTTP/1.1\r\nhost: localhost\r\n", b"x", HEAD_S),
        "slow header lines": (b"GET /health HTTP/1.1\r\nhost: localhost\r\n", b"x: y\r\n", HEAD_S),
        "a silent body": (body, b"", BODY_S),
        "a slow body": (body, b" ", BODY_S * 10),
    }
    if arena.brief:
        del kinds["a slow body"]  # it may take ten times as long as a silent one
    if arena.quick:
        kinds = {name: kinds[name] for name in ("a slow head", "a silent body")}
    for name, (first, drip, patience) in kinds.items():
        with arena.attempt(gateway, f"{count} connections with {name}", count) as attempt:
            left = _drip(gateway, count, first, drip, patience + SLACK_S)
            if left:
                attempt.got(f"{left} of {count} connections are still open after {patience + SLACK_S:g} s")


def _drip(gateway: Gateway, count: int, first: bytes, drip: bytes, seconds: float) -> int:
    """Return how many connections outlive their time."""
    opened: list[socket.socket] = []
    with suppress(OSError):  # a gateway that takes no more connections of one address is right
        for _ in range(count):
            opened.append(socket.create_connection(("127.0.0.1", gateway.port), 5, ("127.0.0.9", 0)))
            opened[-1].sendall(first)
    for each in opened:
        each.setblocking(False)
    end, alive = time.monotonic() + seconds, opened
    while alive and time.monotonic() < end:
        alive = [each for each in alive if _is_open(each, drip)]
        time.sleep(0.2)
    for each in opened:
        each.close()
    return len(alive)


def _is_open(connection: socket.socket, drip: bytes) -> bool:
    try:
        if drip:
            connection.send(drip)
        return connection.recv(65536) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False

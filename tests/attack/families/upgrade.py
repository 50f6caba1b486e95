"""CONNECT and Upgrade: 39 bytes once blocked the event loop for half a second and logged 300 KB."""

import json
import re

from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.attack.arena import ATTACKER, Arena, Gateway
from tests.gateway.scene import head

HELD_BEFORE = False
PIPELINED = 3_000
PATHS = ("/", "/health", "*", "127.0.0.1:443", "example.com:80", "http://127.0.0.1/", "/v1/chat/completions")
PROTOCOLS = ("h2c", "websocket", "TLS/1.0", "anything", "h2c, websocket", "")
HIDDEN = f"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ATTACKER}\r\n\r\n".encode()
SOCKET = "dGhlIHNhbXBsZSBub25jZQ=="


def attack(arena: Arena) -> None:
    with listening() as upstream:
        upstream.answers(answering(Answer("It is cold.")))
        with arena.gateway(arena.config(upstream.port), warm=WIRES) as gateway:
            _connect(arena, gateway)
            _upgrade(arena, gateway, upstream)
            _pipelined(arena, gateway)


def _connect(arena: Arena, gateway: Gateway) -> None:
    tails = {
        "": b"",
        "with a body": b"",
        "with bytes after it": HIDDEN,
        "with an upgrade": b"",
        "with TLS after it": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    }
    paths = [question(wire).path.partition("?")[0] for wire in WIRES]
    for path in dict.fromkeys((*PATHS, *paths)):
        for name, tail in tails.items():
            more: dict[str, object] = {"content_length": 5} if name == "with a body" else {}
            more |= {"connection": "Upgrade", "upgrade": "h2c"} if name == "with an upgrade" else {}
            data = head(path, "CONNECT", "localhost", **more) + (b"hello" if more.get("content_length") else tail)
            with arena.attempt(gateway, f"CONNECT {path} {name}".strip()) as attempt:
                said = gateway.raw(data, 1.0)
                if re.match(rb"HTTP/1\.1 2\d\d ", said) and path not in ("/", "/health"):
                    attempt.got(f"a tunnel or an answer: {said[:60]!r}")


def _upgrade(arena: Arena, gateway: Gateway, upstream: ScriptedUpstream) -> None:
    """Ask for an upgrade with a body: it stays a body, and nothing in it is a request."""
    for wire in WIRES:
        asked = question(wire)
        good = json.dumps(asked.body).encode()
        for protocol in PROTOCOLS:
            for form in ("length", "hidden") if arena.quick else ("length", "chunks", "hidden", "pieces"):
                body = HIDDEN.ljust(200) if form == "hidden" else good
                wish: dict[str, object] = {"connection": "Upgrade, HTTP2-Settings, close", "upgrade": protocol}
                wish |= {"sec_websocket_key": SOCKET, "sec_websocket_version": 13, "http2_settings": "AAMAAABk"}
                wish["authorization"] = f"Bearer {ATTACKER}"
                if form == "chunks":
                    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
                    wish["transfer_encoding"] = "chunked"
                else:
                    wish["content_length"] = len(body)
                data = head(asked.path, "POST", "127.0.0.1", **wish) + body
                upstream.asked.clear()
                with arena.attempt(gateway, f"{wire}: Upgrade {protocol!r}, {form}") as attempt:
                    said = gateway.raw(data, 1.0, 9 if form == "pieces" else 1)
                    if b"HTTP/1.1 101" in said:
                        attempt.got("the protocol was switched")
                    if len(re.findall(rb"HTTP/1\.1 \d\d\d ", said)) > 1 or b'"object":"list"' in said:
                        attempt.got("a request inside a body was answered")
                    if len(upstream.asked) > 1:
                        attempt.got(f"{len(upstream.asked)} requests upstream")


def _pipelined(arena: Arena, gateway: Gateway) -> None:
    """Thousands of requests in one piece: handled one after the other, with no recursion."""
    count = PIPELINED // 10 if arena.quick else PIPELINED
    wish: dict[str, object] = {"connection": "Upgrade", "upgrade": "h2c"}
    kinds = {
        "CONNECT": head("/", "CONNECT", "localhost"),
        "Upgrade": head("/health", "GET", "localhost", **wish),
        "WebSocket": head("/v1/models", "GET", "localhost", connection="Upgrade", upgrade="websocket"),
        "Upgrade with a body": head("/health", "GET", "localhost", **wish, content_length=2) + b"{}",
        "plain": head("/health", "GET", "localhost"),
    }
    for name, one in kinds.items():
        with arena.attempt(gateway, f"{count} pipelined, {name}", count):
            gateway.raw(one * count, 5.0)
    for name in ("CONNECT", "Upgrade"):
        with arena.attempt(gateway, f"{count} pipelined, {name} and plain in turns", count):
            gateway.raw((kinds["plain"] + kinds[name]) * (count // 2), 5.0)

"""Secrets of the configuration that an upstream echoes: neither the client nor the log may see them."""

import base64
import json

from testkit.protocols import WIRES, question
from testkit.scripted_upstream import SSE, Asked, Script, listening
from tests.attack.arena import ATTACKER, Arena, Stage, bearer

HELD_BEFORE = False
CANARY, KEY = "canary-9f27e61b84", "sk-upstream-7f3a"
NAMES = ("x-sec", "x-team", "x-session", "cookie", "x-id")
HEADERS = f"headers = {{ {', '.join(f'{name} = {json.dumps(CANARY + name)}' for name in NAMES)} }}"


def _echo(asked: Asked) -> str:
    return " ".join(f"{name}: {value}" for name, value in asked.headers.items())


def _error(status: int) -> Script:
    async def script(asked: Asked) -> None:
        await asked.whole(status, json.dumps({"error": {"message": f"bad headers: {_echo(asked)}"}}).encode())

    return script


def _plain(status: int) -> Script:
    async def script(asked: Asked) -> None:
        await asked.whole(status, _echo(asked).encode(), "text/plain")

    return script


def _nested(status: int) -> Script:
    async def script(asked: Asked) -> None:
        await asked.whole(status, json.dumps({"error": {"details": [{"headers": asked.headers}]}}).encode())

    return script


def _header(status: int) -> Script:
    async def script(asked: Asked) -> None:
        pairs = [("x-echo", _echo(asked)[:2000]), ("x-request-id", asked.headers.get("x-sec", ""))]
        await asked.whole(status, b'{"error": {"message": "no"}}', headers=pairs)

    return script


async def _stream(asked: Asked) -> None:
    """Begin an answer, then break it off with an error that echoes."""
    asked.head(200, SSE)
    chunk = {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}]}
    await asked.chunk(f"data: {json.dumps(chunk)}\n\n".encode())
    await asked.chunk(f"data: {json.dumps({'error': {'message': _echo(asked)}})}\n\n".encode())
    await asked.end()


async def _no_json(asked: Asked) -> None:
    await asked.whole(200, f"<html>{_echo(asked)}</html>".encode(), "text/html")


SCRIPTS: dict[str, Script] = {
    **{f"an error {status}": _error(status) for status in (400, 401, 403, 404, 429, 500, 503)},
    **{f"a plain error {status}": _plain(status) for status in (400, 500)},
    **{f"a nested error {status}": _nested(status) for status in (400, 422)},
    "headers of an error": _header(400),
    "an error within a stream": _stream,
    "an answer that is no JSON": _no_json,
}


def attack(arena: Arena) -> None:
    with listening() as upstream:
        config = arena.config(upstream.port).replace("retries = 0\n", f"retries = 0\n{HEADERS}\n", 1)
        upstream.answers(_error(400))
        with arena.gateway(config, warm=WIRES) as gateway:
            stage = Stage(arena, gateway, upstream)
            for wire in WIRES:
                for name, script in SCRIPTS.items():
                    for stream in (False, True):
                        _try(stage, f"{wire}: {name}, stream {stream}", wire, script, stream)


def _try(stage: Stage, title: str, wire: str, script: Script, stream: bool) -> None:
    stage.upstream.answers(script)
    stage.gateway.new_log()
    asked = question(wire, stream=stream, model="fast")
    reply = stage.gateway.ask("POST", asked.path, asked.body, bearer(ATTACKER))
    if not stage.upstream.asked:
        raise AssertionError("the request did not reach the upstream: nothing was tried")
    seen = reply.body + str(reply.headers).encode()
    log = stage.gateway.new_log()
    effects: list[str] = []
    for place, data in (("the answer", seen), ("the log", log)):
        for what, secret in (("a configured header", CANARY), ("the upstream's key", KEY)):
            forms = (secret.encode(), base64.b64encode(secret.encode()).rstrip(b"="))
            if any(form in data for form in forms):
                effects.append(f"{what} in {place}")
    stage.arena.record(title, *effects)

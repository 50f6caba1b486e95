"""Keys: 33 paths × 11 headers × 12 values that are no key. No request may pass, and none may reach an upstream."""

import http.client

from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.attack.arena import ATTACKER, Arena, Gateway

HELD_BEFORE = True
GETS = (
    *("/v1/models", "/v1/models/m", "/v1beta/models", "/v1beta/models/m", "/api/tags", "/api/ps", "/api/version"),
    *("/v1/runs", "/v1/runs/x", "/v1/runs/x/events", "/models", "/v1/v1/models", "/v1/models/", "//v1/models"),
    *("/v1/./models", "/health/../v1/models", "/health%2f..%2fv1/models", "/v1/models?key=", "/metrics", "/admin"),
)
POSTS = (
    *("/v1/chat/completions", "/v1/responses", "/v1/responses/input_tokens", "/v1/messages"),
    *("/v1/messages/count_tokens", "/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent"),
    *("/v1beta/models/m:countTokens", "/api/chat", "/api/show", "/v1/runs", "/v1/runs/x/cancel", "/v1/runs/x/resume"),
)
HEADERS = (
    *("", "authorization", "x-api-key", "x-goog-api-key", "api-key", "proxy-authorization", "cookie"),
    *("x-forwarded-for", "x-real-ip", "x-toolspeak-tenant", "x-original-url"),
)
VALUES = (
    *("", "Bearer", "Bearer ", f"Bearer {ATTACKER[:-1]}", f"Bearer {ATTACKER}x", f"Bearer {ATTACKER.upper()}"),
    *(f"Basic {ATTACKER}", f"Token {ATTACKER}", "Bearer null", "Bearer sk-upstream-7f3a", "127.0.0.1", f"k={ATTACKER}"),
)
OPEN = ("/health",)


def attack(arena: Arena) -> None:
    with listening() as upstream:
        upstream.answers(answering(Answer("It is cold.")))
        more = "[runs]\nenabled = true\n"
        with arena.gateway(arena.config(upstream.port, more), warm=WIRES) as gateway:
            every = 10 if arena.quick else 1
            cases = [
                (method, path, header, value)
                for method, paths in (("GET", GETS), ("POST", POSTS))
                for path in paths
                for header in HEADERS
                for value in VALUES
            ]
            _try(arena, gateway, upstream, cases[::every])


def _try(arena: Arena, gateway: Gateway, upstream: ScriptedUpstream, cases: list[tuple[str, str, str, str]]) -> None:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "Hi"}], "task": "Go."}'
    upstream.answers(answering(Answer("It is cold.")))
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    for method, path, header, value in cases:
        before = len(upstream.asked)
        headers = {header: value} if header else {}
        if header in ("x-api-key", "x-goog-api-key", "api-key"):
            headers = {header: value.removeprefix("Bearer ")}
        data = body if method == "POST" else None
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            status = answer.status
            answer.read()
        except (http.client.HTTPException, OSError):
            connection.close()
            status = 0
        effect = f"status {status}" if 200 <= status < 300 else ""
        if len(upstream.asked) > before:
            effect = "it reached the upstream"
        arena.record(f"{method} {path} {header}: {value}", effect)
    connection.close()
    _check(question(WIRES[0]).path, gateway)


def _check(path: str, gateway: Gateway) -> None:
    """Check the control: the same request with a key passes."""
    body = {"model": "fast", "messages": [{"role": "user", "content": "Hi"}]}
    reply = gateway.ask("POST", path, body, {"authorization": f"Bearer {ATTACKER}"})
    if reply.status != 200:
        raise AssertionError(f"a right key does not pass: {reply.status} {reply.body[:200]!r}")

"""Pages in a browser: an origin that the configuration does not name gets no answer that it may read."""

from testkit.protocols import WIRES, answering, question
from testkit.scripted_upstream import listening
from testkit.vendor_answers import Answer
from tests.attack.arena import Arena, bearer

HELD_BEFORE = False
FOREIGN = (
    *("http://localhost:3000", "http://127.0.0.1:9999", "http://[::1]:8080", "https://localhost", "http://localhost"),
    *("http://localhost:1", "https://127.0.0.1:65535", "http://LOCALHOST:3000", "http://evil.example", "null"),
    *("http://localhost.evil.example", "http://127.0.0.1.nip.io", "http://localhost:3000@evil.example", "file://"),
    *("http://evil.example:4141", "http://0.0.0.0:4141", "chrome-extension://abc", "http://127.0.0.2:80"),
)


def attack(arena: Arena) -> None:
    with listening() as upstream:
        upstream.answers(answering(Answer("It is cold.")))
        for keyed in (True, False):
            keys = {} if keyed else {"keys": ""}
            with arena.gateway(arena.config(upstream.port, **keys), warm=WIRES) as gateway:
                for origin in FOREIGN:
                    for wire in WIRES:
                        asked = question(wire, model="fast")
                        for method in ("OPTIONS", "POST"):
                            headers = {"origin": origin, **(bearer() if keyed else {})}
                            if method == "OPTIONS":
                                headers |= {"access-control-request-method": "POST"}
                            upstream.asked.clear()
                            body = asked.body if method == "POST" else None
                            reply = gateway.ask(method, asked.path, body, headers)
                            allowed = reply.headers.get("access-control-allow-origin", "")
                            effect = f"allowed: {allowed}" if allowed else ""
                            if upstream.asked and not allowed:
                                effect = "it reached the upstream"
                            arena.record(f"{wire}: {method} from {origin}, keys {keyed}", effect)

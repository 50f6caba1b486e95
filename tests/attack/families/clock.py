"""The wall clock jumps while the gateway works: limits, streams and lists go on as before (libfaketime, from apt)."""

import json
import threading
import time
from pathlib import Path

from testkit.protocols import WIRES, question, sides
from testkit.scripted_upstream import listening
from tests.attack.arena import VICTIM, Arena, Gateway, bearer
from tests.attack.model import COLD

HELD_BEFORE = True
JUMPS = {
    "an hour ahead": "+3600",
    "an hour back": "-3600",
    "a day ahead": "+86400",
    "a year back": "-31536000",
    "to the year 2037": "+347000000",
    "to 1971": "-1700000000",
    "and is right again": "+0",
}
LIBRARY = "usr/lib/*/faketime/libfaketimeMT.so.1"
KEY = "sk-rated-11fe"
RATE = 30
COUNT = next(side for side in sides("anthropic") if side.path.endswith("count_tokens"))
"""A request that counts against the rate, and that no upstream is asked for; lists of models do not count."""
RATED = f'[[keys]]\ntenant = "rated"\nkey = "{KEY}"\nrequests_per_minute = {RATE}\n'


def attack(arena: Arena) -> None:
    found = sorted(Path("/").glob(LIBRARY))
    if not found:
        raise FileNotFoundError("libfaketime is not here: apt-get install faketime")
    folder = arena.fresh_folder()
    offset = folder / "offset"
    offset.write_text("+0\n")
    offset.chmod(0o644)
    env = {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    with listening(("good",)) as upstream:
        upstream.answers(COLD)
        config = arena.config(upstream.port, RATED)
        with arena.gateway(config, warm=WIRES, env=env, folder=folder) as gateway:
            for name, value in list(JUMPS.items())[:: 3 if arena.quick else 1]:
                offset.write_text(f"{value}\n")
                time.sleep(0.2)
                for wire in WIRES:
                    _serve(arena, gateway, wire, f"{wire}: the clock jumps {name}")
                _rate(arena, gateway, f"the rate limit, the clock jumps {name}")


def _serve(arena: Arena, gateway: Gateway, wire: str, title: str) -> None:
    with arena.attempt(gateway, title) as attempt:
        for endpoint in (question(wire, model="fast"), question(wire, stream=True, model="fast"), *sides(wire)[:1]):
            path, body = endpoint.path, json.loads(json.dumps(endpoint.body).replace('"m"', '"fast"'))
            reply = gateway.ask(endpoint.method, path.replace("/m:", "/fast:"), body, bearer(VICTIM))
            if reply.status != 200:
                attempt.got(f"{endpoint.path} answers {reply.status}: {reply.body[:100]!r}")


def _rate(arena: Arena, gateway: Gateway, title: str) -> None:
    """Use up a limit: a jump must not refill a bucket: all jumps together take less than a minute."""
    with arena.attempt(gateway, title) as attempt:
        statuses: list[int] = []

        def ask() -> None:
            statuses.append(gateway.ask("POST", COUNT.path, COUNT.body, bearer(KEY)).status)

        threads = [threading.Thread(target=ask) for _ in range(RATE * 2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        passed = statuses.count(200)
        if passed > RATE + 5:
            attempt.got(f"{passed} of {len(statuses)} requests passed a limit of {RATE} a minute")

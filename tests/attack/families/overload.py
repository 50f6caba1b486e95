"""One legal request at the size limit: 19 MB of schemas once stopped everyone for 23 seconds.

Each body goes out on each wire, natively or emulated in turns; the worst ones also four at a time. The client waits for
its answer, at most `PATIENCE_S`; a gateway that stalls is replaced, so that one body does not spoil the next figure.
"""

import http.client
import threading
import time
from collections import deque
from dataclasses import dataclass

from testkit.protocols import WIRES, answering
from testkit.scripted_upstream import listening
from testkit.vendor_answers import Answer
from tests.attack.arena import MEMORY_RATIO, Arena, Gateway, bearer, settled_mb
from tests.attack.bodies import BODIES, LIMIT, QUICK

HELD_BEFORE = False
PATIENCE_S, WINDOW_S = 5.0, 1.0
MODES = ("auto", "force")
AT_ONCE = 4
TOGETHER = ("schemas", "messages", "markers")


@dataclass(frozen=True)
class Case:
    body: str
    wire: str
    mode: str
    copies: int = 1

    @property
    def name(self) -> str:
        times = f"{self.copies} × " if self.copies > 1 else ""
        return f"{times}{self.body} on {self.wire}, mode {self.mode}"


def cases(*, brief: bool, quick: bool) -> list[Case]:
    names = QUICK if brief else tuple(BODIES)
    found = [
        Case(name, wire, MODES[(row + column) % 2])
        for row, name in enumerate(names)
        for column, wire in enumerate(WIRES)
    ]
    if quick:  # each body on one wire
        return found[:: len(WIRES) + 1]
    return found if brief else [*found, *(Case(name, "openai_chat", "auto", AT_ONCE) for name in TOGETHER)]


def attack(arena: Arena) -> None:
    left = deque(cases(brief=arena.brief, quick=arena.quick))
    with listening(("good",)) as upstream:
        upstream.answers(answering(Answer("It is cold.")))
        while left:
            with arena.gateway(arena.config(upstream.port), warm=WIRES) as gateway:
                while left and not gateway.abandoned:
                    _send(arena, gateway, left.popleft())
                    upstream.asked.clear()


def _send(arena: Arena, gateway: Gateway, case: Case) -> None:
    path, body = BODIES[case.body](case.wire)
    if len(body) > LIMIT:
        raise AssertionError(f"{case.name} has {len(body)} bytes")
    statuses: list[int] = []
    headers = {"content-type": "application/json", "x-toolspeak-mode": case.mode, **bearer()}
    with arena.attempt(gateway, case.name) as attempt:
        began = time.monotonic()
        clients = [
            threading.Thread(target=_post, args=(gateway.port, path, body, headers, statuses), daemon=True)
            for _ in range(case.copies)
        ]
        for client in clients:
            client.start()
        for client in clients:
            client.join(max(0.0, began + PATIENCE_S * case.copies - time.monotonic()))
        time.sleep(max(0.0, began + WINDOW_S - time.monotonic()))
        answered = len(statuses) == case.copies and all(statuses)
        if answered and (after := settled_mb(gateway)) > MEMORY_RATIO * gateway.before_mb:
            attempt.got(f"memory {gateway.before_mb:.0f} MB before, {after:.0f} MB after")
    refused = sum(status != 200 for status in statuses)
    arena.notes.append(f"{case.body}: {'refused' if refused else 'answered'}")
    gateway.abandoned = bool(attempt.effects) or not answered


def _post(port: int, path: str, body: bytes, headers: dict[str, str], statuses: list[int]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S * AT_ONCE)
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    except (OSError, http.client.HTTPException):
        statuses.append(0)
    finally:
        connection.close()

"""Runs on PostgreSQL with a real worker: the limit of live runs, other tenants' ids, a database that is away."""

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from uuid import uuid4

from testkit.postgres import postgres
from testkit.scripted_upstream import Asked, hang, listening
from tests.attack.arena import ATTACKER, VICTIM, Arena, Gateway, bearer
from tests.attack.model import COLD
from tests.attack.proxy import Proxy
from tests.gateway.scene import Reply

HELD_BEFORE = False
LIVE, POSTS = 20, 60
ANSWERS_S, BACK_S = 15.0, 15.0
OFFER = f"""
[runs]
enabled = true
tools = ["files"]
live = {LIVE}
lease = 2.0
"""
TASK: dict[str, object] = {"task": "Wait.", "tools": [], "model": "up:good"}


async def _wait(asked: Asked) -> None:
    """Let runs last; the warm-up gets its answers."""
    await (hang if b"Wait." in asked.body else COLD)(asked)


def attack(arena: Arena) -> None:
    rounds = 1 if arena.brief else 3
    with listening(("good",)) as upstream:
        upstream.answers(_wait)
        if not arena.quick:
            with arena.gateway(arena.config(upstream.port, OFFER)) as gateway:  # runs in the gateway's own memory
                _many(arena, gateway, "in memory", rounds)
                _again(arena, gateway, "in memory", lambda: None)
        with postgres() as url:
            database = Proxy(int(url.rpartition(":")[2].partition("/")[0]))
            offer = OFFER + f'database = "postgresql://runs@127.0.0.1:{database.port}/postgres"\n'
            config = arena.config(upstream.port, offer)
            folder = arena.fresh_folder()
            with arena.gateway(config, folder=folder) as gateway:
                _many(arena, gateway, "on PostgreSQL", rounds)
                _oracle(arena, gateway)
                with _worker(arena, folder) as work:
                    _again(arena, gateway, "on PostgreSQL", lambda: work(gateway))
                _away(arena, gateway, database)
            if not arena.quick:
                _two_gateways(arena, config, rounds)


@contextlib.contextmanager
def _worker(arena: Arena, folder: Path) -> Generator[Callable[[Gateway], None]]:
    """Run `toolspeak worker` with the gateway's configuration."""
    words = arena.target.words(
        arena.who, "worker", "--config", str(folder / "toolspeak.toml"), "--quiet", env=arena.environ(folder)
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLSPEAK", "PYTHON"))}
    with (folder / "worker").open("wb") as log:
        process = subprocess.Popen(words, cwd=folder, env=environ, stdout=log, stderr=log)
    try:
        yield lambda _: time.sleep(1.0)
    finally:
        process.kill()
        process.wait()
        if b"Traceback" in (folder / "worker").read_bytes():
            arena.missed.append("a traceback in the worker's log")


def _start(gateway: Gateway, key: str = ATTACKER, **more: str) -> Reply:
    return gateway.ask("POST", "/v1/runs", {**TASK, **more}, bearer(key))


def _live(gateway: Gateway, key: str = ATTACKER) -> list[str]:
    found: list[str] = []
    for status in ("running", "waiting"):
        reply = gateway.ask("GET", f"/v1/runs?status={status}&limit=1000", None, bearer(key))
        found += [each["id"] for each in reply.json["data"]] if reply.status == 200 else []
    return found


def _end(gateway: Gateway, ids: list[str], key: str = ATTACKER) -> None:
    with ThreadPoolExecutor(10) as pool:
        list(
            pool.map(
                gateway.ask,
                repeat("POST"),
                [f"/v1/runs/{id}/cancel" for id in ids],
                repeat(dict[str, str]()),
                repeat(bearer(key)),
            )
        )


def _many(arena: Arena, gateway: Gateway, where: str, rounds: int) -> None:
    """60 starts at the same moment."""
    for number in range(rounds):
        with arena.attempt(gateway, f"{POSTS} starts at once {where}, round {number}") as attempt:
            with ThreadPoolExecutor(POSTS) as pool:
                replies = list(pool.map(_start, repeat(gateway, POSTS)))
            begun, live = sum(reply.status == 201 for reply in replies), len(_live(gateway))
            odd = {reply.status for reply in replies} - {201, 429, 503}
            if begun > LIVE or live > LIVE:
                attempt.got(f"{begun} runs were started, {live} are live; the limit is {LIVE}")
            if odd:
                attempt.got(f"statuses {odd}")
        _end(gateway, _live(gateway))


def _two_gateways(arena: Arena, config: str, rounds: int) -> None:
    """Start runs at two processes: the limit holds across them."""
    with arena.gateway(config) as one, arena.gateway(config, watched=False) as other:
        for number in range(rounds):
            with arena.attempt(one, f"{POSTS} starts at once at two gateways, round {number}") as attempt:
                with ThreadPoolExecutor(POSTS) as pool:
                    replies = list(pool.map(_start, [one, other] * (POSTS // 2)))
                begun = sum(reply.status == 201 for reply in replies)
                if begun > LIVE:
                    attempt.got(f"{begun} runs were started; the limit is {LIVE}")
            _end(one, _live(one))


def _again(arena: Arena, gateway: Gateway, where: str, work: Callable[[], None]) -> None:
    """Cancel 20, start 20, resume the first 20."""
    with arena.attempt(gateway, f"cancel, start, resume {where}") as attempt:
        first = [reply.json["id"] for reply in (_start(gateway) for _ in range(LIVE)) if reply.status == 201]
        work()
        _end(gateway, first)
        time.sleep(0.5)
        for _ in range(LIVE):
            _start(gateway)
        work()
        for id in first:
            gateway.ask("POST", f"/v1/runs/{id}/resume", {}, bearer())
        time.sleep(0.3)
        if len(live := _live(gateway)) > LIVE:
            attempt.got(f"{len(live)} runs are live; the limit is {LIVE}")
    _end(gateway, _live(gateway))


def _oracle(arena: Arena, gateway: Gateway) -> None:
    """Another tenant's run is as unknown as one that does not exist: status and words are the same."""
    for number in range(2 if arena.quick else 10):
        theirs, free = f"theirs-{uuid4().hex[:8]}", f"vacant-{uuid4().hex[:8]}"
        _start(gateway, VICTIM, id=theirs)
        for method, path in (("GET", ""), ("GET", "/events"), ("POST", "/cancel"), ("POST", "/resume")):
            body = dict[str, str]() if method == "POST" else None
            taken = gateway.ask(method, f"/v1/runs/{theirs}{path}", body, bearer())
            missing = gateway.ask(method, f"/v1/runs/{free}{path}", body, bearer())
            same = _said(taken, theirs) == _said(missing, free)
            arena.record(f"{method} {path} of another tenant's run {number}", "" if same else "the answers differ")
        taken, missing = _start(gateway, id=theirs), _start(gateway, id=free)
        same = taken.status == missing.status
        told = f"a taken id answers {taken.status}, a free one {missing.status}"
        arena.record(f"start with another tenant's id {number}", "" if same else told)
        _end(gateway, [theirs], VICTIM)
    _end(gateway, _live(gateway))


def _said(reply: Reply, id: str) -> tuple[int, bytes]:
    return reply.status, re.sub(rb"[0-9a-f]{16,}", b"", reply.body.replace(id.encode(), b"ID"))


def _away(arena: Arena, gateway: Gateway, database: Proxy) -> None:
    """PostgreSQL is away: 503 and when to ask again, one line in the log; and all is well when it is back."""
    for how in ("away",) if arena.quick else ("away", "silent"):
        if how == "away":
            database.away()
        else:
            database.silence()
        _refusals(arena, gateway, how)
        if how == "away":
            database.back()
        else:
            database.silence(silent=False)
            database.cut()
        with arena.attempt(gateway, f"PostgreSQL was {how} and is back") as attempt:
            end = time.monotonic() + BACK_S
            while (reply := gateway.ask("GET", "/v1/runs", None, bearer())).status != 200 and time.monotonic() < end:
                time.sleep(0.25)
            if reply.status != 200:
                attempt.got(f"status {reply.status} {BACK_S:g} s after it is back")


def _refusals(arena: Arena, gateway: Gateway, how: str) -> None:
    nothing = dict[str, object]()
    asks = (
        ("POST", "", TASK),
        ("GET", "", None),
        ("GET", "/x", None),
        ("POST", "/x/cancel", nothing),
        ("POST", "/x/resume", nothing),
    )
    for method, path, body in asks if how == "away" else asks[:2]:
        with arena.attempt(gateway, f"{method} /v1/runs{path} while PostgreSQL is {how}") as attempt:
            reply = gateway.ask(method, f"/v1/runs{path}", body, bearer(), seconds=ANSWERS_S)
            if reply.status != 503 or "retry-after" not in reply.headers:
                attempt.got(f"status {reply.status}, retry-after {reply.headers.get('retry-after')}")

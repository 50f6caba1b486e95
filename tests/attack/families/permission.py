"""A key that may use the alias `fast` alone: no spelling of a name may lead to another model or another upstream."""

import json
from dataclasses import replace
from urllib.parse import quote

from testkit.protocols import WIRES, Endpoint, answering, question, sides
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.attack.arena import LIMITED, Arena, Gateway, Stage, bearer

HELD_BEFORE = False
NAMES = (
    *("gem:fast", "gem/fast", "up:fast", "up/fast", "gem:good", "up:good", "up/good", "up:secret", "gem:secret"),
    *("good", "secret", "FAST", "Fast", "fast:latest", "gem:fast:latest", "up:fast:latest", "good:latest"),
    *("fast ", " fast", "fast\u200b", "f\u0430st", "ｆａｓｔ", "fast\0", "fast\n", "fast,secret", "fast;secret"),
    *("gem%3Afast", "gem%2Ffast", "GEM:fast", "Gem:Fast", "gem::fast", "gem:/fast", "gem: fast", ":fast", "/fast"),
    *("models/fast", "models/gem:fast", "models/up:secret", "../fast", "gem/../fast", "up:gem:fast", "gem:up:fast"),
    *("*", "f*", "fast*", "[f]ast", "", "unheard-of", "fast|secret"),
)
MODELS = ("fast", "good", "secret", "a")
GEM = """
[upstreams.gem]
url = "http://127.0.0.1:PORT/v1beta"
wire = "gemini"
key = "sk-gem-5e21"
retries = 0
[runs]
enabled = true
tools = ["files"]
"""


def attack(arena: Arena) -> None:
    with listening(MODELS) as upstream, listening(MODELS) as gem:
        for each in (upstream, gem):
            each.answers(answering(Answer("It is cold.")))
        config = arena.config(upstream.port, GEM.replace("PORT", str(gem.port)))
        with arena.gateway(config, warm=WIRES) as gateway:
            stage = Stage(arena, gateway, upstream)
            names = NAMES[::4] if arena.quick else NAMES
            for wire in WIRES:
                for name in names:
                    for endpoint in _endpoints(wire, name):
                        _try(stage, gem, endpoint, name)
            for name in names:
                run = Endpoint("runs", "POST", "/v1/runs", {"task": "Go.", "model": name, "tools": []})
                _try(stage, gem, run, name)
            _lists(arena, gateway)


def _endpoints(wire: str, name: str) -> list[Endpoint]:
    """Return everything of a wire that takes a model's name."""
    in_path = quote(name, safe=":/%*") if wire == "gemini" else name
    found = [question(wire, stream=stream, model=in_path) for stream in (False, True)]
    for side in sides(wire):
        if side.body is not None and "model" in side.body:
            found.append(replace(side, body={**side.body, "model": name}))
        elif side.path.endswith("/m") or "/m:" in side.path:
            spelled = quote(name, safe=":/%*")
            path = side.path.replace("/models/m", f"/models/{spelled}")
            body = json.loads(json.dumps(side.body).replace('"models/m"', json.dumps(f"models/{name}")))
            found.append(replace(side, path=path, body=body))
    return found


def _try(stage: Stage, gem: ScriptedUpstream, endpoint: Endpoint, name: str) -> None:
    stage.upstream.asked.clear()
    gem.asked.clear()
    reply = stage.gateway.ask(endpoint.method, endpoint.path, endpoint.body, {**endpoint.headers, **bearer(LIMITED)})
    effects = [f"gem was asked for {asked.path[:80]}" for asked in gem.asked]
    effects += [
        f"up was asked for {asked.json.get('model')!r}" for asked in stage.upstream.asked if not _is_good(asked.body)
    ]
    if not effects and 200 <= reply.status < 300 and endpoint.wire == "runs":
        model = str(reply.json.get("model", ""))
        effects += [f"a run with the model {model!r}"] if model not in ("", "fast", "fast:latest", "up:good") else []
    if reply.status == 200 and b"secret" in reply.body and "secret" not in name:
        effects.append("the name of a model that is not permitted")
    stage.arena.record(f"{endpoint.wire} {endpoint.method} {endpoint.path[:60]} {name!r}", *effects)


def _is_good(body: bytes) -> bool:
    return json.loads(body or b"{}").get("model") == "good"


def _lists(arena: Arena, gateway: Gateway) -> None:
    """Read the lists: they name what the key may use, and nothing else."""
    for wire in WIRES:
        for side in sides(wire):
            if side.method == "GET" and side.path.endswith(("/models", "/tags", "/ps")):
                reply = gateway.ask(side.method, side.path, None, {**side.headers, **bearer(LIMITED)})
                shown = [name for name in ("secret", "good", "steady", "gem") if f'"{name}' in reply.body.decode()]
                shown += [name for name in ("secret", "good") if f"models/{name}" in reply.body.decode()]
                arena.record(f"{wire}: GET {side.path}", f"it lists {shown}" if shown else "")

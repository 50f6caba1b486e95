"""Facts about models are shared by tenants: no client may change what another one gets."""

import json
import time

from testkit.protocols import WIRES, question
from testkit.scripted_upstream import Asked, Script, ScriptedUpstream, listening
from testkit.vendor_answers import WHOLES, Answer
from tests.attack.arena import ATTACKER, VICTIM, Arena, Stage, bearer
from tests.attack.model import COLD, speaks

HELD_BEFORE = False
PHRASES = (
    "this does not support tools",
    "model does not support tools",
    "tool calling is not supported",
    "tools are not supported by this model",
    "does not support function calling",
    "does not support parameters: ['tools']",
    '"auto" tool choice requires --enable-auto-tool-choice',
)
FIELDS = ("user", "messages", "tool", "metadata", "unknown")
INVENTED, MOST_EACH, QUIET_S = 4, 3, 1.6
"""Probes come in the background, with pauses of about a second, and a few at a time: the names come one by one."""
CALL = Answer(calls=(("call_1", "get_weather", {"city": "Oslo"}),))


def attack(arena: Arena) -> None:
    phrases, fields = (PHRASES[:2], FIELDS[:2]) if arena.quick else (PHRASES, FIELDS)
    with listening(tuple(f"m{number}" for number in range(600))) as upstream:
        upstream.answers(COLD)
        with arena.gateway(arena.config(upstream.port), warm=WIRES) as gateway:
            number, stage = 0, Stage(arena, gateway, upstream)
            for wire in WIRES:
                for phrase in phrases:
                    for field in fields:
                        _echo(stage, wire, f"m{number}", phrase, field)
                        number += 1
                for turns in (1, 2, 3, 5):
                    _empty(stage, wire, f"m{number}", turns)
                    number += 1
        probing = arena.config(upstream.port).replace('probe = "off"', 'probe = "full"')
        with arena.gateway(probing, warm=WIRES) as gateway:
            for wire in WIRES[:1] if arena.quick else WIRES:
                _invented(Stage(arena, gateway, upstream), wire)


def _poisoned(wire: str, phrase: str, field: str, model: str) -> tuple[str, object]:
    """Write a request that carries the phrase in one of its fields."""
    asked = question(wire, model=model)
    body = json.loads(json.dumps(asked.body))
    if field == "messages":
        body = json.loads(json.dumps(body).replace("How is the weather?", json.dumps(phrase)[1:-1]))
    elif field == "tool":
        body = json.loads(json.dumps(body).replace('"description": "d"', f'"description": {json.dumps(phrase)}'))
    else:
        body[{"unknown": "x_note"}.get(field, field)] = {"note": phrase} if field == "metadata" else phrase
    return asked.path, body


def _echoing(phrase: str) -> Script:
    """Answer with an error that repeats what the client sent, as servers do that validate their input."""

    async def script(asked: Asked) -> None:
        said = phrase if phrase in asked.body.decode() or json.dumps(phrase)[1:-1] in asked.body.decode() else "field"
        body = {"error": {"message": f"invalid value: {said}", "type": "invalid_request_error", "code": None}}
        await asked.whole(400, json.dumps(body).encode())

    return script


def _echo(stage: Stage, wire: str, model: str, phrase: str, field: str) -> None:
    stage.upstream.answers(_echoing(phrase))
    path, body = _poisoned(wire, phrase, field, f"up:{model}")
    for _ in range(2):
        stage.gateway.ask("POST", path, body, bearer(ATTACKER))
    if not stage.upstream.asked:
        raise AssertionError("the poisoned request did not reach the upstream: nothing was tried")
    stage.arena.record(f"{wire}: {phrase!r} in {field}", _changed(stage, model))


def _empty(stage: Stage, wire: str, model: str, turns: int) -> None:
    """Let the model answer with nothing, which a client can ask it to do."""
    stage.upstream.answers(_nothing)
    asked = question(wire, model=f"up:{model}")
    for _ in range(turns):
        stage.gateway.ask("POST", asked.path, asked.body, bearer(ATTACKER))
    stage.arena.record(f"{wire}: {turns} turns with empty answers", _changed(stage, model))


async def _nothing(asked: Asked) -> None:
    if asked.json.get("stream"):
        await speaks(Answer(""))(asked)
    else:
        await asked.whole(200, json.dumps(WHOLES["openai_chat"](Answer(""))).encode())


def _changed(stage: Stage, model: str) -> str:
    """Ask as another tenant; its request must go out natively, with its tools."""
    stage.upstream.answers(speaks(CALL))
    asked = question("openai_chat", model=f"up:{model}")
    reply = stage.gateway.ask("POST", asked.path, asked.body, bearer(VICTIM))
    plan = reply.headers.get("x-toolspeak-plan", "")
    native = bool(stage.upstream.asked) and "tools" in stage.upstream.asked[0].json
    return "" if native else f"the next tenant's plan is {plan[:60]!r}, its tools were not sent"


def _invented(stage: Stage, wire: str) -> None:
    """Ask for names that no upstream lists: each costs the upstream no more than the request itself."""
    for number in range(INVENTED):
        stage.upstream.answers(COLD)
        asked = question(wire, model=f"up:invented-{wire}-{number}")
        stage.gateway.ask("POST", asked.path, asked.body, bearer(ATTACKER))
        made = _settled(stage.upstream)
        effect = f"{made} requests upstream for one name" if made > MOST_EACH else ""
        stage.arena.record(f"{wire}: the invented name {number}", effect)


def _settled(upstream: ScriptedUpstream) -> int:
    """Return how many requests came, when no more come or there are too many already."""
    made, since = -1, time.monotonic()
    while time.monotonic() < since + QUIET_S and made <= MOST_EACH:
        if (now := len(upstream.asked) + len(upstream.listings)) != made:
            made, since = now, time.monotonic()
        time.sleep(0.05)
    return made

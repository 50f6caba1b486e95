"""What a run is asked to do, as JSON: any process that has it can work on it, after a crash as well."""

from dataclasses import fields
from typing import TypeVar

import msgspec
from msgspec import Struct

from toolspeak.agent.tools.toolbox import OUTPUT
from toolspeak.config.shape import Approval
from toolspeak.engine.agent import ROUNDS
from toolspeak.engine.plan import Settings
from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject
from toolspeak.ir.request import Sampling

Described = TypeVar("Described", Settings, Sampling)


class Spec(Struct, frozen=True, omit_defaults=True):
    """A run's beginning. What is not said is left to the configuration of whoever works on it."""

    task: str
    model: str = ""
    system: str = ""
    tools: tuple[str, ...] = ("files", "shell", "final_output")
    """Names of built-in tools, `mcp:NAME` for a server of the configuration, `module:attribute` for functions."""
    folder: str = ""
    """The one folder that the run's tools may change; empty: a fresh one of its own."""
    approval: Approval = Approval.ASK
    rounds: int = ROUNDS
    output: int = OUTPUT
    history: tuple[JsonObject, ...] = ()
    """Messages that came before, each as `engine.journal.compact_json` writes it."""
    settings: JsonObject = {}
    """What is said about tool calling (`engine.plan.Settings`), by name."""
    sampling: JsonObject = {}
    """How the model is to write (`ir.request.Sampling`), by name: `max_tokens`, `temperature` …"""
    tenant: str = ""


def encode_spec(spec: Spec) -> str:
    """Write a spec as JSON; fields with their default are left out."""
    return msgspec.json.encode(spec).decode()


def decode_spec(text: str) -> Spec:
    """Read what `encode_spec` wrote."""
    fields = msgspec.json.decode(text)  # by hand: msgspec cannot resolve the recursive type of JSON values
    for name in ("tools", "history"):
        if name in fields:
            fields[name] = tuple(fields[name])
    if "approval" in fields:
        fields["approval"] = Approval(fields["approval"])
    return Spec(**fields)


def read_described(kind: type[Described], said: JsonObject, field: str) -> Described:
    """Read what a spec says by name; what is unknown or does not fit names its field."""
    known = [each.name for each in fields(kind)]
    for name in said:
        if name not in known:
            raise BadField(f"{field}.{name}", f"there is no such thing to say; known are {', '.join(known)}")
    try:
        return msgspec.convert(said, kind)
    except msgspec.MsgspecError as error:
        raise misfit(error, field) from None


def misfit(error: msgspec.MsgspecError, field: str = "") -> BadField:
    """Return what does not fit, and where below a field."""
    problem, _, path = str(error).partition(" - at `$")
    return BadField(f"{field}{path.strip('`')}".strip("."), problem)

"""A run as its users see it: what it is asked to do, its state, and the operations on it. All of it has a JSON form.

The command line, the gateway and MCP know `Runs` and nothing else of the agent. A `Spec` is JSON, so any process that
has it can work on the run, also after a crash.
"""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, fields
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from toolspeak.agent.runs.events import RunEvent
from toolspeak.agent.tools.toolbox import OUTPUT
from toolspeak.config.shape import Approval
from toolspeak.engine.agent import ROUNDS, Status
from toolspeak.engine.journal import compact_json
from toolspeak.engine.plan import Settings
from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Message, Role, Text
from toolspeak.ir.request import Sampling
from toolspeak.ir.round import Compact
from toolspeak.wires.message_export import export_messages

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


# ---------------------------------------------------------------- operations


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def checked_id(id: str) -> str:
    """Return an id that somebody chose; it stands in paths of files and URLs."""
    if _ID.fullmatch(id):
        return id
    raise BadField("id", f"{id[:80]!r} is not 1 to 128 letters, digits and . _ -, the first a letter or digit")


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in a list. Times are seconds since 1970; `ended` is 0 while it goes on."""

    id: str
    task: str
    status: Status
    model: str
    began: float
    ended: float = 0.0
    rounds: int = 0
    tenant: str = ""
    name: str = ""
    """The id that its tenant knows it by: unique within the tenant. Equal to `id` for a run without a tenant."""


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as it stands: what it was asked, its rounds so far, its final text, the calls that wait for a word."""

    line: RunSummary
    spec: Spec
    kept: Compact
    reason: str = ""
    asked: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class NumberedEvent:
    """An event and its number: who lost the line asks for those after it."""

    number: int
    event: RunEvent


class Runs(Protocol):
    """Keeps runs. A run that nobody knows is `UnknownRun`."""

    async def start(self, spec: Spec, id: str = "", live: int | None = None) -> str:
        """Start a run and return its id; a chosen id that the tenant has used already starts nothing.

        A tenant's chosen id becomes the run's `name`: ids are shared by all tenants, so the run itself gets a random
        one, and no tenant can learn which names others use. Raises `TooManyRuns` if the tenant would then have more
        than `live` live runs. The count and the insert are atomic, across all processes that share a database.
        """
        ...

    async def find(self, name: str, tenant: str = "") -> str:
        """Return the id of the run that a tenant knows by this name; without a tenant, names are ids."""
        ...

    async def show(self, id: str) -> RunView:
        """Return a run as it stands."""
        ...

    async def list(self, limit: int = 50, status: Status | None = None, tenant: str = "") -> list[RunSummary]:
        """Return the latest runs, the newest first."""
        ...

    def events(self, id: str, after: int = -1) -> AsyncIterator[NumberedEvent]:
        """Give the events behind a number, those to come as well; the last one is `RunEnded`."""
        ...

    async def cancel(self, id: str) -> None:
        """Stop a run; its rounds are kept."""
        ...

    async def resume(self, id: str, live: int | None = None) -> None:
        """Go on with a run that was cancelled or failed, from where it stood; `live` limits as in `start`."""
        ...

    async def approve(self, id: str, call_id: str, *, allowed: bool, reason: str = "") -> None:
        """Give a person's word on a call that waits for it."""
        ...

    async def close(self) -> None:
        """Let go of everything; runs go on elsewhere or later."""
        ...


# ---------------------------------------------------------------- JSON


def line_json(line: RunSummary) -> JsonObject:
    """Write a run in a list; `ended` is null while it goes on."""
    return {
        "id": line.id,
        "object": "run",
        "status": line.status.value,
        "task": line.task,
        "model": line.model,
        "rounds": line.rounds,
        "began": round(line.began, 3),
        "ended": round(line.ended, 3) or None,
    }


def view_json(view: RunView) -> JsonObject:
    """Write a run with all that is kept of it."""
    return {
        **line_json(view.line),
        "reason": view.reason,
        "text": "".join(part.text for part in view.kept.message.parts if isinstance(part, Text)),
        "asked": [_call(call) for call in view.asked],
        "spec": msgspec.to_builtins(view.spec),
        "message": compact_json(view.kept),
    }


def messages_json(view: RunView, form: str) -> JsonObject:
    """Write a run's messages out, as a vendor has them (RUN-2): what was asked, the rounds, the text."""
    asked = Compact(Message(Role.USER, (Text(view.spec.task),)))
    return {"messages": [*export_messages((asked, view.kept), form)]}


def event_json(each: NumberedEvent) -> JsonObject:
    """Write an event with its number."""
    return {"number": each.number, **msgspec.to_builtins(each.event)}


def _call(call: Call) -> JsonObject:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}

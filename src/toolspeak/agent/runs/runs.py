"""The interface of runs: the spec of a run, its state, and the operations on it. All of it has a JSON form.

The command line, the gateway and MCP use `Runs` and nothing else of the agent. A `Spec` is JSON, so any process that
has it can execute the run, also after a crash.

`export_messages` writes stored messages in the formats of three vendors, in the order in which everything was said
(RUN-2), to move a conversation to another program. Requests to upstreams are not written here: each wire also merges
and repairs what its vendor rejects.

                           openai                   anthropic                gemini
    text before calls      assistant, content       assistant, content       model, text
    the calls              assistant, tool_calls    assistant, tool_use      model, functionCall
    their results          tool, a message each     user, tool_result        function, functionResponse
    the final text         assistant, content       assistant, content       model, text
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Final, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace as replace_fields

from toolspeak.agent.runs.events import RunEvent
from toolspeak.agent.tools.toolbox import OUTPUT
from toolspeak.config.shape import Approval
from toolspeak.engine.agent import ROUNDS, Status
from toolspeak.engine.journal import compact_json
from toolspeak.engine.settings import Settings
from toolspeak.errors import BadField, BadRequest
from toolspeak.ir.event import Usage
from toolspeak.ir.json import Json, JsonObject, as_object
from toolspeak.ir.message import Call, Message, Reasoning, Role, Text
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.round import Compact, Round, expand
from toolspeak.wires.anthropic import request_writer as anthropic
from toolspeak.wires.anthropic.request_writer import MessageWriter as AnthropicWriter
from toolspeak.wires.gemini import request_writer as gemini
from toolspeak.wires.gemini.request_writer import Contents
from toolspeak.wires.openai_chat import request_writer as openai_chat
from toolspeak.wires.shared.history import link_history
from toolspeak.wires.shared.json_body import dump_body, parse_body

Described = TypeVar("Described", Settings, Sampling)


class Spec(Struct, frozen=True, omit_defaults=True):
    """The description of a run. An empty field is filled from the configuration of the process that executes it."""

    task: str
    model: str = ""
    system: str = ""
    tools: tuple[str, ...] = ("files", "shell", "final_output")
    """Names of built-in tools, `mcp:NAME` for a configured server, `module:attribute` for functions."""
    folder: str = ""
    """The one folder that the run's tools may change; empty: a new folder of its own."""
    approval: Approval = Approval.ASK
    rounds: int = ROUNDS
    output: int = OUTPUT
    history: tuple[JsonObject, ...] = ()
    """Earlier messages, each in the form of `engine.journal.compact_json`."""
    settings: JsonObject = {}
    """Settings of tool calling by name; see `engine.settings.Settings`."""
    sampling: JsonObject = {}
    """Sampling parameters by name, such as `max_tokens` and `temperature`; see `ir.request.Sampling`."""
    tenant: str = ""
    agent_prompt: bool = True
    """Whether the system prompt begins with how an agent works; `system` follows it."""
    continues: str = ""
    """The run that this one continues, by the name that its tenant knows; its conversation is in `history`."""
    folder_of: str = ""
    """The id of the run whose own folder this one works in, if `folder` is empty; empty: its own."""


def encode_spec(spec: Spec) -> str:
    """Return the spec as JSON. Fields with their default value are left out."""
    return msgspec.json.encode(spec).decode()


def decode_spec(text: str) -> Spec:
    """Return the spec from the JSON of `encode_spec`."""
    fields = msgspec.json.decode(text)  # untyped: msgspec cannot resolve the recursive type of JSON values
    for name in ("tools", "history"):
        if name in fields:
            fields[name] = tuple(fields[name])
    if "approval" in fields:
        fields["approval"] = Approval(fields["approval"])
    return Spec(**fields)


def continued(view: "RunView", task: str) -> Spec:
    """Return the spec of a run that continues an ended one: with its conversation, model, tools, folder and settings.

    Raises `BadRequest` if the run has not ended.
    """
    line, spec = view.line, view.spec
    name = line.name or line.id
    if line.status in (Status.RUNNING, Status.WAITING):
        raise BadRequest(f"run {name} is {line.status}: wait until it ends, or cancel it")
    said = [Compact(Message(Role.USER, (Text(spec.task),)))]
    if view.kept.rounds or view.kept.message.parts:  # a run that failed at once has said nothing
        said.append(view.kept)
    return replace_fields(
        spec,
        task=task,
        history=(*spec.history, *map(compact_json, said)),
        continues=name,
        folder_of="" if spec.folder else spec.folder_of or line.id,
    )


def read_described(kind: type[Described], said: JsonObject, field: str) -> Described:
    """Convert named values of a spec. Raises `BadField` with the path of an unknown or unsuitable one."""
    known = [each.name for each in fields(kind)]
    for name in said:
        if name not in known:
            raise BadField(f"{field}.{name}", f"there is no such thing to say; known are {', '.join(known)}")
    try:
        return msgspec.convert(said, kind)
    except msgspec.MsgspecError as error:
        raise misfit(error, field) from None


def misfit(error: msgspec.MsgspecError, field: str = "") -> BadField:
    """Return msgspec's error as `BadField`, with its path below `field`."""
    problem, _, path = str(error).partition(" - at `$")
    return BadField(f"{field}{path.strip('`')}".strip("."), problem)


# ---------------------------------------------------------------- operations


# The first character excludes `.` and `..`, and names that a command would read as an option.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def checked_id(id: str) -> str:
    """Return a chosen id if it is safe in file paths and URLs. Raises `BadField`."""
    if _ID.fullmatch(id):
        return id
    raise BadField("id", f"{id[:80]!r} is not 1 to 128 letters, digits and . _ -, the first a letter or digit")


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in a list. Times are seconds since 1970; `ended` is 0 while the run is live."""

    id: str
    task: str
    status: Status
    model: str
    began: float
    ended: float = 0.0
    rounds: int = 0
    tenant: str = ""
    name: str = ""
    """The id that its tenant knows it by; unique within the tenant. Equal to `id` for a run without a tenant."""
    usage: Usage | None = None
    """The tokens of its turns so far; None in a list of durable runs, whose steps a list does not read."""


@dataclass(frozen=True, slots=True)
class RunView:
    """The present state of a run: its spec, its rounds and text so far, and the calls that wait for approval."""

    line: RunSummary
    spec: Spec
    kept: Compact
    reason: str = ""
    asked: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class NumberedEvent:
    """An event and its number. A client that was disconnected asks for the events after the last number it has."""

    number: int
    event: RunEvent


class Runs(Protocol):
    """Operations on runs. An unknown run raises `UnknownRun`."""

    async def start(self, spec: Spec, id: str = "", live: int | None = None) -> str:
        """Start a run and return its id. With an id that the tenant has used already, return that run instead.

        A tenant's chosen id becomes the run's `name`: ids are shared by all tenants, so the run itself gets a random
        one, and no tenant can learn which names others use. Raises `TooManyRuns` if the tenant would then have more
        than `live` live runs. The count and the insert are atomic, across all processes that share a database.
        """
        ...

    async def find(self, name: str, tenant: str = "") -> str:
        """Return the id of the run that a tenant knows by this name. Without a tenant, names are ids."""
        ...

    async def show(self, id: str) -> RunView:
        """Return the present state of a run."""
        ...

    async def list(self, limit: int = 50, status: Status | None = None, tenant: str = "") -> list[RunSummary]:
        """Return the latest runs, newest first."""
        ...

    def events(self, id: str, after: int = -1) -> AsyncIterator[NumberedEvent]:
        """Yield the events after a number, then new ones as they come. The last one is `RunEnded`."""
        ...

    async def cancel(self, id: str) -> None:
        """Stop a run; its rounds are kept."""
        ...

    async def resume(self, id: str, live: int | None = None) -> None:
        """Continue a cancelled or failed run from its last stored step. `live` is a limit as in `start`."""
        ...

    async def approve(self, id: str, call_id: str, *, allowed: bool, reason: str = "") -> None:
        """Answer a call that waits for a person's approval."""
        ...

    async def close(self) -> None:
        """Release all resources. Durable runs continue elsewhere or later."""
        ...


# ---------------------------------------------------------------- JSON


def line_json(line: RunSummary) -> JsonObject:
    """Return the JSON of a run in a list; `ended` is null while the run is live."""
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
    """Return the JSON of a run with everything that is stored of it."""
    return {
        **line_json(view.line),
        "reason": view.reason,
        "text": "".join(part.text for part in view.kept.message.parts if isinstance(part, Text)),
        "asked": [_call(call) for call in view.asked],
        "spec": msgspec.to_builtins(view.spec),
        "message": compact_json(view.kept),
    }


def messages_json(view: RunView, form: str) -> JsonObject:
    """Return a run's messages in a vendor's form (RUN-2): the task, the rounds, the text."""
    asked = Compact(Message(Role.USER, (Text(view.spec.task),)))
    return {"messages": [*export_messages((asked, view.kept), form)]}


def event_json(each: NumberedEvent) -> JsonObject:
    """Return the JSON of an event with its number."""
    return {"number": each.number, **msgspec.to_builtins(each.event)}


def _call(call: Call) -> JsonObject:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


_Write: TypeAlias = Callable[[Message], Iterable[Json]]
_NOTHING_ASKED: Final = Request("", ())
_FROM_ANTHROPIC: Final = replace(_NOTHING_ASKED, extra={"anthropic": {}})
"""As if it had come on that wire, which then has a role for system messages."""


def export_messages(kept: Iterable[Compact], form: str) -> list[JsonObject]:
    """Write stored messages in the format of `openai` (also Ollama's), `anthropic` or `gemini`. Raises `BadField`."""
    if form not in FORMS:
        raise BadField("form", f"{form!r} is not one of {', '.join(FORMS)}")
    if form == "gemini":
        kept = (replace(each, rounds=tuple(map(_signed, each.rounds))) for each in kept)
    rows = [row for message in link_history(expand(kept)) for row in FORMS[form](message)]
    # Some wires embed arguments as raw bytes, which become values only when the row is written and parsed.
    return [as_object(parse_body(dump_body(row))) for row in rows]


def _openai(message: Message) -> Iterator[Json]:
    for row in openai_chat.MessageWriter(openai_chat.names_of(_NOTHING_ASKED), QUIRKS).write((message,)):
        yield {key: value for key, value in as_object(row).items() if value is not None}


def _anthropic(message: Message) -> Iterable[Json]:
    return AnthropicWriter(_FROM_ANTHROPIC, anthropic.names_of(_NOTHING_ASKED)).alone(message)


def _gemini(message: Message) -> Iterator[Json]:
    names = gemini.names_of(_NOTHING_ASKED)
    spoken = replace(message, role=Role.USER) if message.role is Role.SYSTEM else message
    role = _GEMINI_ROLES[message.role]
    for row in Contents((spoken,), names, same_wire=True, nested=True).contents():
        yield {**as_object(row), "role": role}


def _signed(each: Round) -> Round:
    """Separate reasoning from its signature, which belongs to the call after it."""
    match each.before:
        case (*said, Reasoning(text, signature, vendor)) if text and signature:
            return replace(each, before=(*said, Reasoning(text, "", vendor), Reasoning("", signature)))
        case _:
            return each


FORMS: Final[Mapping[str, _Write]] = {"openai": _openai, "anthropic": _anthropic, "gemini": _gemini}
_GEMINI_ROLES: Final = {Role.SYSTEM: "system", Role.USER: "user", Role.ASSISTANT: "model", Role.TOOL: "function"}
"""In a Gemini request, system messages belong into `systemInstruction`: move them there before you send the list."""

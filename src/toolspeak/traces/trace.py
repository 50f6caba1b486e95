"""The document of a trace: everything about one turn that cannot be derived from the rest of it.

A turn is a deterministic program (`engine/turn.py`). So a trace keeps the client's request, the plan, and the answers
of the upstream. The requests to the upstream, spans, repairs and complaints follow from running the turn again
(`replay.py`), also under another plan.

    Trace                the turn
      plan: StoredPlan   the decision, with the settings and facts behind it
      attempts: TraceAttempt  a request to the upstream, and its answer
      answer             what the client got

The document is JSON. Unknown keys are ignored, so that a trace of a newer version loads in an older one.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from toolspeak.engine.guardrails import GUARDRAILS, guardrails_for
from toolspeak.engine.plan import ANY_DIALECT, Plan, Way
from toolspeak.engine.settings import DEFAULTS, Settings
from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts
from toolspeak.ir.complaint import Complaint, Fix
from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallRejected,
    CallStarted,
    Discarded,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
)
from toolspeak.ir.failure import Failure
from toolspeak.ir.message import Call, Reasoning, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Turn, TurnPart, fold

FORMAT: Final = 1
CALL: Final = "call"


class AnswerPart(Struct, omit_defaults=True):
    """A stretch of an answer: visible text, reasoning, or a call that the upstream returned as a call."""

    kind: str
    """`text`, `reasoning` or `call`."""
    text: str = ""
    """The text; of a call, the JSON of its arguments."""
    name: str = ""
    id: str = ""
    native_id: str = ""
    signature: str = ""
    fixes: list[Fix] = field(default_factory=list[Fix])
    """What was repaired in a call."""
    is_cut: bool = False
    """The answer ended inside this call."""


class TraceAttempt(Struct, omit_defaults=True):
    """One request to the upstream, and its answer. Times are in seconds since the client's request arrived."""

    tactic: str = ""
    why: str = ""
    """Why the request was sent; empty for the first one of a turn."""
    opened: float = 0.0
    first: float | None = None
    """When the first event arrived; None if none did."""
    ended: float | None = None
    """When the answer ended, or the turn closed it because nothing more of it could be used; None while it runs."""
    parts: list[AnswerPart] = field(default_factory=list[AnswerPart])
    stop: str = ""
    stop_sequence: str = ""
    usage: Usage = Usage()
    failure: Failure | None = None

    @property
    def text(self) -> str:
        """The visible text of the answer, as the model wrote it."""
        return "".join(part.text for part in self.parts if part.kind == "text")

    def events(self) -> list[Event]:
        """Return the answer as the events that a turn reads."""
        events = [event for part in self.parts for event in _events_of(part)]
        if self.failure is not None:
            events.append(Failed(self.failure, self.usage))
        elif self.stop:
            events.append(Finished(StopReason(self.stop), self.usage, self.stop_sequence))
        return events


class StoredPlan(Struct, omit_defaults=True):
    """A plan, with the settings and facts that it was decided by."""

    way: Way = Way.PLAIN
    why: str = ""
    line: str = ""
    settings: Settings = DEFAULTS
    facts: ModelFacts = UNKNOWN_MODEL
    projects: bool = False
    rescue_dialect: str = ANY_DIALECT

    @classmethod
    def of(cls, plan: Plan) -> "StoredPlan":
        """Return the stored form of a plan."""
        return cls(plan.way, plan.why, plan.line, plan.settings, plan.facts, plan.projects, plan.rescue_dialect)

    def restored(self, request: Request) -> Plan:
        """Return the plan for the same request; its guardrails follow from its settings."""
        guardrails = guardrails_for(request, [name for name in GUARDRAILS if getattr(self.settings, name)])
        return Plan(self.way, self.why, self.settings, self.facts, self.projects, self.rescue_dialect, guardrails)


class StoredTool(Struct, omit_defaults=True):
    """A tool of an earlier request of the conversation (INL-4)."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])


class Trace(Struct, omit_defaults=True):
    """One turn."""

    id: str
    time: float = 0.0
    """When the request arrived, in seconds since 1970."""
    tenant: str = ""
    wire: str = ""
    path: str = ""
    body: str = ""
    """The client's request, as it was sent."""
    model: str = ""
    """The model's name as the client wrote it."""
    upstream: str = ""
    upstream_model: str = ""
    upstream_wire: str = ""
    is_streamed: bool = False
    plan: StoredPlan = field(default_factory=StoredPlan)
    taken: str = ""
    """The plan as it was carried out, in one line."""
    agent: str = ""
    """The client's program, as its `User-Agent` names it first: `claude-cli/2.1.4`."""
    tools: str = ""
    """How tools were handled: native, rescued, emulated, plain or off; empty if the turn failed before its end."""
    seed: int = 0
    """The number that the ids of emulated calls are made from."""
    remembered: list[StoredTool] = field(default_factory=list[StoredTool])
    attempts: list[TraceAttempt] = field(default_factory=list[TraceAttempt])
    answer: list[AnswerPart] = field(default_factory=list[AnswerPart])
    """What the client got."""
    stop: str = ""
    usage: Usage = Usage()
    """The tokens of all attempts."""
    complaints: list[Complaint] = field(default_factory=list[Complaint])
    warnings: list[str] = field(default_factory=list[str])
    status: int = 0
    """The HTTP status of the response; 0 if the client left before it."""
    failure: Failure | None = None
    first: float | None = None
    """When the client's first event left, in seconds since the request arrived."""
    seconds: float = 0.0
    has_content: bool = True
    """Whether texts were kept. Without them there are only names, counts and times, and the turn cannot be replayed."""
    version: str = ""
    format: int = FORMAT

    @property
    def calls(self) -> list[str]:
        """The names of the tools that the client was told to call."""
        return [part.name for part in self.answer if part.kind == CALL]

    def remembered_tools(self) -> tuple[Tool, ...]:
        """Return the tools of earlier requests."""
        return tuple(Tool(one.name, one.description, one.parameters) for one in self.remembered)


def stored_tools(tools: Iterable[Tool]) -> list[StoredTool]:
    """Return the stored form of tools."""
    return [StoredTool(tool.name, tool.description, dict(tool.parameters)) for tool in tools]


def parts_of(events: Sequence[Event], turn: Turn | None = None) -> list[AnswerPart]:
    """Fold events into parts. Text that was rejected or discarded is left out: the attempts have it.

    `turn` is the fold of the events, if the caller has it.
    """
    folded = fold(events) if turn is None else turn
    parts = [part for part in map(_part_of, folded.parts) if part is not None]
    ended = {event.id for event in events if isinstance(event, CallEnded)}
    cut = [event for event in events if isinstance(event, CallStarted) and event.id not in ended]
    return parts + [_cut_call(started, events) for started in cut]


def _part_of(part: TurnPart) -> AnswerPart | None:
    match part:
        case Text(text):
            return AnswerPart("text", text)
        case Reasoning(text, signature):
            return AnswerPart("reasoning", text, signature=signature)
        case Call():
            return AnswerPart(CALL, part.arguments, part.name, part.id, part.native_id, fixes=list(part.fixes))
        case CallRejected() | Discarded():
            return None
        case _:
            assert_never(part)


def _cut_call(started: CallStarted, events: Iterable[Event]) -> AnswerPart:
    json = "".join(event.json for event in events if isinstance(event, ArgsDelta) and event.id == started.id)
    return AnswerPart(CALL, json, started.name, started.id, started.native_id, is_cut=True)


def _events_of(part: AnswerPart) -> Iterator[Event]:
    match part.kind:
        case "text":
            yield TextDelta(part.text)
        case "reasoning":
            yield ReasoningDelta(part.text, part.signature)
        case _:
            yield CallStarted(part.id, part.name, part.native_id)
            yield ArgsDelta(part.id, part.text)
            if not part.is_cut:
                yield CallEnded(part.id)


def without_content(trace: Trace) -> Trace:
    """Return the trace without anything that a client, a model or an upstream wrote, but for names of models and tools.

    It is what a gateway keeps that is shared by tenants, or reachable from other machines.
    """
    complaints = [Complaint(one.problem, one.name) for one in trace.complaints]
    return replace(
        trace,
        path=trace.path.partition("?")[0],
        body="",
        remembered=[],
        attempts=[_blank_attempt(attempt) for attempt in trace.attempts],
        answer=_blank(trace.answer),
        complaints=complaints,
        failure=_bare(trace.failure),
        has_content=False,
    )


def _blank_attempt(attempt: TraceAttempt) -> TraceAttempt:
    why = attempt.why.partition(":")[0]  # the details after it quote what the model wrote
    parts, failure = _blank(attempt.parts), _bare(attempt.failure)
    return replace(attempt, parts=parts, stop_sequence="", why=why, failure=failure)


def _blank(parts: Iterable[AnswerPart]) -> list[AnswerPart]:
    return [AnswerPart(part.kind, name=part.name, is_cut=part.is_cut) for part in parts]


def _bare(failure: Failure | None) -> Failure | None:
    return failure and Failure(failure.kind, "", failure.status)

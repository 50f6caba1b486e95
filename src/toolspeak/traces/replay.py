"""Runs the turn of a trace again, without an upstream: the recorded answers are read as if they arrived now.

    replay_turn(trace)                                      the same plan: shows what each attempt sent, read and led to
    replay_turn(trace, Settings(dialect="hermes"))          another plan: what would have come of the same answers

A replay under another plan is a statement about reading and checking only. The model has answered to the prompt of the
first plan; what it would answer to another one only a live replay can tell.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from toolspeak import wires
from toolspeak.engine.effects import Open, Outcome, Pull, TurnProgram
from toolspeak.engine.plan import Plan, decide
from toolspeak.engine.readers import answer_dialect, emulated_ids
from toolspeak.engine.settings import Settings
from toolspeak.engine.turn import take_turn
from toolspeak.errors import BadRequest
from toolspeak.ir.event import Event, Failed
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.message import Text
from toolspeak.ir.request import Request
from toolspeak.ir.span import Span, spans_of
from toolspeak.ir.turn import Turn
from toolspeak.toolset.toolset import ToolSet
from toolspeak.traces.trace import AnswerPart, Trace, TraceAttempt, parts_of
from toolspeak.wires.shared.routing_fields import drop_routing_fields

_NO_ANSWER: Final[list[Event]] = [
    Failed(Failure(FailureKind.DISCONNECTED, "the trace has no answer to this request", 502))
]
"""Under another plan a turn may ask more often than it did; nothing was recorded for that."""


@dataclass(frozen=True, slots=True)
class ReplayedAttempt:
    """One request of a replayed turn, and how its answer was read."""

    tactic: str
    why: str
    request: Request
    body: bytes
    """The request in the upstream's protocol."""
    dialect: str
    """The dialect in which the text of the answer is read; empty if it is passed on unread."""
    turn: Turn
    """The text of the answer, read on its own: before the checks of the turn as a whole."""
    is_recorded: bool = True
    """Whether the trace has an answer to it."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """The text of the answer in labelled spans."""
        return spans_of(self.turn.parts)


@dataclass(frozen=True, slots=True)
class Replay:
    """A turn that ran again."""

    plan: Plan
    request: Request
    """The client's request."""
    attempts: tuple[ReplayedAttempt, ...]
    outcome: Outcome
    is_same: bool
    """Whether the client would get the same answer."""


def client_request(trace: Trace) -> Request:
    """Return the client's request. Raises `BadRequest` if the trace has no content."""
    if not trace.has_content:
        raise BadRequest(
            f"the trace {trace.id} was kept without content, so it cannot be read again. "
            "Set content = true under [traces] to keep what clients and models write."
        )
    decoded = wires.load(trace.wire).decode_request(trace.body.encode(), trace.path)
    return drop_routing_fields(decoded)


def replay_turn(trace: Trace, settings: Settings | None = None) -> Replay:
    """Run the turn again; with `settings`, under the plan that those lead to. Raises `BadRequest`."""
    request = client_request(trace)
    plan = trace.plan.restored(request)
    if settings is not None:
        plan = decide(request, settings.over(plan.settings), plan.facts)
    sent = replace(request, model=trace.upstream_model or request.model)
    program = take_turn(sent, plan, emulated_ids(trace.seed), trace.remembered_tools())
    attempts: list[ReplayedAttempt] = []
    outcome = _run(program, trace, plan, attempts)
    is_same = told_parts(parts_of(outcome.events)) == told_parts(trace.answer)
    return Replay(plan, request, tuple(attempts), outcome, is_same)


def told_parts(parts: Iterable[AnswerPart]) -> list[tuple[str, str, str]]:
    """Return what a client learns of an answer. Ids are left out: they differ between versions, and tell it nothing."""
    return [(part.kind, part.name, part.text) for part in parts]


def _run(program: TurnProgram, trace: Trace, plan: Plan, attempts: list[ReplayedAttempt]) -> Outcome:
    """Drive the program with the recorded answers, and add an attempt for each request that it sends."""
    waiting: list[Event] = []
    answer: list[Event] | None = None
    tools = ToolSet.of(client_request(trace).tools or trace.remembered_tools())
    try:
        while True:
            effect = program.send(answer)
            answer = None
            if isinstance(effect, Open):
                recorded = trace.attempts[len(attempts)] if len(attempts) < len(trace.attempts) else None
                attempts.append(_attempt(effect, recorded, trace, plan, tools))
                waiting = recorded.events() if recorded is not None else []
            elif isinstance(effect, Pull):
                answer, waiting = waiting or _NO_ANSWER, []
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome


def _attempt(effect: Open, recorded: TraceAttempt | None, trace: Trace, plan: Plan, tools: ToolSet) -> ReplayedAttempt:
    wire = wires.load(trace.upstream_wire or trace.wire)
    body = wire.encode_request(effect.request, plan.facts.quirks).body
    dialect, text = answer_dialect(effect.tactic, plan), recorded.text if recorded is not None else ""
    turn = dialect.read(text, tools) if dialect is not None and text else Turn((Text(text),) if text else ())
    name = dialect.name if dialect is not None else ""
    return ReplayedAttempt(effect.tactic, effect.why, effect.request, body, name, turn, recorded is not None)

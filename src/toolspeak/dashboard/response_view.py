"""Everything that the page of one response shows, prepared from its trace.

A trace without content has no request to show and nothing to read again: then only names, counts and times are there.
The work takes time in proportion to the trace, so the gateway does it in a thread.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from time import gmtime, strftime
from typing import Final

from toolspeak import wires
from toolspeak.dashboard.excerpt import Excerpt, Room
from toolspeak.dashboard.prompt_diff import PromptDiff, compare_json
from toolspeak.dashboard.request_view import RequestView, ShownPart, shown_call, view_request
from toolspeak.dashboard.story import tell
from toolspeak.engine.settings import DEFAULTS
from toolspeak.errors import BadJson, BadRequest
from toolspeak.facts.model import Source
from toolspeak.ir.complaint import Complaint, Fix
from toolspeak.ir.request import Request
from toolspeak.ir.span import SPAN_MEANINGS, SpanKind
from toolspeak.text.strict import parse
from toolspeak.traces.audit import ContextPart, audit
from toolspeak.traces.replay import Replay, ReplayedAttempt, client_request, replay_turn
from toolspeak.traces.trace import CALL, AnswerPart, Trace, TraceAttempt

_MOST_ATTEMPTS: Final = 20
_MOST_PARTS: Final = 60
_MOST_SPANS: Final = 300
_MOST_AUDITED: Final = 25
_LONGEST_TEXT: Final = 20_000
_LONGEST_DETAIL: Final = 600
_MOST_COMPLAINTS: Final = 30
_LONGEST_COMPARED: Final = 2_000_000
"""Characters of a request that is still compared with the client's."""


@dataclass(frozen=True, slots=True)
class SpanView:
    """A stretch of a model's text, with its meaning."""

    kind: str
    title: str
    body: Excerpt


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One request to the upstream, and its answer."""

    number: int
    tactic: str
    why: str
    attempt: TraceAttempt
    is_hidden: bool
    """The client saw nothing of its answer."""
    dialect: str
    spans: list[SpanView]
    legend: list[tuple[str, str]]
    """The kinds of spans in it, with their meanings; empty if all of it is text."""
    left: int
    """Characters of the text that are not shown."""
    calls: list[ShownPart]
    """Calls that the upstream returned as calls."""
    reasoning: list[ShownPart]
    complaints: list[tuple[str, str, str]]
    """Name, problem and detail of each."""
    fixes: list[str]
    diff: PromptDiff | None
    """How its request differs from the client's."""
    step: PromptDiff | None
    """How its request differs from the one of the attempt before it."""
    bars: tuple[float, float, float]
    """Where the attempt begins, has its first event, and ends, in percent of the turn."""


@dataclass(frozen=True, slots=True)
class ResponseView:
    """One response."""

    trace: Trace
    is_running: bool
    time: str
    story: list[str]
    request: RequestView | None
    settings: list[tuple[str, str]]
    attempts: list[AttemptView]
    more_attempts: int
    answer: list[ShownPart]
    more_answer: int
    context: list[ContextPart]
    context_tokens: int
    more_context: int
    problem: str
    """Why the turn could not be read again; empty if it could."""
    is_same: bool


def view_response(trace: Trace, *, is_running: bool = False) -> ResponseView:
    """Return what the page shows. Raises nothing: a trace that cannot be read again is shown without that."""
    asked, again, problem = _read(trace, is_running=is_running)
    room = Room()
    answer = [*view_answer(trace.answer[:_MOST_PARTS], room)]
    attempts = [_attempt(trace, number, again, room) for number in range(min(len(trace.attempts), _MOST_ATTEMPTS))]
    request = view_request(asked, room) if asked is not None else None
    parts = audit(asked) if asked is not None else []
    return ResponseView(
        trace,
        is_running,
        strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(trace.time)),
        [sentence[:_LONGEST_DETAIL] for sentence in tell(trace, asked, is_running=is_running)],
        request,
        _settings(trace),
        attempts,
        len(trace.attempts) - len(attempts),
        answer,
        max(0, len(trace.answer) - _MOST_PARTS),
        parts[:_MOST_AUDITED],
        sum(part.tokens for part in parts),
        max(0, len(parts) - _MOST_AUDITED),
        problem,
        again is None or again.is_same,
    )


def _read(trace: Trace, *, is_running: bool) -> tuple[Request | None, Replay | None, str]:
    """Return the client's request, the turn that ran again, and why that failed; a plug-in's wire may be gone."""
    if not trace.has_content:
        return None, None, ""
    asked: Request | None = None
    try:
        asked = client_request(trace)
        return asked, None if is_running else replay_turn(trace), ""
    except BadRequest as error:
        return asked, None, str(error)


def view_answer(parts: Iterable[AnswerPart], room: Room) -> list[ShownPart]:
    """Return the parts of an answer."""
    return [
        shown_call(part.name, part.text, room)
        if part.kind == CALL
        else ShownPart(part.kind, "reasoning" if part.kind == "reasoning" else "", room.cut(part.text, _LONGEST_TEXT))
        for part in parts
    ]


# ---------------------------------------------------------------- attempts


def _attempt(trace: Trace, number: int, again: Replay | None, room: Room) -> AttemptView:
    attempt = trace.attempts[number]
    read = again.attempts[number] if again is not None and number < len(again.attempts) else None
    spans, left = view_spans(read, room) if read is not None else ([], 0)
    parts = attempt.parts[:_MOST_PARTS]
    return AttemptView(
        number + 1,
        attempt.tactic,
        attempt.why[:_LONGEST_DETAIL],
        attempt,
        number < len(trace.attempts) - 1,
        read.dialect if read is not None else "",
        spans,
        _legend(spans),
        left,
        view_answer((part for part in parts if part.kind == CALL), room),
        view_answer((part for part in parts if part.kind == "reasoning"), room),
        [_complaint(one) for one in read.turn.complaints[:_MOST_COMPLAINTS]] if read is not None else [],
        [fix for call in read.turn.calls[:_MOST_PARTS] for fix in _fixes(call.name, call.fixes)] if read else [],
        _diff(_plain_body(trace, again), read.body) if again is not None and read is not None else None,
        _diff(again.attempts[number - 1].body, read.body)
        if again is not None and read is not None and number
        else None,
        _bars(attempt, max(trace.seconds, *(one.ended or one.opened for one in trace.attempts), 0.001)),
    )


def view_spans(read: ReplayedAttempt, room: Room, most: int = _LONGEST_TEXT) -> tuple[list[SpanView], int]:
    """Return the labelled text of an answer, and how many characters of it are left out."""
    spans = [span for span in read.spans if span.text]
    shown: list[SpanView] = []
    details = [f"{one.problem}: {one.detail}"[:_LONGEST_DETAIL] for one in read.turn.complaints]
    for span in spans[:_MOST_SPANS]:
        if most <= 0:
            break
        title = SPAN_MEANINGS[span.kind]
        if span.kind is SpanKind.INVALID and span.number <= len(details):
            title = f"{title}: {details[span.number - 1]}"
        cut = room.cut(span.text, most)
        most -= len(cut.text)
        shown.append(SpanView(span.kind, title, cut))
    left = sum(len(span.text) for span in spans) - sum(len(one.body.text) for one in shown)
    return shown, left


def _legend(spans: list[SpanView]) -> list[tuple[str, str]]:
    kinds = {span.kind for span in spans}
    return [] if kinds <= {SpanKind.TEXT} else [(kind, SPAN_MEANINGS[kind]) for kind in SpanKind if kind in kinds]


def _complaint(one: Complaint) -> tuple[str, str, str]:
    return one.name or "a call", one.problem.replace("_", " "), one.detail[:_LONGEST_DETAIL]


def _fixes(name: str, fixes: Iterable[Fix]) -> list[str]:
    return [f"{name[:80]}: {fix.what.replace('_', ' ')} at {fix.path[:120] or '/'}" for fix in fixes]


def _plain_body(trace: Trace, again: Replay) -> bytes:
    """Return the client's request in the upstream's protocol, as it would be sent unchanged; empty if that fails."""
    asked = replace(again.request, model=trace.upstream_model or again.request.model)
    try:
        return wires.load(trace.upstream_wire or trace.wire).encode_request(asked, again.plan.facts.quirks).body
    except BadRequest:
        return b""


def _diff(old: bytes, new: bytes) -> PromptDiff | None:
    """Return how two requests differ; None if they are too large to compare."""
    if not old or len(old) + len(new) > _LONGEST_COMPARED:
        return None
    try:
        return compare_json(parse(old.decode()), parse(new.decode()))
    except (BadJson, UnicodeDecodeError):
        return None


def _bars(attempt: TraceAttempt, whole: float) -> tuple[float, float, float]:
    end = attempt.ended if attempt.ended is not None else whole
    first = attempt.first if attempt.first is not None else end
    start, middle, finish = (round(100 * min(1.0, moment / whole), 2) for moment in (attempt.opened, first, end))
    return start, middle, finish


def _settings(trace: Trace) -> list[tuple[str, str]]:
    """Return the settings of the plan that differ from the defaults, and what is known about the model's tools."""
    settings, facts = trace.plan.settings, trace.plan.facts
    names = ("mode", "strategy", "dialect", "release", "retries", "rescue", "few_shot", "answer_tool", "constraint")
    told = [(name.replace("_", " "), getattr(settings, name), getattr(DEFAULTS, name)) for name in names]
    rows = [(name, str(value)) for name, value, usual in told if value is not None and value != usual]
    source = _SOURCES.get(facts.source, facts.source.value)
    return [("the server's tools", f"{facts.tools}{source}"), *rows]


_SOURCES: Final = {
    Source.NOBODY: "",
    Source.TABLE: ", by the built-in table",
    Source.MEASURED: ", as measured",
    Source.SAID: ", as configured",
}

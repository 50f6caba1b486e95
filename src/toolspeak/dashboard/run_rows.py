"""What the dashboard says about runs: a row in the list, and the rounds of one run (OBS-18).

The rounds of a run that has ended come from what is kept of it. Those of a running one come from its events:
`LiveRounds` takes them as they happen, and says which rounds have changed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from time import gmtime, strftime
from typing import Final

from toolspeak.agent.runs.events import (
    RunEnded,
    RunEvent,
    ToolCallAsked,
    ToolCallBegan,
    ToolCallEnded,
    ToolCallRejected,
    TurnBegan,
    TurnEnded,
    Wrote,
)
from toolspeak.agent.runs.runs import RunSummary, RunView
from toolspeak.engine.agent import Status
from toolspeak.ir.message import Call, Reasoning, Text, result_text
from toolspeak.ir.round import Round
from toolspeak.text.display import cut

_LONGEST_TASK: Final = 200
_LONGEST_SHOWN: Final = 20_000
"""Bytes of a text or a result on the page. What waits for approval is shown whole."""
_COLOURS: Final = {
    Status.RUNNING: "running",
    Status.WAITING: "waiting",
    Status.DONE: "ok",
    Status.SUMMED_UP: "ok",
    Status.CANCELLED: "stopped",
    Status.FAILED: "failed",
}
_LABELS: Final = {Status.WAITING: "waits for you", Status.SUMMED_UP: "summed up"}


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in the list."""

    name: str
    task: str
    state: str
    """The colour."""
    label: str
    """The status in words."""
    model: str
    rounds: int
    tokens: str
    began: float
    time: str
    """UTC, for `<time>`."""
    clock: str
    seconds: float
    """How long it took, or has taken so far."""
    is_live: bool
    can_resume: bool


@dataclass(frozen=True, slots=True)
class CallRow:
    """A call of a round, and what came of it."""

    id: str
    name: str
    arguments: str
    state: str
    """`running`, `asked`, `ok`, `failed` or `rejected`."""
    result: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RoundRow:
    """One round: what the model wrote, its calls and their results."""

    number: int
    """Counted from 1."""
    text: str = ""
    thought: str = ""
    calls: tuple[CallRow, ...] = ()
    is_open: bool = False
    """It happens now, so the page shows it opened."""

    @property
    def peek(self) -> str:
        """The beginning of the text in one line."""
        return " ".join(self.text.split())[:120]


@dataclass(frozen=True, slots=True)
class RunPage:
    """One run."""

    row: ListedRun
    task: str
    reason: str
    answer: str
    rounds: tuple[RoundRow, ...]
    asked: tuple[Call, ...]
    """Calls that wait for a person's approval, with their exact arguments."""
    settings: tuple[tuple[str, str], ...]


def run_row(line: RunSummary, now: float) -> ListedRun:
    """Return the row of a run; `now` is in seconds since 1970."""
    moment, usage = gmtime(line.began), line.usage
    is_live = line.status in (Status.RUNNING, Status.WAITING)
    return ListedRun(
        line.name or line.id,
        cut(" ".join(line.task.split()), _LONGEST_TASK),
        _COLOURS[line.status],
        _LABELS.get(line.status, line.status.value),
        line.model,
        line.rounds,
        "" if usage is None else str(usage.input_tokens + usage.output_tokens),
        line.began,
        strftime("%Y-%m-%dT%H:%M:%SZ", moment),
        strftime("%H:%M:%S", moment),
        max(0.0, (line.ended or now) - line.began),
        is_live,
        line.status in (Status.CANCELLED, Status.FAILED),
    )


def run_page(view: RunView, now: float) -> RunPage:
    """Return the page of a run, from what is kept of it."""
    spec, parts = view.spec, view.kept.message.parts
    rounds = tuple(_round_row(number, each) for number, each in enumerate(view.kept.rounds, start=1))
    answer = "".join(part.text for part in parts if isinstance(part, Text))
    settings = (
        ("tools", ", ".join(spec.tools) or "none"),
        ("folder", spec.folder or "one of its own"),
        ("approval", spec.approval.value),
        ("most rounds", str(spec.rounds)),
    )
    task, answer = cut(spec.task, _LONGEST_SHOWN), cut(answer, _LONGEST_SHOWN)
    return RunPage(run_row(view.line, now), task, view.reason, answer, rounds, view.asked, settings)


def _round_row(number: int, kept: Round) -> RoundRow:
    thought = "".join(part.text for part in kept.before if isinstance(part, Reasoning))
    calls = tuple(
        CallRow(
            call.id,
            call.name,
            cut(call.arguments, _LONGEST_SHOWN),
            "failed" if result.is_error else "ok",
            cut(result_text(result), _LONGEST_SHOWN),
        )
        for call, result in zip(kept.calls, kept.results, strict=True)
    )
    return RoundRow(number, cut(kept.text, _LONGEST_SHOWN), cut(thought, _LONGEST_SHOWN), calls)


@dataclass(slots=True)
class _LiveRound:
    text: list[str] = field(default_factory=list[str])
    thought: list[str] = field(default_factory=list[str])
    calls: dict[str, CallRow] = field(default_factory=dict[str, CallRow])
    is_open: bool = True


class LiveRounds:
    """The rounds of a running run, built from its events."""

    def __init__(self) -> None:
        """Start before the first event."""
        self._rounds: Final[dict[int, _LiveRound]] = {}
        self._changed: Final[set[int]] = set()
        self.has_new_state = False
        """An event has changed the state of the run: a turn or a call has begun or ended, or a call waits."""

    def take(self, event: RunEvent) -> None:
        """Take the next event."""
        self._changed.add(event.round)
        one = self._rounds.setdefault(event.round, _LiveRound())
        self.has_new_state = self.has_new_state or not isinstance(event, Wrote)
        match event:
            case TurnBegan():  # a second one for a round: the text of the first was lost
                one.text, one.thought = [], []
            case Wrote(text=text, thought=is_thought):
                (one.thought if is_thought else one.text).append(text)
            case TurnEnded(text=text):
                one.text = [text]
            case ToolCallBegan(id=id) | ToolCallAsked(id=id):
                state = "asked" if isinstance(event, ToolCallAsked) else "running"
                one.calls[id] = CallRow(id, event.name, cut(event.arguments, _LONGEST_SHOWN), state)
            case ToolCallEnded(id=id):
                known = one.calls.get(id) or CallRow(id, event.name, "", "running")
                state, result = "failed" if event.is_error else "ok", cut(event.text, _LONGEST_SHOWN)
                one.calls[id] = replace(known, state=state, result=result, seconds=event.seconds)
                one.is_open = any(call.state in ("running", "asked") for call in one.calls.values())
            case ToolCallRejected():
                id, arguments = f"rejected-{len(one.calls)}", cut(event.arguments, _LONGEST_SHOWN)
                one.calls[id] = CallRow(id, event.name, arguments, "rejected", cut(event.text, _LONGEST_SHOWN))
            case RunEnded():
                one.is_open = False

    def changed(self) -> Iterable[RoundRow]:
        """Return the rounds that have changed since the last call, in their order."""
        rows = [self._row(number) for number in sorted(self._changed)]
        self._changed.clear()
        return rows

    def _row(self, number: int) -> RoundRow:
        one = self._rounds[number]
        text, thought = cut("".join(one.text), _LONGEST_SHOWN), cut("".join(one.thought), _LONGEST_SHOWN)
        return RoundRow(number + 1, text, thought, tuple(one.calls.values()), one.is_open)

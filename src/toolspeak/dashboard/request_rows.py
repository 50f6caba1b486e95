"""The rows of the list of requests."""

from dataclasses import dataclass
from math import sqrt
from time import gmtime, strftime
from typing import Final

from toolspeak.traces.store import Summary

_LONGEST_BAR: Final = 60.0
"""Seconds that fill a bar. The scale is that of square roots: a bar of 1 s is 13% long, one of 10 s 41%."""
_FIRST_ERROR: Final = 400
_HUNG_UP: Final = 499
_MOST_CALLS: Final = 3
_LONGEST_NAME: Final = 60
_LONGEST_PLAN: Final = 300


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One turn, running or ended."""

    id: str
    time: str
    """UTC, for `<time>`."""
    clock: str
    """The time of day, in UTC; the browser shows its own."""
    started: float
    agent: str
    wire: str
    model: str
    upstream: str
    tools: str
    plan: str
    calls: tuple[str, ...]
    more_calls: int
    requests: int
    complaints: int
    input_tokens: int
    output_tokens: int
    first: float | None
    seconds: float
    status: int
    state: str
    """`running`, `ok`, `failed` or `left`; the colour of the row."""
    label: str
    """The state in words."""
    first_bar: float
    bar: float
    """How long the bars are, from 0 to 100."""


def row_of(summary: Summary, phase: str = "") -> RequestRow:
    """Return the row of a turn; `phase` is what a running one does."""
    state, label = _state(summary, phase)
    moment = gmtime(summary.time)
    return RequestRow(
        summary.id,
        strftime("%Y-%m-%dT%H:%M:%SZ", moment),
        strftime("%H:%M:%S", moment),
        summary.time,
        summary.agent[:_LONGEST_NAME],
        summary.wire,
        summary.model[:_LONGEST_NAME],
        summary.upstream[:_LONGEST_NAME],
        summary.tools or "plain",
        summary.plan[:_LONGEST_PLAN],
        tuple(name[:_LONGEST_NAME] for name in summary.calls[:_MOST_CALLS]),
        max(0, len(summary.calls) - _MOST_CALLS),
        summary.requests,
        summary.complaints,
        summary.input_tokens,
        summary.output_tokens,
        summary.first,
        summary.seconds,
        summary.status,
        state,
        label,
        bar_length(summary.first or 0.0),
        bar_length(summary.seconds),
    )


def bar_length(seconds: float) -> float:
    """Return how long the bar of a duration is, from 0 to 100."""
    return round(100 * min(1.0, sqrt(max(0.0, seconds) / _LONGEST_BAR)), 1)


def _state(summary: Summary, phase: str) -> tuple[str, str]:
    if phase:
        return "running", phase
    if summary.status == _HUNG_UP:
        return "left", "client left"
    if summary.error or summary.status >= _FIRST_ERROR:
        return "failed", (summary.error or "failed").replace("_", " ")
    return "ok", "ok"

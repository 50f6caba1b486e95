"""What a day of the fleet showed: the figures that are kept, and whether the bar was met."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bench.fleet.checks import HONEST, Answer, RunTally, Tally, Verdict, Window, whole
from bench.fleet.faults import Event
from bench.fleet.schedule import Kind
from testkit.killtest_worker import Mark

EXACT = 0.01
"""By which share of the limit the admitted requests may miss it."""
EDGE = 2
"""Requests by which a window may differ besides: a request is counted when its client has the answer."""
LEAST_RIGHT = 0.5
"""Of all answers but those that a dead process cut off: a fleet that only refuses would make no mistake either."""


@dataclass(frozen=True)
class Plan:
    """What was asked for."""

    minutes: float
    streams: int
    runs: int
    seed: int


@dataclass
class Outcome:
    """What came of it."""

    plan: Plan
    streams: Tally
    runs: RunTally
    accepted: int
    limits: Sequence[Window]
    events: Sequence[Event]
    failures: Sequence[Answer] = ()
    """Answers that were not right."""
    pauses: Sequence[float] = ()
    """The longest pause of each run, in seconds."""
    resumed: int = 0
    restarts: int = 0
    left_out: Sequence[Kind] = ()

    def faults(self) -> list[str]:
        """Say what is wrong with it."""
        counts = self.streams.counts
        answers = max(1, counts.total() - counts[Verdict.CUT])
        checks = {
            **{f"{counts[kind]} answers are {kind}": not counts[kind] for kind in Verdict if kind not in HONEST},
            f"only {counts[Verdict.RIGHT]} of {answers} answers are right": (
                counts[Verdict.RIGHT] >= LEAST_RIGHT * answers
            ),
            f"{len(self.runs.lost)} runs lost": not self.runs.lost,
            f"{len(self.runs.mixed)} results of runs mixed up": not self.runs.mixed,
            f"{len(self.runs.twice)} calls ran twice": not self.runs.twice,
            f"only {self.accepted} of {self.plan.runs} runs were accepted": self.accepted == self.plan.runs,
            "the limit was never measured": bool(self.limits),
            f"the limit is missed by {whole(self.limits).deviation:.2%}": is_exact(self.limits),
            "no fault happened": bool(self.events),
        }
        late = [event.fault for event in self.events if event.recovered is None]
        failed = [fault for fault, holds in checks.items() if not holds]
        return [*failed, *(f"{fault.target} did not recover from {fault.kind}" for fault in late)]

    def details(self) -> list[str]:
        """Return the first cases of everything that is wrong."""
        return [*self.streams.faults[:20], *self.runs.lost[:20], *self.runs.mixed[:20], *self.runs.twice[:20]]

    def figures(self) -> dict[str, Any]:
        """Return what is written down."""
        counts = self.streams.counts
        return {
            "minutes": self.plan.minutes,
            "streams_at_once": self.plan.streams,
            "seed": self.plan.seed,
            "faults": len(self.events),
            "left_out": [str(kind) for kind in self.left_out],
            "restarts": self.restarts,
            "answers": {"all": counts.total(), **{str(kind): counts[kind] for kind in Verdict}},
            "errors": dict(self.streams.errors.most_common(12)),
            "runs": self._runs(),
            "limit": limit_figures(self.limits),
            "recovery": recoveries(self.events, self.failures),
        }

    def _runs(self) -> dict[str, Any]:
        runs = self.runs
        counts = {"lost": len(runs.lost), "mixed": len(runs.mixed), "twice": len(runs.twice)}
        more = {"unknown": runs.unknown, "again": runs.again, "resumed": self.resumed}
        return {"accepted": self.accepted, "done": runs.done, **counts, **more, "longest_pause_s": spread(self.pauses)}


def is_exact(found: Sequence[Window]) -> bool:
    """Return whether the limit was kept to one percent over all windows together."""
    total = whole(found)
    slack = EDGE * len(found)
    return (
        total.admitted <= total.allowed * (1 + EXACT) + slack
        and total.admitted + total.uncertain >= total.allowed * (1 - EXACT) - slack
    )


def limit_figures(found: Sequence[Window]) -> dict[str, Any]:
    """Return the figures of the limit."""
    total = whole(found)
    return {
        "windows": len(found),
        "seconds": round(sum(window.ended - window.began for window in found), 1),
        "allowed": round(total.allowed, 1),
        "admitted": total.admitted,
        "uncertain": total.uncertain,
        "deviation": round(total.deviation, 5) if total.allowed else None,
    }


def recoveries(events: Sequence[Event], failures: Sequence[Answer]) -> dict[str, Any]:
    """Return for each kind of fault how long the part took to be ready again, and how long clients noticed.

    An answer that failed counts for the fault that began last before its end.
    """
    noticed: defaultdict[int, list[float]] = defaultdict(list)
    for answer in failures:
        before = [place for place, event in enumerate(events) if event.began <= answer.done]
        if before:
            last = max(before, key=lambda place: events[place].began)
            noticed[last].append(answer.done - events[last].began)
    found: dict[str, Any] = {}
    for kind in Kind:
        places = [place for place, event in enumerate(events) if event.fault.kind is kind]
        if places:
            ready = [events[place].recovery_s for place in places]
            found[kind] = {
                "count": len(places),
                "ready_s": spread([each for each in ready if each is not None]),
                "failed_answers": sum(len(noticed[place]) for place in places),
                "noticed_s": spread([max(noticed[place], default=0.0) for place in places]),
            }
    return found


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median and the maximum."""
    if not seconds:
        return {}
    return {"p50": round(statistics.median(seconds), 2), "max": round(max(seconds), 2)}


def longest_pauses(marks: Iterable[Mark], began: float, ended: float) -> list[float]:
    """Return the longest time without a mark of each run, by the wall clock.

    Marks from outside the test's time are left out: the clock of one worker jumps.
    """
    times: defaultdict[str, list[float]] = defaultdict(list)
    for mark in marks:
        if began <= mark.at <= ended:
            times[mark.run].append(mark.at)
    ordered = [sorted(each) for each in times.values() if len(each) > 1]
    return [max(after - before for before, after in pairwise(each)) for each in ordered]

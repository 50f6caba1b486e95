"""The report of a fleet run: the figures that are kept, and whether the bar was met."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from bench.fleet.checks import (
    EXCUSED,
    HONEST,
    LIMITED,
    OK,
    Answer,
    RunTally,
    Sample,
    Tally,
    Verdict,
    Window,
    judge,
    whole,
)
from bench.fleet.deaths import too_many
from bench.fleet.faults import Event, closed_spans, deaths
from bench.fleet.key_drill import KeyFigures
from bench.fleet.schedule import Kind
from testkit.killtest_worker import Mark

EXACT = 0.01
"""The share of the limit that the admitted requests may miss it by."""
EDGE = 1
"""Requests that a window may differ by in addition: the bucket has less than one request at each end, and a different
fraction each time."""
HARMLESS = frozenset({Kind.RELOAD})
"""Kinds that no client may notice."""
LEAST_RIGHT = 0.5
"""Least share of right answers, without those that a death cut off: a fleet that only refuses makes no mistake."""


@dataclass(frozen=True)
class Plan:
    """The settings of a run."""

    minutes: float
    streams: int
    runs: int
    seed: int
    kinds: frozenset[Kind] = frozenset()
    """Of faults; none: all."""


@dataclass
class Outcome:
    """The results of a run."""

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
    refused: Sequence[float] = ()
    """When clients could not connect."""
    samples: Sequence[Sample] = ()
    """Of the limit."""
    left_out: Sequence[Kind] = ()
    """Kinds that this machine does not allow, or that were not requested."""
    keys: KeyFigures = field(default_factory=KeyFigures)

    def faults(self) -> list[str]:
        """Return everything that fails the bar."""
        counts = self.streams.counts
        struck = {event.fault.kind for event in self.events}
        missing = [kind for kind in Kind if kind not in struck and kind not in self.left_out]
        failures = counts.total() - counts[Verdict.RIGHT] + self._unanswered()
        closed = closed_spans(self.events)
        unexplained = sum(not any(span.has(at) for span in closed) for at in self.refused)
        answers = max(1, counts.total() - sum(counts[verdict] for verdict in EXCUSED))
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
            f"{len(missing)} kinds of faults were never struck: {', '.join(missing)}": not missing,
            f"{failures} answers failed although nothing broke": struck - HARMLESS or not failures,
            f"{unexplained} times no connection could be made while nginx was up": not unexplained,
        }
        cuts = [answer.cut for answer in self.failures if judge(answer, deaths(self.events))[0] in EXCUSED]
        late = [event.fault for event in self.events if event.recovered is None]
        failed = [fault for fault, holds in checks.items() if not holds]
        failed += too_many(cuts, deaths(self.events))
        failed += self.keys.faults()
        return [*failed, *(f"{fault.target} did not recover from {fault.kind}" for fault in late)]

    def details(self) -> list[str]:
        """Return the first cases of everything that is wrong."""
        return [*self.streams.faults[:20], *self.runs.lost[:20], *self.runs.mixed[:20], *self.runs.twice[:20]]

    def figures(self) -> dict[str, Any]:
        """Return the figures for the result file."""
        counts = self.streams.counts
        return {
            "minutes": self.plan.minutes,
            "streams_at_once": self.plan.streams,
            "seed": self.plan.seed,
            "faults": len(self.events),
            "left_out": [str(kind) for kind in self.left_out],
            "restarts": self.restarts,
            "answers": {"all": counts.total(), **{str(kind): counts[kind] for kind in Verdict}},
            "refused_connections": len(self.refused),
            "small_requests": {"all": len(self.samples), "unanswered": self._unanswered()},
            "errors": dict(self.streams.errors.most_common(12)),
            "runs": self._runs(),
            "keys": asdict(self.keys),
            "limit": limit_figures(self.limits),
            "recovery": recoveries(self.events, self.failures),
        }

    def _unanswered(self) -> int:
        return sum(sample.status not in (OK, LIMITED) for sample in self.samples)

    def _runs(self) -> dict[str, Any]:
        runs = self.runs
        counts = {"lost": len(runs.lost), "mixed": len(runs.mixed), "twice": len(runs.twice)}
        more = {"unknown": runs.unknown, "again": runs.again, "resumed": self.resumed}
        return {"accepted": self.accepted, "done": runs.done, **counts, **more, "longest_pause_s": spread(self.pauses)}


def is_exact(found: Sequence[Window]) -> bool:
    """Return whether the limit was kept to one percent over all windows together."""
    total = whole(found)
    slack = EDGE * len(found) + total.slack
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
        "slack": round(total.slack, 1),
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

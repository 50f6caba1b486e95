"""Judges the results of the fleet's clients: pure functions of recorded answers, samples of the limit, runs and marks.

A stream requests its own words, `w17x0 w17x1 …` for stream 17, and some request one call with `c17` as argument. So
each answer shows by itself whether it is whole, and whether anything in it belongs to another stream.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

from bench.fleet.deaths import Cut, Death, death_of
from testkit.grammar import GrammarError, Seen, read_stream, read_whole
from testkit.killtest_worker import Mark
from testkit.protocols import error_faults

TOOL = "get_weather"
"""The tool of streams that request a call; the same name as in testkit.vendor_requests."""
_WORD = re.compile(r"w(\d+)x\d+")
_OWNER = re.compile(r"(?:look|put) \d+ of (\S+) by ")
_UNKNOWN = "The outcome of put is unknown"

# ---------------------------------------------------------------- streams


@dataclass(frozen=True)
class Question:
    """The content of one request, mostly for a stream."""

    number: int
    wire: str
    chunks: int
    calls: bool = False
    streams: bool = True

    @property
    def words(self) -> list[str]:
        return [f"w{self.number}x{chunk}" for chunk in range(self.chunks)]

    @property
    def arguments(self) -> dict[str, str]:
        """Return the arguments of the call, if it requests one."""
        return {"city": f"c{self.number}"}


@dataclass(frozen=True)
class Answer:
    """What the client received. `ended`: the HTTP message is complete. Times are seconds since the load began."""

    question: Question
    began: float
    done: float
    status: int = 0
    body: bytes = b""
    ended: bool = False
    timed_out: bool = False
    carrier: str = ""
    """The address of the gateway that answered, if the answer came that far."""

    @property
    def cut(self) -> Cut:
        """Return the part that decides whether a death explains its end."""
        return Cut(self.carrier, self.began, self.done)


class Verdict(StrEnum):
    """The verdict on an answer."""

    RIGHT = "right"
    ERROR = "error"
    """The protocol's own error, after nothing or after a right beginning."""
    PROXY_ERROR = "proxy-error"
    """A page of the load balancer, for a request that a killed gateway had not begun to answer."""
    BROKEN_OFF = "broken-off"
    """The connection broke, so that every client notices, when the gateway process that carried it was killed."""
    PROXY_DIED = "proxy-died"
    """The same, when the load balancer was killed."""
    MIXED = "mixed"
    WRONG = "wrong"
    """It ends well or in an error, but its content is not what was requested."""
    TWICE = "twice"
    """A call was delivered more than once."""
    MALFORMED = "malformed"
    """No client of the protocol can read it."""
    LOST = "lost"
    """It never ended, or the connection broke for no reason."""


EXCUSED = frozenset({Verdict.PROXY_ERROR, Verdict.BROKEN_OFF, Verdict.PROXY_DIED})
"""No process remained to send the protocol's error."""
HONEST = frozenset({Verdict.RIGHT, Verdict.ERROR}) | EXCUSED
"""Verdicts that a client can handle; all others are faults of the fleet."""


@dataclass(frozen=True)
class Span:
    """A period, in seconds since the load began."""

    began: float
    ended: float

    def has(self, at: float) -> bool:
        return self.began <= at <= self.ended


def judge(answer: Answer, deaths: Sequence[Death]) -> tuple[Verdict, str]:
    """Return the verdict and its reason. `deaths` are those of gateways, of their workers and of the load balancer."""
    if others := _others(answer.question, answer.body.decode(errors="replace")):
        return Verdict.MIXED, f"it has words of {others}"
    if answer.timed_out:
        return Verdict.LOST, "it never ended"
    if not answer.ended:
        return _judge_cut(answer, deaths)
    if answer.status != OK:
        return _judge_refusal(answer, deaths)
    try:
        read = read_stream if answer.question.streams else read_whole
        seen = read(answer.question.wire, answer.body)
    except GrammarError as error:
        return Verdict.MALFORMED, str(error)
    return _judge_seen(answer.question, seen)


def _others(question: Question, text: str) -> list[int]:
    """Return other streams whose words are in a text."""
    return sorted({int(number) for number in _WORD.findall(text)} - {question.number})[:5]


def _judge_cut(answer: Answer, deaths: Sequence[Death]) -> tuple[Verdict, str]:
    death = death_of(answer.cut, deaths)
    if death is None:
        return Verdict.LOST, f"the connection to {answer.carrier or 'nginx'} broke at {answer.done:.2f} s for no reason"
    return (Verdict.BROKEN_OFF, "a gateway was killed") if death.address else (Verdict.PROXY_DIED, "nginx was killed")


def _judge_refusal(answer: Answer, deaths: Sequence[Death]) -> tuple[Verdict, str]:
    if b"<center>nginx" in answer.body:
        death = death_of(answer.cut, deaths)
        verdict = Verdict.PROXY_ERROR if death and death.address else Verdict.LOST
        return verdict, f"{answer.status} of the load balancer for {answer.carrier or 'no gateway'}"
    try:
        faults = error_faults(answer.question.wire, answer.status, json.loads(answer.body))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        faults = [repr(error)]
    if faults:
        return Verdict.MALFORMED, f"{answer.status} with {answer.body[:200]!r}: {'; '.join(faults)}"
    return Verdict.ERROR, f"{answer.status} {answer.body[:200].decode(errors='replace')}"


def _judge_seen(question: Question, seen: Seen) -> tuple[Verdict, str]:
    if others := _others(question, seen.text):  # a word may be cut over several frames of the stream
        return Verdict.MIXED, f"it has words of {others}"
    words, wanted = seen.text.split(), question.words
    calls = [call for call in seen.calls if call.name == TOOL and call.arguments == question.arguments]
    if len(calls) > 1:
        return Verdict.TWICE, f"{len(calls)} calls"
    if len(calls) != len(seen.calls) or len(calls) > question.calls:
        return Verdict.WRONG, f"calls {seen.calls!r}"
    if seen.error:
        cut = " ".join(wanted).startswith(seen.text.strip())
        return (Verdict.ERROR, seen.error) if cut else (Verdict.WRONG, f"{seen.text[-80:]!r} before an error")
    if words != wanted or len(calls) != question.calls:
        return Verdict.WRONG, f"{len(words)} of {len(wanted)} words, {len(calls)} calls, {seen.text[-80:]!r}"
    return Verdict.RIGHT, ""


@dataclass
class Tally:
    """Verdicts of all streams, with the reasons of the first bad ones."""

    counts: Counter[Verdict] = field(default_factory=Counter[Verdict])
    faults: list[str] = field(default_factory=list[str])
    errors: Counter[str] = field(default_factory=Counter[str])
    """How often each error was given, by its first words."""

    def add(self, answer: Answer, verdict: Verdict, reason: str) -> None:
        self.counts[verdict] += 1
        if verdict not in HONEST:
            self.faults.append(f"stream {answer.question.number} on {answer.question.wire}: {verdict}: {reason}")
        elif verdict is not Verdict.RIGHT:
            self.errors[re.sub(r"\d+(\.\d+)?", "N", reason)[:120]] += 1


# ---------------------------------------------------------------- the limit


@dataclass(frozen=True)
class Sample:
    """One request under the limit: when it was answered, and how; a status of 0 is no answer.

    A gateway decided about it between `sent` and `at`.
    """

    at: float
    status: int
    sent: float


@dataclass(frozen=True)
class Window:
    """A time in which the limit was shared and used up all the time. `uncertain` requests may have been admitted."""

    began: float
    ended: float
    allowed: float
    admitted: int
    uncertain: int
    slack: float = 0.0
    """Requests that it may miss the limit by, because the exact times of its two ends are unknown."""

    @property
    def deviation(self) -> float:
        """Return how far the admitted requests miss the limit, as a share of it; uncertain ones count in favour."""
        if not self.allowed:
            return 0.0
        if self.admitted > self.allowed:
            return self.admitted / self.allowed - 1
        return min(0.0, (self.admitted + self.uncertain) / self.allowed - 1)


SHORTEST_S = 10.0
"""Shorter windows say little: each has an error of one request at its ends."""
OK, LIMITED = 200, 429


def windows(samples: Sequence[Sample], apart: Sequence[Span], per_second: float) -> list[Window]:
    """Cut the samples into windows, each from a refusal to a refusal, without the times in which gateways were `apart`.

    At a refusal the bucket is empty, so between two of them exactly the rate was available. But after an outage of
    Redis the bucket may be in debt, and refuse for a while: so a window begins with the first refusal before an
    admission. A request that was sent before the window began may have been admitted before.
    """
    found: list[Window] = []
    for group in _groups(sorted(samples, key=lambda sample: sample.at), apart):
        inside = _used_up(group)
        if not inside or inside[-1].at - inside[0].at < SHORTEST_S:
            continue
        first, last = inside[0], inside[-1]
        certain = [sample.sent >= first.at for sample in inside if sample.status == OK]
        uncertain = sum(sample.status not in (OK, LIMITED) for sample in inside) + certain.count(False)
        allowed = (last.at - first.at) * per_second
        slack = (first.at - first.sent + last.at - last.sent) * per_second
        found.append(Window(first.at, last.at, allowed, certain.count(True), uncertain, slack))
    return found


def _used_up(group: Sequence[Sample]) -> Sequence[Sample]:
    """Return the part of a group in which the limit was used up.

    It begins where no earlier request is still unanswered, if such a place is close.
    """
    statuses = [sample.status for sample in group]
    firsts = [place for place, pair in enumerate(pairwise(statuses)) if pair == (LIMITED, OK)]
    if not firsts:
        return ()
    soon = [place for place in firsts if group[place].at < group[firsts[0]].at + SHORTEST_S]
    first = next((place for place in soon if not _late(group, place)), firsts[0])
    last = max(place for place, status in enumerate(statuses) if status == LIMITED)
    return group[first : last + 1]


def _late(group: Sequence[Sample], place: int) -> bool:
    """Return whether requests from before a sample are answered after it."""
    return any(later.sent < group[place].at for later in group[place + 1 :])


def _groups(samples: Sequence[Sample], apart: Sequence[Span]) -> Iterable[list[Sample]]:
    group: list[Sample] = []
    for sample in samples:
        if any(span.has(sample.at) or span.has(sample.sent) for span in apart):
            yield group
            group = []
        else:
            group.append(sample)
    yield group


def whole(found: Sequence[Window]) -> Window:
    """Add windows up; each loses a request at its ends."""
    allowed = sum(window.allowed for window in found)
    counts = (sum(window.admitted for window in found), sum(window.uncertain for window in found))
    slack = sum(window.slack for window in found)
    return Window(found[0].began if found else 0.0, found[-1].ended if found else 0.0, allowed, *counts, slack)


# ---------------------------------------------------------------- runs


@dataclass(frozen=True)
class RunAsked:
    """A run that a gateway has accepted."""

    name: str
    rounds: int

    @property
    def steps(self) -> list[tuple[str, int]]:
        return [(tool, number) for number in range(self.rounds) for tool in ("look", "put")]

    @property
    def text(self) -> str:
        """Return its final text."""
        return f"{self.name} is done"


@dataclass
class RunTally:
    """Verdicts of all runs."""

    done: int = 0
    lost: list[str] = field(default_factory=list[str])
    mixed: list[str] = field(default_factory=list[str])
    twice: list[str] = field(default_factory=list[str])
    unknown: int = 0
    """Calls that must not run twice, whose worker died during them: the model's result says so."""
    again: int = 0
    """Calls that may run twice, and did."""

    @property
    def ok(self) -> bool:
        return not (self.lost or self.mixed or self.twice)


def judge_run(
    asked: RunAsked,
    shown: Mapping[str, Any],
    messages: Sequence[Mapping[str, Any]],
    marks: Sequence[Mark],
    tally: RunTally,
) -> None:
    """Compare what a run shows with what its tools have done, by the marks that they wrote to a file."""
    begun = Counter(mark.step for mark in marks if mark.what == "begin")
    for step, times in begun.items():
        if times > 1 and step.startswith("put"):
            tally.twice.append(f"{asked.name}: {step} {times} times")
        elif times > 1:
            tally.again += times - 1
    if shown.get("status") != "done" or not str(shown.get("text", "")).endswith(asked.text):
        told = str(shown.get("reason") or shown.get("text", ""))[:200]
        tally.lost.append(f"{asked.name}: {shown.get('status')}, {told!r}")
        return
    results = [str(message["content"]) for message in messages if message.get("role") == "tool"]
    if len(results) != len(asked.steps):
        tally.lost.append(f"{asked.name}: {len(results)} results of {len(asked.steps)}")
        return
    gave = {mark.step: {each.gave for each in marks if each.step == mark.step and each.gave} for mark in marks}
    for (tool, number), result in zip(asked.steps, results, strict=True):
        _judge_result(asked, f"{tool} {number}", result, gave.get(f"{tool} {number}", set()), tally)
    tally.done += 1


def _judge_result(asked: RunAsked, step: str, result: str, gave: set[str], tally: RunTally) -> None:
    if result in gave:
        return
    if step.startswith("put") and result.startswith(_UNKNOWN):
        tally.unknown += 1
    elif (owner := _OWNER.match(result)) and owner[1] != asked.name:
        tally.mixed.append(f"{asked.name}: {step} got {result[:100]!r}")
    else:
        tally.lost.append(f"{asked.name}: {step} gave {sorted(gave)}, and the run has {result[:100]!r}")

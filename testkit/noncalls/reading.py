"""Reads texts that only look like calls, and counts the calls that a reader sees in them (P5, P1).

`texts.py` describes the texts, and which texts are not among them. Each is read by the readers of the dialects
whose markup it shows, by three others, by `any`, and by one of these together with `any`, as emulated turns are read.
"""

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from testkit.noncalls.texts import SEED, NonCall, noncalls
from testkit.noncalls.tools import tool_set
from testkit.report import progress
from toolspeak.dialects import load, load_together, names
from toolspeak.ir.event import CallStarted, Event, raw_of

OTHERS: Final = 3
SHOWN: Final = 20
STEP: Final = 500
ANY: Final = "any"
TOGETHER: Final = " and any"
"""Follows the name of a dialect that is read together with `any`."""
READERS: Final = tuple(name for name in names() if name != ANY)


class Case(NamedTuple):
    """A call that a reader found in a text without calls."""

    dialect: str
    called: tuple[str, ...]
    text: NonCall

    def line(self) -> str:
        """Return a report of the case in one line."""
        text = self.text.text
        short = text if len(text) <= 240 else f"{text[:120]} … {text[-120:]}"
        return f"#{self.text.number} {self.text.kind} by {self.dialect}: {', '.join(self.called)} in {short!r}"


@dataclass
class Counts:
    """The results of all reads."""

    reads: int = 0
    lost: int = 0
    cases: list[Case] = field(default_factory=list[Case])
    any_cases: list[Case] = field(default_factory=list[Case])


def readers_of(text: NonCall) -> tuple[str, ...]:
    """Return the names of the readers that a text is given to."""
    chance = Random(f"{SEED}/readers/{text.number}")
    others = chance.sample(READERS, OTHERS) if text.strangers else ()
    own = tuple(dict.fromkeys((*text.dialects, *others)))
    return (*own, ANY, *(f"{name}{TOGETHER}" for name in chance.sample(own, min(1, len(own)))))


def events_of(dialect: str, text: str) -> list[Event]:
    """Read a text with the default reader of a dialect."""
    taught = dialect.removesuffix(TOGETHER)
    reader = (load(dialect) if taught == dialect else load_together(taught, ANY)).reader(tool_set())
    return [*reader.feed(text), *reader.finish()]


def calls_in(events: list[Event]) -> list[str]:
    """Return the names of the tools that would be called."""
    return [event.name for event in events if isinstance(event, CallStarted)]


def check(text: NonCall, readers: tuple[str, ...], counts: Counts) -> None:
    """Read one text with these readers."""
    for dialect in readers:
        events = events_of(dialect, text.text)
        counts.reads += 1
        counts.lost += "".join(map(raw_of, events)) != text.text
        called = calls_in(events)
        if called:
            cases = counts.any_cases if dialect == ANY else counts.cases
            cases.append(Case(dialect, tuple(called), text))


def telling(cases: list[Case]) -> list[Case]:
    """Choose some cases: short ones, of as many kinds as there are."""
    seen: Counter[str] = Counter()
    ranked: list[tuple[int, int, Case]] = []
    for case in sorted(cases, key=lambda case: len(case.text.text)):
        seen[case.text.kind] += 1
        ranked.append((seen[case.text.kind], len(ranked), case))
    return [case for _, _, case in sorted(ranked)[:SHOWN]]


def run(count: int, dialect: str | None = None) -> Counts:
    """Read the first `count` texts; with a dialect, only by its reader."""
    counts = Counts()
    for text in noncalls(count):
        readers = readers_of(text) if dialect is None else (dialect,)
        if dialect is None or text.strangers or dialect in text.dialects:
            check(text, readers, counts)
        if (text.number + 1) % STEP == 0 or text.number + 1 == count:
            progress(text.number + 1, count, "texts")
    return counts

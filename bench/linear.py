"""`just linear`: twice the input, at most 2.5 times the time, on hostile input too; and no stray exception (P8).

Every dialect meets every family at small sizes first: a screen, in which the cost of a byte must not grow twice in a
row. Then plain text and the dialect's two worst families are measured from 100 to 200 KB, and so is every other
component on all of its families. Noise can make a good ratio look bad, never the reverse: a bad one is measured again.

`--every 3` measures every third case, as CI does: all of them take nine minutes.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from typing import TypeAlias

from bench.floods import FLOODS, FRAME_FLOODS, JSON_FLOODS, PROSE, Make, by_grammar, families_of, fill, markup_of
from testkit.golden import samples
from testkit.report import close, progress
from toolspeak.dialects import ReadOptions, load, names
from toolspeak.errors import ToolspeakError
from toolspeak.ir.event import ArgsDelta, CallEnded, CallStarted, Discarded, Event, ReasoningDelta, TextDelta, Why
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.turn import fold
from toolspeak.text.coerce import coerce_arguments, typed
from toolspeak.text.jsonspan import JsonSpan
from toolspeak.text.lines import NdjsonDecoder
from toolspeak.text.repair import Lenient, repair
from toolspeak.text.scan import Markers
from toolspeak.text.schema import compile_schema
from toolspeak.text.sse import SseDecoder
from toolspeak.text.strict import parse
from toolspeak.toolset.toolset import ToolSet

Use: TypeAlias = Callable[[str], object]
"""Spends the time that is measured on a text."""

BAR, GOOD = 2.5, 2.2
SIZE = 100_000
SCREEN_BAR = 1.6
"""How much the cost of one byte may grow when the text doubles."""
SCREEN_SIZE = 6_000
DELTA = 8
WHOLE = sys.maxsize
MODES = {"deltas": DELTA, "whole": WHOLE}
TRIES = 8
AGAIN = 8
"""How often a bad figure is measured again: other work on the machine can spoil all tries of one measurement."""
LONG_S, TOO_LONG_S = 0.5, 2.0
"""Noise hardly matters in the first, and what takes the second is not measured again."""
TOO_SHORT_S = 0.002
"""Shorter work is repeated, because the clock is too coarse for it."""
INFINITE = float("inf")

# what is measured


@cache
def tools() -> ToolSet:
    """Return the tools of the samples."""
    return ToolSet.of(samples()[0].tools)


def read(name: str, text: str, size: int) -> None:
    """Read a text with a dialect, in deltas of a size."""
    reader = load(name).reader(tools(), options=ReadOptions(max_calls=sys.maxsize))
    for start in range(0, len(text), size):
        reader.feed(text[start : start + size])
    reader.finish()


def decode(decoder: SseDecoder | NdjsonDecoder, text: str) -> None:
    """Decode a byte stream in deltas."""
    stream = text.encode()
    for start in range(0, len(stream), DELTA):
        decoder.feed(stream[start : start + DELTA])
    decoder.finish()


def span(text: str, size: int) -> None:
    """Find the end of a JSON value."""
    finder = JsonSpan(max_depth=sys.maxsize, max_blanks=sys.maxsize)
    for start in range(0, len(text), size):
        finder.feed(text[start : start + size])


def scan(markers: Markers, text: str, size: int) -> None:
    """Look for markers as a reader does: release what is not held, and step over what is found."""
    window = ""
    for start in range(0, len(text), size):
        window += text[start : start + size]
        pos = 0
        while (hit := markers.search(window, pos)) is not None and hit.literal:
            pos = hit.start + len(hit.literal)
        window = "" if hit is None else window[hit.start :]


def fold_all(kind: type[Event], text: str) -> None:
    """Fold a stream of one kind of event."""
    pieces = [text[start : start + DELTA] for start in range(0, len(text), DELTA)]
    fold(event for piece in pieces for event in _events(kind, piece))


def _events(kind: type[Event], piece: str) -> list[Event]:
    if kind is Discarded:
        return [Discarded(Why.DEBRIS, piece)]
    if kind is CallEnded:
        return [CallStarted(piece, "f"), ArgsDelta(piece, "{}"), CallEnded(piece, piece)]
    return [TextDelta(piece), ReasoningDelta(piece)] if kind is ReasoningDelta else [TextDelta(piece)]


OBJECT: JsonObject = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "on": {"type": "boolean"},
        "list": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "object"}, {"type": "null"}]}},
        "tree": {"$ref": "#"},
        "text": {"type": "string", "enum": ["a", "b"]},
    },
}


def fit(shape: str, text: str) -> None:
    """Coerce and check a value made of this text, as the arguments of a call and as plain text."""
    values: dict[str, Json] = {
        "number": {"n": text},
        "items": {"list": list(text)},
        "objects": {"list": [{"n": char} for char in text[::10]]},
        "keys": {f"{index}{char}": char for index, char in enumerate(text)},
        "whole": text,
        "wrapped": {"input": text},
    }
    value = coerce_arguments(values[shape], OBJECT).value
    compile_schema(OBJECT).problems(value)
    typed(text, {"type": ["array", "object", "integer"]})


def components() -> Iterator[tuple[str, Use, dict[str, Make]]]:
    """Yield every component that is not a dialect: its name, how to use it, and its families."""
    yield "strict", parse, JSON_FLOODS
    yield "repair, closed", partial(repair, closed=True), JSON_FLOODS
    yield "repair, open", partial(repair, closed=False), JSON_FLOODS
    yield "lenient, Python", lambda text: Lenient(text, python=True).value(), JSON_FLOODS
    yield "jsonspan, deltas", partial(span, size=DELTA), JSON_FLOODS
    yield "jsonspan, whole", partial(span, size=WHOLE), JSON_FLOODS
    for shape in ("number", "items", "objects", "keys", "whole", "wrapped"):
        yield f"coerce, {shape}", partial(fit, shape), JSON_FLOODS
    yield "sse", lambda text: decode(SseDecoder(), text), FRAME_FLOODS
    yield "ndjson", lambda text: decode(NdjsonDecoder(), text), FRAME_FLOODS
    literals = [literal for kind in markup_of(load("any").grammar).values() for literal in kind]
    marked = {what: fill(piece) for what, piece in FLOODS.items()} | dict(by_grammar("any"))
    for mode, size in MODES.items():
        yield f"markers, {mode}", partial(scan, Markers(literals, ignore_case=True), size=size), marked
    for kind in (TextDelta, ReasoningDelta, Discarded, CallEnded):
        yield f"fold, {kind.__name__}", partial(fold_all, kind), {"plain text": fill(PROSE)}


# the measurement


@dataclass
class Report:
    """The findings: ratios at full size, and bad cases."""

    ratios: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    bad: list[str] = field(default_factory=list[str])
    cases: int = 0
    every: int = 1

    def skips(self) -> bool:
        """Count a case; tell whether it is not one of those to measure."""
        self.cases += 1
        return self.cases % self.every != 0

    def ratio(self, case: str, use: Use, make: Make) -> None:
        """Measure from 100 to 200 KB."""
        if self.skips():
            return
        try:
            ratio = ratio_of(use, make)
            for _ in range(AGAIN):
                ratio = ratio if ratio < BAR else min(ratio, ratio_of(use, make))
        except Exception as error:  # noqa: BLE001  (the bar is that there is none)
            self.bad.append(f"{case}: {type(error).__name__} {str(error)[:80]}")
            return
        self.ratios.append((ratio, case))
        print(f"{ratio:6.2f}  {case}")
        if ratio >= BAR:
            self.bad.append(f"{case}: {ratio:.2f} times the time for twice the text")

    def screen(self, case: str, use: Use, make: Make) -> float:
        """Screen at small sizes; return how the cost of a byte grew, or 0 if nothing more need be measured."""
        if self.skips():
            return 0.0
        try:
            first, last = growth_of(use, make)
            for _ in range(AGAIN):
                first, last = (first, last) if min(first, last) <= SCREEN_BAR else growth_of(use, make)
        except Exception as error:  # noqa: BLE001  (as above)
            self.bad.append(f"{case}: {type(error).__name__} {str(error)[:80]}")
            return 0.0
        if min(first, last) <= SCREEN_BAR:
            return first
        self.bad.append(f"{case}: the cost of a byte grows {first:.2f} times, then {last:.2f} times")
        return 0.0


def cost(use: Use, text: str, times: int = 1) -> float:
    """Measure the CPU time of one use; our own errors are answers too."""
    start = time.process_time()
    for _ in range(times):
        with suppress(ToolspeakError):
            use(text)
    return max(time.process_time() - start, 1e-9) / times


def ratio_of(use: Use, make: Make) -> float:
    """Measure cost(2n)/cost(n), interleaved, best of each; repeat while the ratio looks bad."""
    small, large = make(SIZE), make(2 * SIZE)
    best = cost(use, small), cost(use, large)
    times = max(1, min(100, int(TOO_SHORT_S / best[0])))
    for _ in range(TRIES):
        if best[1] / best[0] < GOOD or best[1] > TOO_LONG_S:
            break
        best = min(best[0], cost(use, small, times)), min(best[1], cost(use, large, times))
    return best[1] / best[0]


def growth_of(use: Use, make: Make) -> tuple[float, float]:
    """Measure how the cost of a byte grows from 6 to 12 KB and, if it does, from 12 to 24 KB."""
    texts = [make(SCREEN_SIZE * factor) for factor in (1, 2, 4)]
    best = [cost(use, text) for text in texts[:2]]
    for done in range(TRIES):
        growth = [large / small / 2 for small, large in pairwise(best)]
        if min(growth) <= SCREEN_BAR or (done and best[-1] > LONG_S):
            break
        known = best if len(best) == len(texts) or best[-1] > LONG_S else [*best, INFINITE]
        best = [min(time_s, cost(use, text)) for time_s, text in zip(known, texts, strict=False)]
    growth = [large / small / 2 for small, large in pairwise(best)]
    return growth[0], growth[-1]


def measure_dialect(name: str, report: Report) -> None:
    """Screen all families in all modes, then measure plain text and the two families that grew most."""
    uses = {mode: partial(read, name, size=size) for mode, size in MODES.items()}
    families = families_of(name)
    read(name, "x", WHOLE)  # the first reader compiles its tables
    grown: dict[tuple[str, str], float] = {}
    for mode, use in uses.items():
        for what, make in families.items():
            grown[mode, what] = report.screen(f"{name}, {mode}, {what}", use, make)
    worst = sorted(grown, key=lambda case: grown[case])[-2:]
    for mode, what in dict.fromkeys([*((mode, "plain text") for mode in uses), *worst]):
        report.ratio(f"{name}, {mode}, {what}", uses[mode], families[what])


def main() -> None:
    """Measure everything."""
    options = argparse.ArgumentParser(prog="bench.linear")
    options.add_argument("wanted", nargs="*", help="dialects, or `components`")
    options.add_argument("--every", type=int, default=1, metavar="N", help="measure every Nth case")
    chosen = options.parse_args()
    report = Report(every=chosen.every)
    gc.disable()
    wanted: list[str] = chosen.wanted
    dialects = [name for name in names() if not wanted or name in wanted]
    for number, name in enumerate(dialects):
        measure_dialect(name, report)
        gc.collect()
        progress(number + 1, len(dialects), "dialects")
    for name, use, families in components() if not wanted or "components" in wanted else ():
        for what, make in families.items():
            report.ratio(f"{name}, {what}", use, make)
    for line in report.bad:
        print(f"BAD {line}")
    worst, case = max(report.ratios)
    figures = {
        "worst": round(worst, 2),
        "worst_case": case,
        "cases": report.cases // report.every,
        "bad": len(report.bad),
    }
    close("linear", ok=not report.bad, **figures, cpu_s=round(time.process_time()))


if __name__ == "__main__":
    main()

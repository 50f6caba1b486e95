"""`just noncalls`: 100,000 texts that only look like calls, in which no reader may find a call (P5, P1).

Dialect readers must find nothing at all; for `any`, which accepts every dialect's markup at once, the rate is printed.

    python -m bench.noncalls [--texts N] [--dialect NAME] [--show N]
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import Final

from testkit.noncalls.reading import ANY, READERS, Counts, calls_in, events_of, readers_of, run, telling
from testkit.noncalls.texts import noncall
from testkit.report import close
from toolspeak.dialects import names
from toolspeak.ir.event import CallRejected

TEXTS: Final = 100_000


def show(number: int) -> None:
    """Print a text, and what each reader finds in it."""
    text = noncall(number)
    print(f"#{number} {text.kind}, shows {', '.join(text.dialects)}\n{text.text}\n")
    for dialect in readers_of(text) if not text.strangers else (*READERS, ANY):
        events = events_of(dialect, text.text)
        problems = [event.complaint.problem.value for event in events if isinstance(event, CallRejected)]
        mark = "*" if dialect in readers_of(text) else " "
        print(f"{mark} {dialect:15} calls {calls_in(events)} complaints {problems}")


def summary(counts: Counts) -> Iterator[str]:
    """Report which readers found calls in which kinds of text."""
    kinds: dict[str, Counter[str]] = {}
    for case in (*counts.cases, *counts.any_cases):
        kinds.setdefault(case.text.kind, Counter())[case.dialect] += 1
    for kind, dialects in sorted(kinds.items()):
        yield f"{kind}: {', '.join(f'{dialect} {count}' for dialect, count in dialects.most_common())}"


def main() -> None:
    """Run all texts, or show one."""
    options = argparse.ArgumentParser(prog="bench.noncalls")
    options.add_argument("--texts", type=int, default=TEXTS)
    options.add_argument("--dialect", choices=names())
    options.add_argument("--show", type=int)
    chosen = options.parse_args()
    if chosen.show is not None:
        show(chosen.show)
        return
    counts = run(chosen.texts, chosen.dialect)
    shown = (*telling(counts.cases), *telling(counts.any_cases))
    for line in (*summary(counts), *(case.line() for case in shown)):
        print(line)
    calls, any_calls = len(counts.cases), len(counts.any_cases)
    figures = {"texts": chosen.texts, "reads": counts.reads, "calls": calls, "lost": counts.lost}
    rate = any_calls / max(1, chosen.texts)
    close("noncalls", ok=not calls and not counts.lost, **figures, any_calls=any_calls, any_rate=round(rate, 6))


if __name__ == "__main__":
    main()

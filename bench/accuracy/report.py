"""`just accuracy-report`: the kept lines as a table, the lift of each switch, and a picture for each model.

Writes bench/results/accuracy.json, bench/results/accuracy.md and bench/results/accuracy-MODEL.svg from held-out tasks;
`--split development` writes bench/results/accuracy-development.json and so on.
"""

import argparse
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from bench.accuracy import by_set, data, kept
from bench.accuracy.bfcl_talks import BFCL_MULTI_TURN
from bench.accuracy.intervals import Estimate
from bench.accuracy.kept import Conditions, Line
from bench.accuracy.plot import plot
from bench.accuracy.score import Delivered, score
from bench.accuracy.split import Split, split_of
from bench.accuracy.table import MULTI_TURN, Lift, Lines, Row, TalkLift, lifts, margins, newest, rows, talk_lifts
from bench.gateway.install import VERSIONS
from testkit.llama_models import MODELS
from testkit.report import close

RESULTS = Path(__file__).parents[1] / "results"
COLUMNS = (*data.SETS, "average", MULTI_TURN, BFCL_MULTI_TURN)
NOTE = "Right answers, mean of simple, multiple, parallel, irrelevance (BFCL v4, {split} tasks); lines: 95 % intervals."
STEMS = {Split.HELD_OUT: "accuracy", Split.DEVELOPMENT: "accuracy-development"}
"""Prefix of the files of each split."""
MEANINGS = {
    Split.HELD_OUT: "Held-out tasks: no prompt, guardrail or reader was changed after a look at them.",
    Split.DEVELOPMENT: "Development tasks: forms were shaped on them, so these figures flatter our forms.",
}


class Measured:
    """One model's figures."""

    def __init__(self, model: str, split: Split, found: Lines) -> None:
        self.model, self.split = model, split
        self.more = by_set.tallies(found, {name: _needing(name) for name in _asked(found) if name in by_set.SETS})
        lines = {form: counted for form, each in found.items() if (counted := _without_more(each))}
        self.rows = rows(lines)
        self.lifts = lifts(lines)
        self.talk_lifts = talk_lifts(lines)
        self.margins = margins(lines, self.rows)
        self.conditions: Conditions = next(line for each in found.values() for line in each.values()).conditions
        counts = [sum(key[0] in data.SETS for key in each) for each in lines.values()] or [0]
        self.tasks = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"

    def figures(self) -> dict[str, Any]:
        """Return the figures for the result file."""
        return {
            "sha256": MODELS[self.model].sha256,
            "split": self.split,
            "conditions": asdict(self.conditions),
            "rows": [_rounded(asdict(row)) for row in self.rows],
            "lifts": [_rounded(asdict(lift)) for lift in self.lifts],
            "conversation_lifts": [_rounded(asdict(lift)) for lift in self.talk_lifts],
            "margins": [_rounded(asdict(lift)) for lift in self.margins],
            **({"languages_and_shapes": by_set.figures(self.more)} if self.more else {}),
        }

    def page(self) -> Iterator[str]:
        """Write its part of the page."""
        yield f"## {self.model}"
        yield ""
        yield (
            f"{self.conditions.server}, temperature 0, at most {self.conditions.max_tokens} tokens an answer, "
            f"seed {self.conditions.seed}; {self.tasks} {self.split} tasks of the four sets for each form."
        )
        yield ""
        if self.rows:
            yield f"![Accuracy of {self.model} by form]({STEMS[self.split]}-{self.model}.svg)"
            yield ""
            yield from _table(self.rows)
            yield ""
        if self.margins or self.lifts:
            yield "What each thing is worth, in points of the average, on the same tasks:"
            yield ""
            yield from _differences([*self.margins, *self.lifts])
            yield ""
        if self.talk_lifts:
            yield "What each switch changes in our own conversations (multi-turn), for each conversation:"
            yield ""
            yield from _talk_differences(self.talk_lifts)
            yield ""
        if self.more:
            yield "### Languages and shapes"
            yield ""
            yield "Right answers; in brackets, those of the tasks that need calls and of those that need none."
            yield ""
            yield from by_set.table(self.more)
            yield ""


def _asked(lines: Lines) -> set[str]:
    return {name for each in lines.values() for name, _ in each}


def _without_more(lines: dict[tuple[str, str], Line]) -> dict[tuple[str, str], Line]:
    """Return the lines that the first table counts."""
    return {key: line for key, line in lines.items() if key[0] not in by_set.SETS}


def _needing(name: str) -> frozenset[str]:
    return frozenset(task.id for task in _tasks(name).values() if task.wanted)


def _rounded(value: dict[str, Any]) -> dict[str, Any]:
    """Round to significant digits."""
    return json.loads(json.dumps(value), parse_float=lambda text: round(float(text), 4))


def _table(ranked: Sequence[Row]) -> Iterator[str]:
    heads = ("simple", "multiple", "parallel", "irrelevance", "**average**", "multi-turn", "BFCL multi-turn")
    more = (
        "valid",
        "wrong but valid",
        "spurious",
        "requests a task",
        "requests a solved task",
        "tokens in",
        "out",
        "n",
    )
    yield f"| form | {' | '.join((*heads, *more))} |"
    yield f"| --- |{' ---: |' * len((*heads, *more))}"
    for row in ranked:
        estimates = [row.sets.get(name) if name != "average" else row.average for name in COLUMNS]
        cells = [_cell(one) for one in estimates]
        cells[4] = f"**{cells[4]}**" if row.average else cells[4]
        cells += [_cell(one) for one in (row.valid, row.wrong_but_valid, row.spurious)]
        counts = "+".join(str(one.count) for one in row.sets.values())
        cells += [f"{row.requests:.2f}", *_costs(row), counts]
        yield f"| {row.form} | {' | '.join(cells)} |"


def _costs(row: Row) -> tuple[str, str, str]:
    if row.cost is None:
        return "–", "–", "–"
    return f"{row.cost.requests:.2f}", f"{row.cost.input_tokens:.0f}", f"{row.cost.output_tokens:.0f}"


def _cell(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    value = f"{100 * estimate.value:.1f}".removesuffix(".0")
    return f"{value} ({100 * estimate.low:.0f}–{100 * estimate.high:.0f})"


def _differences(found: Sequence[Lift]) -> Iterator[str]:
    yield "| what | with | without | points | 95 % | simple | multiple | parallel | irrelevance |"
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for lift in found:
        each = " | ".join(f"{100 * lift.sets[name]:+.0f}" if name in lift.sets else "–" for name in data.SETS)
        yield f"| {lift.what} | {lift.better} | {lift.worse} | {_difference(lift.difference, 100)} | {each} |"


def _talk_differences(found: Sequence[TalkLift]) -> Iterator[str]:
    yield "| what | with | without | right, in points | 95 % | calls | 95 % | n |"
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for lift in found:
        cells = f"{_difference(lift.right, 100)} | {_difference(lift.calls)} | {lift.right.count}"
        yield f"| {lift.what} | {lift.better} | {lift.worse} | {cells} |"


def _difference(one: Estimate, times: int = 1) -> str:
    """Write a difference and its interval, in two cells; bold if it is surely not zero."""
    points = f"{times * one.value:+.1f}"
    span = f"{times * one.low:+.1f} to {times * one.high:+.1f}"
    return f"{f'**{points}**' if one.is_clear else points} | {span}"


def page(measured: Sequence[Measured], split: Split, commit: str, date: str) -> str:
    """Write the page."""
    lines = [
        "# Accuracy",
        "",
        f"Made by `just accuracy-report` on {date} from toolspeak {commit}; docs/accuracy.md says how to read it.",
        "Shares in percent, with their 95 % intervals; `n` tasks of each set, in the order of the columns.",
        "Tokens, in and out, are those of a solved task: what all tasks of the four sets took, divided by the solved.",
        "The tasks are those of BFCL v4, and conversations of our own.",
        MEANINGS[split],
        "",
    ]
    return "\n".join([*lines, *(line for one in measured for line in one.page())]).rstrip() + "\n"


def commit_of() -> str:
    """Return the commit of the code."""
    told = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return told.stdout.strip() or "unknown"


def write(measured: Sequence[Measured], split: Split, folder: Path) -> None:
    """Write all files."""
    stem = STEMS[split]
    date, commit = datetime.now(UTC).date().isoformat(), commit_of()
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "date": date,
        "toolspeak": commit,
        "split": split,
        "forge": VERSIONS["forge"],
        "data": {"package": data.PIN, "sha256": data.SHA256},
        "models": {one.model: one.figures() for one in measured},
    }
    (folder / f"{stem}.json").write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
    (folder / f"{stem}.md").write_text(page(measured, split, commit, date))
    for one in (one for one in measured if one.rows):
        picture = plot(f"Tool-calling accuracy of {one.model}", NOTE.format(split=split), one.rows)
        (folder / f"{stem}-{one.model}.svg").write_text(picture)


def rescored(line: Line) -> Line:
    """Judge the calls by the rules as they are now; a conversation cannot be judged again."""
    if line.set in (MULTI_TURN, BFCL_MULTI_TURN):
        return line
    judged = score(_tasks(line.set)[line.task], [Delivered(*call) for call in line.calls])
    return replace(line, right=judged.right and not line.failure, valid=judged.valid)


@cache
def _tasks(name: str) -> dict[str, data.Task]:
    return {task.id: task for task in data.load(name)}


def main() -> None:
    """Report on all models that have lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=Path, default=kept.LINES)
    parser.add_argument("--to", type=Path, default=RESULTS, help="the folder for the files")
    parser.add_argument("--model", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--split", type=Split, default=Split.HELD_OUT, choices=list(Split), help="which tasks to show")
    options = parser.parse_args()
    split: Split = options.split
    lines = [rescored(line) for line in kept.read(options.lines) if split_of(line.task) is split]
    measured = [Measured(model, split, found) for model in options.model if (found := newest(lines, model))]
    if measured:
        write(measured, split, options.to)
    best = {one.model: _best(one.rows) for one in measured}
    close("accuracy-report", ok=bool(measured), split=split, lines=len(lines), best=best, to=str(options.to))


def _best(ranked: Sequence[Row]) -> str:
    first = next((row for row in ranked if row.average), None)
    return f"{first.form}: {100 * first.average.value:.1f}" if first and first.average else "none"


if __name__ == "__main__":
    main()

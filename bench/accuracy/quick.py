"""`just accuracy-quick`: a dozen tasks on a real model of 0.5 GB, bare and in our forms, in a few minutes.

It fails if ours has fewer right answers than the bare server, finds no call at all, or delivers a call that does not
fit its schema. Only the model and the tasks are kept from run to run.
"""

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.accuracy import kept
from bench.accuracy.data import SETS
from bench.accuracy.kept import Line
from bench.accuracy.run import measured, options_of, served
from bench.accuracy.split import Split
from testkit.report import close

TASKS, MAX_TOKENS = 3, 96
MINUTES, LEAST_MINUTES = 5.0, 2.5
"""The download of the model included; a slow network leaves less for the tasks, but at least the second value."""
BARE, OURS = "native", ("default", "hermes guardrails")
LEAST_TASKS = 2
"""The minimum for a busy machine; an idle one does all tasks."""


def asked(folder: Path) -> list[Line]:
    """Run the tasks, and return those that every form has done."""
    began = time.monotonic()
    options = options_of(
        [
            *("--split", Split.DEVELOPMENT, "--tasks", str(TASKS), "--max-tokens", str(MAX_TOKENS)),
            *("--set", *SETS, "--form", BARE, *OURS),
            *("--out", str(folder / "lines.jsonl"), "--answers", str(folder)),
        ]
    )
    with served(options) as url:
        options.minutes = max(LEAST_MINUTES, MINUTES - (time.monotonic() - began) / 60)
        asyncio.run(measured(options, url))
    lines = list(kept.read(options.out))
    done = [{line.task for line in lines if line.form == form} for form in (BARE, *OURS)]
    return [line for line in lines if line.task in set[str].intersection(*done)]


def faults(lines: Sequence[Line]) -> list[str]:
    """Return what is wrong with the results."""
    right = {form: sum(line.right for line in lines if line.form == form) for form in (BARE, *OURS)}
    calls = sum(line.called for line in lines if line.form in OURS)
    checks = {
        f"only {len(lines)} answers in {MINUTES} minutes": len(lines) >= len((BARE, *OURS)) * LEAST_TASKS,
        f"fewer right than the bare server: {right}": max(right[form] for form in OURS) >= right[BARE],
        "no call was delivered": calls > 0,
        **{
            f"{line.form}, {line.task}: a call does not fit its schema: {line.calls}": line.valid
            for line in lines
            if line.form in OURS
        },
        **{f"{line.form}, {line.task}: {line.failure}": not line.failure for line in lines},
    }
    return [fault for fault, holds in checks.items() if not holds]


def main() -> None:
    """Run it, and exit."""
    with tempfile.TemporaryDirectory() as folder:
        lines = asked(Path(folder))
    found = faults(lines)
    right = {form: sum(line.right for line in lines if line.form == form) for form in (BARE, *OURS)}
    calls = {form: sum(line.called for line in lines if line.form == form) for form in (BARE, *OURS)}
    tasks = len({line.task for line in lines})
    close("accuracy-quick", ok=not found, tasks=tasks, right=right, with_calls=calls, faults=found)


if __name__ == "__main__":
    main()

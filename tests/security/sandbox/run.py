"""`just sandbox`: every attempt, in every sandbox that works here, as root and as an ordinary user.

    python -m tests.security.sandbox.run [--sandbox NAME] [--areas A|B] [--verbose] [--save]

It prints the table, and closes with a line of JSON. As root it makes all attempts a second time as nobody, in a
process of its own (`ordinary.py`).
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TypedDict

from testkit.report import close
from tests.security.sandbox.attempts import AREAS, ATTEMPTS
from tests.security.sandbox.ordinary import as_nobody
from tests.security.sandbox.row import Attempt
from tests.security.sandbox.trial import hold, sandbox

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "bench/results/sandbox.json"
SANDBOXES = ("bwrap", "sandlock")
MODULE = "tests.security.sandbox.run"


class Row(TypedDict):
    """One attempt in one pass."""

    area: str
    name: str
    never: str
    problem: str
    output: str
    seconds: float


def here(name: str, areas: tuple[str, ...] = AREAS, names: tuple[str, ...] = ()) -> list[Row] | str:
    """Make the attempts of some areas as who we are, or only some; or say why this sandbox cannot be used."""
    confine = sandbox(name)
    if isinstance(confine, str):
        return confine
    held = asyncio.run(
        hold(confine, [each for each in _held_by(name) if each.area in areas and (not names or each.name in names)])
    )
    return [
        Row(
            area=one.attempt.area,
            name=one.attempt.name,
            never=one.attempt.never,
            problem=one.problem,
            output=one.output,
            seconds=round(one.seconds, 2),
        )
        for one in held
    ]


def _held_by(name: str) -> list[Attempt]:
    """Return what a sandbox must hold; without a sandbox, everything is tried."""
    return [each for each in ATTEMPTS if name not in SANDBOXES or each.only in ("", name)]


def there(name: str, areas: tuple[str, ...] = AREAS, names: tuple[str, ...] = ()) -> list[Row] | str:
    """Make them as nobody."""
    inner = ["--inner", "--sandbox", name, "--areas", "|".join(areas), "--names", "|".join(names)]
    words = as_nobody(ROOT, [sys.executable, "-m", MODULE, *inner])
    done = subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(f"the pass as nobody failed: {done.stderr[-2000:]}")
    read: list[Row] | str = json.loads(done.stdout.splitlines()[-1])
    return read


def passes(name: str, areas: tuple[str, ...] = AREAS) -> dict[str, list[Row] | str]:
    """Make them as whoever we can be."""
    if os.geteuid():
        return {"user": here(name, areas)}
    return {"root": here(name, areas), "user": there(name, areas)}


def main() -> None:
    """Run what was asked for."""
    options = argparse.ArgumentParser(prog=MODULE)
    options.add_argument("--sandbox", choices=(*SANDBOXES, "unsafe", "open"), help=argparse.SUPPRESS)
    options.add_argument("--areas", default="|".join(AREAS))
    options.add_argument("--names", default="")
    options.add_argument("--inner", action="store_true")
    options.add_argument("--save", action="store_true")
    options.add_argument("--verbose", action="store_true")
    chosen = options.parse_args()
    areas = tuple(chosen.areas.split("|"))
    if chosen.inner:
        print(json.dumps(here(chosen.sandbox, areas, tuple(filter(None, chosen.names.split("|"))))))
        return
    began = time.monotonic()
    found = {name: passes(name, areas) for name in ((chosen.sandbox,) if chosen.sandbox else SANDBOXES)}
    columns = {f"{name} as {who}": rows for name, by in found.items() for who, rows in by.items()}
    _print(columns, verbose=chosen.verbose)
    made = {column: rows for column, rows in columns.items() if not isinstance(rows, str)}
    escaped = [f"{column}: {row['name']}" for column, rows in made.items() for row in rows if row["problem"]]
    figures = {
        "attempts": len(ATTEMPTS),
        "made": sum(map(len, made.values())),
        "escaped": len(escaped),
        "passes": {column: rows if isinstance(rows, str) else len(rows) for column, rows in columns.items()},
        "escapes": escaped,
        "seconds": round(time.monotonic() - began, 1),
    }
    if chosen.save:
        RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    close("sandbox", ok=bool(made) and not escaped, **figures)


def _print(columns: dict[str, list[Row] | str], *, verbose: bool) -> None:
    made = {column: rows for column, rows in columns.items() if not isinstance(rows, str)}
    for column, rows in columns.items():
        if isinstance(rows, str):
            print(f"{column}: not used: {rows}")
    print(f"{'area':14} {'attempt':42} {'must not happen':42} {'  '.join(made)}")
    by_name = {column: {row["name"]: row for row in rows} for column, rows in made.items()}
    for attempt in ATTEMPTS:
        lines = {column: rows[attempt.name] for column, rows in by_name.items() if attempt.name in rows}
        if not lines:
            continue
        marks = "  ".join(f"{_mark(lines.get(column)):{len(column)}}" for column in made)
        print(f"{attempt.area:14} {attempt.name:42} {attempt.never:42} {marks}")
        for column, line in lines.items():
            if line["problem"] or verbose:
                print(f"    {column}: {line['problem']}\n      {line['output'][:600]!r}")


def _mark(row: Row | None) -> str:
    return "not held" if row is None else "ESCAPED" if row["problem"] else "held"


if __name__ == "__main__":
    main()

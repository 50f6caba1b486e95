"""`just attack`: every attack that broke the gateway once, its variants, and controls that always held.

    python -m tests.attack.run [--only NAME]... [--quick] [--target PYTHON] [--save] [--as root|user]

Each family runs as root and as an ordinary user against real processes: `toolspeak serve`, a worker, PostgreSQL, Redis,
the sandbox. Meanwhile an observer in a process of its own measures `/health` and another tenant's stream. The command
fails if one attempt succeeds or one bound is missed.

`--target` attacks another installation; `--save` keeps the result in bench/results/attack.json. With `--before` it is
kept in bench/results/attack-before.json: the record that the attacks succeed on the version that they were found in.
That command fails if one of the families found nothing there and is no control.
"""

import argparse
import contextlib
import importlib
import json
import os
import platform
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testkit.meter import urgent
from testkit.report import close
from tests.attack.arena import Arena, Observer, attack_folder
from tests.attack.target import ROOT, USER, Target, find_target

RESULTS = Path(__file__).resolve().parents[2] / "bench/results"
FAMILIES = (
    *("upgrade", "raw_http", "tls", "auth", "permission", "overload", "connections", "facts", "redis_values"),
    *("clock", "runs", "shutdown", "state_folder", "redaction", "cors", "dialect_echo", "hostile_upstream", "mcp"),
    "sandbox",
)
LEAST = 6_000
SHOWN = 5


def passes(who: str, *, quick: bool) -> Iterator[str]:
    """Yield the users as which a family runs: both where we are root."""
    users = (ROOT, USER) if not os.geteuid() else (USER,)
    yield from (user for user in users if who in ("", user) and not (quick and not who and user == ROOT))


def run_family(name: str, target: Target, who: str, observer: Observer, *, quick: bool) -> Arena:
    """Run one family once."""
    module = importlib.import_module(f"tests.attack.families.{name}")
    with attack_folder() as folder:
        arena = Arena(target, who, quick, observer, folder)
        try:
            module.attack(arena)
        except Exception as error:  # noqa: BLE001 # a family that breaks off has shown nothing
            arena.missed.append(f"the family broke off: {type(error).__name__}: {str(error)[:500]}")
        return arena


def summary(arenas: list[Arena], held_before: bool, seconds: float) -> dict[str, Any]:
    """Return what is kept of a family."""
    attempts = [attempt for arena in arenas for attempt in arena.attempts]
    succeeded = [attempt for attempt in attempts if attempt.effects]
    worst: dict[str, float] = {}
    for figures in (figures for arena in arenas for figures in arena.figures):
        for key, value in figures.items():
            worst[key] = max(worst.get(key, 0), value)
    effects = Counter(effect[:160] for attempt in succeeded for effect in attempt.effects[:1])
    return {
        "attempts": len(attempts),
        "succeeded": len(succeeded),
        "control": held_before,
        "by": {arena.who: [len(arena.attempts), sum(bool(one.effects) for one in arena.attempts)] for arena in arenas},
        "successes": [f"{attempt.name}: {attempt.effects[0][:160]}" for attempt in succeeded[:SHOWN]],
        "effects": dict(effects.most_common(SHOWN)),
        "missed_bounds": list(dict.fromkeys(f"{arena.who}: {one}" for arena in arenas for one in arena.missed)),
        "worst": worst,
        "notes": list(dict.fromkeys(note for arena in arenas for note in arena.notes)),
        "seconds": round(seconds, 1),
    }


def show(name: str, found: dict[str, Any]) -> None:
    worst = found["worst"]
    measured = "".join(
        f" {word} {worst[key]:g}"
        for word, key in (("health p99", "health_p99_ms"), ("gap", "gap_max_ms"), ("own lag", "own_lag_max_ms"))
        if key in worst
    )
    memory = f" rss {worst['rss_before_mb']:g}→{worst['rss_after_mb']:g} MB" if "rss_before_mb" in worst else ""
    counts = f"{found['attempts']:5} attempts {found['succeeded']:5} succeeded"
    print(f"{name:17} {counts}{measured}{memory} {found['seconds']} s")
    for line in (*found["successes"], *found["missed_bounds"], *found["notes"]):
        print(f"    {line[:300]}")
    sys.stdout.flush()


def main() -> None:
    """Run what was asked for."""
    options = argparse.ArgumentParser(prog="tests.attack.run")
    options.add_argument("--only", action="append", choices=FAMILIES, default=[])
    options.add_argument("--quick", action="store_true", help="fewer variants, one user; under two minutes")
    options.add_argument("--target", default="", help="the Python of the installation to attack; default: this one")
    options.add_argument("--as", dest="who", choices=(ROOT, USER), default="")
    options.add_argument("--save", action="store_true")
    options.add_argument("--before", action="store_true", help="keep it as the record of the version before the fixes")
    chosen = options.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    target = find_target(chosen.target)
    print(f"attacking {target.commit}")
    families = chosen.only or list(FAMILIES)
    began = time.monotonic()
    found: dict[str, dict[str, Any]] = {}
    file = RESULTS / ("attack-before.json" if chosen.before else "attack.json")
    if chosen.only and chosen.save and file.exists():  # what is not run again is kept
        found = json.loads(file.read_text())["by_family"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(urgent())
        observer = Observer()
        stack.callback(observer.close)
        for name in families:
            module, start = importlib.import_module(f"tests.attack.families.{name}"), time.monotonic()
            arenas = [
                run_family(name, target, who, observer, quick=chosen.quick)
                for who in passes(chosen.who, quick=chosen.quick)
            ]
            found[name] = summary(arenas, module.HELD_BEFORE, time.monotonic() - start)
            show(name, found[name])
            if chosen.save:
                save(file, target, found)
    figures = {**totals(target, found), "seconds": round(time.monotonic() - began, 1)}
    if chosen.before:  # the record is good if every attack that found a hole succeeds again
        unproven = [name for name, one in found.items() if not one["control"] and not one["succeeded"]]
        close("attack-before", ok=not unproven, unproven=unproven, **figures)
    compare(found)
    whole = not (chosen.only or chosen.quick or chosen.who)
    enough = figures["attempts"] >= LEAST or not whole
    close("attack", ok=enough and not figures["succeeded"] and not figures["missed_bounds"], **figures)


def compare(found: dict[str, dict[str, Any]]) -> None:
    """Print each family beside the record of the version before the fixes."""
    file = RESULTS / "attack-before.json"
    before: dict[str, Any] = {"commit": "no record", "by_family": {}}
    if file.exists():
        before = json.loads(file.read_text())
    print(f"\n{'family':17} {'attempts':>8} {'succeeded on ' + before['commit'][:12]:>27} {'succeeded now':>14}")
    for name, one in found.items():
        old = before["by_family"].get(name)
        record = f"{old['succeeded']} of {old['attempts']}" if old else "not recorded"
        held = "  held before: a control" if one["control"] else ""
        print(f"{name:17} {one['attempts']:8} {record:>27} {one['succeeded']:14}{held}")


def totals(target: Target, found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the closing figures."""
    return {
        "commit": target.commit,
        "attempts": sum(one["attempts"] for one in found.values()),
        "succeeded": sum(one["succeeded"] for one in found.values()),
        "missed_bounds": sum(len(one["missed_bounds"]) for one in found.values()),
        "families": len(found),
        "health_p99_ms": max((one["worst"].get("health_p99_ms", 0) for one in found.values()), default=0),
        "gap_max_ms": max((one["worst"].get("gap_max_ms", 0) for one in found.values()), default=0),
    }


def save(file: Path, target: Target, found: dict[str, dict[str, Any]]) -> None:
    """Write down what was found so far: a long run that breaks off keeps its families."""
    kept = {"date": datetime.now(UTC).date().isoformat(), "python": platform.python_version()}
    kept |= {**totals(target, found), "by_family": found}
    file.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

"""`just judges`: the vendors' own clients talk to our wires over HTTP and run a tool, two of them at a time.

`--only NAME` runs the scripts whose name has NAME in it; `--record FOLDER` keeps what was sent, to the byte.
"""

import argparse
import json
import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testkit.report import close
from tests.judges.clients import command_of, scripts
from tests.judges.server import Answer, JudgedServer, grammar_faults

TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one script came to."""

    script: str
    checks: list[dict[str, Any]]
    faults: list[str]
    answers: list[Answer]
    said: str


def judge(script: Path) -> Verdict:
    """Run one script against a server of its own."""
    with JudgedServer() as server:
        code, printed, said = run([*command_of(script), server.url])
        server.shutdown()
    checks = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    faults = [*server.faults, *(fault for answer in server.answers for fault in grammar_faults(answer))]
    if not checks or (code and all(check["ok"] for check in checks)):
        faults.append(f"it broke off, exit status {code}: {said[-2000:]}")
    return Verdict(script.name, checks, faults, server.answers, said)


def run(command: list[str]) -> tuple[int, str, str]:
    """Run a script without proxies, keys or other settings of its surroundings."""
    kept = {name: value for name, value in os.environ.items() if name in {"HOME", "PATH"}}
    process = subprocess.Popen(command, env=kept, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        printed, said = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        printed, said = process.communicate()
        said += f"\nkilled after {TIMEOUT_S} s"
    return process.returncode, printed, said


def lines(verdicts: list[Verdict]) -> Iterator[str]:
    """Write the table, and below it what no client told."""
    for verdict in verdicts:
        for check in verdict.checks:
            row = [check[key] for key in ("wire", "judge", "mode", "scenario")]
            mark, error = "ok" if check["ok"] else "FAIL", check.get("error", "")
            yield "{:4} {:16} {:46} {:33} {:11} {:6.3f} {}".format(mark, *row, check["seconds"], error).rstrip()
    for verdict in verdicts:
        for fault in verdict.faults:
            yield f"FAULT {verdict.script}: {fault}"


def record(verdict: Verdict, folder: Path) -> None:
    """Write what a client was sent, and what it said."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{verdict.script}.stderr").write_text(verdict.said)
    for number, answer in enumerate(verdict.answers):
        model = answer.request.model if answer.request else "unread"
        kind = "stream" if answer.request and answer.request.stream else "whole"
        name = f"{verdict.script}.{number:03}.{answer.wire.name}.{model}.{kind}.{answer.status}"
        (folder / name).write_bytes(answer.body)


def figures(verdicts: list[Verdict]) -> dict[str, Any]:
    """Count."""
    checks = [check for verdict in verdicts for check in verdict.checks]
    failed = sum(not check["ok"] for check in checks)
    faults = sum(len(verdict.faults) for verdict in verdicts)
    clients = len({(check["judge"], check["wire"]) for check in checks})
    ok = bool(checks) and not failed and not faults
    return {"ok": ok, "clients": clients, "checks": len(checks), "failed": failed, "faults": faults}


def main() -> None:
    """Run them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--record", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    chosen = [script for script in scripts() if options.only in script.as_posix()]
    for script in chosen:
        command_of(script)  # installs, which is not what the seconds tell
    started = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(judge, chosen))
    seconds = round(time.perf_counter() - started, 1)
    print("\n".join(lines(verdicts)))
    for verdict in verdicts if options.record else []:
        record(verdict, options.record)
    close("judges", **figures(verdicts), seconds=seconds)


if __name__ == "__main__":
    main()

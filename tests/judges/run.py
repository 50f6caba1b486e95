"""`just judges`: the vendors' own clients talk to our wires over HTTP and run a tool, two of them at a time.

`--only NAME` runs the scripts whose name has NAME in it; `--record FOLDER` keeps what was sent, to the byte. With
`--driver push` or `--driver asgi` the clients talk to a real gateway, and it to the server of the wires.
"""

import argparse
import json
import logging
import os
import subprocess
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from testkit.report import close
from tests.gateway.scene import base_of
from tests.judges.clients import command_of, scripts
from tests.judges.server import Answer, JudgedServer, grammar_faults
from toolspeak.config.shape import Config, Driver, Server, Upstream
from toolspeak.engine.verdict import Depth
from toolspeak.gateway.server import background_server, build

TIMEOUT_S = 120
SEVERAL = "anthropic"
"""The wire behind a gateway whose client speaks several: it has all that the others have."""
SPOKEN = {"anthropic_messages": "anthropic", "google_genai": "gemini", "ollama_chat": "ollama", "vercel_ai": SEVERAL}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one script came to."""

    script: str
    checks: list[dict[str, Any]]
    faults: list[str]
    answers: list[Answer]
    said: str


@contextmanager
def in_front(script: Path, url: str, driver: str) -> Generator[str]:
    """Put a gateway in front of a server, and return its URL; without a driver there is none."""
    if not driver:
        yield url
        return
    wire = SPOKEN.get(script.stem, script.stem)
    upstream = Upstream("judged", url + base_of(wire), wire)
    logging.disable(logging.CRITICAL)  # the gateway's
    config = Config(server=Server(port=0, probe=Depth.OFF, driver=Driver(driver)), upstreams=(upstream,))
    with background_server(build(config), config) as address:
        yield address


def judge(script: Path, driver: str) -> Verdict:
    """Run one script against a server of its own."""
    with JudgedServer() as server, in_front(script, server.url, driver) as url:
        code, printed, said = run([*command_of(script), url])
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
    parser.add_argument("--driver", default="", choices=[driver.value for driver in Driver])
    options = parser.parse_args()
    chosen = [script for script in scripts() if options.only in script.as_posix()]
    for script in chosen:
        command_of(script)  # installs, which is not what the seconds tell
    started = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(partial(judge, driver=options.driver), chosen))
    seconds = round(time.perf_counter() - started, 1)
    print("\n".join(lines(verdicts)))
    for verdict in verdicts if options.record else []:
        record(verdict, options.record)
    close("judges", **figures(verdicts), seconds=seconds)


if __name__ == "__main__":
    main()

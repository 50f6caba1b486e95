"""`toolspeak serve --upstream …`, as a person would start it, in an empty folder."""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

READY_S = 60
STOP_S = 15
LISTENS = re.compile(r"listens on (http://127\.0\.0\.1:\d+)")


@contextmanager
def gateway(upstream: str, *flags: str) -> Generator[str]:
    """Start it before an upstream, on a free port; give its address."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = (
            sys.executable,
            "-m",
            "toolspeak",
            "serve",
            "--upstream",
            upstream,
            "--port",
            "0",
            "--probe",
            "off",
            *flags,
        )
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder)
        try:
            yield _address(process, log)
        finally:
            _stop(process)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + READY_S
    while time.monotonic() < until and process.poll() is None:
        if found := LISTENS.search(log.read_text(errors="replace")):
            return found.group(1)
        time.sleep(0.05)
    raise RuntimeError(f"the gateway did not start:\n{log.read_text(errors='replace')}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

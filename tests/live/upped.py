"""`toolspeak up` with a real model, as a person would start it.

Its server is the package, in the virtual environment of `testkit.llama_server`; `TOOLSPEAK_LLAMA_SERVER` names a
`llama-server` to run instead.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testkit.llama_server import BINARY, free_cores, python
from testkit.meter import children
from toolspeak.runtime.tether import tethered

READY_S = 180.0
STOP_S = 30.0
ROOT = Path(__file__).resolve().parent.parent.parent
LISTENS = re.compile(r"listens on (\S+)")
UPSTREAM = re.compile(r"upstream +\S+ +(\S+)")


@dataclass(frozen=True, slots=True)
class Upped:
    """What runs: where the gateway is, where the model's server behind it is."""

    process: subprocess.Popen[bytes]
    url: str
    behind: str
    log: Path

    def children(self) -> list[int]:
        """Return the process ids of the servers that it has started."""
        return children(self.process.pid)


@contextmanager
def upped(models: Sequence[Path], log: Path, *flags: str) -> Generator[Upped]:
    """Start it on a free port; end it in order."""
    binary = os.environ.get(BINARY)
    runs = ["--llama-server", binary] if binary else []
    words = [*map(str, models), "--port", "0", "--probe", "off", "--no-profiles", "--threads", str(free_cores())]
    with log.open("wb") as out:
        process = subprocess.Popen(
            tethered([sys.executable, "-m", "toolspeak", "up", *words, *runs, *flags]),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=_environment(),
        )
    try:
        yield _told(process, log)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    """Let our own Python find the package, which is not ours to depend on."""
    packages = Path(python()).parent.parent / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    paths = [str(ROOT / "src"), str(packages)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _told(process: subprocess.Popen[bytes], log: Path) -> Upped:
    until = time.monotonic() + READY_S
    while time.monotonic() < until and process.poll() is None:
        said = log.read_text()
        if (listens := LISTENS.search(said)) and (upstream := UPSTREAM.search(said)):
            return Upped(process, listens[1], upstream[1], log)
        time.sleep(0.1)
    raise RuntimeError(f"toolspeak up is not ready; it said: {log.read_text()[-1500:]}")

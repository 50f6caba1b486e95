"""A gateway as its own process, started as a person would start it."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.gateway.scene import ENVIRON, Reply, lowered

_LISTENS = re.compile(r"toolspeak listens on http://127\.0\.0\.1:(\d+)")
_START_S = 60.0


@dataclass(frozen=True)
class ServedProcess:
    """A gateway that runs; `log` is all that it wrote to standard error."""

    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    def ask(self, method: str, path: str, body: object = None, key: str = "", seconds: float = 30.0) -> Reply:
        """Send one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return Reply(answer.status, lowered(answer), answer.read())
        finally:
            connection.close()

    def lines(self) -> list[str]:
        """Return what it has logged so far."""
        return self.log.read_text().splitlines()


@contextmanager
def served_process(
    folder: Path, config: str, name: str = "gateway", environ: Mapping[str, str] | None = None
) -> Generator[ServedProcess]:
    """Start `toolspeak serve` with a configuration; it ends with SIGTERM, and with 0."""
    file, log = folder / f"{name}.toml", folder / f"{name}.log"
    file.write_text(config)
    file.chmod(0o600)
    command = [sys.executable, "-m", "toolspeak", "serve", "--config", str(file), "--port", "0"]
    with log.open("wb") as err:
        process = subprocess.Popen(command, env={**os.environ, **ENVIRON, **(environ or {})}, stderr=err)
    try:
        yield ServedProcess(process, _port_of(process, log), log)
        process.terminate()
        assert process.wait(30) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _port_of(process: "subprocess.Popen[bytes]", log: Path) -> int:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if found := _LISTENS.search(log.read_text()):
            return int(found[1])
        assert process.poll() is None, log.read_text()
        time.sleep(0.05)
    raise TimeoutError(log.read_text())

"""`just up-live`: a real model run by `toolspeak up` answers, back after `kill -9` and SIGSTOP, ends with it (RUN-6).

The model has 135 million weights: what it says does not matter here.
"""

import http.client
import json
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from testkit.report import close
from tests.live.upped import STOP_S, Upped, upped

MODEL = "smollm2-135m"
LONG = 120.0
RESTARTS = 2
"""One after `kill -9`, one after SIGSTOP."""


def asked(up: Upped) -> tuple[int, dict[str, Any]]:
    """Ask for a few words through the gateway."""
    split = urlsplit(up.url)
    connection = http.client.HTTPConnection(split.hostname or "", split.port, timeout=LONG)
    body = {"model": "gpt-5.5", "max_tokens": 8, "messages": [{"role": "user", "content": "What is the sky?"}]}
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def is_answered(up: Upped) -> bool:
    status, said = asked(up)
    print(f"{status}: {said}"[:200], flush=True)
    return status == http.client.OK and bool(said["choices"][0]["message"]["content"].strip())


def is_gone(pid: int) -> bool:
    until = time.monotonic() + STOP_S
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def faults(log: Path) -> dict[str, bool]:
    """Say what holds."""
    with upped(MODEL, log, "--context", "2048") as up:
        found = {"answers": is_answered(up)}
        [first] = up.children()
        os.kill(first, signal.SIGKILL)
        found["answers after kill -9 of the server"] = is_answered(up)
        [second] = up.children()
        found["by another process"] = second != first and is_gone(first)
        os.kill(second, signal.SIGSTOP)
        found["answers after SIGSTOP of the server"] = is_answered(up)
        [third] = up.children()
        found["which was hung, and is gone"] = third != second and is_gone(second)
        print(log.read_text())
        found["one log line for each restart"] = log.read_text().count("it is started again") == RESTARTS
        up.process.kill()
        up.process.wait()
        found["nothing is left after kill -9 of toolspeak up"] = is_gone(third)
    with upped(MODEL, log, "--context", "2048") as up:
        [fourth] = up.children()
    found["ends in order"] = up.process.returncode == 0 and is_gone(fourth)
    return found


def main() -> None:
    """Try all of it."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        found = faults(log)
    for what, holds in found.items():
        print(f"{'yes' if holds else ' NO'}  {what}")
    close("up", ok=all(found.values()), model=MODEL, checks=len(found), seconds=round(time.monotonic() - began, 1))


if __name__ == "__main__":
    main()

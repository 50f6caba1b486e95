"""Four processes and one Redis: one probe in all. Redis killed in the middle: nothing fails (CAP-4)."""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from testkit.redis_server import running
from tests.probes.servers import Dropper, listening
from tests.probes.test_gateway import DICE
from toolspeak.runtime.prober import QUIET

COUNT = 4
LISTENS = "toolspeak listens on "


@contextmanager
def gateway(upstream: str, redis: str) -> Generator[str]:
    """Start a gateway as a fleet would; give its address."""
    command = [sys.executable, "-m", "toolspeak", "serve", "--upstream", upstream, "--port", "0", "--quiet"]
    environ = {**os.environ, "TOOLSPEAK_REDIS_URL": redis, "TOOLSPEAK_PROBE": "full"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            assert line.startswith(LISTENS), line
            yield line.removeprefix(LISTENS).strip().removeprefix("http://")
        finally:
            process.kill()


def plan(address: str, model: str = "m") -> str:
    """Ask with tools; say what was done. Whatever happens elsewhere, the answer must be one."""
    connection = http.client.HTTPConnection(address, timeout=30)
    body = {"model": model, "messages": [{"role": "user", "content": "Roll a die."}], "tools": [DICE]}
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status == 200, said
        return answer.headers["x-toolspeak-plan"]
    finally:
        connection.close()


def emulates(address: str, model: str = "m", seconds: float = 60.0) -> bool:
    """Return whether a process comes to know it. Between two questions is a quiet second, which a probe waits for."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if plan(address, model).startswith("force"):
            return True
        time.sleep(QUIET + 0.25)
    return False


@pytest.mark.timeout(180)
def test_four_processes_probe_once_and_a_killed_redis_fails_nobody_cap4(tmp_path: Path) -> None:
    dropper = Dropper()
    dropper.pages["/v1/models"] = {"data": [{"id": name} for name in ("m", "n")]}
    with ExitStack() as stack:
        redis = stack.enter_context(running(tmp_path))
        url = stack.enter_context(listening(dropper))
        pool = stack.enter_context(ThreadPoolExecutor(COUNT))
        fleet = [stack.enter_context(gateway(url, redis.url)) for _ in range(COUNT)]
        assert all(each.startswith("native") for each in pool.map(plan, fleet)), "all ask at once, and none waits"
        assert all(pool.map(emulates, fleet))
        assert dropper.probes == 1

        redis.kill()
        assert all(plan(address).startswith("force") for address in fleet), "what they know they know"
        assert all(pool.map(emulates, fleet, ["n"] * COUNT)), "what is new each finds out alone"
        assert dropper.probes == 1 + COUNT

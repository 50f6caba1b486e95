"""A gateway and a worker with two real databases of runs: one that is away fails its own tenants only (RUN-21)."""

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from testkit.postgres import Postgres, controlled_postgres
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import soon
from tests.gateway.served_process import served_process
from tests.gateway.test_runs import says

CONFIG = """
[server]
probe = "off"
[runs]
enabled = true
tools = []
database = "{first}"
[runs.cells.eu]
database = "{second}"
[upstreams.up]
url = "http://127.0.0.1:{port}/v1"
wire = "openai_chat"
retries = 0
[[keys]]
tenant = "anna"
key = "anna-key-of-sixteen"
[[keys]]
tenant = "emil"
key = "emil-key-of-sixteen"
"""
ANNA, EMIL = "anna-key-of-sixteen", "emil-key-of-sixteen"
START: dict[str, object] = {"task": "Go.", "model": "up:m", "tools": []}
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def servers() -> Generator[tuple[Postgres, Postgres]]:
    with controlled_postgres() as first, controlled_postgres() as second:
        yield first, second


@pytest.fixture
def upstream() -> Generator[ScriptedUpstream]:
    with listening() as upstream:
        yield upstream


def test_http_worker_and_command_line_find_the_cell_run21(
    servers: tuple[Postgres, Postgres], upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    first, second = servers
    upstream.answers(says(Answer("Done.")))
    written = CONFIG.format(first=first.url, second=second.url, port=upstream.port)
    with served_process(tmp_path, written) as gateway:
        here = gateway.ask("POST", "/v1/runs", START, EMIL).json["id"]
        there = gateway.ask("POST", "/v1/runs", START, ANNA).json["id"]
        assert (here.endswith(".eu"), there.endswith(".eu")) == (False, True)
        base = [sys.executable, "-m", "toolspeak"]
        config = ["--config", str(tmp_path / "gateway.toml")]
        environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
        with subprocess.Popen([*base, "worker", *config, "--cell", "eu", "--quiet"], env=environ) as worker:
            try:
                path = f"/v1/runs/{there}"
                assert soon(lambda: gateway.ask("GET", path, key=ANNA).json["status"] == "done", 60)
            finally:
                worker.kill()
        assert gateway.ask("GET", f"/v1/runs/{here}", key=EMIL).json["status"] == "running", "that of the other cell"
        shown = subprocess.run([*base, "runs", "show", there, *config], capture_output=True, text=True, check=True)
        assert "Done." in shown.stdout
        second.stop()
        away = gateway.ask("GET", f"/v1/runs/{there}", key=ANNA)
        assert (away.status, away.headers["x-should-retry"]) == (503, "true")
        assert away.json["error"]["message"].startswith("the cell eu of runs does not respond")
        assert gateway.ask("POST", "/v1/runs", START, EMIL).status == 201
        second.start()
        assert soon(lambda: gateway.ask("GET", f"/v1/runs/{there}", key=ANNA).status == 200, 30)
        lines = [line for line in gateway.lines() if "cell eu of runs" in line]
        assert [len(lines), "is away" in lines[0], "responds again" in lines[1]] == [2, True, True], lines

"""`toolspeak worker`: it begins, says for which database, and ends in order."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends in order elsewhere only")


@pytest.mark.timeout(180)
def test_a_worker_begins_and_ends_in_order(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "toolspeak", "worker", "--upstream", "http://127.0.0.1:9/v1", "--grace", "5"]
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TOOLSPEAK_RUNS_DATABASE": ""}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ) as worker:
        assert worker.stderr is not None
        said = next(line for line in worker.stderr if "works on runs" in line)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(100) == 0
    assert said == f"toolspeak works on runs of sqlite:///{tmp_path}/toolspeak/runs.sqlite\n"


def test_loading_the_command_line_does_not_load_the_engine() -> None:
    code = "import sys, toolspeak.cli.worker; print([each for each in ('dbos', 'sqlalchemy') if each in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"

"""A run whose process was killed goes on when a person resumes it at once, before its lease has ended (RUN-3)."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testkit.scripted_model import called, scripted, text

PATIENCE_S = 60.0
TOOLSPEAK = (sys.executable, "-m", "toolspeak")

pytestmark = pytest.mark.timeout(200)


def test_a_killed_run_goes_on_when_it_is_resumed_before_its_lease_ends_run3(tmp_path: Path) -> None:
    config = tmp_path / "toolspeak.toml"
    config.write_text("[runs]\nlease = 6\n")
    with scripted() as upstream:
        upstream.says(called(("list_files", "{}")), text("I th", hangs=True))
        environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "TOOLSPEAK_UPSTREAM": upstream.url}
        given = ["--config", str(config), "--tools", "files", "--folder", str(tmp_path), "Look around."]
        first = subprocess.Popen([*TOOLSPEAK, "run", *given], env=environ, stdin=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE_S
        while len(upstream.bodies) < 2:
            assert time.monotonic() < until
            assert first.poll() is None
            time.sleep(0.05)
        first.kill()
        first.wait()
        upstream.says(text("It holds a file."))
        listed = subprocess.run(
            [*TOOLSPEAK, "runs", "--config", str(config)], env=environ, capture_output=True, text=True, check=True
        )
        id = listed.stdout.split()[0]
        done = subprocess.run(
            [*TOOLSPEAK, "runs", "resume", id, "--config", str(config)],
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, "It holds a file.\n"), done.stderr
    assert len(upstream.bodies) == 3, "the finished round is not asked for again"

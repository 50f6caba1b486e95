"""A service in every sandbox (RUN-5, RUN-14): its pipes are its own, and the guard protects its folders."""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.security.sandbox.ordinary import as_nobody
from tests.security.sandbox.trial import sandbox
from toolspeak.agent.sandbox.process import run_service
from toolspeak.agent.sandbox.sandbox import Service

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
read word; echo "got $word"; touch {folder}/new {home}/new; echo evil >> {folder}/.git/config
read word; mkdir -p {folder}/sub/.git; echo evil > {folder}/sub/.git/HEAD; sleep 60
"""


async def serve(name: str, top: Path) -> str:
    """Let a service work, then write to git's settings and make a repository; return why it was stopped."""
    folder, home = top / "folder", top / "home"
    home.mkdir()
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", folder], check=True)
    settings = (folder / ".git/config").read_text()
    script = SCRIPT.format(folder=folder, home=home)
    confine = sandbox(name)
    assert not isinstance(confine, str), confine
    async with run_service(confine, Service(("/bin/sh", "-c", script), "odd", (folder,), home)) as host:
        assert host.process.stdin is not None
        assert host.process.stdout is not None
        host.process.stdin.write(b"one\ntwo\n")
        assert await host.process.stdout.readline() == b"got one\n"
        assert await host.process.stdout.read() == b"", "it was stopped"
    assert (folder / "new").exists()
    assert (home / "new").exists()
    assert (folder / ".git/config").read_text() == settings
    assert not (folder / "sub/.git").exists()
    return host.why


def test_a_service_speaks_and_its_folders_are_guarded_run5_run14(tmp_path: Path) -> None:
    assert "it made or changed" in asyncio.run(serve("bwrap", tmp_path.resolve()))


@pytest.mark.parametrize("name", ["bwrap", "sandlock"])
def test_so_it_is_for_an_ordinary_user_run5_run14(name: str) -> None:
    words = [sys.executable, "-m", "tests.security.sandbox.test_service", name]
    if os.geteuid() == 0:
        words = as_nobody(ROOT, words)
    done = subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "it made or changed" in done.stdout


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as top:
        print(asyncio.run(serve(sys.argv[1], Path(top).resolve())))

"""The table of attempts as tests (RUN-5, RUN-14): none succeeds, as root or as an ordinary user."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.security.sandbox.attempts import AREAS, ATTEMPTS
from tests.security.sandbox.run import Row, here, there
from tests.security.sandbox.scene import Scene

ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="who is not root makes the pass of an ordinary user only")
SANDLOCK = ("files", "configuration", "network", "processes", "git", "host")
"""What it does in its own way; `just sandbox` makes all attempts."""
CONTROL = (
    *(
        "read a host file",
        "overwrite a host file",
        "climb with ..",
        "read by a symbolic link",
        "hard link to a host file",
    ),
    *(
        "write by a symbolic link",
        "link to a folder",
        "setuid by chmod",
        "setuid by open and mknod",
        "setuid by openat2",
    ),
    *("its own settings", "git's settings", "a hook", "another .git", "settings that lead out"),
    *("a process of the host", "a service on loopback", "a datagram", "an abstract socket", "trace a child"),
    *("a socket outside the folder", "a session of its own", "a daemon", "kill a process of the host"),
    *(attempt.name for attempt in ATTEMPTS if attempt.area in ("git", "host")),
)
"""Attempts that do no harm without a sandbox but to their scene, and succeed."""
HELD_TWICE = (
    *("open tree attr", "what it is made of", "its identity uncovered"),
    *("files in folders without end", "files with long paths"),
)
"""Attempts that something else holds too: missing capabilities, a missing `/sys`, the limits on depth."""


def _escaped(rows: list[Row] | str) -> list[str]:
    assert not isinstance(rows, str), rows
    assert rows
    return [f"{row['name']}: {row['problem']} {row['output'][:300]!r}" for row in rows if row["problem"]]


@needs_root
@pytest.mark.timeout(240)
@pytest.mark.parametrize("area", AREAS)
def test_no_attempt_succeeds_in_bwrap_as_root_run5(area: str) -> None:
    assert _escaped(here("bwrap", (area,))) == []


@pytest.mark.timeout(240)
@pytest.mark.parametrize("area", AREAS)
def test_no_attempt_succeeds_in_bwrap_as_an_ordinary_user_run5(area: str) -> None:
    assert _escaped(there("bwrap", (area,)) if ROOT else here("bwrap", (area,))) == []


@pytest.mark.timeout(240)
@pytest.mark.parametrize("area", SANDLOCK)
def test_no_attempt_succeeds_in_sandlock_as_an_ordinary_user_run5(area: str) -> None:
    assert _escaped(there("sandlock", (area,)) if ROOT else here("sandlock", (area,))) == []


@needs_root
def test_sandlock_is_not_used_by_root_run5() -> None:
    assert here("sandlock") == "it leaves root root: run as an ordinary user"


def test_there_are_enough_attempts_and_each_has_its_own_name() -> None:
    names = [attempt.name for attempt in ATTEMPTS]
    assert len(set(names)) == len(names) >= 140


@needs_root
@pytest.mark.timeout(240)
def test_without_a_sandbox_the_attempts_are_noticed() -> None:
    """A table that holds nothing back would say so."""
    rows = there("unsafe", AREAS, CONTROL)
    assert not isinstance(rows, str)
    assert [row["name"] for row in rows if not row["problem"]] == []
    assert len(rows) == len(CONTROL)


@pytest.mark.parametrize("delay", [0.05, 0.15, 0.6])
def test_nothing_outlives_the_one_who_started_it_run5(delay: float) -> None:
    """Our own process is killed with SIGKILL while a command runs."""
    scene = Scene()
    try:
        code = (
            "import asyncio, sys\nfrom pathlib import Path\n"
            "from toolspeak.agent.sandbox.bwrap import find_bwrap\n"
            "from toolspeak.agent.sandbox.sandbox import Command\n"
            "print('go', flush=True)\n"
            "asyncio.run(find_bwrap().run(Command(sys.argv[2], Path(sys.argv[1]))))"
        )
        text = f"setsid sleep {scene.naps} & sleep {scene.naps}"
        words = [sys.executable, "-c", code, str(scene.folder), text]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"go\n"
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
        for _ in range(60):
            if not scene.left():
                break
            time.sleep(0.05)
        assert scene.left() == []
    finally:
        scene.close()


@needs_root
def test_what_root_makes_in_its_folder_is_roots_run5(tmp_path: Path) -> None:
    from toolspeak.agent.sandbox.bwrap import find_bwrap  # noqa: PLC0415
    from toolspeak.agent.sandbox.sandbox import Command  # noqa: PLC0415

    sandbox = find_bwrap()
    assert not isinstance(sandbox, str)
    (tmp_path / "old").write_text("old")
    tmp_path.chmod(0o700)
    ran = asyncio.run(sandbox.run(Command("id -u; echo new >> old; echo made > made", tmp_path.resolve())))
    assert (ran.status, ran.output) == (0, "65534\n")
    assert (tmp_path / "old").read_text() == "oldnew\n"
    assert (tmp_path / "made").stat().st_uid == 0


@needs_root
@pytest.mark.timeout(300)
@pytest.mark.parametrize("area", ["disk", "calls", "machine"])
def test_without_budget_list_and_covers_the_attempts_are_noticed_run5(area: str) -> None:
    """Bubblewrap alone lets them through, so it is the budget, the list of calls and the covers that hold them."""
    names = tuple(each.name for each in ATTEMPTS if each.area == area and each.name not in HELD_TWICE)
    rows = here("open", (area,), names)
    assert not isinstance(rows, str)
    assert [row["name"] for row in rows if not row["problem"] or "not tried" in row["problem"]] == []
    assert len(rows) == len(names)

"""A state folder that cannot be created, is read-only or full: one line and status 2, never a traceback (RUN-12).

Root may write whatever the mode says, so the folder is a file, a read-only mount or a full one, in a mount namespace of
the command's own. That needs root, or user namespaces.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

FULL = "mount -t tmpfs -o size=64k none {at} && (dd if=/dev/zero of={at}/filler bs=4k 2>/dev/null || true)"
READ_ONLY = "mount -t tmpfs -o size=8m none {at} && mount -o remount,ro {at}"
AFTER_USE = "mount -t tmpfs -o size=4m none {at} && {use} && "
"""The folder was fine when the tables were made."""
PLACES = {
    "read-only": READ_ONLY,
    "full": FULL,
    "read-only later": AFTER_USE + "mount -o remount,ro {at}",
    "full later": AFTER_USE + "(dd if=/dev/zero of={at}/filler bs=4k 2>/dev/null || true)",
}
COMMANDS = {
    "run": ("run", "--folder", "{work}", "--tools", "files", "--approval", "off", "Go."),
    "runs": ("runs",),
    "worker": ("worker",),
    "serve": ("serve", "--config", "{config}"),
}

pytestmark = pytest.mark.timeout(300)


def in_namespace(script: str) -> list[str]:
    as_root = [] if os.geteuid() == 0 else ["--map-root-user", "--user"]
    return ["unshare", "--mount", *as_root, "sh", "-c", script]


def confined(tmp_path: Path, place: str, command: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of toolspeak whose state folder is such a place."""
    at, work, config = tmp_path / "state", tmp_path / "work", tmp_path / "toolspeak.toml"
    at.mkdir()
    work.mkdir()
    config.write_text(
        f'[server]\nport = 0\nprobe = "off"\n[runs]\nenabled = true\ndatabase = "sqlite:///{at}/toolspeak/runs.sqlite"\n'
        '[upstreams.up]\nurl = "http://127.0.0.1:9/v1"\n'
    )
    toolspeak = [sys.executable, "-m", "toolspeak"]
    use = f"{shlex.join([*toolspeak, 'runs'])} >/dev/null 2>&1"
    asked = [*toolspeak, *(each.format(work=work, config=config) for each in COMMANDS[command])]
    script = f"{PLACES[place].format(at=at, use=use)} && exec {shlex.join(asked)}"
    return run(in_namespace(script), at)


def run(command: list[str], state: Path) -> "subprocess.CompletedProcess[str]":
    given = {
        **os.environ,
        "XDG_STATE_HOME": str(state),
        "TOOLSPEAK_UPSTREAM": "http://127.0.0.1:9/v1",
        "TOOLSPEAK_MODEL": "m",
    }
    return subprocess.run(
        command, env=given, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL
    )


def check_one_line(done: "subprocess.CompletedProcess[str]") -> None:
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("toolspeak: the f"), done.stderr
    assert "of runs" in done.stderr
    assert "XDG_STATE_HOME" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize(
    ("place", "command"),
    [
        *((place, command) for place in ("read-only", "full") for command in COMMANDS),
        *((place, command) for place in ("read-only later", "full later") for command in ("run", "worker")),
    ],
)
def test_a_state_folder_that_cannot_be_written_is_one_line_and_status_2_run12(
    tmp_path: Path, place: str, command: str
) -> None:
    check_one_line(confined(tmp_path, place, command))


@pytest.mark.parametrize("command", ["run", "runs", "worker"])
def test_a_file_in_place_of_the_state_folder_is_one_line_and_status_2_run12(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").touch()
    asked = [each.format(work=tmp_path) for each in COMMANDS[command]]
    check_one_line(run([sys.executable, "-m", "toolspeak", *asked], tmp_path / "file"))


def test_commands_that_need_no_state_go_on_without_it_run12(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run([sys.executable, "-m", "toolspeak", "models"], tmp_path / "file")
    assert "Traceback" not in done.stderr
    assert "no connection to the upstream at 127.0.0.1:9" in done.stdout + done.stderr

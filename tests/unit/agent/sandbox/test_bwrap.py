"""Which folders a command may have, and what it is given (RUN-5). What it cannot do: `tests/security/sandbox`."""

import asyncio
import subprocess
import time
from pathlib import Path

import pytest

from toolspeak.agent.sandbox.bwrap import Bwrap, check_folder, find_bwrap
from toolspeak.agent.sandbox.sandbox import LONGEST, Command, Ran, SandboxLimits
from toolspeak.errors import BadField


def run(text: str, folder: Path, seconds: float = 20.0, limits: SandboxLimits | None = None) -> Ran:
    sandbox = find_bwrap()
    assert isinstance(sandbox, Bwrap), sandbox
    return asyncio.run(sandbox.run(Command(text, folder.resolve(), seconds, limits or SandboxLimits())))


@pytest.mark.parametrize("folder", ["/", "/usr", "/etc", "/proc/self", "/dev/pts", "/sys"])
def test_the_system_is_no_folder_for_commands_run5(folder: str) -> None:
    with pytest.raises(BadField, match=r"part of the system|without links"):
        check_folder(Path(folder))


def test_neither_is_a_home_nor_what_is_no_folder_run5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path.resolve() / "home"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    check_folder(home / "project")
    for folder in (home, home.parent):
        with pytest.raises(BadField, match="home"):
            check_folder(folder)
    (home / "link").symlink_to(home / "project")
    for folder in (home / "link", home / "none", Path("project")):
        with pytest.raises(BadField, match="full path without links"):
            check_folder(folder)


def test_a_command_that_no_shell_could_take_is_refused_run5(tmp_path: Path) -> None:
    with pytest.raises(BadField, match="NUL"):
        Command("a\0b", tmp_path)
    with pytest.raises(BadField, match="longer"):
        Command("a" * (LONGEST + 1), tmp_path)


def test_a_command_works_in_its_folder_under_its_own_name_run5(tmp_path: Path) -> None:
    ran = run("pwd; echo ü | tee made; echo wrong >&2; exit 3", tmp_path)
    assert ran == Ran(3, f"{tmp_path.resolve()}\nü\nwrong\n")
    assert (tmp_path / "made").read_text() == "ü\n"


def test_its_environment_is_clean_run5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    names = {line.partition("=")[0] for line in run("env", tmp_path).output.splitlines()}
    assert names == {"PATH", "HOME", "LANG", "TERM", "PWD", "GIT_OPTIONAL_LOCKS"}


def _repository(folder: Path) -> None:
    text = "git init -q; echo a > a; git add a; git -c user.name=a -c user.email=a@b commit -qm first"
    subprocess.run(["/bin/sh", "-ec", text], cwd=folder, check=True)


def test_git_can_be_asked_but_not_written_run14(tmp_path: Path) -> None:
    _repository(tmp_path)
    ran = run("echo b >> a; git status --short; git diff --stat | tail -1; git log --oneline | wc -l", tmp_path)
    assert ran.output == " M a\n 1 file changed, 1 insertion(+)\n1\n"
    for text in ("git add a", "git -c user.name=a -c user.email=a@b commit -qam second", "git config a.b c"):
        ran = run(text, tmp_path)
        assert ran.status
        assert "Read-only file system" in ran.output or "could not lock" in ran.output


def test_masks_are_gone_afterwards_run14(tmp_path: Path) -> None:
    assert run("ls -A", tmp_path).output.split() == [".git", ".idea", ".vscode"]
    assert list(tmp_path.iterdir()) == []


def test_a_repository_can_be_made_in_tmp_run14(tmp_path: Path) -> None:
    ran = run(
        "cd /tmp && git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
        tmp_path,
    )
    assert (ran.status, ran.notes) == (0, ())


def test_a_folder_whose_git_is_a_link_is_refused_run14(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "repository").mkdir()
    (tmp_path / "work/.git").symlink_to(tmp_path / "repository")
    ran = run("echo here", tmp_path / "work")
    assert ran.status == 125
    assert "'.git' is a symbolic link" in ran.output


def test_a_bare_repository_is_no_folder_for_commands_run14(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare"], cwd=tmp_path, check=True)
    ran = run("echo here", tmp_path)
    assert ran.status == 125
    assert "bare git repository" in ran.output


def test_ordinary_work_is_not_mentioned_run14(tmp_path: Path) -> None:
    text = (
        "mkdir -p src .github/workflows; touch Makefile package.json conftest.py .gitignore .editorconfig HEAD src/refs"
    )
    assert run(text, tmp_path).notes == ()


def test_two_commands_of_one_folder_can_run_at_once_run5(tmp_path: Path) -> None:
    sandbox = find_bwrap()
    assert isinstance(sandbox, Bwrap)
    folder = tmp_path.resolve()

    async def both() -> list[Ran]:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(sandbox.run(Command(f"sleep 0.3; echo {name} > {name}", folder))) for name in "ab"
            ]
        return [task.result() for task in tasks]

    assert [ran.status for ran in asyncio.run(both())] == [0, 0]
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def test_time_is_up_at_the_second_that_was_said_run5(tmp_path: Path) -> None:
    began = time.monotonic()
    ran = run("echo begun; sleep 60; echo over", tmp_path, seconds=1.5)
    assert (ran.timed_out, ran.killed, ran.output) == (True, "it ran for 1.5 seconds", "begun\n")
    assert time.monotonic() - began < 10

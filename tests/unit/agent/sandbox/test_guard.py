"""The guard as a process of its own: what it cleans up when the program in it has ended, or never began."""

import asyncio
from pathlib import Path

import pytest

from toolspeak.agent.sandbox.guard_plan import Launch, prepare_guard
from toolspeak.agent.sandbox.process import spawn

IMPOSSIBLE = Launch("start_sandlock", {}, mounts=False)
"""A plan without words: the guard runs, and its program cannot begin."""


async def guarded(folder: Path, launch: Launch) -> tuple[int, str]:
    """Run a guard to its end; return its status and what it wrote."""
    async with prepare_guard((folder,), None, launch) as start:
        process = await spawn(start, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.STDOUT)
        written, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, written.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "kept.txt").write_text("kept")
    return made


def test_the_guard_removes_the_folder_of_the_programs_own_files_run5(folder: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    (temporary / "deep").mkdir(parents=True)
    (temporary / "deep" / "left.txt").write_text("left")
    status, written = asyncio.run(guarded(folder, IMPOSSIBLE._replace(temporary=str(temporary))))
    assert (status, temporary.exists()) == (125, False)
    assert written.startswith("the sandbox could not be made: ")
    assert (folder / "kept.txt").read_text() == "kept"


def test_without_such_a_folder_the_guard_removes_nothing_run5(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert asyncio.run(guarded(folder, IMPOSSIBLE))[0] == 125
    assert [path.name for path in folder.iterdir()] == ["kept.txt"]

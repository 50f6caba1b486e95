"""The guard as a process of its own: what it cleans up when the program in it has ended, or never began."""

import asyncio
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from toolspeak.agent.sandbox.folder_guard import Appeared, NameWatch
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


def test_events_of_an_unknown_watch_and_without_a_name_are_left_out_run5(folder: Path) -> None:
    watch = NameWatch(str(folder))
    watch.add("")
    (number,) = watch._paths
    created = 0x100
    events = [(number, b""), (number + 1, b"stray.txt\0\0\0"), (number, b"new.txt\0")]
    data = b"".join(struct.pack("iIII", each, created, 0, len(name)) + name for each, name in events)
    assert [*watch._parsed(data)] == [Appeared("", "new.txt")]


LIMITED = """
import resource
from toolspeak.agent.sandbox.launch import _limit
for which in (resource.RLIMIT_FSIZE, resource.RLIMIT_CPU, resource.RLIMIT_DATA):
    if resource.getrlimit(which)[1] == resource.RLIM_INFINITY:
        break
else:
    raise SystemExit("this machine limits everything")
for most in (9000, 3000, 7000):
    _limit(which, most)
    print(*resource.getrlimit(which))
"""


def test_a_limit_is_set_where_there_was_none_and_never_raised_run5() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("9000 9000\n3000 3000\n3000 3000\n", "")

"""Files of the run's folder: what they do (RUN-4). What they must not do is in `tests/security/test_files.py`."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from tests.unit.agent.tools.scene import call, text_of
from toolspeak.agent.tools import files, final
from toolspeak.agent.tools.action import CallContext, ToolEffect, Workplace
from toolspeak.agent.tools.folder import LARGEST
from toolspeak.agent.tools.functions import actions_of
from toolspeak.agent.tools.toolbox import Toolbox
from toolspeak.ir.message import Result


class Desk:
    """The tools of one folder, called from tests."""

    def __init__(self, folder: Path, output: int = 4096) -> None:
        self.box = Toolbox(files.actions(Workplace(folder, output)), output)

    def result(self, name: str, **arguments: object) -> Result:
        return asyncio.run(self.box.run(call(name, "call_1", **arguments), CallContext()))

    def told(self, name: str, **arguments: object) -> str:
        result = self.result(name, **arguments)
        assert not result.is_error, text_of(result)
        return text_of(result)

    def error(self, name: str, **arguments: object) -> str:
        result = self.result(name, **arguments)
        assert result.is_error, text_of(result)
        return text_of(result)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_file_is_made_read_edited_and_listed_run4(desk: Desk, tmp_path: Path) -> None:
    assert desk.told("write_file", path="src/a.py", content="x = 1\ny = 2\n") == "'src/a.py' was made: 2 lines."
    assert desk.told("read_file", path="src/a.py") == "x = 1\ny = 2"
    assert desk.told("edit_file", path="src/a.py", old="y = 2", new="y = 3") == "'src/a.py' was edited in 1 place."
    assert (tmp_path / "src" / "a.py").read_text() == "x = 1\ny = 3\n"
    assert desk.told("write_file", path="src/a.py", content="") == "'src/a.py' was written anew: 0 lines."
    assert desk.told("read_file", path="src/a.py") == "'src/a.py' is empty."
    assert desk.told("list_files") == "src/\n  a.py  0 bytes"
    assert [each.name for each in (tmp_path / "src").iterdir()] == ["a.py"]


def test_what_each_does_to_the_world_run3() -> None:
    made = {each.name: each for each in files.actions(Workplace(Path("/")))}
    assert {name: each.effect for name, each in made.items()} == {
        "read_file": ToolEffect.READS,
        "write_file": ToolEffect.REPEATS,
        "edit_file": ToolEffect.ONCE,
        "list_files": ToolEffect.READS,
    }
    assert all(each.contained for each in made.values())


def test_an_edit_that_ran_again_would_be_done_twice_and_so_must_not_run3(desk: Desk, tmp_path: Path) -> None:
    for _ in range(2):
        desk.told("write_file", path="same", content="import os\n")
    assert (tmp_path / "same").read_text() == "import os\n"
    for _ in range(2):
        desk.told("edit_file", path="same", old="import os\n", new="import os\nimport re\n")
    assert (tmp_path / "same").read_text() == "import os\nimport re\nimport re\n"


@pytest.mark.parametrize("path", ["a/b.txt", "./a/b.txt", "a/../a/./b.txt", "a//b.txt", "x/../a/b.txt"])
def test_ways_to_say_one_path(desk: Desk, tmp_path: Path, path: str) -> None:
    desk.told("write_file", path=path, content="here")
    assert (tmp_path / "a" / "b.txt").read_text() == "here"
    assert desk.told("read_file", path=str(tmp_path.resolve() / "a" / "b.txt")) == "here"
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_a_long_file_is_read_page_by_page_run4(desk: Desk, tmp_path: Path) -> None:
    lines = [f"line {n} é" for n in range(1, 1001)]
    (tmp_path / "long").write_text("\n".join(lines) + "\n")
    read: list[str] = []
    offset, pages = 1, 0
    while offset:
        *page, note = desk.told("read_file", path="long", offset=offset).split("\n")
        read, pages = [*read, *page], pages + 1
        assert "left out" not in note
        assert note.startswith(f"[lines {offset} to {len(read)} of 1000")
        offset = int(note.rstrip("]").rpartition("offset=")[2]) if "offset=" in note else 0
    assert read == lines
    assert 3 < pages < 8


def test_some_lines_of_a_file(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "three").write_text("a\nb\nc")
    assert desk.told("read_file", path="three", offset=2, limit=1) == "b\n[lines 2 to 2 of 3; go on with offset=3]"
    assert desk.told("read_file", path="three", offset=3) == "c\n[lines 3 to 3 of 3]"
    assert desk.told("read_file", path="three", offset=0) == "a\nb\nc"
    assert desk.error("read_file", path="three", offset=4) == "'three' has 3 lines; line 4 is past its end."
    assert "/limit" in desk.error("read_file", path="three", limit=0)


def test_one_line_that_is_too_long_is_cut_run4(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "line").write_text("é" * 10_000 + "\nshort\n")
    text = desk.told("read_file", path="line")
    assert len(text.encode()) <= 4096
    assert "bytes left out" in text
    assert text.endswith("\n[lines 1 to 1 of 2; go on with offset=2]")


def test_how_long_a_page_is_follows_the_runs_own_limit_run4(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("word\n" * 5000)
    assert len(Desk(tmp_path, 16_000).told("read_file", path="long", limit=2000)) > 9_900
    assert len(Desk(tmp_path, 500).told("read_file", path="long")) <= 500


def test_an_edit_wants_the_text_once(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one two one")
    assert "not in 'f'; read it again" in desk.error("edit_file", path="f", old="three", new="3")
    assert "is 2 times in 'f'" in desk.error("edit_file", path="f", old="one", new="1")
    assert "/old" in desk.error("edit_file", path="f", old="", new="1")
    assert (tmp_path / "f").read_text() == "one two one"
    assert desk.told("edit_file", path="f", old="one", new="1", all=True) == "'f' was edited in 2 places."
    assert (tmp_path / "f").read_text() == "1 two 1"


def test_lines_that_end_as_on_windows_stay_so(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "dos").write_bytes(b"a\r\nb\r\nc\r\n")
    assert desk.told("read_file", path="dos") == "a\nb\nc"
    desk.told("edit_file", path="dos", old="a\nb", new="x\ny\nz")
    assert (tmp_path / "dos").read_bytes() == b"x\r\ny\r\nz\r\nc\r\n"


def test_a_path_that_is_wrong_is_answered_with_what_is_there(desk: Desk, tmp_path: Path) -> None:
    assert desk.error("read_file", path="main.py") == "there is no 'main.py' in the folder; nothing is there."
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "main.py").touch()
    assert desk.error("read_file", path="sources/main.py").endswith("did you mean 'source'?")
    assert desk.error("read_file", path="source/man.py") == "there is no 'man.py' in 'source'; did you mean 'main.py'?"
    assert desk.error("read_file", path="zzz") == "there is no 'zzz' in the folder; there are: source."
    assert desk.error("read_file", path="source") == "'source' is a folder, not a file."
    assert desk.error("list_files", path="source/main.py") == "'main.py' is a file, not a folder."
    assert desk.error("write_file", path="source", content="") == "'source' is a folder, not a file."
    assert desk.error("write_file", path="source/main.py/x", content="") == "'main.py' is a file, not a folder."
    assert desk.error("read_file", path=".") == "'.' is the folder itself, not a file in it."
    for n in range(30):
        (tmp_path / f"{n}_file").touch()
    assert desk.error("read_file", path="zzz").endswith("26_file, 27_file and more.")


def test_what_is_no_text_is_said_to_be_binary_run4(desk: Desk, tmp_path: Path) -> None:
    for name, data in (("nul", b"a\0b"), ("latin", b"caf\xe9"), ("png", b"\x89PNG\r\n\x1a\n")):
        (tmp_path / name).write_bytes(data)
        assert desk.error("read_file", path=name) == f"{name!r} is binary, {len(data)} bytes."
        assert desk.error("edit_file", path=name, old="a", new="b") == f"{name!r} is binary, {len(data)} bytes."
        assert (tmp_path / name).read_bytes() == data


def test_folders_are_listed_to_a_depth_without_what_is_in_git(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / ".git" / "objects").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "f.txt").write_text("12345")
    (tmp_path / "link").symlink_to("a")
    assert desk.told("list_files", depth=1) == ".git/\na/\nlink  (link)"
    assert desk.told("list_files", path="a", depth=3) == "b/\n  c/\n  f.txt  5 bytes"
    assert desk.told("list_files", path="a/b/c") == "'a/b/c' is empty."
    assert "/depth" in desk.error("list_files", depth=99)


def test_a_folder_with_too_many_files_is_listed_in_part_run4(tmp_path: Path) -> None:
    for n in range(1500):
        (tmp_path / f"{n:04}").touch()
    small, large = Desk(tmp_path).told("list_files"), Desk(tmp_path, 1 << 20).told("list_files")
    assert len(small) <= 4096
    assert "left out" not in small
    assert small.endswith("only; list a folder in it, or say depth=1]")
    assert large.endswith("[the first 1000 only; list a folder in it, or say depth=1]")


def test_a_file_keeps_its_rights_and_loses_none_to_others(desk: Desk, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("echo 1\n")
    script.chmod(0o4750)
    desk.told("edit_file", path="run.sh", old="1", new="2")
    assert stat.S_IMODE(script.stat().st_mode) == 0o750


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_writes_belongs_to_whom_the_folder_belongs(desk: Desk, tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    desk.told("write_file", path="new/file", content="x")
    (tmp_path / "old").touch()
    os.chown(tmp_path / "old", 1234, 1234)
    desk.told("write_file", path="old", content="x")
    owners = [(tmp_path / name).stat().st_uid for name in ("new", "new/file", "old")]
    assert owners == [65534, 65534, 1234]


def test_edits_at_the_same_time_lose_nothing_run4(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("".join(f"<{n}>" for n in range(40)))

    async def all_at_once() -> None:
        async with asyncio.TaskGroup() as group:
            for n in range(40):
                group.create_task(desk.box.run(call("edit_file", path="f", old=f"<{n}>", new=f"({n})"), CallContext()))

    asyncio.run(all_at_once())
    assert (tmp_path / "f").read_text() == "".join(f"({n})" for n in range(40))


def test_limits_of_size_run4(desk: Desk, tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(LARGEST + 1)
    assert desk.error("read_file", path="huge") == f"'huge' has {LARGEST + 1} bytes; at most {LARGEST} are read."
    over = desk.error("write_file", path="new", content="x" * (LARGEST + 1))
    assert over == f"the content has {LARGEST + 1} bytes; at most {LARGEST} are written."
    assert not (tmp_path / "new").exists()


def test_a_file_may_grow_to_the_limit_and_not_beyond_run4(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "full").write_bytes(b"a" + bytes(LARGEST - 2).replace(b"\0", b"x"))
    assert desk.told("edit_file", path="full", old="a", new="ab") == "'full' was edited in 1 place."
    assert (tmp_path / "full").stat().st_size == LARGEST
    over = desk.error("edit_file", path="full", old="ab", new="abc")
    assert over == f"'full' would be too large; at most {LARGEST} bytes are written."


def test_the_final_output_is_the_end_of_a_run_run4() -> None:
    (action,) = final.actions(Workplace(Path("/")))
    result = asyncio.run(Toolbox([action]).run(call("final_output", summary="All done."), CallContext()))
    assert (action.ends, action.effect, text_of(result)) == (True, ToolEffect.READS, "All done.")
    assert actions_of([action]) == (action,)


@pytest.mark.parametrize(
    "path", ["a/.git/config", ".GIT/hooks/x", "a/git~1", "a/.g\u200cit", ".vscode/tasks.json", "toolspeak.toml"]
)
def test_what_the_host_obeys_is_not_written_run14(desk: Desk, tmp_path: Path, path: str) -> None:
    assert "is read-only here" in desk.error("write_file", path=path, content="evil")
    assert list(tmp_path.iterdir()) == []


def test_hooks_that_exist_are_kept_and_new_ones_are_told_run14(desk: Desk) -> None:
    assert "Tell the person" in desk.told("write_file", path=".husky/pre-commit", content="new")
    assert "is read-only here" in desk.error("write_file", path=".husky/pre-commit", content="evil")
    assert "direnv runs it" in desk.told("write_file", path="a/.envrc", content="evil")
    assert "direnv runs it" in desk.told("edit_file", path="a/.envrc", old="evil", new="worse")


def test_a_bare_repository_cannot_be_made_file_by_file_run14(desk: Desk) -> None:
    desk.told("write_file", path="x/objects/keep", content="")
    desk.told("write_file", path="x/refs/keep", content="")
    assert "takes it for a repository" in desk.error("write_file", path="x/HEAD", content="ref: refs/heads/main")
    desk.told("write_file", path="y/HEAD", content="ref: refs/heads/main")
    assert "takes it for a repository" in desk.error("write_file", path="y/commondir", content="../x")

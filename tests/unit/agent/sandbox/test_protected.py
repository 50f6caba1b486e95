"""The table of names that the host obeys, and what becomes of them in a folder (RUN-14)."""

import asyncio
import fcntl
import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from toolspeak.agent.sandbox.guard_plan import git_paths
from toolspeak.agent.sandbox.journal import JournalEntry, open_entry, recover
from toolspeak.agent.sandbox.protected import (
    KEEP,
    REFUSE,
    REPORT,
    canonical,
    is_bare,
    is_git,
    rule_for_path,
    rule_of,
    survey,
)
from toolspeak.agent.sandbox.quarantine import Copies, Mask, open_beneath, settle

ALIASES = (
    ".git",
    ".GIT",
    ".gIt",
    "git~1",
    "GIT~2",
    ".git.",
    ".git ",
    ".git. .",
    ".git::$INDEX_ALLOCATION",
    ".g\u200cit",
)


@pytest.mark.parametrize("name", [*ALIASES, "\ufeff.git", ".gi\u200et", "x\\\\.git"])
def test_every_spelling_of_git_is_git_run14(name: str) -> None:
    assert canonical(name) == ".git"
    assert is_git(name)


@pytest.mark.parametrize(
    "name", [".gitignore", ".github", "git", "x.git", ".git.refused", "git~", "git~x", "Makefile", ".gitkeep"]
)
def test_ordinary_names_have_no_rule_run14(name: str) -> None:
    assert rule_of(name, top=True) is None


OBEYED = (
    "toolspeak.toml",
    ".toolspeak",
    *(".vscode", ".idea", ".husky", ".githooks", ".claude", ".codex", ".cursor", ".gemini", ".mcp.json", ".zed"),
    *(".devcontainer", ".devcontainer.json", ".gitattributes", ".gitmodules", ".envrc", ".direnv", ".autoenv.zsh"),
    *(".tool-versions", ".mise", ".mise.toml", ".mise.local.toml", "mise.toml", "mise.local.toml", ".rtx.toml"),
    *(".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook.yml", "lefthook.yaml", ".lefthook.yml"),
    *(".overcommit.yml", ".exrc", ".vimrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".dir-locals.el", ".dir-locals-2.el"),
    *(".gdbinit", ".lldbinit"),
)
"""Written out again: a name that falls out of the table would be an ordinary file, which any command may create."""


@pytest.mark.parametrize("name", OBEYED)
def test_what_programs_on_the_host_obey_has_a_rule_in_every_spelling_run14(name: str) -> None:
    rule = rule_of(name, top=True)
    assert rule is not None
    assert rule.reason
    for spelling in (name.upper(), name + ".", name[:2] + "\u200c" + name[2:], name.replace("e", "\uff45")):
        assert rule_of(spelling, top=True) == rule


@pytest.mark.parametrize(
    ("path", "action"),
    [
        (("a", ".git", "config"), REFUSE),
        (("toolspeak.toml",), REFUSE),
        (("a", "toolspeak.toml"), REFUSE),
        ((".vscode", "tasks.json"), REFUSE),
        (("a", ".vscode", "tasks.json"), REPORT),
        ((".husky", "pre-commit"), KEEP),
        ((".ENVRC",), REPORT),
    ],
)
def test_a_path_has_the_strictest_rule_of_its_parts_run14(path: tuple[str, ...], action: str) -> None:
    rule = rule_for_path(path)
    assert rule is not None
    assert rule.action == action


@pytest.mark.parametrize(
    ("names", "bare"),
    [
        ({"HEAD", "objects", "refs"}, True),
        ({"HEAD", "commondir"}, True),
        ({"head", "OBJECTS", "refs"}, True),
        ({"objects", "refs", "config"}, False),
        ({"HEAD", "objects"}, False),
    ],
)
def test_what_git_takes_for_a_bare_repository_run14(names: set[str], bare: bool) -> None:
    assert is_bare(names) is bare


def _evil(path: Path) -> None:
    for name in ("objects", "refs"):
        (path / name).mkdir(parents=True)
    (path / "HEAD").write_text("ref: refs/heads/main")


def test_a_new_repository_is_renamed_with_its_head_and_an_old_one_stays_run14(tmp_path: Path) -> None:
    _evil(tmp_path / "old/.git")
    before = survey(str(tmp_path))
    _evil(tmp_path / "sub/.git")
    _evil(tmp_path / "sub/.git/x/.git")
    _evil(tmp_path / "bare")
    (tmp_path / ".git.refused").mkdir()
    (tmp_path / ".git").write_text("gitdir: x")
    notes = settle(str(tmp_path), before, set())
    assert len(notes) == 4
    assert (tmp_path / "old/.git/HEAD").exists()
    assert (tmp_path / ".git.refused-2").read_text() == "gitdir: x"
    assert (tmp_path / "bare/HEAD.refused").exists()
    assert (tmp_path / "sub/.git.refused/x/.git.refused/HEAD.refused").exists()
    assert {path.name for path in tmp_path.rglob("*")} & {".git", "HEAD"} == {".git", "HEAD"}
    assert settle(str(tmp_path), survey(str(tmp_path)), set()) == []


def test_new_files_of_an_editor_and_of_toolspeak_are_renamed_run14(tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode/tasks.json").write_text("{}")
    (tmp_path / "toolspeak.toml").write_text("")
    notes = settle(str(tmp_path), {}, set())
    assert sorted(note.partition(":")[0] for note in notes) == [
        "'.vscode' was renamed to '.vscode.refused'",
        "'toolspeak.toml' was renamed to 'toolspeak.toml.refused'",
    ]
    assert (tmp_path / ".vscode.refused/tasks.json").exists()
    assert (tmp_path / "toolspeak.toml.refused").exists()


def test_a_link_on_the_way_is_not_followed_run14(tmp_path: Path) -> None:
    _evil(tmp_path / "mine/.git")
    work = tmp_path / "work"
    work.mkdir()
    (work / "link").symlink_to(tmp_path / "mine")
    (note,) = settle(str(work), {}, set())
    assert "leads out" in note
    assert (tmp_path / "mine/.git/HEAD").exists()


def test_a_folder_below_another_is_open_only_while_it_is_used_run14(tmp_path: Path) -> None:
    """The guard of a service opens many in days."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    with open_beneath(str(tmp_path), ("a", "b")) as found:
        assert os.path.samestat(os.fstat(found), (tmp_path / "a" / "b").stat())
    with pytest.raises(FileNotFoundError), open_beneath(str(tmp_path), ("a", "none")):
        pass
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208


def test_a_mask_is_shared_and_removed_by_the_last_run14(tmp_path: Path) -> None:
    first, second = (Mask.make(str(tmp_path), ".git") for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.is_intact()
    assert not first.remove()
    assert (tmp_path / ".git").is_dir()
    assert second.remove()
    assert not (tmp_path / ".git").exists()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").touch()
    assert Mask.make(str(tmp_path), ".git") is None


def test_a_mask_that_was_filled_replaced_or_removed_is_not_intact_run14(tmp_path: Path) -> None:
    mask = Mask.make(str(tmp_path), ".git")
    assert mask is not None
    (tmp_path / ".git/HEAD").touch()
    assert not mask.is_intact()
    (tmp_path / ".git/HEAD").unlink()
    assert mask.is_intact()
    (tmp_path / ".git").rename(tmp_path / "old")
    assert mask.is_intact() is False, "nothing is in its place"
    (tmp_path / ".git").mkdir()
    assert not mask.is_intact(), "another folder is in its place"


def test_a_protected_file_that_was_replaced_by_a_link_or_removed_is_put_back_run14(tmp_path: Path) -> None:
    work = tmp_path / "work"
    _evil(work / ".git")
    (work / ".git/config").write_text("config")
    copies = Copies.take(str(work), [".git"])
    (work / ".git/config").unlink()
    (work / ".git/HEAD").unlink()
    (work / ".git/HEAD").symlink_to(tmp_path / "elsewhere")
    assert copies.put_back()
    assert (work / ".git/config").read_text() == "config"
    assert not (work / ".git/HEAD").is_symlink()
    assert not (tmp_path / "elsewhere").exists(), "no link was followed"


def test_copies_are_put_back_also_from_the_journal_run14(tmp_path: Path) -> None:
    _evil(tmp_path / ".git")
    (tmp_path / ".git/config").write_text("config")
    (tmp_path / ".git/hooks").mkdir()
    copies = Copies.take(str(tmp_path), [".git"])
    (tmp_path / ".git/config").write_text("evil")
    (tmp_path / ".git/commondir").write_text("../evil")
    (tmp_path / ".git/objects/new").write_text("an object")
    (tmp_path / "setuid").touch()
    (tmp_path / "setuid").chmod(0o4755)
    said = msgspec.json.decode(msgspec.json.encode(copies.dump()))
    assert Copies.load(str(tmp_path), said).put_back() == ["'.git' was changed, and was put back"]
    assert (tmp_path / ".git/config").read_text() == "config"
    assert not (tmp_path / ".git/commondir").exists()
    assert (tmp_path / ".git/objects/new").exists()
    assert (tmp_path / "setuid").stat().st_mode & 0o7777 == 0o755


def test_a_repository_that_was_moved_is_moved_back_run14(tmp_path: Path) -> None:
    _evil(tmp_path / ".git")
    (tmp_path / ".git/objects/mine").touch()
    copies = Copies.take(str(tmp_path), [".git"])
    (tmp_path / ".git").rename(tmp_path / "old")
    _evil(tmp_path / ".git")
    assert copies.put_back()
    assert (tmp_path / ".git/objects/mine").exists()


def test_the_next_start_finishes_what_a_killed_guard_could_not_run14(tmp_path: Path) -> None:
    journal, folder = tmp_path / "journal", tmp_path / "folder"
    folder.mkdir()
    with open_entry(journal) as entry:
        entry.path.write_bytes(
            msgspec.json.encode(
                {
                    "state": "running",
                    "guard": 1,
                    "folders": [{"folder": str(folder), "known": {}, "copies": None}],
                }
            )
        )
        _evil(folder / "sub/.git")
        assert recover(journal) == []  # its command still runs
    (report,) = recover(journal)
    assert report.folder == folder
    assert "'sub/.git' was renamed to 'sub/.git.refused'" in report.notes[0]
    assert list(journal.iterdir()) == []
    assert recover(journal) == []


def test_an_entry_that_its_guard_still_holds_is_left_alone_run14(tmp_path: Path) -> None:
    entry = JournalEntry(tmp_path / "x.json")
    folders = [{"folder": "/", "notes": ["n"]}]
    entry.path.write_bytes(msgspec.json.encode({"state": "ended", "stopped": "", "folders": folders}))
    lock = os.open(tmp_path / "x.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_SH)
    assert recover(tmp_path) == []
    os.close(lock)
    assert [report.notes for report in recover(tmp_path)] == [("n",)]


def test_what_gits_settings_name_in_the_folder_is_found_run14(tmp_path: Path) -> None:
    text = (
        "git init -q; mkdir .hooks bin src; touch bin/clean .gitinclude; git config core.hooksPath .hooks;"
        "git config include.path ../.gitinclude; git config filter.x.clean 'sh bin/clean %f'; git config user.name src"
    )
    subprocess.run(["/bin/sh", "-ec", text], cwd=tmp_path, check=True)
    found = asyncio.run(git_paths(tmp_path))
    assert set(found.referenced) == {".hooks", "bin/clean", ".gitinclude"}
    assert asyncio.run(git_paths(tmp_path / "src")) == ((), ())

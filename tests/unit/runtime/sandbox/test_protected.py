"""What git and we obey is afterwards what it was (RUN-5)."""

from pathlib import Path

import pytest

from toolspeak.runtime.sandbox.protected import restored, swept


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    (tmp_path / ".git/config").write_text("config")
    (tmp_path / ".git/hooks/sample").write_text("sample")
    (tmp_path / "toolspeak.toml").write_text("ours")
    return tmp_path


def test_what_may_not_come_to_be_is_taken_away_run5(folder: Path) -> None:
    with swept(folder):
        (folder / ".git/commondir").write_text("../evil")
        (folder / ".git/config.worktree").mkdir()
    assert {path.name for path in (folder / ".git").iterdir()} == {"config", "hooks"}


def test_what_was_there_before_stays_run5(folder: Path) -> None:
    (folder / ".git/commondir").write_text("..")
    with swept(folder):
        pass
    assert (folder / ".git/commondir").read_text() == ".."


def test_changed_and_removed_files_come_back_run5(folder: Path) -> None:
    with restored(folder):
        (folder / "toolspeak.toml").unlink()
        (folder / ".git/config").write_text("evil")
        (folder / ".git/hooks/pre-commit").write_text("evil")
        (folder / ".git/hooks/sample").unlink()
    assert (folder / "toolspeak.toml").read_text() == "ours"
    assert (folder / ".git/config").read_text() == "config"
    assert [(path.name, path.read_text()) for path in (folder / ".git/hooks").iterdir()] == [("sample", "sample")]


def test_a_git_that_became_a_link_is_a_folder_again_run5(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "config").write_text("theirs")
    with restored(folder):
        (folder / ".git").rename(folder / "old")
        (folder / ".git").symlink_to(elsewhere)
    assert not (folder / ".git").is_symlink()
    assert (folder / ".git/config").read_text() == "config"
    assert (elsewhere / "config").read_text() == "theirs"


def test_setuid_bits_are_taken_away_and_links_are_not_followed_run5(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("elsewhere") / "other"
    other.write_text("x")
    other.chmod(0o4755)
    with restored(folder):
        (folder / "evil").write_text("x")
        (folder / "evil").chmod(0o6755)
        (folder / "link").symlink_to(other)
    assert (folder / "evil").stat().st_mode & 0o7777 == 0o755
    assert other.stat().st_mode & 0o7777 == 0o4755

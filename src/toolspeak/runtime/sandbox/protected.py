"""What a command may not leave in its folder: files that make git obey another configuration than its own."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_NAMES: Final = (".git/commondir", ".git/config.worktree")


@contextmanager
def swept(folder: Path) -> Generator[None]:
    """Take away afterwards what was not there before."""
    absent = [path for name in _NAMES if not _there(path := folder / name)] if _own_git(folder) else []
    try:
        yield
    finally:
        for path in absent:
            _remove(path)


def _own_git(folder: Path) -> bool:
    """Tell whether the folder has a repository of its own; a link leads elsewhere, and a file says where."""
    git = folder / ".git"
    return git.is_dir() and not git.is_symlink()


def _there(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # a folder, which git does not read
        return

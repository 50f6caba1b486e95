"""What a command may not leave in its folder: another configuration of git or of ours than there was.

Bubblewrap shuts the files themselves (`launch.py`); `swept` takes away those that may not come to be. Who cannot shut
files has `restored`, which puts them back.
"""

import shutil
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

OWN: Final = ("toolspeak.toml", ".toolspeak")
_SETUID: Final = 0o6000
_NEVER: Final = (".git/commondir", ".git/config.worktree")
_GIT: Final = (".git/config", ".git/hooks")


@contextmanager
def swept(folder: Path) -> Generator[None]:
    """Take away afterwards what was not there before."""
    absent = [path for name in _NEVER if not _there(path := folder / name)] if _own_git(folder) else []
    try:
        yield
    finally:
        for path in absent:
            _remove(path)


@contextmanager
def restored(folder: Path) -> Generator[None]:
    """Put back afterwards what was there before, and take setuid bits away from what is there now."""
    names = (*OWN, *_GIT) if _own_git(folder) else OWN
    before = {folder / name: _read(folder / name) for name in names}
    try:
        yield
    finally:
        for path, kept in before.items():
            if _read(path) != kept:
                _put_back(path, kept)
        for path in folder.rglob("*"):
            _without_setuid(path)


def _own_git(folder: Path) -> bool:
    """Tell whether the folder has a repository of its own; a link leads elsewhere, and a file says where."""
    git = folder / ".git"
    return git.is_dir() and not git.is_symlink()


def _there(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _read(path: Path) -> dict[str, bytes]:
    """Read a file, or all files of a folder; what is reached by a link is not there."""
    if path.is_symlink() or path.parent.is_symlink():
        return {"": b"a link"}
    if path.is_file():
        return {".": path.read_bytes()}
    files = (each for each in path.rglob("*") if each.is_file() and not each.is_symlink())
    return {str(each.relative_to(path)): each.read_bytes() for each in files}


def _put_back(path: Path, kept: dict[str, bytes]) -> None:
    if path.parent.is_symlink():
        path.parent.unlink()
    _remove(path)
    for name, data in kept.items():
        place = path / name if name != "." else path
        place.parent.mkdir(parents=True, exist_ok=True)
        if name:
            place.write_bytes(data)


def _without_setuid(path: Path) -> None:
    with suppress(OSError):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) and mode & _SETUID:
            path.chmod(stat.S_IMODE(mode) & ~_SETUID)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

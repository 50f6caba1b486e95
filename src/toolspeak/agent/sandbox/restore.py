"""Copies of protected files, for a sandbox that cannot mount them read-only: what a command has changed is put back.

Of a repository all is copied that git takes orders from. Objects, references, logs and the index are not: git runs
nothing that is in them.
"""

import os
import stat
from contextlib import suppress
from typing import Any, Final

from toolspeak.agent.sandbox.protected import BARE, SUFFIX
from toolspeak.agent.sandbox.survey import identity, survey

_NO_ORDERS: Final = frozenset(("objects", "refs", "logs", "lfs", "index", "packed-refs"))
_LARGEST: Final = 1 << 20
"""Bytes of a file that is copied; hooks and settings are smaller."""
_SETUID: Final = 0o6000


class Copies:
    """The content of protected files as it was."""

    def __init__(self, folder: str, kept: dict[str, dict[str, tuple[int, str]]], known: dict[str, list[int]]) -> None:
        """Take for each protected path the files in it (`` for itself) with their mode and content as latin-1."""
        self._folder: Final = folder
        self._kept: Final = kept
        self._known: Final = known

    @classmethod
    def take(cls, folder: str, paths: list[str]) -> "Copies":
        """Copy what is there now."""
        known = {path: [*identity(f"{folder}/{path}")] for path in paths}
        return cls(folder, {path: _read(f"{folder}/{path}") for path in paths}, known)

    def dump(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        return {"kept": self._kept, "known": self._known}

    @classmethod
    def load(cls, folder: str, said: dict[str, Any]) -> "Copies":
        """Take what `dump` gave."""
        kept = {
            path: {name: (file[0], file[1]) for name, file in files.items()} for path, files in said["kept"].items()
        }
        return cls(folder, kept, said["known"])

    def folders(self) -> list[str]:
        """Return the folders in which a change is a change of something protected."""
        found = dict.fromkeys(path.rpartition("/")[0] for path in self._kept)
        for path, files in self._kept.items():
            if os.path.isdir(f"{self._folder}/{path}"):  # noqa: PTH112 # pathlib takes time to load
                found |= dict.fromkeys((path, *(f"{path}/{name}".rpartition("/")[0] for name in files)))
        return [*found]

    def holds(self, path: str) -> bool:
        """Return whether a path is protected, or in something that is."""
        return any(path == each or path.startswith(f"{each}/") for each in self._kept)

    def put_back(self) -> list[str]:
        """Put back what is different, and take setuid bits away; return a note about each path that was changed."""
        changed = [path for path in self._kept if self._put_back(path)]
        for _, _, names, here in os.fwalk(self._folder):  # by descriptors: a path may be too long to be named
            for name in names:
                _without_setuid(name, here)
        return [f"{path!r} was changed, and was put back" for path in changed]

    def _put_back(self, path: str) -> bool:
        place, kept = f"{self._folder}/{path}", self._kept[path]
        parent = os.path.dirname(place)  # noqa: PTH120 # as above
        if os.path.realpath(parent) != parent:  # a part of the way has become a link
            return True
        moved = [*identity(place)] != self._known[path]
        if moved and (old := self._moved(path)):
            _aside(place)
            os.rename(old, place)  # noqa: PTH104 # as above
        now = _read(place)
        if now == kept:
            return moved
        if "" in kept or not os.path.isdir(place) or os.path.islink(place):  # noqa: PTH112, PTH114 # as above
            _aside(place)
        for name in now.keys() - kept.keys():
            _unlink(f"{place}/{name}")
        for name, (mode, content) in kept.items():
            if now.get(name) != (mode, content) or not os.path.lexists(f"{place}/{name}" if name else place):
                _write(f"{place}/{name}" if name else place, mode, content)
        return True

    def _moved(self, path: str) -> str:
        """Return where a repository was moved to, if it is still in the folder."""
        for found, each in survey(self._folder).items():
            if each.kind == BARE and [*each.state] == self._known[path]:
                return f"{self._folder}/{found}"
        return ""


def _read(place: str) -> dict[str, tuple[int, str]]:
    """Return the files at a path, which may be one; links and what git takes no orders from are left out."""
    found = dict[str, tuple[int, str]]()
    with suppress(OSError):
        status = os.lstat(place)  # as above
        if stat.S_ISREG(status.st_mode):
            with open(place, "rb") as file:  # noqa: PTH123 # as above
                return {"": (stat.S_IMODE(status.st_mode), file.read(_LARGEST).decode("latin-1"))}
        if stat.S_ISDIR(status.st_mode):
            for name in os.listdir(place):  # noqa: PTH208 # as above
                if name not in _NO_ORDERS:
                    inner = _read(f"{place}/{name}")
                    found |= {f"{name}/{each}" if each else name: file for each, file in inner.items()}
    return found


def _write(place: str, mode: int, content: str) -> None:
    with suppress(OSError):
        os.makedirs(os.path.dirname(place), exist_ok=True)  # noqa: PTH103, PTH120 # as above
        _unlink(place)
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode("latin-1"))


def _aside(place: str) -> None:
    """Move away what is in the place of something protected."""
    with suppress(OSError):
        os.rename(place, f"{place}{SUFFIX}-{os.getpid()}")  # noqa: PTH104 # as above


def _unlink(place: str) -> None:
    with suppress(OSError):
        os.unlink(place)  # noqa: PTH108 # as above


def _without_setuid(name: str, folder: int) -> None:
    with suppress(OSError):
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISREG(mode) and mode & _SETUID:
            os.chmod(name, stat.S_IMODE(mode) & ~_SETUID, dir_fd=folder)

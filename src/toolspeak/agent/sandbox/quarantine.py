"""Renames or restores files in a work folder that a command has left and that programs on the host would obey.

`settle` compares the folder with its state before the command: forbidden files are renamed, other changes reported.
Where a sandbox cannot mount protected files read-only, `Copies` keeps their content and restores changed files. Of a
repository it copies every file that can make git run a command. Objects, references, logs and the index are not
copied: git runs nothing that is in them.

All functions work on descriptors, folder by folder, and follow no link: another command may be running in the same
folder, and the guard may be root. The module runs in the guard's interpreter and imports only `protected.py` of ours.
"""

import fcntl
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final

from toolspeak.agent.sandbox.protected import BARE, REFUSE, SUFFIX, ProtectedPath, ProtectedPaths, identity, survey

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_NOTES: Final = 20
_TRIES: Final = 5


class Mask:
    """An empty folder, mounted in place of one that commands must not create; all commands in a folder share it."""

    def __init__(self, folder: str, path: str, descriptor: int) -> None:
        """Take the open and locked descriptor of the folder."""
        self.path: Final = path
        self._folder: Final = folder
        self._descriptor: Final = descriptor

    @classmethod
    def make(cls, folder: str, path: str) -> "Mask | None":
        """Create the mask, or share that of another command. None if the path is taken by something that is not empty.

        The shared lock counts the users of a mask. Between `mkdir` and the lock its last user may remove it, so the
        inode is compared afterwards, and the attempt repeated.
        """
        parents, name = _split(path)
        for _ in range(_TRIES):
            try:
                with open_beneath(folder, parents) as parent:
                    _make(parent, name)
                    found = os.open(name, _FOLDER, dir_fd=parent)
                    with suppress(OSError):  # a file system without locks: each command then removes its own mask
                        fcntl.flock(found, fcntl.LOCK_SH)
                    same = os.fstat(found).st_ino == os.stat(name, dir_fd=parent, follow_symlinks=False).st_ino
            except FileNotFoundError:  # its last user has just removed it, or the parent folder does not exist
                continue
            except OSError:
                return None
            if same and not os.listdir(found):  # noqa: PTH208 # it is a descriptor
                return cls(folder, path, found)
            os.close(found)
            if same:
                return None
        return None

    def is_intact(self) -> bool:
        """Return whether the mask is still in its place, and empty."""
        parents, name = _split(self.path)
        with suppress(OSError), open_beneath(self._folder, parents) as parent:
            same = os.fstat(self._descriptor).st_ino == os.stat(name, dir_fd=parent, follow_symlinks=False).st_ino
            return same and not os.listdir(self._descriptor)  # noqa: PTH208 # as above
        return False

    def remove(self) -> bool:
        """Remove the mask and close it. Return False if another command still needs it."""
        parents, name = _split(self.path)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            return False
        except OSError:
            pass
        with suppress(OSError), open_beneath(self._folder, parents) as parent:
            os.rmdir(name, dir_fd=parent)
        os.close(self._descriptor)
        return True


def _make(parent: int, name: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=parent)
        if os.geteuid() == 0:
            like = os.fstat(parent)
            os.chown(name, like.st_uid, like.st_gid, dir_fd=parent, follow_symlinks=False)


def settle(folder: str, before: ProtectedPaths, shared: set[str]) -> list[str]:
    """Rename forbidden files. Return a note about each of them, and about each other change of a protected path.

    Paths in `shared` are masks of other commands that still run. At most 20 notes are returned.
    """
    # With `force`: a command could hide a repository in a folder that it made unreadable (`chmod 0`).
    notes, ahead = list[str](), [survey(folder, force=True)]
    while ahead:
        for path, each in ahead.pop().items():
            known = before.get(path)
            if each.rule.action != REFUSE:
                if known is None or each.state != known.state:
                    notes.append(f"{path!r} {'is new' if known is None else 'was changed'}: {each.rule.reason}")
            elif path not in shared and (known is None or (each.kind and each.state != known.state)):
                now, note = _take_out_of_use(folder, path, each)
                notes += [note] if note else []
                if now:  # the walk does not enter `.git`, but it must enter the renamed folder
                    ahead.append(survey(folder, now, force=True))
    more = len(notes) - _MOST_NOTES
    return notes if more <= 0 else [*notes[:_MOST_NOTES], f"and {more} more"]


def _take_out_of_use(folder: str, path: str, each: ProtectedPath) -> tuple[str, str]:
    """Rename one path. Return the new path if it is a folder, and the note for people."""
    parents, name = _split(path)
    try:
        return _disabled(folder, parents, name, each)
    except OSError as error:
        why = f"({error.strerror}). Remove it before you use the folder: {each.rule.reason}"
        return "", f"{path!r} could not be renamed {why}"


def _disabled(folder: str, parents: tuple[str, ...], name: str, each: ProtectedPath) -> tuple[str, str]:
    path = "/".join((*parents, name))
    if each.kind == BARE:
        with open_beneath(folder, (*parents, name)) as inside:
            heads = _rename_heads(inside)
        return "", f"{path!r}: its {', '.join(heads)} was renamed: {each.rule.reason}" if heads else ""
    with open_beneath(folder, parents) as parent:
        with suppress(OSError):
            os.rmdir(name, dir_fd=parent)  # an empty folder is the mask of a guard that was killed
            return "", ""
        now = _rename(parent, name)
        is_folder = stat.S_ISDIR(os.stat(now, dir_fd=parent, follow_symlinks=False).st_mode)
    if is_folder:
        with open_beneath(folder, (*parents, now)) as inside:
            _rename_heads(inside)
    moved = "/".join((*parents, now))
    return moved if is_folder else "", f"{path!r} was renamed to {moved!r}: {each.rule.reason}"


def _rename_heads(inside: int) -> list[str]:
    """Rename `HEAD`: without it, git does not treat the folder as a repository."""
    names = [name for name in os.listdir(inside) if name.casefold() == "head"]  # it is a descriptor
    for name in names:
        _rename(inside, name)
    return names


def _rename(parent: int, name: str) -> str:
    present = set(os.listdir(parent))  # as above
    new, number = f"{name}{SUFFIX}", 1
    while new in present:
        number += 1
        new = f"{name}{SUFFIX}-{number}"
    try:
        os.rename(name, new, src_dir_fd=parent, dst_dir_fd=parent)
    except PermissionError:  # a command may have made the parent folder read-only
        os.fchmod(parent, stat.S_IMODE(os.fstat(parent).st_mode) | 0o700)
        os.rename(name, new, src_dir_fd=parent, dst_dir_fd=parent)
    return new


@contextmanager
def open_beneath(folder: str, parts: tuple[str, ...]) -> Generator[int]:
    """Open a folder below another, part by part, without following links. Unreadable folders are made readable."""
    inner = os.open(folder, _FOLDER)
    try:
        for part in parts:
            outer = inner
            try:
                inner = os.open(part, _FOLDER, dir_fd=outer)
            except PermissionError:
                os.chmod(part, 0o700, dir_fd=outer)
                inner = os.open(part, _FOLDER, dir_fd=outer)
            os.close(outer)
        yield inner
    finally:
        os.close(inner)


def remove_tree(path: str) -> None:
    """Remove a temporary folder of toolspeak with everything that a command has put in it."""
    from shutil import rmtree  # noqa: PLC0415 # slow to import, and only sandlock needs it

    rmtree(path, ignore_errors=True)


def _split(path: str) -> tuple[tuple[str, ...], str]:
    *parents, name = path.split("/")
    return tuple(parents), name


# ---------------------------------------------------------------- copies, for a sandbox that cannot mount


_NO_ORDERS: Final = frozenset(("objects", "refs", "logs", "lfs", "index", "packed-refs"))
_LARGEST: Final = 1 << 20
"""Maximum bytes of a file that are copied; hooks and settings are smaller."""
_SETUID: Final = 0o6000


class Copies:
    """The original content of protected files."""

    def __init__(self, folder: str, kept: dict[str, dict[str, tuple[int, str]]], known: dict[str, list[int]]) -> None:
        """Take the files of each protected path (`` is the path itself), with mode, and content decoded as latin-1."""
        self._folder: Final = folder
        self._kept: Final = kept
        self._known: Final = known

    @classmethod
    def take(cls, folder: str, paths: list[str]) -> "Copies":
        """Copy the present content of these paths."""
        known = {path: [*identity(f"{folder}/{path}")] for path in paths}
        return cls(folder, {path: _read(f"{folder}/{path}") for path in paths}, known)

    def dump(self) -> dict[str, Any]:
        """Return all copies as JSON, for the journal."""
        return {"kept": self._kept, "known": self._known}

    @classmethod
    def load(cls, folder: str, said: dict[str, Any]) -> "Copies":
        """Restore copies from the result of `dump`."""
        kept = {
            path: {name: (file[0], file[1]) for name, file in files.items()} for path, files in said["kept"].items()
        }
        return cls(folder, kept, said["known"])

    def folders(self) -> list[str]:
        """Return the folders to watch: a change in one of them is a change of a protected path."""
        found = dict.fromkeys(path.rpartition("/")[0] for path in self._kept)
        for path, files in self._kept.items():
            if os.path.isdir(f"{self._folder}/{path}"):  # noqa: PTH112 # pathlib takes time to load
                found |= dict.fromkeys((path, *(f"{path}/{name}".rpartition("/")[0] for name in files)))
        return [*found]

    def holds(self, path: str) -> bool:
        """Return whether a path is protected, or inside a protected folder."""
        return any(path == each or path.startswith(f"{each}/") for each in self._kept)

    def put_back(self) -> list[str]:
        """Restore changed files, and clear setuid bits. Return a note about each path that was changed."""
        changed = [path for path in self._kept if self._put_back(path)]
        for _, _, names, here in os.fwalk(self._folder):  # by descriptors: a path may be longer than the kernel allows
            for name in names:
                _without_setuid(name, here)
        return [f"{path!r} was changed, and was put back" for path in changed]

    def _put_back(self, path: str) -> bool:
        place, kept = f"{self._folder}/{path}", self._kept[path]
        parent = os.path.dirname(place)  # noqa: PTH120 # as above
        if os.path.realpath(parent) != parent:  # a parent folder was replaced by a link: writing would follow it
            return True
        moved = [*identity(place)] != self._known[path]
        # A repository that the command has moved is moved back: its objects exist only there, since they are not
        # copied.
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
            if now.get(name) != (mode, content):
                _write(f"{place}/{name}" if name else place, mode, content)
        return True

    def _moved(self, path: str) -> str:
        """Return the present path of a repository that was moved within the folder, or an empty string."""
        for found, each in survey(self._folder).items():
            if each.kind == BARE and [*each.state] == self._known[path]:
                return f"{self._folder}/{found}"
        return ""


def _read(place: str) -> dict[str, tuple[int, str]]:
    """Return the files at or below a path. Links, and files from which git runs nothing, are left out."""
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
    """Rename the file or folder that has taken a protected path."""
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
